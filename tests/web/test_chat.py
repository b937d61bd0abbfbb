"""The chat socket keeps its promises, whatever a client sends."""

import asyncio
import base64
import json
import struct
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from belino.config import Config
from belino.domain.errors import StoreFull
from belino.domain.message import ChatType, ConversationKey
from belino.testing import make_png
from belino.web import chat as chat_module
from belino.web.request_context import SOCKETS_PER_GRANT

MAIN = "web:default:main"
OTHER = ConversationKey(platform="web", account="default", channel="other")


def content(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def answered(chat: Any) -> dict[str, Any]:
    """The agent's next message."""
    while True:
        event = await chat.event("message")
        if event["message"]["author"]["is_agent"]:
            return dict(event["message"])


async def test_what_is_said_is_answered_and_told_to_everybody_who_watches(site: Any) -> None:
    async with site.socket() as speaker, site.socket(await site.browser()) as watcher:
        assert watcher.hello["agent"] == {"name": "belino", "kind": "demo"}
        said = await speaker.call("chat.send", conversation=MAIN, message="hello there", id="m1")
        assert said["ok"]
        assert (said["payload"]["message_id"], said["payload"]["message"]["text"]) == ("m1", "hello there")
        assert said["payload"]["message"]["author"] == {
            "id": "owner",
            "name": "You",
            "is_bot": False,
            "is_agent": False,
        }
        reply = await answered(watcher)
        assert "2 words" in reply["text"]
        assert reply["delivery"] == "sent"
        states = [event["state"] for event in watcher.events if event["event"] == "turn"]
        assert states[0] == "waiting"
        assert "running" in states


async def test_a_picture_in_the_frame_reaches_the_agent(site: Any) -> None:
    async with site.socket() as chat:
        picture = {"mimeType": "image/png", "fileName": "p.png", "content": content(make_png(40, 30))}
        said = await chat.call("chat.send", conversation=MAIN, message="what is this?", attachments=[picture])
        (media,) = said["payload"]["message"]["media"]
        assert (media["width"], media["height"], media["file_name"]) == (40, 30, "p.png")
        assert media["url"].startswith("/api/media/")
        assert "40" in (await answered(chat))["text"]


async def test_what_clients_of_other_servers_send_with_the_same_method_is_accepted(site: Any) -> None:
    picture = {"type": "image", "mimeType": "image/png", "fileName": "p.png", "content": content(make_png(4, 3))}
    sent = {
        "conversation": MAIN,
        "message": "what is this?",
        "sessionKey": "agent:main:main",
        "thinking": "low",
        "deliver": False,
        "timeoutMs": 30_000,
        "idempotencyKey": "5f0c1b-1",
        "attachments": [{**picture, "id": "a1", "size": 70, "width": 4, "height": 3}],
    }
    async with site.socket() as chat:
        first, again = [await chat.call("chat.send", **sent) for _ in range(2)]
        assert first["ok"] and first["payload"]["message_id"] == again["payload"]["message_id"] == "5f0c1b-1"
        (media,) = first["payload"]["message"]["media"]
        assert (media["file_name"], media["width"]) == ("p.png", 4)
        refused = await chat.call("chat.send", **sent, path="/etc/passwd")
        assert refused["error"]["code"] == "bad_request"


async def test_a_recorded_sound_arrives_as_a_voice_message_and_a_picture_does_not(site: Any) -> None:
    async with site.socket() as chat:
        spoken = {
            "mimeType": "audio/webm;codecs=opus",
            "fileName": "v.webm",
            "content": content(b"\x1aE\xdf\xa3 sound"),
        }
        said = await chat.call(
            "chat.send", conversation=MAIN, message="", attachments=[{**spoken, "voice": True, "duration": 2.5}]
        )
        (media,) = said["payload"]["message"]["media"]
        assert (media["kind"], media["mime"], media["duration"]) == ("voice", "audio/webm", 2.5)
        picture = {"mimeType": "image/png", "fileName": "p.png", "content": content(make_png(4, 3)), "voice": True}
        refused = await chat.call("chat.send", conversation=MAIN, message="", attachments=[picture], id="m9")
        assert refused["error"]["message"] == "A voice message must be a sound; this attachment is image/png."
        assert (await site.gateway.store.messages(ConversationKey.parse(MAIN), ["m9"])) == ()


async def test_the_same_id_twice_is_one_message(site: Any) -> None:
    async with site.socket() as chat:
        first = await chat.call("chat.send", conversation=MAIN, message="once", id="same")
        await answered(chat)
        again = await chat.call("chat.send", conversation=MAIN, message="twice", id="same")
        assert again["payload"]["message"]["text"] == "once"
        assert again["payload"]["trace"] == first["payload"]["trace"]
        assert again["payload"]["message_id"] == "same"
        history = await chat.call("chat.history", conversation=MAIN)
        assert [message["text"] for message in history["payload"]["messages"]].count("once") == 1
        assert "twice" not in str(history)


async def test_the_same_id_sent_by_many_at_once_is_one_message(site: Any) -> None:
    body = {"conversation": MAIN, "message": "hi", "id": "race", "attachments": [{"content": "AAAA"}]}
    answers = await asyncio.gather(*(site.ask("POST", "/api/messages", json=body) for _ in range(20)))
    assert {status for status, _, _ in answers} == {200}
    assert len({answer["trace"] for _, answer, _ in answers}) == 1
    _, page, _ = await site.ask("GET", f"/api/messages?conversation={MAIN}")
    assert [message["id"] for message in page["messages"]].count("race") == 1
    assert (await site.gateway.store.counts())["refs"] == 1


async def test_an_id_of_the_agents_own_message_is_refused(site: Any) -> None:
    async with site.socket() as chat:
        await chat.call("chat.send", conversation=MAIN, message="hello")
        reply = await answered(chat)
        taken = await chat.call("chat.send", conversation=MAIN, message="I am the agent", id=reply["id"])
        assert (taken["ok"], taken["error"]["code"]) == (False, "conflict")


@pytest.mark.parametrize(
    ("attachments", "code"),
    [
        ([{"content": "not base64!"}], "bad_base64"),
        ([{"content": "AAAA"}, {"content": "AAA"}], "bad_base64"),
        ([{"content": "AAAA"}, {"content": [256]}], "bad_base64"),
        ([{"content": ""}], "empty"),
        ([{"content": "A" * 12_000_000}], "too_large"),
        ([{"content": "A" * 6_000_000}] * 2, "too_large"),
        ([{"content": "AAAA"}, {"upload_id": "nowhere"}], "not_found"),
        ([{"path": "/etc/passwd"}], "bad_request"),
        ([{"content": "AAAA"}] * 33, "bad_request"),
        ("AAAA", "bad_request"),
    ],
)
async def test_a_bad_attachment_is_told_the_line_holds_and_nothing_is_kept(
    site: Any, attachments: Any, code: str
) -> None:
    async with site.socket() as chat:
        refused = await chat.call("chat.send", conversation=MAIN, message="look", attachments=attachments)
        assert (refused["ok"], refused["error"]["code"]) == (False, code)
        assert (await chat.call("chat.history", conversation=MAIN))["payload"] == {"messages": [], "more": False}
    counts = await site.gateway.store.counts()
    assert (counts["messages"], counts["refs"], counts["uploads_open"]) == (0, 0, 0)
    assert not list((site.gateway.home.blobs / "tmp").iterdir())


async def test_a_send_that_fails_after_its_files_were_kept_leaves_no_upload_behind(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[str] = []
    drop = site.gateway.store.drop_upload

    async def watched(upload_id: str) -> None:
        dropped.append(upload_id)
        await drop(upload_id)

    async def full(_message: object) -> None:
        raise StoreFull("the disk is full")

    _, begun, _ = await site.ask("POST", "/api/uploads", json={"conversation": MAIN, "file_name": "a", "size": 3})
    own = begun["upload_id"]
    await site.ask("PATCH", f"/api/uploads/{own}", headers={**site.program, "Upload-Offset": "0"}, data=b"abc")
    with monkeypatch.context() as patched:
        patched.setattr(site.gateway.store, "drop_upload", watched)
        patched.setattr(site.gateway.web, "post", full)
        async with site.socket() as chat:
            attachments = [{"content": "AAAA"}, {"upload_id": own}, {"content": [1, 2]}]
            refused = await chat.call("chat.send", conversation=MAIN, message="x", attachments=attachments, id="again")
            assert refused["error"]["code"] == "store_full"
    assert len(dropped) == 2
    assert own not in dropped
    async with site.socket() as chat:
        said = await chat.call("chat.send", conversation=MAIN, message="x", attachments=attachments, id="again")
        assert [media["size"] for media in said["payload"]["message"]["media"]] == [3, 3, 2]
    assert (await site.ask("GET", f"/api/uploads/{own}"))[0] == 404


async def test_an_upload_of_another_conversation_or_unfinished_is_not_taken(site: Any) -> None:
    await site.gateway.store.open_conversation(OTHER, "Other", ChatType.DIRECT)
    wish = {"conversation": str(OTHER), "file_name": "a", "size": 3}
    _, begun, _ = await site.ask("POST", "/api/uploads", json=wish)
    attachments = [{"uploadId": begun["upload_id"]}]
    async with site.socket() as chat:
        foreign = await chat.call("chat.send", conversation=MAIN, message="x", attachments=attachments)
        assert foreign["error"]["code"] == "not_found"
        unfinished = await chat.call("chat.send", conversation=str(OTHER), message="x", attachments=attachments)
        assert unfinished["error"]["code"] == "bad_request"


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "nonsense",
        "[]",
        "null",
        "{}",
        '{"type":"req"}',
        '{"type":"res","id":"1","method":"chat.history","params":{}}',
        '{"type":"req","id":{"a":1},"method":"chat.history"}',
        '{"type":"req","id":true,"method":"chat.history"}',
        '{"type":"req","id":"1","method":["chat.send"],"params":{}}',
        '{"type":"req","id":"1","method":"chat.send","params":[1]}',
        '{"type":"req","id":"1","method":"chat.send","params":{"conversation":NaN}}',
        '{"type":"req","id":"1","method":"chat.send","params":{"conversation":"web:default:main","message":"\\ud800"}}',
        '{"type":"req","id":"1","method":"chat.send","params":{"conversation":"web:default:main","message":7}}',
        '{"type":"req","id":"1","method":"chat.send","params":{"conversation":"telegram:default:1","message":"x"}}',
        '{"type":"req","id":"1","method":"chat.send","params":{"conversation":"web:default:main","message":"x","id":"."}}',
        '{"type":"req","id":"1","method":"chat.history","params":{"conversation":"web:default:main","limit":1e9}}',
        '{"type":"req","id":"1","method":"chat.history","params":' + "[" * 5000 + "]" * 5000 + "}",
    ],
)
async def test_a_frame_that_makes_no_sense_is_told_so_and_the_line_holds(site: Any, frame: str) -> None:
    async with site.socket() as chat:
        await chat.socket.send_str(frame)
        refused = await chat.response()
        assert (refused["ok"], refused["error"]["code"]) == (False, "bad_request")
        assert (await chat.call("chat.history", conversation=MAIN))["ok"]


async def test_other_refusals_have_their_own_codes(site: Any) -> None:
    async with site.socket() as chat:
        assert (await chat.call("chat.dance"))["error"]["code"] == "unknown_method"
        assert (await chat.call("chat.send", conversation=MAIN, message=" "))["error"]["code"] == "empty"
        assert (await chat.call("chat.send", conversation=MAIN, message="x" * 200_001))["error"]["code"] == "too_large"
        nowhere = await chat.call("chat.send", conversation="web:default:nowhere", message="x")
        assert nowhere["error"]["code"] == "not_found"
        await chat.socket.send_bytes(b'{"type":"req"}')
        assert (await chat.response())["error"]["code"] == "bad_request"


async def test_a_frame_beyond_what_is_read_closes_the_line_as_soon_as_it_says_so(site: Any) -> None:
    upgrade = (
        f"GET /ws HTTP/1.1\r\nHost: {site.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        f"Authorization: {site.program['Authorization']}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(upgrade.encode())
    async with asyncio.timeout(60):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
        # The head of a masked text frame that announces one byte too many; not one byte of it is sent.
        writer.write(b"\x81\xff" + struct.pack("!Q", 32 * 1024 * 1024 + 1) + b"mask")
        told = await reader.read()
    assert struct.pack("!H", 1009) in told[told.rindex(b"\x88") :]
    writer.close()


async def test_a_flood_of_values_is_refused_by_its_id_before_it_is_unpacked(run_site: Any) -> None:
    config = Config()
    config = replace(config, server=replace(config.server, frame_attachment_bytes=1_000))
    flood = {"conversation": MAIN, "message": "x", "attachments": [{"content": [1] * 300_000}]}
    async with run_site(config) as site, site.socket() as chat:
        refused = await chat.call("chat.send", **flood)
        assert refused["error"]["code"] == "too_large"
        await chat.socket.send_str(json.dumps({"params": flood, "id": "last", "type": "req", "method": "chat.send"}))
        refused = await chat.response()
        assert (refused["id"], refused["error"]["code"]) == (None, "too_large")
        assert (await chat.call("chat.history", conversation=MAIN))["ok"]


async def test_frames_are_answered_by_id_and_all_of_a_burst(site: Any) -> None:
    async with site.socket() as chat:
        for number in range(100):
            params = {"conversation": MAIN}
            frame = {"type": "req", "id": number, "method": "chat.history", "params": params}
            await chat.socket.send_str(json.dumps(frame))
        assert {(await chat.response())["id"] for _ in range(100)} == set(range(100))


async def test_history_is_paged_both_ways(site: Any) -> None:
    async with site.socket() as chat:
        for number in range(5):
            await chat.call("chat.send", conversation=MAIN, message=f"m{number}")
            await answered(chat)

        async def page(**params: Any) -> tuple[list[int], bool]:
            payload = (await chat.call("chat.history", conversation=MAIN, **params))["payload"]
            return [message["seq"] for message in payload["messages"]], payload["more"]

        newest, more = await page(limit=4)
        assert (newest, more) == ([7, 8, 9, 10], True)
        assert await page(before=7, limit=4) == ([3, 4, 5, 6], True)
        assert await page(before=3, limit=4) == ([1, 2], False)
        assert await page(after=0, limit=4) == ([1, 2, 3, 4], True)
        assert await page(after=8) == ([9, 10], False)


async def test_a_page_of_very_long_messages_is_cut_and_says_so(site: Any) -> None:
    for number in range(12):
        said = {"conversation": MAIN, "message": f"{number} " + "x" * 190_000, "id": f"long{number}"}
        assert (await site.ask("POST", "/api/messages", json=said))[0] == 200
    _, page, _ = await site.ask("GET", f"/api/messages?conversation={MAIN}&limit=200&after=0")
    assert page["more"]
    assert page["messages"][0]["id"] == "long0"


async def test_a_channels_token_hears_and_says_only_what_is_its_own(site: Any) -> None:
    await site.gateway.store.open_conversation(OTHER, "Other", ChatType.DIRECT)
    async with site.socket(await site.token(OTHER)) as theirs, site.socket() as ours:
        await ours.call("chat.send", conversation=MAIN, message="private")
        await answered(ours)
        assert (await theirs.call("chat.history", conversation=MAIN))["error"]["code"] == "not_found"
        assert (await theirs.call("chat.send", conversation=MAIN, message="x"))["error"]["code"] == "not_found"
        assert (await theirs.call("chat.abort", conversation=MAIN))["error"]["code"] == "not_found"
        said = await theirs.call("chat.send", conversation=str(OTHER), message="mine")
        author = said["payload"]["message"]["author"]
        assert author["is_bot"]
        assert author["id"] != "owner"
        await answered(theirs)
        assert {event.get("conversation") for event in theirs.events} == {None, str(OTHER)}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Origin": "{url}"}, 401),
        ({"Cookie": "{cookie}"}, 403),
        ({"Cookie": "{cookie}", "Origin": "null"}, 403),
        ({"Cookie": "{cookie}", "Origin": "http://evil.test"}, 403),
        ({"Cookie": "{cookie}", "Origin": "http://localhost:1"}, 403),
        ({"Cookie": "{cookie}", "Origin": "{url}.evil.test"}, 403),
        ({"Authorization": "Bearer nonsense"}, 401),
        ({"Authorization": "Basic eDp5"}, 401),
        ({"Sec-WebSocket-Protocol": "bearer"}, 401),
    ],
)
async def test_the_login_happens_at_the_upgrade(site: Any, headers: dict[str, str], status: int) -> None:
    cookie = (await site.browser())["Cookie"]
    sent = {name: value.format(url=site.url, cookie=cookie) for name, value in headers.items()}
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await site.http.ws_connect(f"{site.url}/ws", headers=sent)
    assert refused.value.status == status


async def test_one_login_cannot_open_sockets_without_end(site: Any) -> None:
    sockets = [await site.http.ws_connect(f"{site.url}/ws", headers=site.program) for _ in range(SOCKETS_PER_GRANT)]
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await site.http.ws_connect(f"{site.url}/ws", headers=site.program)
    assert refused.value.status == 429
    async with site.socket(await site.browser()):
        pass
    for socket in sockets:
        await socket.close()
    async with asyncio.timeout(60):
        while True:
            try:
                async with site.socket():
                    return
            except aiohttp.WSServerHandshakeError:
                await asyncio.sleep(0)


async def test_a_reader_that_falls_behind_is_told_that_it_lost_something(site: Any) -> None:
    async with site.socket() as chat:
        # Published without letting anybody read in between: more than a watcher's queue holds.
        for number in range(5_000):
            site.gateway.notices.turn(ConversationKey.parse(MAIN), number, "note", "x")
        assert (await chat.event("lost"))["type"] == "event"
        assert (await chat.call("chat.history", conversation=MAIN))["ok"]


async def test_a_reader_that_takes_nothing_is_given_up(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_module, "SEND_SECONDS", 0.05)
    _, writer = await asyncio.open_connection("127.0.0.1", site.port, limit=1024)
    writer.write(
        f"GET /ws HTTP/1.1\r\nHost: {site.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        f"Authorization: {site.program['Authorization']}\r\n\r\n".encode()
    )
    async with asyncio.timeout(60):
        while not site.gateway.notices.watched():
            await asyncio.sleep(0)
        # Nobody reads: the kernel's buffers fill, then ours, then the line is given up.
        text = "x" * 1_000_000
        while site.gateway.notices.watched():
            site.gateway.notices.turn(ConversationKey.parse(MAIN), 1, "note", text)
            await asyncio.sleep(0)
    writer.transport.abort()
    assert (await site.ask("GET", "/api/me"))[0] == 200


async def test_a_request_that_breaks_is_told_without_details_and_the_line_holds(
    site: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object, **__: object) -> Any:
        raise RuntimeError("canary-secret")

    async with site.socket() as chat:
        with monkeypatch.context() as patched:
            patched.setattr(site.gateway.store, "history", broken)
            refused = await chat.call("chat.history", conversation=MAIN)
        assert refused["error"]["code"] == "internal"
        assert "canary" not in str(refused) + caplog.text
        assert (await chat.call("chat.history", conversation=MAIN))["ok"]


async def test_a_limit_of_the_configuration_holds_for_frames(run_site: Any) -> None:
    config = Config()
    small = replace(config, server=replace(config.server, frame_attachment_bytes=10))
    async with run_site(small) as site, site.socket() as chat:
        assert chat.hello["limits"]["frame_attachment_bytes"] == 10
        over = await chat.call(
            "chat.send", conversation=MAIN, message="", attachments=[{"content": content(b"x" * 11)}]
        )
        assert over["error"]["code"] == "too_large"
        exact = await chat.call(
            "chat.send", conversation=MAIN, message="", attachments=[{"content": content(b"x" * 10)}]
        )
        assert exact["ok"]


async def test_nothing_runs_so_nothing_is_stopped(site: Any) -> None:
    async with site.socket() as chat:
        assert (await chat.call("chat.abort", conversation=MAIN))["payload"] == {"aborted": False}


async def test_the_language_of_the_page_comes_along_and_must_be_a_tag(site: Any) -> None:
    spoken = {"mimeType": "audio/webm", "fileName": "v.webm", "content": content(b"\x1aE\xdf\xa3 sound"), "voice": True}
    async with site.socket() as chat:
        for language, told in (("obey me", None), ("de-AT", "de-AT")):
            said = await chat.call("chat.send", conversation=MAIN, message="", attachments=[spoken], language=language)
            ref = said["payload"]["message"]["media"][0]["ref"]
            found = await site.gateway.store.sender_of(ConversationKey.parse(MAIN), ref)
            assert found.reported == told
