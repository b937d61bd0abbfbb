"""belino record and belino replay, as a person uses them."""

import json
from pathlib import Path

import pytest

from belino.testing import GatewayProcess
from cli.shell import Belino

SAMPLE = Path(__file__).parent.parent / "samples" / "web" / "photo.cassette.jsonl.gz"


def test_without_a_gateway_nothing_is_recorded(belino: Belino) -> None:
    done = belino("record", "start")
    assert done.returncode == 69
    assert "no gateway runs" in done.stderr


def test_what_is_no_cassette_is_one_sentence(belino: Belino, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("milk, bread")
    done = belino("replay", str(tmp_path / "notes.txt"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "notes.txt is damaged or not a cassette" in done.stderr


def test_an_agent_nobody_configured_is_refused_with_the_known_ones(belino: Belino) -> None:
    done = belino("replay", str(SAMPLE), "--agent", "nobody")
    assert done.returncode == 78
    assert "recorded, demo" in done.stderr


@pytest.mark.slow
def test_a_cassette_replays_without_a_difference_and_with_another_agent_with_some(belino: Belino, home: Path) -> None:
    done = belino("replay", str(SAMPLE))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("nothing differs (")
    assert not home.exists()
    done = belino("replay", str(SAMPLE), "--agent", "demo", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["same"]) == (1, False)
    assert {difference["what"] for difference in told["differences"]} == {"parcel"}
    shown = belino("replay", str(SAMPLE), "--agent", "demo").stdout
    assert "--- recorded" in shown
    assert "1 difference (" in shown


@pytest.mark.slow
def test_a_recording_outlives_its_process_and_ends_in_a_file_that_replays(belino: Belino, home: Path) -> None:
    with GatewayProcess(home):
        done = belino("record", "start", "--conversation", "web:default:main")
        assert done.returncode == 0
        assert done.stdout.startswith("recording web:default:main since ")
        assert belino("record", "start").returncode == 1
    with GatewayProcess(home) as gateway:
        assert "is being recorded" in belino("status").stdout
        body = {"conversation": "web:default:main", "message": "what can you do?", "attachments": []}
        assert gateway.call("POST", "/api/messages", body)[0] in (200, 201, 202)
        path = ""
        while '"record":"parcel"' not in (home / "cassettes" / "recording.jsonl").read_text():
            assert belino("record").stdout.startswith("recording ")
        path = belino("record", "stop").stdout.splitlines()[0]
        assert belino("record").stdout.startswith("nothing is being recorded")
    done = belino("replay", path)
    assert (done.returncode, done.stderr) == (0, "")
