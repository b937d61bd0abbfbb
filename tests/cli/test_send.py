"""belino send: each parcel with its receipt, and an exit code that says whether all arrived."""

import json
from pathlib import Path
from typing import Any

import pytest

from belino.cli import FAILED, OK, UNCERTAIN
from belino.cli.send import _code
from belino.testing import GatewayProcess
from cli.shell import Belino

MAIN = "web:default:main"


def parcel(state: str, *, doubt: bool = False) -> dict[str, Any]:
    return {"state": state, "may_have_arrived": doubt}


@pytest.mark.parametrize(
    ("parcels", "code"),
    [
        ([parcel("sent"), parcel("sent")], OK),
        ([parcel("sent"), parcel("uncertain", doubt=True)], UNCERTAIN),
        ([parcel("ready")], UNCERTAIN),
        ([parcel("dead", doubt=True)], UNCERTAIN),
        ([parcel("sent"), parcel("dead")], FAILED),
        ([parcel("held")], FAILED),
        ([parcel("uncertain"), parcel("dead")], FAILED),
    ],
)
def test_the_exit_code_is_0_only_if_all_arrived(parcels: list[dict[str, Any]], code: int) -> None:
    assert _code(parcels) == code
    assert (OK, FAILED, UNCERTAIN) == (0, 1, 75)


def test_without_a_gateway_nothing_is_sent(belino: Belino) -> None:
    assert belino("send", MAIN, "hello").returncode == 69


@pytest.mark.slow
def test_a_script_sends_a_text_and_a_file_and_gets_a_receipt_for_each(home: Path, belino: Belino) -> None:
    report = home.parent / "report.txt"
    report.write_text("all is well\n" * 500_000)  # more than one piece of an upload
    with GatewayProcess(home) as gateway:
        done = belino("send", MAIN, "The report", "--file", str(report))
        assert done.returncode == OK, done.stderr
        assert [line.split()[0] for line in done.stdout.splitlines()] == ["sent", "sent"]
        told = json.loads(belino("send", MAIN, "Again", "--json").stdout)["parcels"]
        assert [(each["state"], each["text"]) for each in told] == [("sent", "Again")]
        _, page = gateway.call("GET", f"/api/messages?conversation={MAIN}")
        assert [item["size"] for message in page["messages"] for item in message["media"]] == [report.stat().st_size]
        for wrong, says in (
            ((MAIN,), "nothing to send"),
            (("web:default:nowhere", "x"), "no conversation"),
            ((MAIN, "--file", str(home / "none")), "cannot be read"),
            ((MAIN, "x", "--as", "voice"), "no voice is configured"),
        ):
            refused = belino("send", *wrong)
            assert refused.returncode == FAILED and says in refused.stderr, refused.stderr
