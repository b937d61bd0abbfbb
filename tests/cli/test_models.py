"""`belino models` lists what can be fetched, and asks before it fetches."""

import io
import json
from pathlib import Path

import pytest

from belino import cli


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BELINO_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_the_list_says_what_each_model_is_for_and_how_large_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models", "ls"]) == 0
    told = capsys.readouterr().out
    assert "whisper-base" in told
    assert "141.0MB" in told
    assert cli.main(["models", "ls", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(each["name"], each["fetched"]) for each in listed] == [
        ("whisper-tiny", False), ("whisper-base", False), ("whisper-small", False)
    ]  # fmt: skip


@pytest.mark.parametrize("answer", ["", "n\n", "no\n"])
def test_nothing_is_fetched_unless_the_operator_agrees(
    answer: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    # Nothing answers there, and belino would refuse to connect.
    assert cli.main(["models", "get", "whisper-tiny", "--source", "http://127.0.0.1:9"]) == 1
    told = capsys.readouterr().err
    assert "Fetch 74.6MB of Systran/faster-whisper-tiny (MIT license) from 127.0.0.1:9? [y/N]" in told
    assert "nothing was fetched" in told
    assert not (home / "models").exists()


def test_an_unknown_name_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models", "get", "nothing"]) == 1
    assert "belino fetches whisper-tiny" in capsys.readouterr().err
