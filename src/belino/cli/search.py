"""belino search CHANNEL "intent": run the agent's channel_context search."""

from argparse import ArgumentParser, Namespace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from belino.cli import OK
from belino.cli.client import ask
from belino.cli.command import NAME, number_from, text_up_to
from belino.cli.show import clean, local_time, paint, shorten, show_json
from belino.domain.errors import BelinoError
from belino.domain.message import ConversationKey

if TYPE_CHECKING:
    from belino.storage.store import Store

INTENT_CHARS = 2_000
TEXT_CHARS = 300


def search_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("channel", metavar="CHANNEL", help="platform:account:channel")
    parser.add_argument(
        "intent", type=text_up_to(INTENT_CHARS), metavar="INTENT", help="what to look for, in the words people used"
    )
    parser.add_argument(
        "--since", type=moment, metavar="WHEN", help="only since then: ISO 8601, or how long ago (2h, 3d)"
    )
    parser.add_argument(
        "--author", action="append", default=[], type=NAME, metavar="NAME", help="authors whose messages rank higher"
    )
    parser.add_argument(
        "--limit",
        type=number_from(1, 50),
        default=8,
        metavar="N",
        help="maximum number of results (default: 8, at most 50)",
    )
    parser.add_argument("--cursor", type=NAME, metavar="CURSOR", help="continue after the previous results")


def moment(text: str) -> str:
    """A time without a zone is in the reader's local zone, like the times in results."""
    said = NAME(text)
    try:
        when = datetime.fromisoformat(said)
        return when.isoformat() if when.tzinfo else when.astimezone().isoformat()
    except (ValueError, OverflowError):
        return said  # an age or nothing: distinguished where it is read


def run_search(args: Namespace) -> int:
    channel = ConversationKey.parse(args.channel).whole_channel

    async def resting(store: "Store") -> Any:
        from belino.context.search import results_json, search
        from belino.net.clock import SystemClock
        from belino.tools.arguments import Arguments

        known = await store.conversations(platform=channel.platform)
        if channel not in {summary.conversation.whole_channel for summary in known}:
            return None
        now = SystemClock().now()
        since = Arguments({"since": args.since}, ("since",)).since("since", now)
        page = await search(
            store, channel, args.intent, now=now, since=since, authors=args.author, limit=args.limit, cursor=args.cursor
        )
        return results_json(page)

    answer = ask(
        args,
        running=lambda gateway: gateway.find(
            "/api/search",
            conversation=channel,
            intent=args.intent,
            since=args.since,
            authors=",".join(quote(author, safe=" ") for author in args.author) or None,
            limit=args.limit,
            cursor=args.cursor,
        ),
        resting=resting,
    )
    if answer is None:
        raise BelinoError(f"there is no channel {channel}; see `belino channels`")
    if args.json:
        show_json(answer)
    else:
        _show(answer)
    return OK


def _show(answer: dict[str, Any]) -> None:
    for found in answer["results"]:
        who, thread = clean(found["author"]["display_name"]) or "unknown", found["thread_summary"]
        replies = f" · {thread['reply_count']} in its thread" if thread else ""
        media = "".join(f" · {item['artifact_id']}" for item in found["media"])
        read = [item for item in found["media"] if "excerpt" in item]
        print(f"{paint(who, 'bold')} · {local_time(found['ts'])} · {clean(found['message_id'])}{replies}{media}")
        print(f"  {clean(shorten(found['text'], TEXT_CHARS))}")
        for item in read:
            place = item["time"] if "time" in item else f"{item['unit']} {item['page']}"
            print(f"  {item['artifact_id']}, {place}: {clean(shorten(item['excerpt'], TEXT_CHARS))}")
        print(f"  {paint(clean(found['relevance_signal']), 'dim')}")
    scanned, covered = answer["coverage"]["messages_scanned"], answer["coverage"]["time_range"]
    since = f" since {local_time(covered[0])[:10]}" if covered else ""
    print(f"{len(answer['results'])} of {answer['total']} found in {scanned} messages{since}")
    if answer["next_cursor"]:
        print(f"more: --cursor {answer['next_cursor']}")
    if "note" in answer:
        print(f"{paint('note', 'yellow')}: {answer['note']}")
