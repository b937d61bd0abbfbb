"""belino serve: start the gateway and the web chat, print the address, and stop cleanly."""

import asyncio
import gc
import json
import logging
import os
import resource
import signal
import sys
from argparse import ArgumentParser, Namespace
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.cli import INTERRUPTED, OK
from belino.cli.command import PORT
from belino.config import Config, keep_good, load, load_good
from belino.domain.errors import BelinoError, ConfigError, place_of
from belino.net.redact import configure_logging, hide
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.domain.outcome import Counters
    from belino.domain.ports import Agent
    from belino.gateway.gateway import Gateway

log = logging.getLogger(__name__)

OPEN_FILES = 4_096
M_ARENA_MAX = -8
"""The option of glibc's mallopt."""


def serve_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--port", type=PORT, metavar="N", help="the port to listen on; 0 takes any free one")
    parser.add_argument("--bind", metavar="ADDRESS", help="the address to listen on")
    parser.add_argument("--config", type=Path, metavar="FILE", help="use this file instead of the state folder's")
    parser.add_argument(
        "--start-empty", action="store_true", help="start with an empty database beside media; the files are kept"
    )
    parser.add_argument(
        "--new-key", action="store_true", help="make a new key for a database that has lost its own; logins end"
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="do not start with the last configuration that worked if the file is rejected",
    )


def run_serve(args: Namespace, agent: "Agent | None" = None) -> int:
    import uvloop

    home = Home.at(args.home)
    config, rejected = _first_config(home, args)
    configure_logging(config.logs.level)
    raise_open_files()
    share_heap()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            runner.run(_serve(config, rejected, home, args, agent))
        except* BelinoError as group:
            # Tasks fail together; the operator needs the first error.
            raise first_error(group) from None
    return OK


def run(agent: "Agent", home: Path | None = None) -> None:
    """Serve the web chat and the configured accounts with an agent of your own, until Ctrl-C."""
    own = Namespace(home=home, port=None, bind=None, config=None, strict=True, json=False)
    run_serve(Namespace(**vars(own), start_empty=False, new_key=False), agent)


def raise_open_files() -> None:
    """Raise the soft limit on open files, often 1 024, as far as the hard limit allows: each client holds one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def share_heap() -> None:
    """Let all threads use one heap: glibc gives each its own, in which memory that it freed waits for it alone."""
    import ctypes

    system = ctypes.CDLL(None)
    if hasattr(system, "gnu_get_libc_version"):
        system.mallopt(M_ARENA_MAX, 1)


def first_error(group: BaseExceptionGroup[BelinoError]) -> BelinoError:
    """The first cause."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, BelinoError)
    return error


def _first_config(home: Home, args: Namespace) -> tuple[Config, str]:
    """The configuration to start with, and why the file is not used, if it is the copy that worked last."""
    try:
        return _overridden(load(home, args.config), args), ""
    except ConfigError as error:
        return _good_config(home, args, error), str(error)


def _good_config(home: Home, args: Namespace, error: ConfigError) -> Config:
    """The configuration that worked last; the error if there is none, or with --strict."""
    good = None if args.strict else load_good(home, args.config)
    if good is None:
        raise error
    print(f"belino: {error}", file=sys.stderr)
    print("belino: the configuration that worked last is used instead; --strict refuses that", file=sys.stderr)
    return _overridden(good, args)


async def _serve(config: Config, rejected: str, home: Home, args: Namespace, agent: "Agent | None") -> None:
    # Nothing imported here becomes garbage: looking for some costs a tenth of the start.
    gc.disable()
    from belino.gateway.gateway import Gateway
    from belino.gateway.reload import file_source
    from belino.storage.store import open_store
    from belino.web.server import serve

    gc.freeze()
    gc.enable()

    def ready(url: str) -> None:
        # The one line of stdout, for people and programs. It is never logged, for it contains the login.
        hide(url.partition("#token=")[2])
        print(json.dumps({"url": url}) if args.json else f"belino is at {url}", flush=True)

    def opened(wanted: Config, why: str) -> Gateway:
        source = file_source(home, args.config, rejected=why, change=lambda config: _overridden(config, args))
        return Gateway(wanted, home, agent=agent, store=store, source=source)

    store = partial(open_store, start_empty=args.start_empty, new_key=args.new_key)
    async with AsyncExitStack() as closing:
        try:
            gateway = await closing.enter_async_context(opened(config, rejected))
        except ConfigError as error:  # an adapter or agent refuses its settings
            if rejected:
                raise
            gateway = await closing.enter_async_context(opened(_good_config(home, args, error), str(error)))
        if not gateway.reloader.state.rejected:
            _keep_quietly(home, args.config)
        stop_on_signals(gateway)
        reload_on_hangup(gateway)
        count_unhandled(gateway.counters)
        async with asyncio.TaskGroup() as group:
            page = group.create_task(serve(gateway, ready=ready))
            await gateway.run()
            page.cancel()


def _keep_quietly(home: Home, path: Path | None) -> None:
    try:
        keep_good(home, path)
    except ConfigError as error:
        log.warning("%s", error)


def reload_on_hangup(gateway: "Gateway") -> None:
    """SIGHUP reloads the configuration; if it comes because the terminal is gone, it stops the gateway.

    Under `nohup` it never does.
    """
    had_terminal = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN and _has_terminal()

    def hung_up() -> None:
        if had_terminal and not _has_terminal():
            gateway.stop()
        else:
            gateway.reloader.ask()

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hung_up)


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def stop_on_signals(gateway: "Gateway") -> None:
    """The first signal stops cleanly; a second one stops at once."""
    asked = False

    def stop() -> None:
        nonlocal asked
        if asked:
            os._exit(INTERRUPTED)
        asked = True
        log.info("stopping; a second signal ends it at once")
        gateway.stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)


def count_unhandled(counters: "Counters") -> None:
    """Count unhandled exceptions, and log their type and place; a message may hold a secret."""

    def note(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        counters.unhandled[type(error).__name__ if error is not None else "other"] += 1
        log.error("unhandled: %s: %s", context["message"], "" if error is None else place_of(error))

    asyncio.get_running_loop().set_exception_handler(note)


def _overridden(config: Config, args: Namespace) -> Config:
    server = config.server
    if args.port is not None:
        server = replace(server, port=args.port)
    if args.bind is not None:
        server = replace(server, bind=args.bind)
    return replace(config, server=server)
