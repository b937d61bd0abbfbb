"""Gateway process: a real gateway in a process of its own, for tests that stop, kill and restart it."""

import http.client
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

START_SECONDS = 60.0
STOP_SECONDS = 30.0
END_SECONDS = 120.0
ANSWER_SECONDS = 30.0

# The environment variables a gateway needs; a test's own secrets and settings stay out.
_ENVIRONMENT = ("PATH", "LANG", "HOME", "TMPDIR", "VIRTUAL_ENV", "COVERAGE_PROCESS_START")


class GatewayProcess:
    """`belino serve --port 0` on a state folder; its log is the file beside that folder.

    ```python
    with GatewayProcess(tmp_path / "home") as gateway:
        status, answer = gateway.call("GET", "/api/status")
    ```
    """

    def __init__(
        self,
        home: Path,
        *,
        arguments: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
        open_files: int | None = None,
    ) -> None:
        self.home = home
        self.log_file = home.with_name(f"{home.name}.log")
        self.line = ""
        """What serve printed: one line with the login URL."""
        self._arguments = arguments
        self._open_files = open_files
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._run: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()

    @property
    def url(self) -> str:
        """Where it listens, without a trailing slash."""
        return str(self._run["url"]).rstrip("/")

    @property
    def token(self) -> str:
        """Its command-line bearer token."""
        return str(self._run["token"])

    @property
    def login_url(self) -> str:
        """The one-time URL it printed."""
        return self.line.split()[-1]

    @property
    def pid(self) -> int:
        assert self._process is not None, "the gateway was not started"
        return self._process.pid

    def start(self) -> Self:
        """Start it, and wait until it printed its address."""
        assert self._process is None or self._process.poll() is not None, "the gateway runs already"
        inherited = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        command = [sys.executable, "-m", "belino", "serve", "--port", "0", "--home", str(self.home)]
        if self._open_files is not None:
            command = ["sh", "-c", f'ulimit -n {self._open_files}; exec "$@"', "sh", *command]
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [*command, *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**inherited, **self._environment},
            )
        self.line = self._first_line()
        self._run = json.loads((self.home / "run.json").read_text(encoding="utf-8"))
        return self

    def stop(self, with_signal: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to stop, and return its exit code."""
        self.signal(with_signal)
        return self._wait()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal without waiting."""
        assert self._process is not None, "the gateway was not started"
        self._process.send_signal(number)

    def wait(self) -> int:
        """Wait until it ends by itself, and return its exit code."""
        return self._wait(END_SECONDS)

    def kill(self) -> None:
        """Kill it, as a power cut would."""
        assert self._process is not None, "the gateway was not started"
        self._process.kill()
        self._wait()

    def restart(self) -> Self:
        """Start it again on the same state folder."""
        if self._process is not None and self._process.poll() is None:
            self.stop()
        return self.start()

    def log(self) -> str:
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def call(self, method: str, path: str, body: object = None, *, token: str | None = None) -> tuple[int, Any]:
        """One request of its HTTP API: the status, and the answer, parsed if it is JSON."""
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=ANSWER_SECONDS)
        try:
            headers = {"Authorization": f"Bearer {token or self.token}", "Content-Type": "application/json"}
            connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
            answer = connection.getresponse()
            text = answer.read()
            is_json = (answer.headers.get("Content-Type") or "").startswith("application/json")
            return answer.status, json.loads(text) if is_json and text else text
        finally:
            connection.close()

    def _first_line(self) -> str:
        assert self._process is not None and self._process.stdout is not None
        deadline = time.monotonic() + START_SECONDS
        line = b""
        with selectors.DefaultSelector() as ready:
            ready.register(self._process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                piece = b""
                if ready.select(max(0.0, deadline - time.monotonic())):
                    piece = os.read(self._process.stdout.fileno(), 4096)
                if not piece:
                    self.kill()
                    raise AssertionError(f"the gateway did not start: {self.log()[-2000:] or line.decode()}")
                line += piece
        return line.decode().splitlines()[0]

    def _wait(self, seconds: float = STOP_SECONDS) -> int:
        assert self._process is not None
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_SECONDS)
            raise AssertionError(f"the gateway did not stop within {seconds:g} s: {self.log()[-2000:]}") from None
        finally:
            if self._process.stdout is not None:
                self._process.stdout.close()
        return code
