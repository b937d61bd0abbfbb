"""Uploads go on where they stopped, and nobody opens them without end."""

import asyncio
import base64
import hashlib
import io
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from belino.config import Config
from belino.domain.errors import StoreFull
from belino.storage.home import Home
from belino.storage.store import open_store
from belino.testing.clock import FakeClock

MAIN = "web:default:main"
MIB = 1024 * 1024


async def begin(site: Any, size: int, headers: dict[str, str] | None = None, **more: Any) -> tuple[int, Any]:
    wish = {"conversation": MAIN, "file_name": "a.bin", "mime_type": "text/plain", "size": size, **more}
    status, body, _ = await site.ask("POST", "/api/uploads", headers=headers, json=wish)
    return status, body


async def extend(site: Any, upload: str, offset: int, data: Any) -> tuple[int, Any]:
    headers = {**site.program, "Upload-Offset": str(offset)}
    data = io.BytesIO(data) if isinstance(data, bytes) else data
    status, body, _ = await site.ask("PATCH", f"/api/uploads/{upload}", headers=headers, data=data)
    return status, body


async def test_a_file_arrives_in_pieces_and_is_known_by_its_hash(site: Any) -> None:
    content = bytes(range(256)) * 1000
    digest = hashlib.sha256(content).hexdigest()
    status, begun = await begin(site, len(content), sha256=digest)
    upload = begun["upload_id"]
    assert (status, begun["offset"], begun["size"]) == (201, 0, len(content))
    assert begun["chunk_bytes"] == 4 * 1024 * 1024
    status, half = await extend(site, upload, 0, content[:100_000])
    assert (status, half["offset"], half["sha256"]) == (200, 100_000, None)
    assert (await site.ask("GET", f"/api/uploads/{upload}"))[1]["offset"] == 100_000
    status, whole = await extend(site, upload, 100_000, content[100_000:])
    assert (status, whole["offset"], whole["sha256"]) == (200, len(content), digest)


async def test_a_wrong_offset_is_a_conflict_that_names_the_right_one(site: Any) -> None:
    _, begun = await begin(site, 10)
    await extend(site, begun["upload_id"], 0, b"abc")
    for offset in (0, 2, 4, 10, 11):
        status, body = await extend(site, begun["upload_id"], offset, b"x")
        assert (status, body["error"]["code"], body["offset"]) == (409, "conflict", 3)


@pytest.mark.parametrize("offset", ["", "-1", "1.5", "0x0", "٣", "99999999999999999999"])
async def test_an_offset_is_a_plain_number(site: Any, offset: str) -> None:
    _, begun = await begin(site, 10)
    raw = (
        f"PATCH /api/uploads/{begun['upload_id']} HTTP/1.1\r\nHost: {site.host}\r\nConnection: close\r\n"
        f"Authorization: {site.program['Authorization']}\r\nUpload-Offset: {offset}\r\nContent-Length: 1\r\n\r\nx"
    )
    assert (await site.raw(raw.encode())).startswith(b"HTTP/1.1 400")


async def test_what_arrived_before_the_line_broke_counts(site: Any) -> None:
    _, begun = await begin(site, 1_000_000)
    upload = begun["upload_id"]
    _, writer = await asyncio.open_connection("127.0.0.1", site.port)
    head = (
        f"PATCH /api/uploads/{upload} HTTP/1.1\r\nHost: {site.host}\r\nUpload-Offset: 0\r\n"
        f"Authorization: {site.program['Authorization']}\r\nContent-Length: 1000000\r\n\r\n"
    )
    writer.write(head.encode() + b"a" * 300_000)
    await writer.drain()
    writer.close()
    async with asyncio.timeout(60):
        while (await site.ask("GET", f"/api/uploads/{upload}"))[1]["offset"] < 300_000:
            await asyncio.sleep(0)
    async with asyncio.timeout(60):
        while (await extend(site, upload, 300_000, b"b" * 700_000))[0] == 409:
            await asyncio.sleep(0)
    _, done, _ = await site.ask("GET", f"/api/uploads/{upload}")
    assert done["sha256"] == hashlib.sha256(b"a" * 300_000 + b"b" * 700_000).hexdigest()


async def test_two_requests_do_not_write_to_one_upload(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, begun = await begin(site, 100)
    upload = begun["upload_id"]
    writing, go_on = asyncio.Event(), asyncio.Event()
    really_extend = site.gateway.store.extend_upload

    async def watched(*arguments: Any) -> Any:
        writing.set()
        return await really_extend(*arguments)

    async def slow() -> Any:
        yield b"x" * 50
        await go_on.wait()
        yield b"x" * 50

    monkeypatch.setattr(site.gateway.store, "extend_upload", watched)
    async with asyncio.TaskGroup() as group, asyncio.timeout(60):
        first = group.create_task(extend(site, upload, 0, slow()))
        await writing.wait()
        status, body = await extend(site, upload, 0, b"")
        assert (status, body["error"]["code"]) == (409, "conflict")
        go_on.set()
    assert first.result()[1]["offset"] == 100


async def test_several_files_come_at_once(site: Any) -> None:
    contents = [bytes([number]) * 200_000 for number in range(8)]

    async def one(content: bytes) -> str:
        _, begun = await begin(site, len(content))
        for start in range(0, len(content), 50_000):
            _, stands = await extend(site, begun["upload_id"], start, content[start : start + 50_000])
        return str(stands["sha256"])

    digests = await asyncio.gather(*(one(content) for content in contents))
    assert digests == [hashlib.sha256(content).hexdigest() for content in contents]


async def test_bytes_that_are_not_what_was_announced_are_not_kept(site: Any) -> None:
    _, begun = await begin(site, 3, sha256="0" * 64)
    status, body = await extend(site, begun["upload_id"], 0, b"abc")
    assert (status, body["error"]["code"]) == (422, "bad_request")
    assert (await site.ask("GET", f"/api/uploads/{begun['upload_id']}"))[0] == 404


async def test_more_than_announced_is_refused_with_and_without_a_length(site: Any) -> None:
    async def chunked() -> Any:
        yield b"abcdef"

    _, begun = await begin(site, 3)
    status, body = await extend(site, begun["upload_id"], 0, b"abcdef")
    assert (status, body["error"]["code"]) == (413, "too_large")
    assert (await extend(site, begun["upload_id"], 0, chunked()))[0] == 422


@pytest.mark.parametrize(
    ("wish", "status", "code"),
    [
        ({"size": 0}, 400, "empty"),
        ({"size": 100 * 1024 * 1024 + 1}, 413, "too_large"),
        ({"size": -1}, 400, "bad_request"),
        ({"size": "3"}, 400, "bad_request"),
        ({"size": 1.5}, 400, "bad_request"),
        ({"size": True}, 400, "bad_request"),
        ({"size": None}, 400, "bad_request"),
        ({"sha256": "xyz"}, 400, "bad_request"),
        ({"file_name": "x" * 256}, 400, "bad_request"),
        ({"conversation": "web:default:nowhere"}, 404, "not_found"),
        ({"path": "/etc/passwd"}, 400, "bad_request"),
    ],
)
async def test_what_cannot_be_uploaded_is_said_before_a_byte_is_sent(
    site: Any, wish: dict[str, Any], status: int, code: str
) -> None:
    answered, body = await begin(site, **{"size": 3, **wish})
    assert (answered, body["error"]["code"]) == (status, code)


async def test_uploads_that_are_begun_and_left_are_bounded(run_site: Any) -> None:
    config = Config()
    async with run_site(replace(config, server=replace(config.server, open_uploads=3))) as site:
        begun = [(await begin(site, 3))[1]["upload_id"] for _ in range(3)]
        status, body = await begin(site, 3)
        assert (status, body["error"]["code"]) == (429, "busy")
        assert (await extend(site, begun[0], 0, b"abc"))[0] == 200
        assert (await begin(site, 3))[0] == 201
        assert (await site.ask("DELETE", f"/api/uploads/{begun[1]}"))[0] == 204
        assert (await begin(site, 3))[0] == 201
        assert (await begin(site, 3))[0] == 429


async def test_a_full_disk_is_told_and_nothing_is_lost_that_was_there(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, begun = await begin(site, 3)

    async def full(*_: object) -> None:
        raise StoreFull("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(site.gateway.store, "extend_upload", full)
        status, body = await extend(site, begun["upload_id"], 0, b"abc")
    assert (status, body["error"]["code"]) == (507, "store_full")
    assert (await extend(site, begun["upload_id"], 0, b"abc"))[0] == 200


@pytest.mark.parametrize("upload", ["nowhere", "x" * 100, "..", "a.b"])
async def test_an_upload_nobody_began_is_nowhere(site: Any, upload: str) -> None:
    for method in ("GET", "DELETE"):
        assert (await site.ask(method, f"/api/uploads/{upload}"))[0] == 404


def limited(**limits: Any) -> Config:
    config = Config()
    return replace(config, media=replace(config.media, **limits))


def on_disk(site: Any) -> int:
    return sum(path.stat().st_size for path in site.gateway.home.blobs.rglob("*") if path.is_file())


async def test_a_channels_token_cannot_begin_more_in_a_day_than_the_channel_may_bring(site: Any) -> None:
    token = await site.token()
    most = Config().media
    for _ in range(most.channel_bytes_per_day // most.max_bytes):
        assert (await begin(site, most.max_bytes, token))[0] == 201
    status, body = await begin(site, most.max_bytes, token)
    assert (status, body["error"]["code"]) == (413, "over_limit")
    assert f"0 left of {most.channel_bytes_per_day}" in body["error"]["message"]
    assert "media.channel_bytes_per_day" in body["error"]["message"]
    _, opened, _ = await site.ask("POST", "/api/conversations", json={"name": "Other"})
    assert (await begin(site, most.max_bytes, conversation=opened["conversation"]))[0] == 201


async def test_finished_uploads_fill_a_channels_day_and_the_next_one_begins_empty(run_site: Any) -> None:
    clock = FakeClock()
    async with run_site(limited(channel_bytes_per_day=16 * MIB), clock=clock) as site:
        token = await site.token()
        for number in range(4):
            _, begun = await begin(site, 4 * MIB, token)
            assert (await extend(site, begun["upload_id"], 0, bytes([number]) * 4 * MIB))[0] == 200
            if number % 2:
                assert (await site.ask("DELETE", f"/api/uploads/{begun['upload_id']}"))[0] == 204
        status, body = await begin(site, 1, token)
        assert (status, body["error"]["code"]) == (413, "over_limit")
        assert on_disk(site) <= 16 * MIB
        clock.shift(24 * 3600 + 1)
        assert (await begin(site, 16 * MIB, token))[0] == 201


async def test_all_channels_together_hold_no_more_unattached_bytes_than_their_total(run_site: Any) -> None:
    async with run_site(limited(uploads_bytes=8 * MIB)) as site:
        _, opened, _ = await site.ask("POST", "/api/conversations", json={"name": "Other"})
        _, first = await begin(site, 4 * MIB)
        assert (await extend(site, first["upload_id"], 0, b"x" * 4 * MIB))[0] == 200
        assert (await begin(site, 4 * MIB, conversation=opened["conversation"]))[0] == 201
        status, body = await begin(site, 1)
        assert (status, body["error"]["code"]) == (413, "over_limit")
        assert "media.uploads_bytes" in body["error"]["message"]
        said = {"conversation": MAIN, "message": "here", "attachments": [{"upload_id": first["upload_id"]}]}
        assert (await site.ask("POST", "/api/messages", json=said))[0] == 200
        assert (await begin(site, 4 * MIB))[0] == 201


async def test_attachments_in_frames_and_bodies_count_like_uploads(run_site: Any) -> None:
    half = {"content": base64.b64encode(b"x" * (MIB // 2)).decode(), "mime_type": "text/plain"}
    said = {"conversation": MAIN, "message": "two halves", "attachments": [half]}
    async with run_site(limited(channel_bytes_per_day=MIB)) as site, site.socket() as chat:
        assert (await chat.call("chat.send", **said))["ok"]
        assert (await site.ask("POST", "/api/messages", json=said))[0] == 200
        response = await chat.call("chat.send", **said)
        assert (response["ok"], response["error"]["code"]) == (False, "over_limit")
        status, body, _ = await site.ask("POST", "/api/messages", json=said)
        assert (status, body["error"]["code"]) == (413, "over_limit")
        assert "media.channel_bytes_per_day" in body["error"]["message"]
        counts = await site.gateway.store.counts()
        assert (counts["refs"], counts["uploads_open"]) == (2, 0)
        assert (await chat.call("chat.send", conversation=MAIN, message="words still come"))["ok"]


async def test_an_upload_that_waited_too_long_for_its_message_is_asked_for_again(site: Any) -> None:
    _, begun = await begin(site, 3)
    await extend(site, begun["upload_id"], 0, b"abc")
    await site.gateway.store.drop_upload(begun["upload_id"])
    said = {"conversation": MAIN, "message": "late", "attachments": [{"upload_id": begun["upload_id"]}]}
    status, body, _ = await site.ask("POST", "/api/messages", json=said)
    assert (status, body["error"]["code"]) == (404, "not_found")
    assert "Upload it again" in body["error"]["message"]


@pytest.mark.parametrize("way", ["frame", "body"])
async def test_a_request_that_was_killed_leaves_nothing_for_the_next_start(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    _, begun = await begin(site, 10)
    await extend(site, begun["upload_id"], 0, b"abc")
    writing, go_on = asyncio.Event(), asyncio.Event()
    really_extend = site.gateway.store.extend_upload

    async def slowly(upload_id: str, offset: int, chunks: Any) -> Any:
        async def halted() -> Any:
            async for chunk in chunks:
                yield chunk[: MIB // 2]
                yield chunk[MIB // 2 : MIB - 1]
                writing.set()
                await go_on.wait()
                yield chunk[MIB - 1 :]

        return await really_extend(upload_id, offset, halted())

    monkeypatch.setattr(site.gateway.store, "extend_upload", slowly)
    content = base64.b64encode(b"x" * MIB).decode() if way == "frame" else base64.b64encode(b"x" * (MIB // 2)).decode()
    said = {"conversation": MAIN, "message": "cut off", "attachments": [{"content": content}]}
    async with asyncio.timeout(60), site.socket() as chat, asyncio.TaskGroup() as group:
        if way == "frame":
            sending: Any = group.create_task(chat.call("chat.send", **said))
        else:
            sending = group.create_task(site.ask("POST", "/api/messages", json=said))
        await writing.wait()
        home = Home.at(shutil.copytree(site.gateway.home.path, tmp_path / "killed"))  # as a kill leaves it
        go_on.set()
        await sending
    store = await open_store(home, clock=FakeClock())
    assert [path.name for path in (home.blobs / "tmp").iterdir()] == [f"upload-{begun['upload_id']}"]
    assert (await store.counts())["uploads_open"] == 1
    resumed = await store.upload(begun["upload_id"])
    assert resumed is not None
    assert resumed.offset == 3
    await store.close()
