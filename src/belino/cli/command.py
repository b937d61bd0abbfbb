"""Run one command: parse its arguments within limits, and turn errors into one message and an exit code."""

import os
import sys
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from belino.cli import BAD_CONFIG, COMMANDS, FAILED, GROUPS, NOT_RUNNING
from belino.domain.errors import BelinoError, ConfigError

HOME = "the state folder (default: $BELINO_HOME, or ~/.belino)"


class NotRunning(BelinoError):
    """The command needs a gateway, and none runs on this state folder."""


def run_command(name: str, arguments: list[str]) -> int:
    """Run the command of this name: `run_NAME` of its module, with the arguments of `NAME_arguments`, if it has any."""
    args = make_parser(name).parse_args(arguments)
    # Our files are readable by their owner only, whatever the umask is.
    os.umask(0o077)
    try:
        return int(getattr(_module(name), f"run_{name}")(args))
    except BelinoError as error:
        # Our own messages contain no secrets and no terminal escapes; plugin errors and file names may.
        from belino.cli.show import clean
        from belino.net.redact import redact

        print(f"belino: {clean(redact(str(error)))}", file=sys.stderr)
        return _code_of(error)


def make_parser(name: str) -> ArgumentParser:
    """The argument parser of a command."""
    parser = ArgumentParser(prog=f"belino {name}", description=COMMANDS[name])
    if add_arguments := getattr(_module(name), f"{name}_arguments", None):
        add_arguments(parser)
    _add_everywhere(parser)
    return parser


def number_from(least: int, most: int | None = None) -> Callable[[str], int]:
    """A whole number within limits."""
    limits = f"at least {least}" if most is None else f"from {least} to {most}"

    def number(text: str) -> int:
        value = int(text) if text.removeprefix("-").isdecimal() else None
        if value is None or value < least or (most is not None and value > most):
            raise ArgumentTypeError(f"{text!r} is not a whole number {limits}")
        return value

    return number


def text_up_to(most: int, *, least: int = 1) -> Callable[[str], str]:
    """A non-empty text that HTTP and the store can carry."""

    def text(given: str) -> str:
        said = given.strip()
        if not least <= len(said) <= most or any("\ud800" <= character <= "\udfff" for character in said):
            raise ArgumentTypeError(f"{given[:80]!r} is not a text of {least} to {most} characters")
        return said

    return text


def seconds_up_to(most: float) -> Callable[[str], float]:
    """A duration in seconds, with fractions."""

    def seconds(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value <= most:  # NaN fails too
            raise ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to {most:g}")
        return value

    return seconds


PORT = number_from(0, 65535)
NAME = text_up_to(256)


def _module(name: str) -> ModuleType:
    return import_module(f"belino.cli.{GROUPS.get(name, name)}")


def _add_everywhere(parser: ArgumentParser) -> None:
    # A subcommand has its own parser; the options should work after it, too.
    inner = [choice for action in parser._actions for choice in _choices(action) if isinstance(choice, ArgumentParser)]
    for each in (parser, *inner):
        # A subcommand does not reset options given before it.
        unsaid: dict[str, Any] = {} if each is parser else {"default": SUPPRESS}
        each.add_argument("--json", action="store_true", help="print JSON", **unsaid)
        each.add_argument("--home", type=Path, metavar="FOLDER", help=HOME, **unsaid)


def _choices(action: object) -> list[object]:
    choices = getattr(action, "choices", None)
    return list(choices.values()) if isinstance(choices, dict) else []


def _code_of(error: BelinoError) -> int:
    if isinstance(error, ConfigError):
        return BAD_CONFIG
    return NOT_RUNNING if isinstance(error, NotRunning) else FAILED
