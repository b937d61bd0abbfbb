"""The listening socket, the HTTP server on it, and run.json, which holds the address and token for the command line."""

import asyncio
import json
import logging
import os
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import cast

import uvicorn
from starlette.applications import Starlette

from belino import __version__
from belino.config import ServerConfig
from belino.domain.errors import ConfigError
from belino.domain.message import ChatType
from belino.domain.stored import GrantKind
from belino.net.listener import stop_accepting
from belino.web.access import login_url
from belino.web.api import web_conversation
from belino.web.app import make_app
from belino.web.auth import Origins
from belino.web.chat import FRAME_BYTES
from belino.web.connections import ConnectionPool, shares_of
from belino.web.protocol import BoundedHttp, BoundedSocket, TlsFront
from belino.web.request_context import Site, WebGateway

GRACE_SECONDS = 3
CANCEL_SECONDS = 1.0
BACKLOG = 1_024
DEFER_SECONDS = 5
PROGRAM_NOTE = "the running gateway"


class Server(uvicorn.Server):
    """uvicorn inside the gateway's own loop: signals belong to the gateway's caller."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Stop accepting connections and let the open ones end."""
        self.should_exit = True
        self._stopping.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let open requests end; those cancelled after the grace period still send their refusal."""
        await super().shutdown(sockets)
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=CANCEL_SECONDS)

    async def main_loop(self) -> None:
        """Renew the Date header every second; uvicorn itself would wake up ten times as often to check for its end."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._stopping.wait()


async def serve(gateway: WebGateway, *, ready: Callable[[str], None]) -> None:
    """Serve until cancelled; `ready` receives a login address once requests are answered."""
    settings = gateway.config.server
    with _listen(settings) as listener:
        # Before the first await: a turn that a crash interrupted begins as soon as this task waits.
        gateway.turn_tools.serve_at(local_url(settings, listener), settings.public_url)
        open_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        pool = ConnectionPool(shares_of(open_files), gateway.clock)
        site = Site(gateway)
        server = Server(_uvicorn_config(make_app(site), settings, pool))
        # New clients wait in the backlog until the next line but one.
        url = await _announce(gateway, local_url(settings, listener))
        async with asyncio.TaskGroup() as group:
            feeding = group.create_task(site.run())
            serving = group.create_task(server.serve(sockets=[listener]))
            try:
                ready(url)
                await asyncio.wait((serving,))
            finally:
                await stop_accepting(listener)
                site.stopping.set()
                server.stop()
                gateway.home.run_file.unlink(missing_ok=True)
                await asyncio.wait((serving,), timeout=GRACE_SECONDS + 2)
                feeding.cancel()


def local_url(settings: ServerConfig, listener: socket.socket) -> str:
    """The server's address on this machine."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        host = "127.0.0.1"
    scheme = "https" if settings.tls_cert else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def write_run_file(path: Path, content: dict[str, object]) -> None:
    """Atomic, with owner-only access."""
    draft = path.with_suffix(".tmp")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(content, file)
    draft.replace(path)


async def _announce(gateway: WebGateway, root: str) -> str:
    """Write run.json and make a login address."""
    store = gateway.store
    main = web_conversation("main")
    if gateway.web is not None and main not in {found.conversation for found in await store.conversations()}:
        await store.open_conversation(main, "Main", ChatType.DIRECT)
    for grant in await store.grants():
        # The command line's token lives as long as the process; a crash leaves one behind.
        if grant.kind is GrantKind.PROGRAM:
            await store.revoke(grant.id)
    _, token = await store.grant(GrantKind.PROGRAM, note=PROGRAM_NOTE)
    started = gateway.started.isoformat()
    run = {"url": root, "token": token, "pid": os.getpid(), "version": __version__, "started": started}
    write_run_file(gateway.home.run_file, run)
    settings = gateway.config.server
    return await login_url(store, settings.public_url or root, minutes=settings.login_minutes)


@contextmanager
def _listen(settings: ServerConfig) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in settings.bind else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.bind, settings.port))
            if hasattr(socket, "TCP_DEFER_ACCEPT"):
                # Linux holds a connection until its first bytes arrive: a client that sends none costs us nothing, and
                # one that sends its request at once is never mistaken for a slow one.
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, DEFER_SECONDS)
            listener.listen(BACKLOG)
        except OSError as error:
            where = f"{settings.bind} port {settings.port}"
            raise ConfigError(
                f"belino cannot listen on {where}: {error.strerror}; set server.port, or --port"
            ) from error
        listener.setblocking(False)
        yield listener


def _uvicorn_config(app: Starlette, settings: ServerConfig, pool: ConnectionPool) -> uvicorn.Config:
    # uvicorn logs paths with their query at INFO; a query may contain a secret.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    config = uvicorn.Config(
        app,
        loop="none",
        ws=BoundedSocket,
        ws_max_size=FRAME_BYTES,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=GRACE_SECONDS,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    try:
        config.load()
    except OSError as error:
        raise ConfigError(f"server.tls_cert and server.tls_key cannot be used: {error.strerror or error}") from error
    make_http = partial(BoundedHttp, pool=pool, origins=Origins(settings))
    make: Callable[..., asyncio.Protocol] = make_http
    if config.ssl is not None:
        # The handshake is ours, so that the pool sees a connection before it.
        make = partial(TlsFront, make_http, pool=pool, context=config.ssl)
        config.ssl = None
    # Called like the class it replaces.
    config.http_protocol_class = cast("type[asyncio.Protocol]", make)
    return config
