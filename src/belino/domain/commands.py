"""Commands that people give in a chat, such as `/stop`: belino carries them out itself, without a model."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from belino.domain.message import Message
from belino.domain.reply import Parcel

_COMMAND = re.compile(r"/([a-z]{1,32})(?:@(\w{1,64}))?(?:\s+(.*))?", re.DOTALL | re.IGNORECASE | re.ASCII)
_SPOKEN = re.compile(r"(?:slash\s+|/\s*)([a-z]{1,32})\b\s*(.*)", re.DOTALL | re.IGNORECASE | re.ASCII)
_PUNCTUATION = " \t\r\n.,;:!?…"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec:
    """A command as it is listed in help and in the menus of platforms."""

    name: str
    says: str
    argument: str = ""
    """What may follow it, as help shows it; empty if nothing may."""


COMMANDS = (
    CommandSpec(name="new", says="Start a new session: I forget what was said before."),
    CommandSpec(name="stop", says="Stop what I am doing, and what waits."),
    CommandSpec(name="status", says="Show agent, model, cost, context and what waits."),
    CommandSpec(name="why", says="Explain my last answer."),
    CommandSpec(name="model", says="Show the models, or choose one.", argument="NAME"),
    CommandSpec(name="voice", says="Turn spoken answers on or off here.", argument="on|off"),
    CommandSpec(name="help", says="List the commands."),
)
"""Every other command goes to the agent as text."""

_NAMES = frozenset(spec.name for spec in COMMANDS)
_ARGUED = frozenset(spec.name for spec in COMMANDS if spec.argument)
_FOLLOWED = _ARGUED | {"stop"}
"""Commands that text may follow."""
_NO_ALIASES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCommand:
    """A known command with what follows it."""

    name: str
    argument: str = ""
    bot: str = ""
    """The bot that it names, as in `/new@some_bot`; empty if none."""

    def __str__(self) -> str:
        return f"/{self.name} {self.argument}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSettings:
    """What people chose in a conversation by commands."""

    model: str | None = None
    """The model that they chose; None for the agent's own."""
    voice: bool | None = None
    """Whether answers are spoken; None leaves it to the configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEffect:
    """What a command changes and how it is answered; stored in one transaction with the message that gave it."""

    command: ChatCommand
    reason: str
    """What was done, for `explain`."""
    answer: tuple[Parcel, ...]
    stops: bool = False
    """Turns of the conversation that run or wait are stopped."""
    forgets: bool = False
    """The session begins again, and what was said before is no context of it."""
    settings: ChatSettings | None = None
    """Settings to store; None leaves them unchanged."""


def parse_command(text: str, aliases: Mapping[str, str] = _NO_ALIASES) -> ChatCommand | None:
    """The command that a message consists of; None for other text and for commands that are not belino's.

    `/why is the sky blue` is a question; `/stop` stops, whatever follows. One word may follow an alias: clients add the
    one in the link by which a person came.
    """
    found = _COMMAND.fullmatch(text.strip())
    if found is None:
        return None
    name, argument = found[1].lower(), " ".join((found[3] or "").split())
    if (alias := aliases.get(name)) is not None and " " not in argument:
        name, argument = alias, ""
    if name not in _NAMES or (argument and name not in _FOLLOWED):
        return None
    return ChatCommand(name=name, argument=argument, bot=(found[2] or "").lower())


def command_in(message: Message, names: Iterable[str], aliases: Mapping[str, str] = _NO_ALIASES) -> ChatCommand | None:
    """The command that a message gives to a bot of these names; None if it is none, or another bot's.

    A mention of the bot may come first. A message with media, or a forward, gives no command.
    """
    if message.media or message.album is not None or message.forward is not None:
        return None
    text = message.text.strip()
    known = [name.lower() for name in names if name]
    for name in known:
        if text.lower().startswith(f"@{name} "):
            text = text[len(name) + 2 :]
            break
    command = parse_command(text, aliases)
    return None if command is None or (command.bot and command.bot not in known) else command


def spoken_command(transcript: str) -> ChatCommand | None:
    """The command that a voice message consists of: “slash stop”, or as a transcriber writes it, “/stop.”"""
    found = _SPOKEN.fullmatch(transcript.strip(_PUNCTUATION))
    if found is None:
        return None
    command = parse_command(f"/{found[1]} {found[2].strip(_PUNCTUATION)}")
    return None if command is None or (command.argument and command.name not in _ARGUED) else command
