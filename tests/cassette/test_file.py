"""A cassette's file, which may come from a stranger."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from belino.cassette import file as cassette_file
from belino.cassette.file import Unreadable, media_record, read_cassette, write_cassette
from belino.domain.errors import BelinoError
from belino.gateway.replay import config_of, replay

HEADER = {"format": "belino cassette", "version": 1}


def packed(path: Path, *lines: object) -> Path:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_bytes(gzip.compress(text.encode() + b"\n"))
    return path


def test_what_is_written_is_read_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    sha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    write_cassette(path, {"agent": "belino"}, [{"record": "turn"}, media_record(sha256, b"hello")])
    cassette = read_cassette(path)
    assert cassette.header["agent"] == "belino"
    assert cassette.records == ({"record": "turn"},)
    assert cassette.media == {sha256: b"hello"}
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not a cassette"),
        (b"no gzip", "damaged or not a cassette"),
        (gzip.compress(b"no json"), "not a cassette"),
        (gzip.compress(b'{"format": "something else"}'), "not a cassette"),
        (gzip.compress(b'{"format": "belino cassette", "version": 2}'), "newer belino"),
        (gzip.compress(json.dumps(HEADER).encode() + b"\n[1]"), "not one record"),
        (gzip.compress(json.dumps(HEADER).encode() + b'\n{"record": "media", "sha256": "0", "base64": "="}'), "hash"),
        (gzip.compress(json.dumps(HEADER).encode() + b"\n{}")[:-9], "cannot be unpacked"),
        (gzip.compress(json.dumps(HEADER).encode() + b'\n{"a":' + b"[" * 70 + b"]" * 70 + b"}"), "not one record"),
        (gzip.compress(json.dumps(HEADER).encode() + b'\n{"a":' + b"[" * 200_000), "not JSON"),
    ],
    # What gzip packs bears the time, and workers that collect at different times must agree on the names.
    ids=["empty", "no gzip", "no JSON", "foreign", "newer", "no object", "wrong hash", "cut off", "deep", "deeper"],
)  # fmt: skip
def test_a_damaged_foreign_or_newer_file_is_refused_with_the_reason(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(Unreadable, match=says):
        read_cassette(path)


def test_a_file_that_unpacks_to_very_much_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(json.dumps(HEADER).encode() + b"\n")
        for _ in range(65):
            file.write(b" " * 1024 * 1024)
    with pytest.raises(Unreadable, match="unpacks to more than"):
        read_cassette(path)
    assert cassette_file.LINE_BYTES < 65 * 1024 * 1024


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="cannot be read"):
        read_cassette(tmp_path / "nothing")


def account(**more: Any) -> dict[str, Any]:
    access = {"senders": ["*"], "direct": "list", "channels": []}
    return {"platform": "telegram", "account": "default", "access": access, "secrets": {"token": "HIDDEN"}, **more}


def test_a_strangers_configuration_names_no_place_no_command_and_no_secret_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME_SECRET", "canary")
    told = account(
        options={"api_url": "http://169.254.169.254/", "mode": "polling", "local_files": 1, "drafts": "sometimes"},
        secrets={"token": "HIDDEN", "webhook_secret": "env:HOME_SECRET"},
    )
    settings = {"media": {"sandbox": "off"}, "net": {"allow": ["10.0.0.1:80"]}, "server": {"bind": "0.0.0.0"}}
    config = config_of({"adapters": [told], "settings": settings, "agent": {"kind": "command", "command": ["sh"]}})
    (adapter,) = config.adapters
    assert adapter.options.api_url == "https://api.telegram.org"
    assert (adapter.options.local_files, adapter.options.drafts) == (False, "direct")
    assert (adapter.options.token.reveal(), adapter.options.webhook_secret) == ("HIDDEN", None)
    assert config.media.sandbox == "auto"
    assert (config.net.allow, config.server.bind, config.agent.kind) == ((), "127.0.0.1", "demo")


@pytest.mark.parametrize(
    "header",
    [
        {"adapters": [{"platform": "telegram"}]},
        {"adapters": [account(platform="../../etc")]},
        {"adapters": ["telegram"]},
        {"settings": {"sessions": {"max_running": -1}}},
        {"adapters": [account(secrets={"token": "env:HOME"})]},
    ],
)
def test_a_header_that_makes_no_sense_is_refused(header: dict[str, Any]) -> None:
    with pytest.raises(Unreadable):
        config_of(header)


@pytest.mark.parametrize(
    "record",
    [
        {"record": "arrival"},
        {"record": "arrival", "at": "2026-01-01T00:00:00+00:00"},
        {"record": "arrival", "at": "2026-01-01T00:00:00"},
        {"record": "arrival", "at": "2026-01-01T00:00:00+00:00", "arrival": {"kind": "message", "id": 7}},
        {"record": "arrival", "at": "2026-01-01T00:00:00+00:00", "arrival": {
            "kind": "unsupported", "id": "1", "author": {"id": "1", "name": "n"}, "sent": "2026-01-01T00:00:00+00:00",
            "what": "it", "conversation": {"platform": "elsewhere", "account": "a", "channel": "c"}}},
    ],
)  # fmt: skip
async def test_a_record_that_makes_no_sense_is_one_sentence(record: dict[str, Any], tmp_path: Path) -> None:
    cassette = read_cassette(packed(tmp_path / "a.jsonl.gz", {**HEADER, "adapters": [account()]}, record))
    with pytest.raises(BaseException) as caught:
        await replay(cassette)
    error = caught.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, BelinoError)
    assert "cassette" in str(error)
