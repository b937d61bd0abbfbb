"""Authors and conversations: people, groups and rooms as domain values, and a cache of their names."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from belino.adapters.line.client import LineClient
from belino.domain.errors import AdapterError
from belino.domain.message import UNKNOWN_AUTHOR, Author, ChatType, ConversationKey
from belino.net.json_fields import Raw, line, table, words
from belino.net.rest import Latest, RateLimits

PLATFORM = "line"
ELSEWHERE = "elsewhere"
"""The channel of events that are of none, such as that the account was suspended."""

MOST_NAMES = 20_000
LEARN_SECONDS = 2.0
"""LINE takes a webhook that is slow to answer for a broken one."""
AGAIN_SECONDS = 300.0
"""After this time a failed name is fetched again."""

_KINDS = {"user": "userId", "group": "groupId", "room": "roomId"}
_PLACES = {"C": "group", "R": "room"}
"""By the first letter of an id: https://developers.line.biz/en/docs/messaging-api/getting-user-ids/"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineBot:
    """The account's own identity."""

    user: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameBook:
    """The known names of people, groups and rooms, and people's languages; makes no calls."""

    names: Mapping[str, str] = field(default_factory=dict)
    languages: Mapping[str, str] = field(default_factory=dict)


def channel_of(source: Raw) -> str:
    """The id of the place that an event comes from."""
    return words(source, _KINDS.get(words(source, "type"), "")) or ELSEWHERE


def chat_type(source: Raw) -> ChatType:
    """Groups and rooms (chats of several people without a name) are groups; an unknown place is no one's chat."""
    kind = words(source, "type")
    if kind == "user" and words(source, "userId"):
        return ChatType.DIRECT
    return ChatType.GROUP if kind in ("group", "room") else ChatType.CHANNEL


def is_person(channel: str) -> bool:
    """Whether the channel is the chat with one person."""
    return channel.startswith("U")


def conversation(account: str, source: Raw) -> ConversationKey:
    return ConversationKey(platform=PLATFORM, account=account, channel=channel_of(source))


def author_of(source: Raw, book: NameBook) -> Author:
    """The sender; in groups LINE leaves out people who have not agreed to it."""
    user = words(source, "userId")
    if not user:
        return UNKNOWN_AUTHOR
    return Author(id=user, name=book.names.get(user) or user)


class LineNames:
    """Fetches names with the events that need them, each once; after a failure ids are shown instead."""

    def __init__(self, client: LineClient, limits: RateLimits) -> None:
        self._client = client
        self._limits = limits
        self._names: Latest[str, str] = Latest(MOST_NAMES)
        self._languages: Latest[str, str] = Latest(MOST_NAMES)
        self._not_before: Latest[str, float] = Latest(MOST_NAMES)

    @property
    def book(self) -> NameBook:
        return NameBook(names=self._names, languages=self._languages)

    async def learn(self, events: Iterable[Raw]) -> None:
        """Fetch what is not known of the senders and places of these events, within a short time."""
        now = self._client.clock.monotonic()
        wanted = {own: path for own, path in _paths(events) if self._is_wanted(own, now)}
        for own in wanted:  # until it is known, no other event waits for it
            self._not_before.keep(own, now + AGAIN_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(LEARN_SECONDS):
                for own, path in wanted.items():
                    await self._ask(own, path)

    async def _ask(self, own: str, path: tuple[str, ...]) -> None:
        try:
            told = await self._limits.call(path[0], lambda: self._client.get(*path))
        except AdapterError:
            return
        if name := line(told, "displayName") or line(told, "groupName"):
            self._names.keep(own, name)
        if language := words(told, "language"):
            self._languages.keep(own, language)

    def _is_wanted(self, own: str, now: float) -> bool:
        return own not in self._names and self._not_before.get(own, 0.0) <= now


def _paths(events: Iterable[Raw]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The ids whose names events need, each with the path of the call for it."""
    for event in events:
        source = table(event, "source")
        place, user = channel_of(source), words(source, "userId")
        kind = _PLACES.get(place[:1], "")
        if kind == "group":
            yield place, ("group", place, "summary")
        if user:
            yield user, (kind, place, "member", user) if kind else ("profile", user)
