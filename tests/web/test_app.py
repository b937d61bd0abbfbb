"""Every route, every kind of visitor, every way a request can be malformed."""

import asyncio
import io
import itertools
import logging
import re
from typing import Any

import pytest
from starlette.routing import Route

from belino.domain.message import ChatType, ConversationKey
from belino.web.app import guarded, make_app
from belino.web.auth import Requires
from belino.web.request_context import Site as WebSite

MAIN = "web:default:main"
OTHER = ConversationKey(platform="web", account="default", channel="other")
OPEN = {
    "/files/{token}", "/files/{token}/preview", "/", "/static/{path:path}", "/healthz", "/hooks/{platform}/{account}",
    "/api/login",
}  # fmt: skip
PARTS = {
    "key": "p-1-0-abcdef",
    "token": "unknown",
    "path": "main.js",
    "platform": "web",
    "account": "default",
    "upload_id": "x",
    "filename": "x",
    "grant_id": "x",
    "ref": "web_000000000000",
}
CHANNEL_CALLS: dict[str, dict[str, object]] = {
    "next": {},
    "ack": {"seq": 1},
    "reply": {"text": "hi"},
    "permission": {"request_id": "abcde", "tool_name": "Bash"},
}
UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
}


def every_route(site: Any) -> list[tuple[str, str, Requires]]:
    found = []
    for route in make_app(WebSite(site.gateway)).routes:
        for method in sorted(getattr(route, "methods", None) or {"GET"}):
            found.append((method, route.path, route.requires))  # type: ignore[attr-defined]
    return found


def address(path: str) -> str:
    return re.sub(r"\{(\w+)(?::path)?\}", lambda match: PARTS[match.group(1)], path)


@pytest.mark.slow
async def test_every_route_but_the_open_ones_asks_for_a_login(site: Any) -> None:
    routes = every_route(site)
    assert {path for _, path, requires in routes if requires is Requires.OPEN} == OPEN
    assert len(routes) > 30
    for method, path, requires in routes:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": f"{site.cookie}=wrong"}):
            if path == "/ws":
                headers = {**headers, **UPGRADE}
            status, body, _ = await site.ask(method, address(path), headers=headers)
            if requires is Requires.OPEN:
                assert status != 401 or path == "/api/login"
            else:
                assert status == 401, (method, path)
                assert method == "HEAD" or body["error"]["code"] == "unauthorized"


async def test_a_route_that_does_not_say_what_it_requires_cannot_be_opened() -> None:
    async def handler(_request: Any) -> None: ...

    with pytest.raises(TypeError, match="does not say what it requires"):
        guarded([Route("/forgotten", handler)])


@pytest.mark.slow
async def test_a_token_of_another_conversation_finds_nothing_on_any_route(site: Any) -> None:
    await site.gateway.store.open_conversation(OTHER, "Other", ChatType.DIRECT)
    theirs = await site.token(OTHER)
    _, begun, _ = await site.ask("POST", "/api/uploads", json={"conversation": MAIN, "file_name": "a", "size": 3})
    upload = begun["upload_id"]
    attachments = [{"content": "AAAA", "mime_type": "image/png"}]
    said = {"conversation": MAIN, "message": "hi", "id": "mine", "attachments": attachments}
    assert (await site.ask("POST", "/api/messages", json=said))[0] == 200
    _, listed, _ = await site.ask("GET", "/api/media")
    url = listed["media"][0]["url"]
    named: dict[tuple[str, str], list[tuple[str, dict[str, Any]]]] = {
        ("GET", "/api/messages"): [(f"/api/messages?conversation={MAIN}", {})],
        ("POST", "/api/messages"): [("/api/messages", {"json": said})],
        ("POST", "/api/send"): [("/api/send", {"json": {"conversation": MAIN, "text": "hi"}})],
        ("POST", "/api/uploads"): [("/api/uploads", {"json": {"conversation": MAIN, "file_name": "a", "size": 3}})],
        ("GET", "/api/uploads/{upload_id}"): [(f"/api/uploads/{upload}", {})],
        ("PATCH", "/api/uploads/{upload_id}"): [
            (f"/api/uploads/{upload}", {"data": b"abc", "headers": {"Upload-Offset": "0"}})
        ],
        ("DELETE", "/api/uploads/{upload_id}"): [(f"/api/uploads/{upload}", {})],
        ("GET", "/api/media"): [(f"/api/media?channel={MAIN}", {})],
        ("GET", "/api/media/{filename}"): [(url, {})],
        ("GET", "/api/media/{filename}/preview"): [(f"{url}/preview", {})],
        ("GET", "/api/media/{filename}/picture"): [(f"{url}/picture", {})],
        ("GET", "/api/explain"): [(f"/api/explain?message={MAIN}/mine", {}), ("/api/explain?message=mine", {})],
        ("POST", "/api/retry"): [
            ("/api/retry", {"json": {"message": f"{MAIN}/mine"}}),
            ("/api/retry", {"json": {"message": "mine"}}),
        ],
        ("GET", "/api/context"): [(f"/api/context?conversation={MAIN}&at=mine", {})],
        ("GET", "/api/search"): [(f"/api/search?conversation={MAIN}&intent=mine", {})],
        **{
            ("POST", f"/api/channel/{what}"): [(f"/api/channel/{what}", {"json": {"conversation": MAIN, **more}})]
            for what, more in CHANNEL_CALLS.items()
        },
        ("POST", "/mcp"): [("/mcp", {"json": {}, "headers": {"X-Belino-Conversation": MAIN}})],
    }
    named[("GET", "/mcp")] = named[("DELETE", "/mcp")] = named[("POST", "/mcp")]
    for method, path, requires in every_route(site):
        # The token of a turn is checked by its route, which refuses every other one with 401.
        if requires in (Requires.OPEN, Requires.TURN) or path == "/ws" or method == "HEAD":
            continue
        asked = named[method, path] if requires is Requires.CONVERSATION else [(address(path), {})]
        for target, more in asked:
            headers = {**theirs, **more.get("headers", {})}
            rest = {name: value for name, value in more.items() if name != "headers"}
            status, body, _ = await site.ask(method, target, headers=headers, **rest)
            assert (status, body["error"]["code"]) == (404, "not_found"), (method, target)
    status, standing, _ = await site.ask("GET", f"/api/uploads/{upload}")
    assert (status, standing["offset"]) == (200, 0)


async def test_a_page_may_not_do_what_belongs_to_the_program(site: Any) -> None:
    page = await site.browser()
    assert (await site.ask("GET", "/api/me", headers=page))[0] == 200
    assert (await site.ask("POST", "/api/logins", headers=page))[0] == 404
    assert (await site.ask("POST", "/api/logins"))[0] == 200


@pytest.mark.parametrize("host", ["evil.test", "evil.test:{port}", "127.0.0.1", "localhost:1", "127.0.0.1:{port}@evil"])
async def test_a_request_for_another_host_is_misdirected(site: Any, host: str) -> None:
    for path in ("/", "/healthz", "/api/me", "/ws", "/nowhere", "/mcp"):
        named = {**site.program, "Host": host.format(port=site.port)}
        status, body, _ = await site.ask("GET", path, headers=named)
        assert (status, body["error"]["code"]) == (421, "bad_request")


async def test_a_socket_for_another_host_is_misdirected(site: Any) -> None:
    request = (
        "GET /ws HTTP/1.1\r\nHost: evil.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        f"Authorization: {site.program['Authorization']}\r\n\r\n"
    )
    assert (await site.raw(request.encode())).startswith(b"HTTP/1.1 421")


@pytest.mark.parametrize("hosts", [[], ["{own}", "{own}"], ["{own}", "evil.test"], ["evil.test", "{own}"]])
async def test_there_must_be_exactly_one_host(site: Any, hosts: list[str]) -> None:
    lines = "".join(f"Host: {host.format(own=site.host)}\r\n" for host in hosts)
    answer = await site.raw(f"GET /healthz HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode())
    assert answer.startswith((b"HTTP/1.1 421", b"HTTP/1.1 400"))


def encodings() -> list[str]:
    dots = ["..", "%2e%2e", ".%2e", "%252e%252e", "%c0%ae%c0%ae", "..%00", "....", "%2e%2e%5c"]
    slashes = ["/", "%2f", "%252f", "\\", "%5c", "%255c", "//", "/./"]
    roots = ["/api/media/", "/static/", "/api/uploads/", "/hooks/web/"]
    return [
        root + slash.join([dot] * 3) + slash + "belino.db"
        for root, dot, slash in itertools.product(roots, dots, slashes)
    ]


async def test_no_encoding_of_a_path_leads_anywhere(site: Any) -> None:
    paths = encodings()
    assert len(paths) > 200
    unknown = await site.raw(request_for(site, "/api/media/" + "0" * 26 + ".png"))
    body = unknown.partition(b"\r\n\r\n")[2]
    assert unknown.startswith(b"HTTP/1.1 404")
    for path in paths:
        answer = await site.raw(request_for(site, path))
        assert answer.startswith((b"HTTP/1.1 404", b"HTTP/1.1 400")), path
        if answer.startswith(b"HTTP/1.1 404"):
            assert answer.partition(b"\r\n\r\n")[2] == body


def request_for(site: Any, path: str, method: str = "GET") -> bytes:
    secret = site.program["Authorization"]
    head = f"{method} {path} HTTP/1.1\r\nHost: {site.host}\r\nAuthorization: {secret}\r\nConnection: close\r\n\r\n"
    return head.encode()


@pytest.mark.parametrize("path", ["/api/%6de", "/%61pi/me", "/api/me/", "//api/me", "/api//me", "/api/./me", "/API/me"])
async def test_a_route_is_not_reached_without_login_by_writing_it_otherwise(site: Any, path: str) -> None:
    answer = await site.raw(f"GET {path} HTTP/1.1\r\nHost: {site.host}\r\nConnection: close\r\n\r\n".encode())
    assert answer.startswith((b"HTTP/1.1 404", b"HTTP/1.1 401"))


async def test_a_request_with_two_lengths_is_refused(site: Any) -> None:
    for lines in (
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: -1",
        "Transfer-Encoding: xchunked",
    ):
        head = f"POST /api/login HTTP/1.1\r\nHost: {site.host}\r\nContent-Type: application/json\r\n{lines}\r\n"
        answer = await site.raw(f"{head}Connection: close\r\n\r\n0\r\n\r\nGET /api/me HTTP/1.1\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 4")
        assert answer.count(b"HTTP/1.1 ") == 1


async def test_each_of_two_pipelined_requests_is_checked_by_itself(site: Any) -> None:
    first = request_for(site, "/api/me").replace(b"Connection: close\r\n", b"")
    second = f"GET /api/me HTTP/1.1\r\nHost: {site.host}\r\nConnection: close\r\n\r\n".encode()
    answer = await site.raw(first + second)
    assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"200", b"401"]


async def test_the_page_may_load_only_its_own_files_and_run_nothing_inline(site: Any) -> None:
    for path in ("/", "/static/main.js"):
        status, _, headers = await site.ask("GET", path, headers={})
        assert status == 200
        assert headers["Content-Security-Policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self' blob:; "
            "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
            "require-trusted-types-for 'script'"
        )
        assert headers["Cache-Control"] == "no-cache"
        assert (await site.ask("GET", path, headers={"If-None-Match": headers["ETag"]}))[0] == 304


async def test_every_answer_carries_the_protecting_headers_and_names_no_server(site: Any) -> None:
    for path, headers in (("/", {}), ("/healthz", {}), ("/api/me", {}), ("/api/me", site.program), ("/nowhere", {})):
        _, _, answered = await site.ask("GET", path, headers=headers)
        assert answered["X-Content-Type-Options"] == "nosniff"
        assert answered["Referrer-Policy"] == "no-referrer"
        assert answered["Cross-Origin-Opener-Policy"] == "same-origin"
        assert answered["Cross-Origin-Resource-Policy"] == "same-origin"
        assert answered["Cache-Control"] in ("no-store", "no-cache")
        assert "default-src 'none'" in answered["Content-Security-Policy"]
        assert "Server" not in answered
        assert not [name for name in answered if name.lower().startswith("access-control")]


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, 201),
        ({"X-Belino": None}, 403),
        ({"X-Belino": "0"}, 403),
        ({"Origin": None}, 403),
        ({"Origin": None, "Sec-Fetch-Site": "same-origin"}, 201),
        ({"Origin": None, "Sec-Fetch-Site": "none"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://evil.test"}, 403),
        ({"Origin": "http://localhost:{port}"}, 403),
        ({"Origin": "https://127.0.0.1:{port}"}, 403),
        ({"Origin": "http://127.0.0.1:{port}.evil.test"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": None}, 415),
    ],
)
async def test_only_our_own_page_may_change_anything_with_a_cookie(
    site: Any, changed: dict[str, str | None], status: int
) -> None:
    page = {**await site.browser(), "Content-Type": "application/json", **changed}
    headers = {name: value.format(port=site.port) for name, value in page.items() if value is not None}
    answered, _, _ = await site.ask(
        "POST", "/api/conversations", headers=headers, data=b'{"name": "New"}', skip_auto_headers=["Content-Type"]
    )
    assert answered == status


async def test_another_site_cannot_even_read_with_the_cookie(site: Any) -> None:
    page = {"Cookie": (await site.browser())["Cookie"]}
    assert (await site.ask("GET", "/api/me", headers=page))[0] == 200
    for foreign in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://evil.test"}):
        assert (await site.ask("GET", "/api/me", headers={**page, **foreign}))[0] == 403


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "bad_request"),
        (b"[]", 400, "bad_request"),
        (b'{"name": NaN}', 400, "bad_request"),
        (b'{"name": {"a": 1}}', 400, "bad_request"),
        (b'{"name": "x", "path": "/etc"}', 400, "bad_request"),
        (b'{"name": "  "}', 400, "bad_request"),
        (b"[" * 10_000 + b"]" * 10_000, 400, "bad_request"),
        (b'{"name": "' + b"x" * (1024 * 1024) + b'"}', 413, "too_large"),
    ],
)
async def test_a_body_that_is_not_what_it_must_be_is_refused_in_one_shape(
    site: Any, body: bytes, status: int, code: str
) -> None:
    headers = {**site.program, "Content-Type": "application/json"}
    answered, read, _ = await site.ask("POST", "/api/conversations", headers=headers, data=io.BytesIO(body))
    assert (answered, read["error"]["code"]) == (status, code)
    assert set(read) == {"error"}


async def test_a_body_without_a_length_is_counted_while_it_is_read(site: Any) -> None:
    async def endless() -> Any:
        for _ in range(40):
            yield b" " * 65_536

    headers = {**site.program, "Content-Type": "application/json"}
    status, _, _ = await site.ask("POST", "/api/conversations", headers=headers, data=endless())
    assert status == 413


async def test_a_method_that_does_not_exist_is_refused_in_the_same_shape(site: Any) -> None:
    status, body, headers = await site.ask("DELETE", "/api/me")
    assert (status, body["error"]["code"]) == (405, "bad_request")
    assert "GET" in headers["Allow"]


async def test_a_query_may_name_nothing_unknown_and_nothing_twice(site: Any) -> None:
    for query in (
        "conversation=web:default:main&path=x",
        "conversation=a:b:c&conversation=a:b:d",
        "limit=0",
        "limit=-1",
    ):
        assert (await site.ask("GET", f"/api/messages?{query}"))[0] == 400


async def test_an_unexpected_error_is_told_without_details_and_logged_by_its_kind(
    site: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken() -> Any:
        raise RuntimeError("canary-secret")

    monkeypatch.setattr(site.gateway.store, "counts", broken)
    with caplog.at_level(logging.DEBUG):
        status, body, _ = await site.ask("GET", "/api/status")
    assert (status, body["error"]["code"]) == (500, "internal")
    assert "canary" not in str(body) + caplog.text
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == [
        "a request failed: RuntimeError"
    ]


async def test_a_secret_in_a_query_reaches_no_log(site: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="belino"):
        await site.ask("GET", "/ws?token=canary-secret", headers={})
        await site.ask("GET", "/api/me?token=canary-secret", headers={})
        async with site.http.ws_connect(f"{site.url}/ws?token=canary-secret", headers=site.program) as socket:
            async with asyncio.timeout(60):
                await socket.receive()
    assert "canary" not in caplog.text


async def test_the_health_answer_says_nothing_to_strangers(site: Any) -> None:
    status, body, _ = await site.ask("GET", "/healthz", headers={})
    assert (status, body) == (200, {"ok": True})
