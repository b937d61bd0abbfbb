"""Config of the command agent, its argument template, and the doctor's check of the program."""

import asyncio
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from belino.agents.command.presets import PRESETS, Preset, PresetName
from belino.agents.command.process import Process, environment
from belino.domain.errors import AgentError, ConfigError
from belino.domain.outcome import Finding

NAME = "agent command"
CHECK_SECONDS = 20.0
VERSION_CHARS = 80
ARGUMENT_BYTES = 120 * 1024
"""Linux takes at most 128 KB in one argument."""
PLACEHOLDERS = frozenset(
    {"prompt", "system", "session", "arguments", "mcp_config", "mcp_url", "mcp_token", "files", "outgoing"}
)
SECRETS = frozenset({"mcp_token"})
"""Every user of the machine can read the arguments of a process."""

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Any local program."""

    preset: PresetName = field(
        default="",
        metadata={"says": "A program that belino knows: `aider`, `claude`, `codex`, `gemini` or `opencode`."},
    )
    command: tuple[str, ...] = field(
        default=(),
        metadata={"says": "The program and its arguments, with placeholders; no shell reads them."},
    )
    resume: tuple[str, ...] = field(
        default=(), metadata={"says": "The same from the second turn on, with `{session}`; empty means `command`."}
    )
    arguments: tuple[str, ...] = field(
        default=(), metadata={"says": "Arguments in place of `{arguments}`, such as a model; a preset has that place."}
    )
    output: Literal["text", "jsonl"] = field(
        default="text", metadata={"says": "What it writes: `text`, or `jsonl` for events; a preset knows."}
    )
    environment: tuple[str, ...] = field(
        default=(),
        metadata={"says": "The names of environment variables that it gets besides PATH, LANG, LC_ALL and TZ."},
    )
    folder: str = field(
        default="", metadata={"says": "The absolute path of its working folder; empty means the session's own folder."}
    )
    session_lost: str = field(
        default="",
        metadata={"says": "A regular expression: in its error output it means that the session to resume is gone."},
    )
    sees_images: bool = field(default=True, metadata={"says": "Whether its model sees pictures that tools return."})
    timeout_seconds: int = field(
        default=0, metadata={"says": "The most seconds of one turn; 0 means `sessions.turn_seconds`.", "least": 0}
    )
    max_running: int = field(
        default=4, metadata={"says": "How many of its processes may run at once; other turns wait.", "least": 1}
    )

    def __post_init__(self) -> None:
        if bool(self.preset) == bool(self.command):
            raise ConfigError("the agent 'command' needs either `command` or `preset`")
        if self.preset and (self.resume or self.output != "text"):
            raise ConfigError("a preset knows its `resume` and `output`; remove them, or write `command`")
        for word in (*self.command, *self.resume):
            for name in _PLACEHOLDER.findall(word):
                if name not in PLACEHOLDERS - SECRETS:
                    known = ", ".join(sorted(PLACEHOLDERS - SECRETS))
                    raise ConfigError(f"`command` has no placeholder {{{name}}}; known ones: {known}")
        for name in self.environment:
            if not _NAME.fullmatch(name):
                raise ConfigError(f"`environment` holds {name!r}; write the names of variables, without values")
        if self.folder and not Path(self.folder).is_absolute():
            raise ConfigError("`folder` must be an absolute path")
        try:
            re.compile(self.session_lost)
        except re.error:
            raise ConfigError("`session_lost` is not a regular expression") from None

    @property
    def program(self) -> Preset:
        """How the program is called: as the preset says, or as the operator wrote."""
        if self.preset:
            return PRESETS[self.preset]
        return Preset(
            command=self.command,
            resume=self.resume,
            dialect="belino" if self.output == "jsonl" else "",
            environment=(),
            session_lost=self.session_lost,
        )


def uses(words: Sequence[str], name: str) -> bool:
    """Whether a template has a placeholder."""
    return any(f"{{{name}}}" in word for word in words)


def fill(words: Sequence[str], values: Mapping[str, str], arguments: Sequence[str]) -> list[str]:
    """The command line of a template; a value is never read as a template itself. AgentError if one is too long."""
    filled: list[str] = []
    for word in words:
        filled += arguments if word == "{arguments}" else [fill_word(word, values)]
    if any(len(word.encode()) > ARGUMENT_BYTES for word in filled):
        raise AgentError(
            f"the prompt is over {ARGUMENT_BYTES} bytes, too long for an argument; remove {{prompt}} from command, "
            "and the program gets it on standard input",
            says="that is too long for the program behind me; its operator has been told",
        )
    return filled


def fill_word(word: str, values: Mapping[str, str]) -> str:
    """A word of a template with its values."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), word)


async def check_program(config: Config) -> tuple[Finding, ...]:
    """Check that the program and its folder are there; of a preset, also its version and login."""
    program, name = config.program, config.preset or Path(config.command[0]).name
    found = shutil.which(program.command[0])
    if found is None:
        cure = f"Install {name}, or write its whole path into `command`."
        return (Finding(name=f"{NAME} {name}", ok=False, says="the program is not found", cure=cure),)
    if config.folder and not Path(config.folder).is_dir():
        cure = "Make the folder, or change `folder`."
        return (Finding(name=f"{NAME} {name}", ok=False, says="its folder does not exist", cure=cure),)
    if not config.preset:
        return (Finding(name=f"{NAME} {name}", ok=True, says="the program is there"),)
    code, version = await _run(config, (program.command[0], "--version"))
    if code:
        cure = f"Run `{name} --version` and install it again."
        return (Finding(name=f"{NAME} {name}", ok=False, says="the program does not start", cure=cure),)
    return (Finding(name=f"{NAME} {name}", ok=True, says=f"version {version or 'unknown'}"), await _login(config, name))


async def _login(config: Config, name: str) -> Finding:
    program = config.program
    if any(os.environ.get(key) for key in program.environment if key.endswith(("_KEY", "_TOKEN"))):
        return Finding(name=f"{NAME} login", ok=True, says=f"{name} gets a key from the environment")
    if program.login:
        is_in = not (await _run(config, program.login))[0]
    else:
        is_in = any((Path.home() / file).is_file() for file in program.login_files)
    if is_in:
        return Finding(name=f"{NAME} login", ok=True, says=f"{name} is logged in")
    return Finding(name=f"{NAME} login", ok=False, says=f"{name} is not logged in", cure=program.cure)


async def _run(config: Config, words: Sequence[str]) -> tuple[int, str]:
    """The exit status and first line of a short call."""
    names = (*config.program.environment, *config.environment)
    until = asyncio.get_running_loop().time() + CHECK_SECONDS
    try:
        async with Process(words, environment(names, {}, Path.home()), Path.home(), b"") as process:
            said = b"".join([piece async for piece in process.pieces(until)])
            code = await process.ended(until)
    except (AgentError, TimeoutError):
        return 1, ""
    return code, (said.decode(errors="replace").strip().splitlines() or [""])[0][:VERSION_CHARS]
