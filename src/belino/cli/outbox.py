"""belino outbox: what is on its way out, and what to do about it."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable

from belino.cli.flushing import DESCRIPTION, flush, flush_arguments


def add_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    flush_arguments(actions.add_parser("flush", help="send pending files now", description=DESCRIPTION))


def run(args: Namespace) -> int:
    actions: dict[str, Callable[[Namespace], int]] = {"flush": flush}
    return actions[args.action](args)
