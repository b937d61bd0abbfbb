"""Run one command: read its arguments, and turn what goes wrong into one sentence and an exit code."""

import os
import sys
from argparse import SUPPRESS, ArgumentParser
from importlib import import_module
from pathlib import Path
from typing import Any

from belino.cli import BAD_CONFIG, COMMANDS, FAILED, NOT_RUNNING
from belino.domain.errors import BelinoError, ConfigError

HOME = "the state folder (default: $BELINO_HOME, or ~/.belino)"


class NotRunning(BelinoError):
    """The command needs a gateway, and none runs on this state folder."""


def run_command(name: str, arguments: list[str]) -> int:
    """Run the command of this name."""
    command = import_module(f"belino.cli.{name}")
    args = make_parser(name).parse_args(arguments)
    # Files of ours are for their owner alone, whatever the shell's umask says.
    os.umask(0o077)
    try:
        return int(command.run(args))
    except BelinoError as error:
        # Our own sentences name no secret and command no terminal; what a plugin raised or a file is called may.
        from belino.cli.show import clean
        from belino.net.redact import redact

        print(f"belino: {clean(redact(str(error)))}", file=sys.stderr)
        return _code_of(error)


def make_parser(name: str) -> ArgumentParser:
    """What reads the arguments of the command of this name."""
    parser = ArgumentParser(prog=f"belino {name}", description=COMMANDS[name])
    import_module(f"belino.cli.{name}").add_arguments(parser)
    _add_everywhere(parser)
    return parser


def _add_everywhere(parser: ArgumentParser) -> None:
    # A subcommand has its own parser; the options are to work after it, too.
    inner = [choice for action in parser._actions for choice in _choices(action) if isinstance(choice, ArgumentParser)]
    for each in (parser, *inner):
        # What was said before a subcommand is not unsaid by it.
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
