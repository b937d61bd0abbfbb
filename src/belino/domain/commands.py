"""Commands that people give in a chat, such as `/stop`: belino carries them out itself, without a model."""

import re
from dataclasses import dataclass

_COMMAND = re.compile(r"/([a-z]{1,32})(?:@\w{1,64})?(?:\s+(.*))?", re.DOTALL | re.IGNORECASE | re.ASCII)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCommand:
    """A known command with what follows it."""

    name: str
    argument: str = ""


def parse_command(text: str) -> ChatCommand | None:
    """The command that a message consists of; None for other text and for commands that are not belino's.

    `/new@some_bot` names a bot, as in groups; whether that is this one is known to the adapter.
    """
    found = _COMMAND.fullmatch(text.strip())
    if found is None or found[1].lower() not in _NAMES:
        return None
    return ChatCommand(name=found[1].lower(), argument=" ".join((found[2] or "").split()))
