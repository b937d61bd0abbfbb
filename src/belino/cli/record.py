"""belino record: store what happens in a conversation in one file that can be replayed elsewhere."""

from argparse import ArgumentParser, Namespace
from typing import Any

from belino.cli import OK
from belino.cli.client import needed_gateway
from belino.cli.show import clean, counted, local_time, show_json
from belino.domain.message import ConversationKey
from belino.domain.units import format_size
from belino.storage.home import Home

PATH = "/api/recording"


def record_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="start|stop|status", help="what to do (default: status)")
    start = actions.add_parser(
        "start", help="begin", description="Record until `belino record stop`, also across restarts of the gateway."
    )
    start.add_argument(
        "--conversation", metavar="CONVERSATION", help="platform:account:channel[:thread] (default: all)"
    )
    start.add_argument("--without-text", action="store_true", help="replace what people and agents wrote, too")
    start.add_argument("--without-media", action="store_true", help="leave out the bytes of media")
    actions.add_parser("stop", help="end it", description="End the recording and write its cassette.")
    actions.add_parser("status", help="see how it stands", description="See what is being recorded.")


def run_record(args: Namespace) -> int:
    gateway = needed_gateway(Home.at(args.home))
    match args.action:
        case "start":
            where = ConversationKey.parse(args.conversation) if args.conversation else None
            wishes = {"without_text": args.without_text, "without_media": args.without_media}
            told = gateway.post(PATH, wishes | ({"conversation": str(where)} if where else {}))
            lines = _state(told["recording"])
        case "stop":
            told = gateway.delete(PATH)
            lines = _written(told)
        case _:
            told = gateway.get(PATH)
            lines = _state(told["recording"])
    if args.json:
        show_json(told)
    else:
        for line in lines:
            print(clean(line))
    return OK


def _state(recording: dict[str, Any] | None) -> list[str]:
    if recording is None:
        return ["nothing is being recorded; `belino record start` begins"]
    where, size = recording["conversation"] or "every conversation", format_size(recording["bytes"])
    if recording["ended"]:
        return [f"the recording stopped itself: {recording['ended']}", "`belino record stop` writes its cassette"]
    since = local_time(recording["started"])
    return [f"recording {where} since {since} ({size})", "`belino record stop` ends it and writes the cassette"]


def _written(written: dict[str, Any]) -> list[str]:
    lines = [written["path"]]
    held = f"{counted(written['records'], 'record')} and {counted(written['media'], 'file')}"
    lines.append(f"it holds {held} ({format_size(written['bytes'])}); read docs/cassettes.md before you hand it on")
    if written["ended"]:
        lines.append(f"the recording had stopped itself: {written['ended']}")
    lines += [f"not in it: {sha256[:12]}: {why}" for sha256, why in written["left_out"].items()]
    return lines
