"""belino media ls: what people sent, newest first, and what became of it."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from belino.cli import OK
from belino.cli.ask import ask
from belino.cli.show import shorten, show_json, show_table
from belino.domain.media import MediaKind
from belino.domain.message import ConversationKey

if TYPE_CHECKING:
    from belino.storage.sqlite import SqliteStore


def add_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ls")
    listing = actions.add_parser("ls", help="list media, newest first", description="List media, newest first.")
    listing.add_argument("--channel", metavar="CHANNEL", help="only of this channel (platform:account:channel)")
    listing.add_argument("--kind", choices=[str(kind) for kind in MediaKind], help="only of this kind")
    listing.add_argument("--limit", type=int, default=20, metavar="N", help="at most so many (default: 20)")


def run(args: Namespace) -> int:
    channel = ConversationKey.parse(args.channel).whole_channel if args.channel else None
    limit = min(max(args.limit, 1), 200)

    async def resting(store: "SqliteStore") -> dict[str, Any]:
        from belino.web.wire import record_json

        kind = MediaKind(args.kind) if args.kind else None
        records = await store.refs(channel, kind=kind, limit=limit)
        return {"media": [record_json(record) for record in records]}

    answer = ask(
        args,
        running=lambda gateway: gateway.get("/api/media", channel=channel, kind=args.kind, limit=limit),
        resting=resting,
    )
    if args.json:
        show_json(answer)
        return OK
    rows = [
        (m["ref"], m["kind"], shorten(m["file_name"] or "", 40), m["mime"], m["size"], m["outcome"], m["reason"])
        for m in answer["media"]
    ]
    show_table(("ref", "kind", "name", "type", "bytes", "outcome", "why"), rows, empty="no media yet")
    return OK
