"""Child process of the CLI: its command line, its minimal environment, its folder, and its end.

The SDK's own transport would pass our whole environment to the child; the agent must have none of it.
"""

import asyncio
import importlib.util
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from belino.agents.claude.config import Config
from belino.agents.claude.wire import PREFIX, SERVER
from belino.domain.errors import AgentError, ConfigError

# One line may contain a whole tool result with its pictures.
LINE_BYTES = 64 * 1024 * 1024
CLOSING_SECONDS = 5.0
TOOL_SECONDS = 600
GRACE_STEPS = 2
"""Steps after the last allowed tool call: one to answer, and one more for a model that calls a tool again."""

# Program search path, locale, and access to the API; nothing else is inherited.
INHERITED = (
    *("PATH", "LANG", "LC_ALL", "TZ"),
    *("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"),
)
# PR_SET_PDEATHSIG, SIGKILL; it has no effect if the parent is already dead, hence the check of the parent's id.
_LEASH = """\
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
# By default the CLI deletes a conversation after thirty days; belino's own retention applies instead.
SETTINGS = json.dumps({"cleanupPeriodDays": 36_500})


def find_cli() -> Path:
    """The CLI bundled with the SDK, else the installed one. ConfigError without the SDK or any CLI."""
    sdk = importlib.util.find_spec("claude_agent_sdk")  # found without importing it, which would take a second
    if sdk is None:
        raise ConfigError("the agent 'claude' needs its extra; run: pip install 'belino[claude]'")
    for folder in sdk.submodule_search_locations or ():
        bundled = Path(folder) / "_bundled" / "claude"
        if bundled.is_file():
            return bundled
    found = shutil.which("claude")
    if found is None:
        raise ConfigError("the agent 'claude' finds no CLI: the SDK brings none for this machine; install Claude Code")
    return Path(found)


def environment(config: Config, folder: Path) -> dict[str, str]:
    """The child's whole environment; its home is a private folder, so that no user settings apply."""
    kept = {name: os.environ[name] for name in INHERITED if os.environ.get(name)}
    window = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": str(config.compact_tokens)} if config.compact_tokens else {}
    return {
        **kept,
        **window,
        "HOME": str(folder),
        "TMPDIR": str(folder / "tmp"),
        "CLAUDE_CODE_TMPDIR": str(folder / "tmp"),
        "CLAUDE_CONFIG_DIR": str(folder / "claude"),
        # Independent of the path, so that a moved state folder still works.
        "CLAUDE_CODE_PROJECT_DIR_NAME": "conversation",
        "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
        "ANTHROPIC_BASE_URL": config.base_url.rstrip("/"),
        # The CLI requires a key, even for a self-hosted server that needs none.
        "ANTHROPIC_API_KEY": config.api_key.reveal() if config.api_key else "unneeded",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
        "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
        "CLAUDE_CODE_MAX_RETRIES": str(config.retries),
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "ENABLE_TOOL_SEARCH": "false",
        "MAX_MCP_OUTPUT_TOKENS": "1000000",
        "MCP_TOOL_TIMEOUT": str(TOOL_SECONDS * 1000),
    }


def command(
    config: Config, *, system_file: Path, tools: Sequence[str], resume: str = "", message: str = ""
) -> list[str]:
    """The command line; `resume` and `message` name a session and the message to resume after.

    Bare: no hooks, plugins, memories or prompts of the machine. Restricted: no shell, no files outside the session's
    folder. Tools that are not on the allow list are denied, because there is no user to ask.
    """
    own = ["Read"] if config.read_files else []
    server = json.dumps({"mcpServers": {SERVER: {"type": "sdk", "name": SERVER}}})
    words = [str(find_cli()), "--output-format", "stream-json", "--input-format", "stream-json", "--verbose"]
    words += ["--bare", "--restricted", "--setting-sources=", "--strict-mcp-config", "--disable-slash-commands"]
    words += [
        "--include-partial-messages",
        "--permission-mode",
        "dontAsk",
        "--max-turns",
        str(config.max_steps + GRACE_STEPS),
    ]
    words += ["--system-prompt-file", str(system_file), "--model", config.model, "--tools", ",".join(own)]
    words += ["--allowedTools", ",".join([*(PREFIX + tool for tool in tools), *own])]
    words += ["--mcp-config", server, "--settings", SETTINGS]
    if not config.thinking:
        words += ["--thinking", "disabled"]
    if resume:
        # A copy up to this message: anything after it, such as a refused picture or half a turn, is dropped.
        words += [f"--resume={resume}", f"--resume-session-at={message}", "--fork-session"]
    return words


def leash() -> list[str]:
    """A command prefix that kills the process when we die; the CLI alone would finish its model call, at a cost."""
    if sys.platform != "linux":
        return []
    return [sys.executable, "-I", "-S", "-c", _LEASH, str(os.getpid())]


class Child:
    """One process, as the transport of the SDK's client; `kill` and `let_go` do not block."""

    def __init__(self, words: Sequence[str], env: Mapping[str, str], folder: Path) -> None:
        self._words = words
        self._env = env
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None
        self._writing = asyncio.Lock()
        self._ending = False
        self.steps = 0
        """How many answers of the model have begun since a turn last set this to 0."""

    @property
    def pid(self) -> int | None:
        """The process id, while it runs."""
        return self._process.pid if self.is_ready() and self._process else None

    async def connect(self) -> None:
        """Start the process, in its own process group."""
        self._process = await asyncio.create_subprocess_exec(
            *leash(),
            *self._words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=self._folder,
            env=dict(self._env),
            start_new_session=True,
            limit=LINE_BYTES,
        )

    def is_ready(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def write(self, data: str) -> None:
        if self._process is None or self._process.stdin is None:
            raise AgentError("Claude's process does not run")
        async with self._writing:
            try:
                self._process.stdin.write(data.encode())
                await self._process.stdin.drain()
            except (ConnectionError, RuntimeError):
                raise AgentError("Claude's process ended before it was asked") from None

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """The lines of its output, until it ends; an unexpected end raises an error, or the SDK would wait forever."""
        if self._process is None or self._process.stdout is None:
            return
        try:
            async for line in self._process.stdout:
                if line.startswith(b"{"):
                    message = json.loads(line)
                    self._count(message)
                    yield message
        except ValueError:
            raise AgentError("Claude's process wrote something that cannot be read") from None
        code = await self._process.wait()
        if not self._ending:
            from claude_agent_sdk import ProcessError

            raise ProcessError("Claude's process ended", exit_code=code)

    def _count(self, message: Mapping[str, Any]) -> None:
        # Counted here, because the SDK runs a tool before it hands on the messages that came before the call.
        if message.get("type") == "stream_event" and message.get("parent_tool_use_id") is None:
            self.steps += message.get("event", {}).get("type") == "message_start"

    async def end_input(self) -> None:
        self.let_go()

    def let_go(self) -> None:
        """Ask the process to save its state and exit."""
        self._ending = True
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def kill(self) -> None:
        """Kill the process and everything it started, now."""
        self._ending = True
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def close(self) -> None:
        """Wait for the process to end, and kill it if it does not."""
        if self._process is None:
            return
        self.let_go()
        try:
            async with asyncio.timeout(CLOSING_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()
        except asyncio.CancelledError:
            self.kill()
            raise
