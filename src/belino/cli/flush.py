"""belino outbox flush: send the files waiting in the `pending` folder of a conversation, or of all."""

from argparse import ArgumentParser, Namespace
from typing import Any

from belino.cli import FAILED, OK
from belino.cli.client import Unknown, needed_gateway, no_conversation
from belino.cli.show import clean, show_json
from belino.domain.message import ConversationKey
from belino.storage.home import Home

DESCRIPTION = "Send the files that wait in the folder pending, without waiting for a reply. Needs a running gateway."


def flush_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "conversation", metavar="CONVERSATION", nargs="?", help="platform:account:channel[:thread] (default: all)"
    )


def flush(args: Namespace) -> int:
    where = ConversationKey.parse(args.conversation) if args.conversation else None
    body = {"conversation": str(where)} if where else {}
    try:
        answer = needed_gateway(Home.at(args.home)).post("/api/outbox/flush", body)
    except Unknown:
        raise no_conversation(where) from None
    if args.json:
        show_json(answer)
    else:
        for line in _lines(answer["flushed"]):
            print(clean(line))
    refused = any(one["refused"] for one in answer["flushed"])
    return FAILED if refused else OK


def _lines(flushed: list[dict[str, Any]]) -> list[str]:
    lines = []
    for one in flushed:
        where = one["conversation"]
        lines += [f"{where}: {name} is on its way" for name in one["sent"]]
        lines += [f"{where}: {each['name']} was not sent: {each['reason']}" for each in one["refused"]]
        if one["waiting"]:
            lines.append(f"{where}: {one['waiting']} still being written; flush again in a moment")
    return lines or ["nothing is pending"]
