"""What was said before: a channel's latest messages, a thread with the message it began at, and what was missed."""

import logging
from collections.abc import AsyncIterator, Sequence

from belino.adapters.discord.calls import Calls, Refused
from belino.adapters.discord.parse import Known, parse_message
from belino.adapters.discord.people import FORUMS, Place
from belino.adapters.discord.raw import as_identity, identity
from belino.adapters.discord.refusals import UNKNOWN_CHANNEL, UNKNOWN_MESSAGE
from belino.domain.errors import RateLimited, Unauthorized
from belino.domain.message import ConversationKey, Message
from belino.domain.ports import Clock
from belino.net.raw import Raw, as_table, as_tables, table
from belino.net.stream import retried

log = logging.getLogger(__name__)

PAGE = 100
MOST_PAGES = 10
MOST_MISSED = PAGE * MOST_PAGES
LONGEST_WAIT = 60.0

MESSAGES, MESSAGE = "/channels/{}/messages", "/channels/{}/messages/{}"
_CLOSED = frozenset({UNKNOWN_CHANNEL, 50001, 50013})


async def channel_history(
    calls: Calls, known: Known, channel: ConversationKey, *, before: str | None, limit: int
) -> Sequence[Message]:
    """The newest messages of a channel, oldest first; those before a message. In a forum itself nothing is said."""
    if is_forum(known, channel.channel):
        return ()
    query: dict[str, object] = {"limit": min(max(limit, 1), PAGE)}
    if anchor := as_identity(before):
        query["before"] = anchor
    return _messages(await _page(calls, channel.channel, query), known)


async def thread_history(calls: Calls, known: Known, conversation: ConversationKey) -> Sequence[Message]:
    """A thread's newest messages and the one it began at, which is told inside its first, or asked for."""
    thread = as_identity(conversation.thread)
    page = await _page(calls, thread, {"limit": PAGE})
    found = _messages(page, known)
    starter = next((told for raw in page if (told := _starter(raw, thread))), None)
    if starter is None and not any(message.id == thread for message in found):
        starter = await _asked_for(calls, known, conversation.channel, thread)
    return (*(_messages([starter], known) if starter else ()), *found)


async def missed(calls: Calls, clock: Clock, channel: str, newest: str) -> AsyncIterator[Sequence[Raw]]:
    """What was said in a channel since a message, oldest first, a page at a time.

    Of more than ten pages the latest are told: who asked a moment ago still waits for an answer.
    """
    pages: list[Sequence[Raw]] = []
    query: dict[str, object] = {"limit": PAGE}
    while len(pages) < MOST_PAGES:
        page = await patient_page(calls, clock, channel, query)
        pages.append([raw for raw in page if int(identity(raw, "id")) > int(newest)])
        if len(pages[-1]) < PAGE:
            break
        query["before"] = identity(page[0], "id")
    else:
        log.warning("in channel %s more than %d messages were missed; the oldest are not told", channel, MOST_MISSED)
    for page in reversed(pages):
        if page:
            yield page


async def patient_page(calls: Calls, clock: Clock, channel: str, query: dict[str, object]) -> Sequence[Raw]:
    """A page, waited for as long as Discord asks; nothing from a channel that is closed to us."""
    while True:
        try:
            return await retried(
                lambda: _page(calls, channel, query), clock=clock, lasting=(Refused, RateLimited, Unauthorized)
            )
        except RateLimited as error:
            if error.retry_after > LONGEST_WAIT:
                raise
            await clock.sleep(error.retry_after)
        except Refused as error:
            if error.code in _CLOSED or error.status in (403, 404):
                return ()
            raise


async def place_at(calls: Calls, clock: Clock, channel: str) -> Raw | None:
    """A channel nobody told us of; None if it is gone or closed to us."""
    while True:
        try:
            return as_table(await calls.call("GET", "/channels/{}", channel))
        except RateLimited as error:
            if error.retry_after > LONGEST_WAIT:
                raise
            await clock.sleep(error.retry_after)
        except Refused:
            return None


async def _page(calls: Calls, channel: str, query: dict[str, object]) -> list[Raw]:
    """Messages, oldest first."""
    told = as_tables(await calls.call("GET", MESSAGES, channel, query=query))
    return sorted((raw for raw in told if identity(raw, "id")), key=lambda raw: int(identity(raw, "id")))


async def _asked_for(calls: Calls, known: Known, channel: str, thread: str) -> Raw | None:
    """The message a thread began at, which stands in its channel; the first of a post stands in the post."""
    holders = (thread,) if is_forum(known, channel) else (channel,) if channel in known.places else (channel, thread)
    for holder in holders:
        try:
            return as_table(await calls.call("GET", MESSAGE, holder, thread))
        except Refused as error:
            if error.code != UNKNOWN_MESSAGE and error.status not in (400, 403, 404):
                raise
    return None  # a thread need not begin at a message


def is_forum(known: Known, channel: str) -> bool:
    place = known.places.get(channel)
    return place is not None and place.kind in FORUMS


def _starter(raw: Raw, thread: str) -> Raw | None:
    told = table(raw, "referenced_message")
    return told if identity(told, "id") == thread else None


def _messages(page: Sequence[Raw], known: Known) -> tuple[Message, ...]:
    found = (parse_message(raw, known) for raw in page)
    return tuple(message for message in found if isinstance(message, Message))


def is_in(place: Place | None, channel: str) -> bool:
    """Whether a thread belongs to a channel."""
    return place is not None and place.is_thread and place.parent == channel
