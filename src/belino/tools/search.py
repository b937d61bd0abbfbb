"""Search tool channel_context: the messages of the channel that match an intent best."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

from belino.context.json_format import json_text
from belino.context.results import results_json, results_lines
from belino.context.search import INTENTS_AT_MOST, search
from belino.domain.media import Block, TextBlock
from belino.domain.search import HitKind, SearchPage
from belino.domain.turn import ToolSpec
from belino.tools.arguments import Arguments
from belino.tools.media import FORMATS
from belino.tools.tool_context import ToolContext

RESULTS_DEFAULT, RESULTS_MOST = 8, 50
RESULTS_OF_SEVERAL = 20
"""The most results of several intents, if no number is given: as many as the budget of a page allows are shown."""
INTENT_CHARS = 2_000

CHANNEL_CONTEXT = ToolSpec(
    name="channel_context",
    description=(
        "Search all that was said in this channel, and media that were read. intent: what you want to know, "
        "in the words people here would have used; names, dates, ids and “quoted phrases” count. A question with "
        "several answers, or parts, finds more as a list of 2 to 4 sub-questions. Each result shows the words that "
        "matter, and why it was chosen; channel_messages gives them in full."
    ),
    schema={
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "intent": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            "since": {"type": "string", "description": "As in list_media."},
            "authors": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Names of people whose words count more.",
            },
            "near": {"type": "string", "description": "A message id: what was said around it counts more."},
            "max_results": {"type": "integer"},
            "cursor": {"type": "string"},
            "format": {"type": "string", "enum": list(FORMATS)},
        },
        "required": ["intent"],
    },
)


async def channel_context(context: ToolContext, given: Mapping[str, object]) -> tuple[Block, ...]:
    """The messages that match an intent, or several, best, without the one being answered."""
    arguments = Arguments(given, ("intent", "since", "authors", "near", "max_results", "cursor", "format"))
    now = context.clock.now()
    intents = arguments.words_or_several("intent", most=INTENT_CHARS, several=INTENTS_AT_MOST)
    since, authors = arguments.since("since", now, context.archive.zone), arguments.texts("authors") or ()
    usual = RESULTS_DEFAULT if len(intents) == 1 else RESULTS_OF_SEVERAL
    limit = arguments.number("max_results", default=usual, most=RESULTS_MOST)
    near, cursor = arguments.text("near"), arguments.text("cursor")
    style = arguments.choice("format", FORMATS, "compact")
    note = await context.history.channel(context.channel) if context.history else ""
    ask = partial(search, context.archive, context.channel, intents, now=now, since=since, authors=authors, near=near)
    found = await _others(ask, context.answers, limit, cursor)
    data = results_json(found) | ({"note": note} if note else {})
    if style == "json":
        text = json_text(data)
    else:
        text = results_lines(found, intents, now=now)
        text = f"Note: {note}\n{text}" if note else text
    return arguments.reported((TextBlock(text=text, data=data),))


async def _others(
    ask: Callable[..., Awaitable[SearchPage]], answers: Collection[str], limit: int, cursor: str | None
) -> SearchPage:
    """A page without the question itself, which contains the words of the intent and no answer."""
    page = await ask(limit=limit, cursor=cursor)
    others = [result for result in page.results if result.message_id not in answers]
    own = [result for result in page.results if result.message_id in answers]
    missing, more = len(own), page.next_cursor
    while missing and more is not None:
        rest = await ask(limit=missing, cursor=more)
        new = [result for result in rest.results if result.message_id not in answers]
        own += [result for result in rest.results if result.message_id in answers]
        others, missing, more = [*others, *new], missing - len(new), rest.next_cursor
    counted = sum(result.kind is not HitKind.RECENT for result in own)
    found = sum(result.kind is HitKind.FOUND for result in own)
    return replace(page, results=tuple(others), next_cursor=more, total=page.total - counted, found=page.found - found)
