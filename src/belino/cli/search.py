"""belino search CHANNEL "intent" ["intent" …]: run the agent's channel_context search."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from belino.cli import OK
from belino.cli.client import ask
from belino.cli.command import NAME, number_from, text_up_to
from belino.cli.show import clean, counted, local_time, paint, show_json
from belino.domain.errors import BelinoError
from belino.domain.message import ConversationKey

if TYPE_CHECKING:
    from belino.storage.store import Store

INTENT_CHARS = 2_000
RESULTS_DEFAULT, RESULTS_OF_SEVERAL = 8, 20
TEXT_CHARS = 300


def search_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("channel", metavar="CHANNEL", help="platform:account:channel")
    parser.add_argument(
        "intent",
        type=text_up_to(INTENT_CHARS),
        nargs="+",
        metavar="INTENT",
        help="what to look for, in the words people used; several questions (up to 4) are answered in turn",
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
        metavar="N",
        help="maximum number of results (default: 8, or 20 for several questions; at most 50)",
    )
    parser.add_argument(
        "--near", type=NAME, metavar="MESSAGE", help="a message id: what was said around it ranks higher"
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
    limit = args.limit or (RESULTS_DEFAULT if len(args.intent) == 1 else RESULTS_OF_SEVERAL)

    async def resting(store: "Store") -> Any:
        from belino.context.results import results_json
        from belino.context.search import search
        from belino.net.clock import SystemClock
        from belino.tools.arguments import Arguments

        if not await store.has_channel(channel):
            return None
        now = SystemClock().now()
        since = Arguments({"since": args.since}, ("since",)).since("since", now)
        page = await search(
            store,
            channel,
            args.intent,
            now=now,
            since=since,
            authors=args.author,
            near=args.near,
            limit=limit,
            cursor=args.cursor,
        )
        return results_json(page)

    answer = ask(
        args,
        running=lambda gateway: gateway.find(
            "/api/search",
            conversation=channel,
            intents=_listed(args.intent),
            since=args.since,
            authors=_listed(args.author),
            near=args.near,
            limit=limit,
            cursor=args.cursor,
        ),
        resting=resting,
    )
    if answer is None:
        raise BelinoError(f"there is no channel {channel}; see `belino channels`")
    if args.json:
        show_json(answer)
    else:
        _show(answer, args.intent)
    return OK


def _listed(items: Sequence[str]) -> str | None:
    return ",".join(quote(item, safe=" ") for item in items) or None


def _show(answer: dict[str, Any], intents: Sequence[str]) -> None:
    if not answer["found"]:
        print(_counted(answer))
    matches = sum(found["match"] == "found" for found in answer["results"])
    for found in answer["results"]:
        alone = matches == 1 and found["match"] == "found"
        who, thread = clean(found["author"]["display_name"]) or "unknown", found["thread_summary"]
        replies = f" · {thread['reply_count']} in its thread" if thread else ""
        media = "".join(f" · {_named(item)}" for item in found["media"])
        read = [item for item in found["media"] if "excerpt" in item]
        print(f"{paint(who, 'bold')} · {local_time(found['ts'])} · {clean(found['message_id'])}{replies}{media}")
        if found["text"]:
            print(f"  {_excerpt(found['text'], intents, whole=alone)}")
        for item in read:
            place = item["time"] if "time" in item else f"{item['unit']} {item['page']}"
            print(f"  {item['artifact_id']}, {place}: {_excerpt(item['excerpt'], intents, whole=alone)}")
        nearby = "nearby: " if found["match"] == "nearby" else ""
        print(f"  {paint(nearby + clean(found['relevance_signal']), 'dim')}")
    if answer["found"]:
        print(_counted(answer))
    if answer["next_cursor"]:
        print(f"more: --cursor {answer['next_cursor']}")
    if "note" in answer:
        print(f"{paint('note', 'yellow')}: {answer['note']}")


def _excerpt(text: str, intents: Sequence[str], *, whole: bool) -> str:
    """A text around the words that were searched for; all of it, if it is the only one that was found."""
    from belino.search.excerpt import excerpt
    from belino.search.tokenizer import query_words

    if whole:
        return clean(text)
    wanted = [term for intent in intents for word in query_words(intent) for term in (word.word, *word.terms)]
    return excerpt(clean(text), wanted, TEXT_CHARS)


def _named(item: dict[str, Any]) -> str:
    return clean(f"{item['artifact_id']} {item['filename']}") if item["filename"] else str(item["artifact_id"])


def _counted(answer: dict[str, Any]) -> str:
    """What was found in how many messages; recent messages that match nothing are not counted."""
    scanned, covered = answer["coverage"]["messages_scanned"], answer["coverage"]["time_range"]
    scope = counted(scanned, "message") + (f" since {local_time(covered[0])[:10]}" if covered else "")
    if not answer["found"]:
        latest = "; the latest:" if answer["results"] else ""
        return f"nothing matches in {scope}{latest}"
    shown = [found["match"] for found in answer["results"]]
    nearby = f", {shown.count('nearby')} nearby," if "nearby" in shown else ""
    return f"{shown.count('found')} of {answer['found']} found{nearby} in {scope}"
