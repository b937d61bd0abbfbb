"""History: a channel's messages, a thread, missed messages, a lost receipt, and the cursor."""

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from belino.adapters.discord.authors import (
    DIRECT,
    FORUMS,
    DiscordChannel,
    as_identity,
    channels_in,
    first_at,
    identity,
)
from belino.adapters.discord.client import (
    NOT_PERMITTED,
    UNKNOWN_CHANNEL,
    UNKNOWN_MESSAGE,
    DiscordClient,
    DiscordRefused,
)
from belino.adapters.discord.parse import DiscordParseContext, parse_message
from belino.adapters.discord.send import MESSAGE, MESSAGES, channel_of, nonce_of
from belino.adapters.discord.socket import GatewaySession
from belino.domain.errors import AdapterError, RateLimited, Unauthorized
from belino.domain.message import ConversationKey, Message
from belino.domain.places import CATCH_UP, MOST_UNHEARD, left_out
from belino.domain.ports import AdapterContext, Clock
from belino.domain.reply import Parcel, Receipt
from belino.net.json_fields import Raw, as_table, as_tables, count, from_json, iso_time, table, tables, words
from belino.net.stream import retried

log = logging.getLogger(__name__)

PAGE = 100
MOST_PAGES = 10
LONGEST_WAIT = 60.0

_CLOSED = frozenset({UNKNOWN_CHANNEL, 50001, NOT_PERMITTED})

MOST_SENT_PAGES = 5
# Allowed difference between Discord's clock and ours.
SKEW = timedelta(seconds=60)

MOST_CHANNELS = 100
MOST_ROLES = 100


async def channel_history(
    client: DiscordClient, known: DiscordParseContext, channel: ConversationKey, *, before: str | None, limit: int
) -> Sequence[Message]:
    """The newest messages of a channel (or those before a message), oldest first. A forum itself has no messages."""
    if is_forum(known, channel.channel):
        return ()
    query: dict[str, object] = {"limit": min(max(limit, 1), PAGE)}
    if anchor := as_identity(before):
        query["before"] = anchor
    return _messages(await _page(client, channel.channel, query), known)


async def thread_history(
    client: DiscordClient, known: DiscordParseContext, conversation: ConversationKey
) -> Sequence[Message]:
    """A thread's newest messages and its starter message, which the first message quotes or which is fetched."""
    thread = as_identity(conversation.thread)
    page = await _page(client, thread, {"limit": PAGE})
    found = _messages(page, known)
    starter = next((told for raw in page if (told := _starter(raw, thread))), None)
    if starter is None and not any(message.id == thread for message in found):
        starter = await _asked_for(client, known, conversation.channel, thread)
    return (*(_messages([starter], known) if starter else ()), *found)


async def missed(
    client: DiscordClient, clock: Clock, channel: str, newest: str, most: int | None = None
) -> AsyncIterator[Sequence[Raw]]:
    """Messages in a channel since a message, oldest first, a page at a time.

    Of more pages than `most` only the latest are returned: the most recent senders still wait for an answer.
    """
    pages: list[Sequence[Raw]] = []
    query: dict[str, object] = {"limit": PAGE}
    most = most or MOST_PAGES
    while len(pages) < most:
        page = await patient_page(client, clock, channel, query)
        pages.append([raw for raw in page if int(identity(raw, "id")) > int(newest)])
        if len(pages[-1]) < PAGE:
            break
        query["before"] = identity(page[0], "id")
    else:
        log.warning("in channel %s more than %d messages were missed; the oldest are not told", channel, PAGE * most)
    for page in reversed(pages):
        if page:
            yield page


async def patient_page(client: DiscordClient, clock: Clock, channel: str, query: dict[str, object]) -> Sequence[Raw]:
    """A page, after the waits that Discord asks for; empty for a channel that is closed to us."""
    while True:
        try:
            return await retried(
                lambda: _page(client, channel, query), clock=clock, lasting=(DiscordRefused, RateLimited, Unauthorized)
            )
        except RateLimited as error:
            if error.retry_after > LONGEST_WAIT:
                raise
            await clock.sleep(error.retry_after)
        except DiscordRefused as error:
            if error.code in _CLOSED or error.status in (403, 404):
                return ()
            raise


async def fetch_channel(client: DiscordClient, clock: Clock, channel: str) -> Raw | None:
    """A channel that the gateway did not send; None if it is gone or closed to us."""
    while True:
        try:
            return as_table(await client.call("GET", "/channels/{}", channel))
        except RateLimited as error:
            if error.retry_after > LONGEST_WAIT:
                raise
            await clock.sleep(error.retry_after)
        except DiscordRefused:
            return None


async def _page(client: DiscordClient, channel: str, query: dict[str, object]) -> list[Raw]:
    """Messages, oldest first."""
    told = as_tables(await client.call("GET", MESSAGES, channel, query=query))
    return sorted((raw for raw in told if identity(raw, "id")), key=lambda raw: int(identity(raw, "id")))


async def _asked_for(client: DiscordClient, known: DiscordParseContext, channel: str, thread: str) -> Raw | None:
    """The starter message of a thread, which is in its parent channel; a post's first message is in the post itself."""
    holders = (thread,) if is_forum(known, channel) else (channel,) if channel in known.channels else (channel, thread)
    for holder in holders:
        try:
            return as_table(await client.call("GET", MESSAGE, holder, thread))
        except DiscordRefused as error:
            if error.code != UNKNOWN_MESSAGE and error.status not in (400, 403, 404):
                raise
    return None  # not every thread has a starter message


def is_forum(known: DiscordParseContext, channel: str) -> bool:
    place = known.channels.get(channel)
    return place is not None and place.kind in FORUMS


def _starter(raw: Raw, thread: str) -> Raw | None:
    told = table(raw, "referenced_message")
    return told if identity(told, "id") == thread else None


def _messages(page: Sequence[Raw], known: DiscordParseContext) -> tuple[Message, ...]:
    found = (parse_message(raw, known) for raw in page)
    return tuple(message for message in found if isinstance(message, Message))


def is_in(place: DiscordChannel | None, channel: str) -> bool:
    """Whether a thread belongs to a channel."""
    return place is not None and place.is_thread and place.parent == channel


async def find_sent(client: DiscordClient, parcel: Parcel, *, bot: str) -> Receipt | None:
    """The bot's message with this text and these files since the parcel was made; old messages carry no key."""
    query: dict[str, object] = {"limit": PAGE}
    if parcel.created is not None:
        query["after"] = first_at(parcel.created - SKEW)
    for _ in range(MOST_SENT_PAGES if parcel.created is not None else 1):
        try:
            page = as_tables(await client.call("GET", MESSAGES, channel_of(parcel.conversation), query=query))
        except DiscordRefused:
            return None  # a channel that cannot be read cannot be written either: sending reports why
        for message in page:
            if bot and identity(table(message, "author"), "id") == bot and _is_it(message, parcel):
                return Receipt(message_id=identity(message, "id"), sent=iso_time(message, "timestamp") or client.now())
        if len(page) < PAGE:
            break
        query["after"] = max((identity(message, "id") or "0" for message in page), key=int)
    return None


def _is_it(message: Raw, parcel: Parcel) -> bool:
    if nonce := words(message, "nonce"):
        return nonce == nonce_of(parcel)
    said = _letters(words(message, "content")) == _letters(parcel.text)
    sizes = sorted(count(file, "size") or 0 for file in tables(message, "attachments"))
    answered = identity(table(message, "message_reference"), "message_id")
    # A message whose replied-to message is deleted has no reference.
    return (
        said and sizes == sorted(file.size for file in parcel.files) and answered in ("", as_identity(parcel.reply_to))
    )


def _letters(text: str) -> str:
    """The part of a text that Discord does not strip; all of it, if it has no letters."""
    return "".join(sign for sign in text if sign.isalnum()) or text.strip()


class DiscordCursor:
    """The cursor stored with each arrival, from which a restarted bot continues."""

    def __init__(self, written: str | None) -> None:
        told = from_json(written or "")
        held = as_table(told.get("session"))
        seq = count(held, "seq")
        complete = words(held, "id") and seq is not None
        self.session = GatewaySession(id=words(held, "id"), seq=seq or 0, url=words(held, "url")) if complete else None
        self.newest: dict[str, str] = {}
        """By channel, least recently active first: the id of its newest message."""
        self.channels: dict[str, DiscordChannel] = {}
        """The types of the same channels, which are not sent again to a resumed session."""
        for channel, entry in as_table(told.get("channels")).items():
            newest, own = identity(as_table(entry), "newest"), as_identity(channel)
            if own and newest:
                self.newest[own] = newest
                parent = identity(as_table(entry), "parent")
                self.channels[own] = DiscordChannel(kind=count(as_table(entry), "kind") or 0, parent=parent)
        roles = told.get("roles")
        self.roles = frozenset(filter(None, map(as_identity, roles if isinstance(roles, list) else [])))
        self.partners: dict[str, str] = {
            channel: partner
            for channel, entry in as_table(told.get("channels")).items()
            if channel in self.newest and (partner := identity(as_table(entry), "with"))
        }
        """The people of direct channels, by channel."""
        self.since = as_identity(told.get("since")) or max(self.newest.values(), default="", key=int)
        """Since then messages may be missing in channels that were never heard from; empty at the first start."""
        self.is_behind = bool(self.since)
        """Whether those have still to be asked for; until then `since` stays."""

    def heard(self, channel: str, message: str, place: DiscordChannel | None, author: str = "") -> None:
        """Note a message; messages may come in any order."""
        if author and place is not None and place.kind == DIRECT:
            self.partners[channel] = author
        before = self.newest.pop(channel, "0")
        self.newest[channel] = max(before, message, key=int)
        if place is not None:
            self.channels[channel] = place
        while len(self.newest) > MOST_CHANNELS:
            oldest = next(iter(self.newest))
            del self.newest[oldest]
            self.channels.pop(oldest, None)
            self.partners.pop(oldest, None)

    def written(self, session: GatewaySession | None, roles: Iterable[str], now: datetime | None = None) -> str:
        channels = {
            channel: {"newest": newest, **_kept(self.channels.get(channel)), **self._with(channel)}
            for channel, newest in self.newest.items()
        }
        if now is not None and not self.is_behind:
            self.since = first_at(now - SKEW)
        told: dict[str, object] = {"channels": channels, "roles": sorted(roles)[:MOST_ROLES]}
        if self.since:
            told["since"] = self.since
        if session is not None:
            told["session"] = {"id": session.id, "seq": session.seq, "url": session.url}
        return json.dumps(told, separators=(",", ":"))

    def _with(self, channel: str) -> dict[str, str]:
        return {"with": self.partners[channel]} if channel in self.partners else {}


class UnheardChannels:
    """Channels that the access rules name and that were never heard from, with messages since the last session.

    They are collected until every server of a new session has come, so that the newest can be asked first.
    """

    def __init__(self, context: AdapterContext) -> None:
        self._context = context
        self._found: dict[str, str] = {}
        self.awaited: set[str] = set()
        """The ids of servers that are still to come."""

    def learn(self, event: Raw, cursor: DiscordCursor, channels: Mapping[str, DiscordChannel]) -> None:
        """Update from the events that begin a session, or a server in it."""
        told = table(event, "d")
        if words(event, "t") == "READY":
            self._found = {}
            self.awaited = {own for guild in tables(told, "guilds") if (own := identity(guild, "id"))}
            cursor.is_behind = bool(cursor.since)
            return
        server = identity(told, "id")
        self.awaited.discard(server)
        for each in channels_in(told) if cursor.is_behind else ():
            own, newest = identity(each, "id"), identity(each, "last_message_id")
            place = channels.get(own)
            channel = place.parent if place is not None and place.is_thread else own
            is_new = newest and int(newest) > int(cursor.since) and own not in cursor.newest
            if is_new and self._context.places.names(channel, server):
                self._found[own] = newest

    async def ask(
        self, client: DiscordClient, cursor: DiscordCursor, take: Callable[[str, str], Awaitable[None]]
    ) -> None:
        """Take what was missed, by few calls: in listed channels, the newest first, then from people who may write.

        `take` gets a channel, and since when its messages are missing.
        """
        since, found, self._found = cursor.since, self._found, {}
        waiting: list[Callable[[], Awaitable[None]]] = []
        for channel in sorted(found, key=lambda own: -int(found[own])):
            if channel not in cursor.newest:
                waiting.append(partial(take, channel, since))
        known = set(cursor.partners.values())
        for person in self._context.places.people() if cursor.is_behind else ():
            if as_identity(person) and person not in known:
                waiting.append(partial(self._first, client, cursor, person, take))
        left = len(waiting[MOST_UNHEARD:])
        for work in waiting[:MOST_UNHEARD]:
            try:
                await work()
            except Unauthorized:
                raise
            except AdapterError as error:
                left += 1
                log.warning("what was missed in a channel cannot be had: %s", type(error).__name__)
        cursor.is_behind = False
        if left:
            log.warning("channels that were not asked for what was missed there: %d", left)
            self._context.report(CATCH_UP, left_out(left), is_note=True)

    async def _first(
        self,
        client: DiscordClient,
        cursor: DiscordCursor,
        person: str,
        take: Callable[[str, str], Awaitable[None]],
    ) -> None:
        """Take a person's first direct messages: Discord names their channel, and its last message, only if asked."""
        try:
            told = as_table(await client.call("POST", "/users/@me/channels", fields={"recipient_id": person}))
        except DiscordRefused:
            return  # no person whom the bot can meet
        channel, newest = identity(told, "id"), identity(told, "last_message_id")
        if channel and newest and channel not in cursor.newest and int(newest) > int(cursor.since):
            await take(channel, cursor.since)


def _kept(place: DiscordChannel | None) -> dict[str, object]:
    if place is None:
        return {}
    return {"kind": place.kind} | ({"parent": place.parent} if place.is_thread else {})
