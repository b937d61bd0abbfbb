"""Platforms call us: bounded before anybody is believed, raw for whoever checks the signature."""

import asyncio
import io
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar

import pytest

from belino.config import AdapterConfig, Config
from belino.domain.errors import StoreFull
from belino.domain.ports import Desk, Hook, HookAnswer
from belino.gateway.gateway import from_registry
from belino.testing import MemoryAdapter
from belino.testing.memory import Config as MemoryConfig
from belino.web.site import HOOKS_AT_ONCE


class HookedAdapter(MemoryAdapter):
    """A platform that calls us."""

    platform: ClassVar[str] = "hooked"

    def __init__(self, config: MemoryConfig, desk: Desk) -> None:
        super().__init__(config, desk)
        self.hooks: list[Hook] = []
        self.error: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def take_hook(self, hook: Hook) -> HookAnswer:
        self.hooks.append(hook)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return HookAnswer(status=200, body=b"taken", mime="text/plain")


@pytest.fixture
def hooked(run_site: Any) -> AbstractAsyncContextManager[Any]:
    def make(config: AdapterConfig, desk: Desk) -> Any:
        return HookedAdapter(config.options, desk) if config.platform == "hooked" else from_registry(config, desk)

    adapters = (*Config().adapters, AdapterConfig(platform="hooked", account="main", options=MemoryConfig()))
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
            yield b"x" * 32 * 1024

    async with hooked as site:
        for body in (io.BytesIO(b"x" * (1024 * 1024 + 1)), chunked()):
            assert (await site.ask("POST", "/hooks/hooked/main", headers={}, data=body))[0] == 413
        assert not site.gateway.adapters["hooked", "main"].hooks
        assert (await site.ask("POST", "/hooks/hooked/main", headers={}, data=io.BytesIO(b"x" * 1024 * 1024)))[0] == 200


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


async def test_many_slow_callers_keep_nobody_else_waiting(hooked: Any) -> None:
    async with hooked as site:
        head = f"POST /hooks/hooked/main HTTP/1.1\r\nHost: {site.host}\r\nContent-Length: 1000\r\n\r\nx".encode()
        slow = []
        for _ in range(200):
            _, writer = await asyncio.open_connection("127.0.0.1", site.port)
            writer.write(head)
            slow.append(writer)
        assert (await site.ask("GET", "/api/me"))[0] == 200
        assert not site.gateway.adapters["hooked", "main"].hooks
        for writer in slow:
            writer.transport.abort()
