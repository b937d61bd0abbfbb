"""Gateways that are forked from a process which has everything imported: a start takes a third of the CPU time.

`python forked.py` is that process. It reads a line of JSON for each gateway to start or to wait for, and answers with
one. `ForkedGateway` is its client, and a GatewayProcess in every other respect.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from belino.domain import failpoints
from belino.domain.errors import ToolError
from belino.domain.media import TextBlock
from belino.domain.turn import Accepted, Final, ReplyPart, TextDelta, Turn
from belino.testing import GatewayProcess
from belino.testing.process import STOP_SECONDS
from faults.looking import until

LONG_AGO = 1_000_000_000
SLOWLY = "slowly"
DRAFT_SECONDS = 3.0
"""A draft begins after 1.5 s and changes after 3 more."""
DRAFT_PIECES = 3
"""Enough for a change even if the draft begins late, on a busy machine or after a platform's error."""


class Thorough:
    """Looks at everything it is sent, writes its answer in pieces, and brings a file along in the folder `pending`."""

    remembers = True
    sees_images = True

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        yield Accepted()
        given = "\n".join(block.text for block in turn.blocks if isinstance(block, TextBlock))
        yield TextDelta(text="I am at work. ")
        for ref in dict.fromkeys(re.findall(r"ref:([a-z]+_\w{12})", given)):
            try:
                await turn.toolbox.call("fetch_media", {"ref": ref, "as": "thumb"})
            except ToolError as error:
                yield TextDelta(text=str(error))
        if SLOWLY in given:
            for _ in range(DRAFT_PIECES):
                await asyncio.sleep(DRAFT_SECONDS)
                yield TextDelta(text="More. ")
        self._offer(turn)
        await turn.memory.save(str(turn.number).encode())
        yield Final(text=f"answer {turn.number}")

    def _offer(self, turn: Turn) -> None:
        assert turn.outgoing is not None
        file = turn.outgoing / f"report{turn.number}.txt"
        file.write_text(f"report {turn.number} of {turn.conversation}", encoding="utf-8")
        os.utime(file, (LONG_AGO, LONG_AGO))


async def _gateway(home_path: Path, port: int) -> None:
    from belino.cli.serve import stop_on_signals
    from belino.config import load
    from belino.gateway.gateway import Gateway
    from belino.net.redact import configure_logging
    from belino.storage.home import Home
    from belino.web.server import serve

    home = Home.at(home_path)
    configure_logging("info")
    config = load(home)
    config = replace(config, server=replace(config.server, port=port))
    async with Gateway(config, home, agent=Thorough()) as gateway:
        stop_on_signals(gateway)
        async with asyncio.TaskGroup() as group:
            page = group.create_task(serve(gateway, ready=lambda url: None))
            await gateway.run()
            page.cancel()


def _backup(home_path: Path, folder: Path) -> None:
    from belino.net.clock import SystemClock
    from belino.storage.backup import back_up
    from belino.storage.home import Home

    back_up(Home.at(home_path), folder, now=SystemClock().now(), version="test")


def _live(wish: Mapping[str, Any]) -> None:
    """One life in the child: it ends with the failpoint, or by a signal, or with what it had to do."""
    os.environ.update(wish["environment"])
    log = os.open(wish["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(log, stream)
    home, armed = Path(wish["home"]), failpoints.arm(wish["failpoint"])
    if wish["backup"]:
        _backup(home, Path(wish["backup"]))
    else:
        import uvloop

        uvloop.run(_gateway(home, wish["port"]))
    Path(wish["passes"]).write_text(json.dumps(armed.passes), encoding="ascii")


def _fork(wish: Mapping[str, Any]) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        _live(wish)
        code = 0
    except BaseException as error:  # noqa: BLE001 - the log is all that its parent sees of it
        sys.stderr.write(f"{error!r}\n")
        sys.stderr.flush()
    finally:
        os._exit(code)


def _serve_requests() -> None:
    import belino.adapters.discord
    import belino.adapters.slack
    import belino.adapters.telegram
    import belino.adapters.web
    import belino.gateway.rendering
    import belino.media.image.images
    import belino.media.render
    import belino.tools.toolbox
    import belino.web.server  # noqa: F401 - forked with everything in memory

    for line in sys.stdin:
        wish = json.loads(line)
        answer = _ended(wish["wait"]) if "wait" in wish else _fork(wish)
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


def _ended(pid: int) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


class Nursery:
    """The process that gateways are forked from."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        path = os.pathsep.join(sys.path)
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def ask(self, wish: object) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(f"{json.dumps(wish)}\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())


class ForkedGateway(GatewayProcess):
    """A gateway forked from a nursery; it may end at a failpoint."""

    def __init__(
        self, nursery: Nursery, home: Path, environment: Mapping[str, str] | None = None, *, port: int = 0
    ) -> None:
        super().__init__(home, environment=environment)
        home.parent.mkdir(parents=True, exist_ok=True)
        self._nursery = nursery
        self._port = port
        self._lock = threading.Lock()
        self._child = 0
        self._code: int | None = 0
        self.failpoint = ""
        """Where the next life ends."""

    @property
    def pid(self) -> int:
        return self._child

    @property
    def ended(self) -> int | None:
        """How its last life ended; None while it lives."""
        with self._lock:
            if self._code is None:
                self._code = self._nursery.ask({"wait": self._child})
            return self._code

    @property
    def passes(self) -> dict[str, int]:
        """How often a life that ended well passed each failpoint."""
        counted: dict[str, int] = json.loads(self._passes.read_text(encoding="ascii"))
        return counted

    def start(self) -> Self:
        """Start it, and wait until it listens or has ended."""
        self._begin(backup="")
        run_file = self.home / "run.json"

        def listens() -> bool:
            if self.ended is not None:
                return True
            try:
                self._run = json.loads(run_file.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                return False
            return bool(self._run["pid"] == self._child)

        until(listens, "the gateway did not start")
        return self

    def back_up(self, folder: Path) -> int:
        """Make a backup in a process of its own, and return how it ended."""
        self._begin(backup=str(folder))
        return self._wait()

    def signal(self, number: int) -> None:
        if self.ended is None:
            os.kill(self._child, number)

    def kill(self) -> None:
        self.signal(9)
        self._wait()

    def _begin(self, *, backup: str) -> None:
        assert self.ended is not None, "the gateway runs already"
        wish = {
            "home": str(self.home),
            "environment": self._environment,
            "failpoint": self.failpoint,
            "port": self._port,
        }
        paths = {"log": str(self.log_file), "passes": str(self._passes), "backup": backup}
        self._code = None
        self._child = self._nursery.ask(wish | paths)
        self.failpoint = ""

    @property
    def _passes(self) -> Path:
        return self.home.with_name(f"{self.home.name}.passes")

    def _wait(self, seconds: float = STOP_SECONDS) -> int:
        until(lambda: self.ended is not None, "the gateway did not stop")
        assert self._code is not None
        return self._code


if __name__ == "__main__":
    _serve_requests()
