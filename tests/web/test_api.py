"""What a person and the command line may ask about the running gateway."""

import asyncio
import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest

from belino.domain.message import ConversationKey
from belino.web.api import slug
from belino.web.request_context import LARGE_BODIES

MAIN = "web:default:main"


async def say(site: Any, text: str, **more: Any) -> dict[str, Any]:
    status, body, _ = await site.ask("POST", "/api/messages", json={"conversation": MAIN, "message": text, **more})
    assert status == 200
    return dict(body)


@pytest.mark.parametrize(
    ("name", "expected"), [("Holiday 2026!", "holiday-2026"), ("Café  Zürich", "cafe-zurich"), ("日本語", "日本語")]
)
def test_a_name_becomes_a_readable_address(name: str, expected: str) -> None:
    assert slug(name) == expected


@pytest.mark.parametrize("name", ["!!!", "../..", "___", "💥"])
def test_a_name_without_letters_still_gets_an_address(name: str) -> None:
    assert slug(name).isalnum()


async def test_a_conversation_is_opened_under_an_address_nobody_has(site: Any) -> None:
    _, first, _ = await site.ask("POST", "/api/conversations", json={"name": "Trip"})
    status, second, _ = await site.ask("POST", "/api/conversations", json={"name": "Trip"})
    assert status == 201
    assert first["conversation"] == "web:default:trip"
    assert second["conversation"].startswith("web:default:trip-")
    said = {"conversation": second["conversation"], "message": "hi"}
    assert (await site.ask("POST", "/api/messages", json=said))[0] == 200
    _, listed, _ = await site.ask("GET", "/api/conversations")
    found = {entry["conversation"]: entry for entry in listed["conversations"]}
    assert set(found) == {MAIN, first["conversation"], second["conversation"]}
    assert (found[first["conversation"]]["name"], found[first["conversation"]]["platform"]) == ("Trip", "web")


async def test_a_message_over_http_says_what_became_of_it_and_can_be_explained(site: Any) -> None:
    said = await say(site, "hello", id="m1")
    assert set(said) == {"message_id", "outcome", "reason", "trace"}
    for name in (f"{MAIN}/m1", said["trace"], "m1"):
        status, story, _ = await site.ask("GET", f"/api/explain?message={name}")
        assert (status, story["trace"]) == (200, said["trace"])
        assert {"received", "stored", "gate"} <= {step["stage"] for step in story["steps"]}
    assert (await site.ask("GET", "/api/explain?message=nothing"))[0] == 404
    own = await site.token()
    assert (await site.ask("GET", f"/api/explain?message={MAIN}/m1", headers=own))[0] == 200
    assert (await site.ask("GET", "/api/explain?message=m1", headers=own))[0] == 404


async def test_the_token_of_a_thread_gets_no_story_of_a_message_elsewhere_in_its_channel(site: Any) -> None:
    await say(site, "for the channel only", id="m1")
    thread = ConversationKey(platform="web", account="default", channel="main", thread="t1")
    own = await site.token(thread)
    unknown = await site.ask("GET", f"/api/explain?message={thread}/nothing", headers=own)
    foreign = await site.ask("GET", f"/api/explain?message={thread}/m1", headers=own)
    assert foreign[:2] == unknown[:2]
    assert foreign[0] == 404


async def test_the_gateway_at_a_glance(site: Any) -> None:
    await say(site, "hello")
    status, told, _ = await site.ask("GET", "/api/status")
    assert status == 200
    assert told["agent"] == {"name": "belino", "kind": "demo"}
    assert [(found["platform"], found["state"]) for found in told["adapters"]] == [("web", "running")]
    assert told["counts"]["messages"] >= 1
    _, channels, _ = await site.ask("GET", "/api/channels")
    assert [found["channel"] for found in channels["channels"]] == [MAIN]
    assert (await site.ask("GET", "/api/outbox?state=dead"))[1] == {"parcels": []}
    assert (await site.ask("GET", "/api/outbox?state=nonsense"))[0] == 400


async def test_the_doctor_looks_at_everything(site: Any) -> None:
    _, told, _ = await site.ask("GET", "/api/doctor")
    found = {finding["name"]: finding for finding in told["findings"]}
    assert {"python", "sandbox", "modes", "disk", "store", "web:default"} <= set(found)
    assert found["modes"]["ok"]
    (site.gateway.home.path / "leak.txt").touch(mode=0o644)
    (site.gateway.home.path / "leak.txt").chmod(0o644)
    _, told, _ = await site.ask("GET", "/api/doctor")
    modes = next(finding for finding in told["findings"] if finding["name"] == "modes")
    assert not told["ok"]
    assert "leak.txt" in modes["says"]
    assert modes["cure"]


async def test_metrics_tell_the_size_of_every_cache_and_of_the_process(site: Any) -> None:
    _, body, _ = await site.ask("GET", "/metrics")
    text = body if isinstance(body, str) else body.decode()
    for cache in ("media", "word_index", "search_terms", "token_prices", "checksums", "row_ids", "sqlite_writer_pages"):
        assert f'belino_cache_entries{{cache="{cache}"}}' in text
        assert f'belino_cache_bytes{{cache="{cache}"}}' in text
    if Path("/proc/self/fd").exists():
        assert "belino_process_resident_bytes" in text
        assert "belino_process_open_descriptors" in text


async def test_metrics_are_text_with_numbers_of_store_and_gateway(site: Any) -> None:
    await say(site, "hello")
    status, body, headers = await site.ask("GET", "/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b'belino_store{what="messages"}' in body
    assert b'belino_arrivals_total{outcome="waiting"} 1.0' in body
    assert b'belino_tokens_not_spent{channel="web:default:main"} 0.0' in body


async def test_no_answer_holds_a_secret(site: Any) -> None:
    secrets = [site.program["Authorization"].removeprefix("Bearer "), site.login_url.partition("#token=")[2]]
    secrets += [(await site.token())["Authorization"].removeprefix("Bearer ")]
    secrets += [(site.gateway.home.key_file).read_bytes().hex()]
    paths = ["me", "conversations", "status", "channels", "outbox", "tokens", "doctor", "media"]
    for path in [f"/api/{name}" for name in paths] + ["/metrics", "/healthz", "/"]:
        _, body, headers = await site.ask("GET", path)
        assert not [secret for secret in secrets if secret in f"{body!r}{headers!r}"], path


async def test_a_token_made_for_a_conversation_speaks_there_under_its_own_name(site: Any) -> None:
    body = {"conversation": MAIN, "message": "from a program"}
    assert (await site.ask("POST", "/api/messages", headers=await site.token(), json=body))[0] == 200
    _, page, _ = await site.ask("GET", f"/api/messages?conversation={MAIN}")
    assert page["messages"][0]["author"]["id"].startswith("token:")


async def attach(site: Any, size: int, headers: dict[str, str] | None = None, **more: Any) -> tuple[int, Any]:
    """Post a message with one file of so many bytes."""
    content = base64.b64encode(bytes(size)).decode()
    file = {"mime_type": "application/octet-stream", "file_name": "a.bin", "content": content}
    body = io.BytesIO(json.dumps({"conversation": MAIN, "attachments": [file], **more}).encode())
    sent = {**(headers or site.program), "Content-Type": "application/json"}
    status, said, _ = await site.ask("POST", "/api/messages", headers=sent, data=body)
    return status, said


async def test_a_message_over_http_takes_as_many_bytes_of_attachments_as_a_frame(site: Any) -> None:
    most = site.gateway.config.server.frame_attachment_bytes
    assert (await attach(site, most, id="most"))[0] == 200
    _, page, _ = await site.ask("GET", f"/api/messages?conversation={MAIN}")
    assert next(message for message in page["messages"] if message["id"] == "most")["media"][0]["size"] == most
    for size in (most + 1, most * 2):
        status, said = await attach(site, size)
        assert (status, said["error"]["code"]) == (413, "too_large")


async def test_few_large_messages_are_read_at_once_under_one_login(site: Any) -> None:
    secret = site.program["Authorization"]
    head = f"POST /api/messages HTTP/1.1\r\nHost: {site.host}\r\nAuthorization: {secret}\r\n"
    half = f"{head}Content-Type: application/json\r\nContent-Length: 2000000\r\n\r\n{{".encode()
    slow: list[asyncio.StreamWriter] = []
    status = 200
    while status == 200:
        # Again after each that is taken: it may have had the place of a slow one, which is then refused.
        for _ in range(LARGE_BODIES):
            _, writer = await asyncio.open_connection("127.0.0.1", site.port)
            writer.write(half)
            slow.append(writer)
        status, said = await attach(site, 2_000_000)
    assert (status, said["error"]["code"]) == (429, "busy")
    assert (await attach(site, 100))[0] == 200
    assert (await attach(site, 2_000_000, headers=await site.token()))[0] == 200
    for writer in slow:
        writer.transport.abort()


async def test_a_key_named_twice_is_refused_over_http_and_over_the_socket(site: Any) -> None:
    twice = f'{{"conversation": "{MAIN}", "message": "a", "message": "b"}}'
    headers = {**site.program, "Content-Type": "application/json"}
    status, said, _ = await site.ask("POST", "/api/messages", headers=headers, data=twice)
    assert (status, said["error"]["code"]) == (400, "bad_request")
    async with site.socket() as chat:
        await chat.socket.send_str(f'{{"type": "req", "id": "r1", "method": "chat.send", "params": {twice}}}')
        assert (await chat.response())["error"]["code"] == "bad_request"
    _, page, _ = await site.ask("GET", f"/api/messages?conversation={MAIN}")
    assert page["messages"] == []
