"""A device is linked from the page: the code is shown to the owner only, in memory only, and the account connects."""

import logging
from pathlib import Path

import pytest

from adapters.harness import until
from adapters.in_house import at_work
from belino.domain.errors import ConfigError
from belino.gateway.linking import in_terminal, qr_rows
from belino.testing import SignalServer

SIGNAL = ("signal", "default")


def test_a_code_is_a_square_with_a_white_border_and_two_rows_to_a_line() -> None:
    rows = qr_rows("sgnl://linkdevice?uuid=x&pub_key=y")
    assert {len(row) for row in rows} == {len(rows)}
    assert rows[:4] == ("0" * len(rows),) * 4
    assert rows[4][4:11] == "1111111"
    shown = in_terminal(rows).split("\n")
    assert len(shown) == (len(rows) + 1) // 2
    assert all(line.startswith("\x1b[30;107m") and line.endswith("\x1b[0m") for line in shown)


async def test_an_account_without_a_device_is_linked_by_its_code_and_then_answers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with SignalServer(linked=False) as daemon:
        ann = daemon.user("Ann")
        settings = {"url": daemon.url, "access": {"senders": [ann["uuid"]]}}
        async with at_work(tmp_path / "home", signal=settings) as (gateway, _):
            await until(lambda: gateway.health()[SIGNAL].can_link)
            assert gateway.health()[SIGNAL].state == "unauthorized"
            progress = await gateway.linking.begin(SIGNAL)
            assert progress.code is not None
            assert progress.code.scan == daemon.answers.codes[-1]
            assert gateway.linking.progress(SIGNAL) == await gateway.linking.begin(SIGNAL)
            assert len(daemon.answers.codes) == 1
            daemon.scan()
            await until(lambda: gateway.linking.progress(SIGNAL).state == "linked")
            assert gateway.linking.progress(SIGNAL).code is None
            await until(lambda: gateway.health()[SIGNAL].works)
            assert not gateway.health()[SIGNAL].can_link
            daemon.say(ann, ann, "hello")
            await until(lambda: daemon.sent)
            with pytest.raises(ConfigError, match="needs no device to be linked"):
                await gateway.linking.begin(SIGNAL)
    kept = b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())
    assert b"canary-code" not in kept
    assert "canary-code" not in caplog.text


async def test_an_account_that_is_no_linked_device_has_nothing_to_link(tmp_path: Path) -> None:
    async with at_work(tmp_path / "home") as (gateway, _):
        with pytest.raises(ConfigError, match="needs no device to be linked"):
            await gateway.linking.begin(("web", "default"))
        with pytest.raises(ConfigError, match="is being linked"):
            gateway.linking.progress(("web", "default"))
