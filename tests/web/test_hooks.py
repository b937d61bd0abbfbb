"""Platforms call us: bounded before anybody is believed, raw for whoever checks the signature."""

import asyncio
import io
import json
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar

import pytest

from belino.config import AdapterConfig, Config
from belino.domain.errors import StoreFull
from belino.domain.ports import AdapterContext, Hook, HookAnswer
from belino.gateway.accounts import from_registry
from belino.testing import MemoryAdapter
from belino.testing.memory import Config as MemoryConfig
from belino.web.hooks import HOOK_BYTES
from belino.web.request_context import HOOK_READERS, HOOKS_AT_ONCE


class HookedAdapter(MemoryAdapter):
    """A platform that calls us."""

    platform: ClassVar[str] = "hooked"

    def __init__(self, config: MemoryConfig, desk: AdapterContext) -> None:
        super().__init__(config, desk)
        self.hooks: list[Hook] = []
        self.error: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.refuses = False
        self.answer = HookAnswer(status=200, body=b"taken", mime="text/plain")

    def screen_hook(self, hook: Hook) -> HookAnswer | None:
        return HookAnswer(status=401) if self.refuses else None

    async def take_hook(self, hook: Hook) -> HookAnswer:
        self.hooks.append(hook)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return self.answer


@pytest.fixture
def hooked(run_site: Any) -> AbstractAsyncContextManager[Any]:
    def make(config: AdapterConfig, desk: AdapterContext) -> Any:
        return HookedAdapter(config.options, desk) if config.platform == "hooked" else from_registry(config, desk)

    accounts = [AdapterConfig(platform="hooked", account=name, options=MemoryConfig()) for name in ("main", "second")]
    adapters = (*Config().adapters, *accounts)
    site: AbstractAsyncContextManager[Any] = run_site(Config(adapters=adapters), make_adapter=make)
    return site


async def test_the_adapter_gets_the_very_bytes(hooked: Any) -> None:
    async with hooked as site:
        body = bytes(range(256))
        headers = {"X-Signature": "abc", "Content-Type": "application/x-thing"}
        status, read, answered = await site.ask(
            "POST", "/hooks/hooked/main?a=1&b=%20", headers=headers, data=io.BytesIO(body)
        )
        assert (status, read) == (200, b"taken")
        assert answered["X-Content-Type-Options"] == "nosniff"
        (hook,) = site.gateway.adapters["hooked", "main"].hooks
        assert (hook.method, hook.path, hook.query, hook.body) == ("POST", "/hooks/hooked/main", "a=1&b=%20", body)
        assert hook.headers["x-signature"] == "abc"
        assert (await site.ask("GET", "/hooks/hooked/main?challenge=1", headers={}))[0] == 200


async def test_a_platform_that_takes_no_hooks_or_is_not_there_is_nowhere(hooked: Any) -> None:
    async with hooked as site:
        for path in ("/hooks/web/default", "/hooks/hooked/other", "/hooks/nobody/main", "/hooks/hooked"):
            assert (await site.ask("POST", path, headers={}, data=b"x"))[0] == 404


async def test_a_body_over_the_limit_never_reaches_the_adapter(hooked: Any) -> None:
    async def chunked() -> Any:
        for _ in range(33):
            yield b"x" * (HOOK_BYTES // 32)

    async with hooked as site:
        for body in (io.BytesIO(b"x" * (HOOK_BYTES + 1)), chunked()):
            assert (await site.ask("POST", "/hooks/hooked/main", headers={}, data=body))[0] == 413
        assert not site.gateway.adapters["hooked", "main"].hooks
        assert (await site.ask("POST", "/hooks/hooked/main", headers={}, data=io.BytesIO(b"x" * HOOK_BYTES)))[0] == 200


async def test_more_calls_at_once_than_we_take_are_told_to_come_again(hooked: Any) -> None:
    async with hooked as site:
        adapter = site.gateway.adapters["hooked", "main"]
        adapter.gate.clear()

        async def call() -> int:
            return int((await site.ask("POST", "/hooks/hooked/main", headers={}, data=b"x"))[0])

        async with asyncio.TaskGroup() as group, asyncio.timeout(60):
            waiting = [group.create_task(call()) for _ in range(HOOKS_AT_ONCE)]
            while len(adapter.hooks) < HOOKS_AT_ONCE:
                await asyncio.sleep(0)
            assert await call() == 429
            adapter.gate.set()
        assert {task.result() for task in waiting} == {200}
        assert await call() == 200


async def test_what_is_not_stored_is_not_acknowledged(hooked: Any) -> None:
    async with hooked as site:
        adapter = site.gateway.adapters["hooked", "main"]
        adapter.error = StoreFull("the disk is full")
        assert (await site.ask("POST", "/hooks/hooked/main", headers={}, data=b"x"))[0] == 507
        adapter.error = RuntimeError("canary-secret")
        status, body, _ = await site.ask("POST", "/hooks/hooked/main", headers={}, data=b"x")
        assert status == 500
        assert "canary" not in str(body)


def slow_call(site: Any, path: str = "/hooks/hooked/main", **headers: str) -> bytes:
    """A call whose body ends after its first byte."""
    lines = {"Host": site.host, "Content-Length": "1000", **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\nx".encode()


async def opened(site: Any, request: bytes, count: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    lines = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(request)
        lines.append((reader, writer))
    return lines


async def test_many_slow_callers_keep_nobody_else_waiting(hooked: Any) -> None:
    async with hooked as site:
        slow = await opened(site, slow_call(site), 200)
        for _ in range(3):
            assert (await site.ask("POST", "/hooks/hooked/main", headers={}, data=b"x"))[0] == 200
        assert (await site.ask("GET", "/api/me"))[0] == 200
        assert len(site.gateway.adapters["hooked", "main"].hooks) == 3
        for _, writer in slow:
            writer.transport.abort()


async def test_more_slow_bodies_than_are_read_at_once_end_the_slowest_first(hooked: Any) -> None:
    async with hooked as site:
        (first,) = await opened(site, slow_call(site), 1)
        others = await opened(site, slow_call(site), HOOK_READERS)
        async with asyncio.timeout(60):
            head, _, body = (await first[0].read()).partition(b"\r\n\r\n")
        assert head.startswith((b"HTTP/1.1 503 ", b"HTTP/1.1 408 "))
        assert b"connection: close" in head
        assert json.loads(body)["error"]["code"] in ("busy", "bad_request")
        for _, writer in (first, *others):
            writer.transport.abort()


async def test_a_call_that_its_headers_already_refuse_is_answered_before_its_body_and_closed(hooked: Any) -> None:
    async with hooked as site:
        site.gateway.adapters["hooked", "main"].refuses = True
        for number in range(HOOK_READERS + 10):
            head, _, body = (await site.raw(slow_call(site))).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 401 "), number
            assert b"connection: close" in head
            assert json.loads(body)["error"]["code"] == "unauthorized"
        assert not site.gateway.adapters["hooked", "main"].hooks


async def test_one_accounts_calls_take_no_place_from_anothers(hooked: Any) -> None:
    async with hooked as site:
        adapter = site.gateway.adapters["hooked", "main"]
        adapter.gate.clear()
        async with asyncio.TaskGroup() as group, asyncio.timeout(60):
            for _ in range(HOOKS_AT_ONCE):
                group.create_task(site.ask("POST", "/hooks/hooked/main", headers={}, data=b"x"))
            while len(adapter.hooks) < HOOKS_AT_ONCE:
                await asyncio.sleep(0)
            assert (await site.ask("POST", "/hooks/hooked/main", headers={}, data=b"x"))[0] == 429
            assert (await site.ask("POST", "/hooks/hooked/second", headers={}, data=b"x"))[0] == 200
            adapter.gate.set()


async def test_a_refusal_without_words_takes_the_one_shape_of_refusals(hooked: Any) -> None:
    async with hooked as site:
        adapter = site.gateway.adapters["hooked", "main"]
        for status, code in ((400, "bad_request"), (403, "forbidden"), (404, "not_found"), (503, "busy")):
            adapter.answer = HookAnswer(status=status)
            answered, said, _ = await site.ask("POST", "/hooks/hooked/main", headers={}, data=b"x")
            assert (answered, said["error"]["code"]) == (status, code)
        adapter.answer = HookAnswer(status=403, body=b"go away")
        assert (await site.ask("POST", "/hooks/hooked/main", headers={}, data=b"x"))[:2] == (403, b"go away")
