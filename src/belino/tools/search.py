"""Search tool channel_context: find messages of the channel."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

from belino.context.json_format import json_text
from belino.context.search import results_json, results_lines, search
from belino.domain.media import Block, TextBlock
from belino.domain.search import SearchPage
from belino.domain.turn import ToolSpec
from belino.tools.arguments import LIST_ITEMS, Arguments
from belino.tools.media import FORMATS
from belino.tools.tool_context import ToolContext

RESULTS_DEFAULT, RESULTS_MOST = 8, 50
INTENT_CHARS = 2_000

CHANNEL_CONTEXT = ToolSpec(
    name="channel_context",
    description=(
        "Search everything that was said in this channel, and the documents that were read. intent: what you want to "
        "know, in the words people here would have used; names, dates, ids and “quoted phrases” count. Each result "
        "shows the words that matter, and why it was chosen; channel_messages gives them in full."
    ),
    schema={
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "intent": {"type": "string", "minLength": 1, "maxLength": INTENT_CHARS},
            "since": {"type": "string", "description": "Only from then on: ISO 8601, or how long ago: 2h, 3d."},
            "authors": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": LIST_ITEMS,
                "description": "Names of people whose words count more.",
            },
            "max_results": {"type": "integer", "minimum": 1, "maximum": RESULTS_MOST, "default": RESULTS_DEFAULT},
            "cursor": {"type": "string", "description": "From the end of the results before, with the same intent."},
            "format": {"type": "string", "enum": list(FORMATS), "default": "compact"},
        },
        "required": ["intent"],
    },
)


async def channel_context(shelf: ToolContext, given: Mapping[str, object]) -> tuple[Block, ...]:
    """The messages that match an intent best, without the one being answered."""
    arguments = Arguments(given, ("intent", "since", "authors", "max_results", "cursor", "format"))
    now = shelf.clock.now()
    intent = arguments.words("intent", most=INTENT_CHARS)
    since, authors = arguments.since("since", now), arguments.texts("authors") or ()
    limit = arguments.number("max_results", default=RESULTS_DEFAULT, most=RESULTS_MOST)
    cursor = arguments.text("cursor")
    style = arguments.choice("format", FORMATS, "compact")
    note = await shelf.history.channel(shelf.channel) if shelf.history else ""
    ask = partial(search, shelf.archive, shelf.channel, intent, now=now, since=since, authors=authors)
    found = await _others(ask, shelf.answers, limit, cursor)
    if style == "json":
        return (TextBlock(text=json_text(results_json(found) | ({"note": note} if note else {}))),)
    text = results_lines(found, intent, now=now)
    return (TextBlock(text=f"Note: {note}\n{text}" if note else text),)


async def _others(
    ask: Callable[..., Awaitable[SearchPage]], answers: Collection[str], limit: int, cursor: str | None
) -> SearchPage:
    """A page without the question itself, which contains the words of the intent and no answer."""
    found = await ask(limit=limit, cursor=cursor)
    others = [result for result in found.results if result.message_id not in answers]
    missing, more = len(found.results) - len(others), found.next_cursor
    while missing and more is not None:
        rest = await ask(limit=missing, cursor=more)
        new = [result for result in rest.results if result.message_id not in answers]
        others, missing, more = [*others, *new], missing - len(new), rest.next_cursor
    return replace(found, results=tuple(others), next_cursor=more)
