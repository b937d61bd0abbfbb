"""belino login: a fresh one-time link into the web chat."""

from argparse import ArgumentParser, Namespace

from belino.cli import OK
from belino.cli.client import needed_gateway
from belino.cli.show import show_json
from belino.storage.home import Home


def add_arguments(parser: ArgumentParser) -> None:
    """The command has no arguments of its own."""


def run(args: Namespace) -> int:
    answer = needed_gateway(Home.at(args.home)).post("/api/logins", {})
    if args.json:
        show_json(answer)
    else:
        print(answer["url"])
    return OK
