"""belino readings ls|show: what was read from media, by which provider, at what cost, and what failed before it."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from belino.cli import OK
from belino.cli.client import GatewayClient, ask
from belino.cli.command import NAME, number_from
from belino.cli.show import clean, clean_lines, local_time, paint, show_json, show_table
from belino.domain.errors import BelinoError
from belino.domain.message import ConversationKey

if TYPE_CHECKING:
    from belino.storage.store import Store

COLUMNS = ("when", "ref", "as", "provider", "outcome", "ms", "USD", "sent to", "why")


def readings_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ls|show", help="what to do")
    listing = actions.add_parser(
        "ls", help="list attempts, newest first", description="List the attempts to read media, newest first."
    )
    listing.add_argument("--channel", metavar="CHANNEL", help="only of this channel (platform:account:channel)")
    listing.add_argument(
        "--limit", type=number_from(1, 1000), default=50, metavar="N", help="maximum number (default: 50)"
    )
    show = actions.add_parser(
        "show", help="show one media item", description="Show what was read from one media item, and every attempt."
    )
    show.add_argument("ref", type=NAME, metavar="REF", help="as `belino media ls` shows it, like tg_k3v9d0q2m7xa")


def run_readings(args: Namespace) -> int:
    return _show(args) if args.action == "show" else _list(args)


def _list(args: Namespace) -> int:
    channel = ConversationKey.parse(args.channel).whole_channel if args.channel else None

    async def resting(store: "Store") -> dict[str, Any]:
        from belino.gateway.reading_attempts import attempts_json, sums_json

        found = await store.attempts(channel, limit=args.limit)
        return {"attempts": attempts_json(found), "sums": sums_json(found)}

    def running(gateway: GatewayClient) -> Any:
        asked = {"limit": args.limit} | ({"channel": str(channel)} if channel else {})
        return gateway.get("/api/readings", **asked)

    answer = ask(args, running=running, resting=resting)
    if args.json:
        show_json(answer)
        return OK
    show_table(COLUMNS, [_row(each) for each in answer["attempts"]], empty="nothing was read yet")
    if answer["attempts"]:
        print(_summed(answer["sums"]))
    return OK


def _show(args: Namespace) -> int:
    async def resting(store: "Store") -> Any:
        from belino.gateway.reading_attempts import item_json

        found = await item_json(store, args.ref)
        if found is None:
            raise BelinoError(f"there is no media {args.ref}; see `belino media ls`")
        return found

    def running(gateway: GatewayClient) -> Any:
        found = gateway.find(f"/api/readings/{args.ref}")
        if found is None:
            raise BelinoError(f"there is no media {args.ref}; see `belino media ls`")
        return found

    answer = ask(args, running=running, resting=resting)
    if args.json:
        show_json(answer)
        return OK
    media = answer["media"]
    print(clean(f"{paint(media['ref'], 'bold')} · {media['kind']} · {media['mime']} · {media['outcome']}"))
    show_table(COLUMNS, [_row(each) for each in answer["attempts"]], empty="it was not read yet")
    for reading in answer["readings"]:
        doubt = ", uncertain" if reading["uncertain"] else ""
        doubt += ", the beginning only" if reading["partial"] else ""
        print()
        print(paint(clean(f"{reading['kind']} by {reading['provider']} {reading['model']}{doubt}"), "bold"))
        print(clean_lines(reading["text"]))
    return OK


def _row(attempt: dict[str, Any]) -> tuple[object, ...]:
    usd = attempt["usd"]
    paid = "" if not attempt["sent_to"] or attempt["cached"] else "unknown" if usd is None else f"{usd:.4f}"
    return (
        local_time(attempt["at"]),
        attempt["ref"],
        f"{attempt['as']}, ahead" if attempt["ahead"] else attempt["as"],
        f"{attempt['provider']} {attempt['model']}".strip(),
        "stored" if attempt["cached"] else attempt["outcome"],
        attempt["milliseconds"],
        paid,
        attempt["sent_to"],
        attempt["reason"],
    )


def _summed(sums: dict[str, Any]) -> str:
    told = [f"{sums['read']} read, {sums['failed']} failed"]
    if sums["seconds"]:
        told.append(f"{sums['seconds']:.0f} seconds of sound")
    if sums["pages"]:
        told.append(f"{sums['pages']} pictures or pages")
    if sums["sent_to"]:
        cost = "at an unknown price" if sums["usd"] is None else f"for {sums['usd']:.4f} USD"
        told.append(f"sent to {', '.join(sums['sent_to'])} {cost}")
    else:
        told.append("nothing left this machine")
    return clean("; ".join(told))
