"""belino login: a fresh one-time link into the web chat."""

from argparse import Namespace

from belino.cli import OK
from belino.cli.client import needed_gateway
from belino.cli.show import show_json
from belino.storage.home import Home


def run_login(args: Namespace) -> int:
    answer = needed_gateway(Home.at(args.home)).post("/api/logins", {})
    if args.json:
        show_json(answer)
    else:
        print(answer["url"])
    return OK
