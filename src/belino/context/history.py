"""History from before we listened: requested from the platform once, stored, and known to be complete or not.

While an account listens, every arrival is stored. So a channel needs one call after a start, and a thread none if its
first message was received live; an older thread is requested once and counts as complete for a while."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from weakref import WeakValueDictionary

from belino.domain.errors import RateLimited
from belino.domain.message import ConversationKey, Message
from belino.domain.outcome import MessageOutcome
from belino.domain.ports import Adapter, Clock, ReadsHistory
from belino.domain.stored import StoredMessage
from belino.net.rest import QUEUE_SECONDS, Pace, PaceConfig
from belino.net.tap import on_behalf
from belino.storage.store import Store

log = logging.getLogger(__name__)

RECALLED_MESSAGES = 50
CALL_SECONDS = 10.0
THREAD_PAGE = 100
"""A platform returns at least so many messages of a thread if it has them, so that fewer are all of it."""
REPLIES_SECONDS, REPLIES_MOST = 5 * 60.0, 500
STARTERS_SECONDS, STARTERS_MOST = 6 * 3600.0, 2_000
CHANNELS_MOST = 10_000
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 60.0, 3_600.0

Account = tuple[str, str]
Ask = Callable[[], Awaitable[Sequence[Message]]]
Recalled = Callable[[ConversationKey, Sequence[Message]], None]
MayCommand = Callable[[Message], Awaitable[bool]]


class Marks:
    """When each conversation was last complete; past `most`, the oldest marks are dropped."""

    def __init__(self, clock: Clock, *, seconds: float | None, most: int) -> None:
        self._clock = clock
        self._seconds = seconds
        """How long a mark is fresh; None means until it is dropped."""
        self._most = most
        self._marked: dict[ConversationKey, float] = {}

    def set(self, what: ConversationKey) -> None:
        """Mark as complete now."""
        self._marked.pop(what, None)
        self._marked[what] = self._clock.monotonic()
        if len(self._marked) > self._most:
            del self._marked[next(iter(self._marked))]

    def age(self, what: ConversationKey) -> float | None:
        """Seconds since it was marked, fresh or not; None without a mark."""
        at = self._marked.get(what)
        return None if at is None else self._clock.monotonic() - at

    def fresh(self, what: ConversationKey) -> bool:
        """Whether it still counts as complete."""
        age = self.age(what)
        return age is not None and (self._seconds is None or age < self._seconds)

    def forget(self, which: Callable[[ConversationKey], bool]) -> None:
        """Drop these marks."""
        self._marked = {what: at for what, at in self._marked.items() if not which(what)}

    def __len__(self) -> int:
        return len(self._marked)


class History:
    """Fills the store from platforms with a history API, one call at a time for each channel or thread."""

    def __init__(
        self,
        store: Store,
        adapters: Mapping[Account, Adapter],
        *,
        config: PaceConfig,
        clock: Clock,
        counts: Counter[str],
        keeps: timedelta | None = None,
        text_chars: int = 200_000,
        recalled: Recalled = lambda _where, _messages: None,
        may_command: MayCommand | None = None,
    ) -> None:
        self._store = store
        self._adapters = adapters
        self._config = config
        self._clock = clock
        self._counts = counts
        self._keeps = keeps
        """How long messages are kept; None means forever."""
        self._text_chars = text_chars
        self._recalled = recalled
        """Called with messages that a platform returned and the store has accepted."""
        self._may_command = may_command
        """Whether the author of a message may command the agent there; without it, none may."""
        self._paces: dict[Account, Pace] = {}
        self._listens_since: dict[Account, datetime] = {}
        self._channels = Marks(clock, seconds=None, most=CHANNELS_MOST)
        self._replies = Marks(clock, seconds=REPLIES_SECONDS, most=REPLIES_MOST)
        self._starters = Marks(clock, seconds=STARTERS_SECONDS, most=STARTERS_MOST)
        self._failed: dict[ConversationKey, tuple[int, float]] = {}
        """Channels whose history request failed: how often, and when to retry."""
        self._asking: WeakValueDictionary[ConversationKey, asyncio.Lock] = WeakValueDictionary()

    def reconfigure(self, config: PaceConfig) -> None:
        """Use other limits from now on."""
        if config != self._config:
            self._config = config
            self._paces.clear()

    def listens(self, platform: str, account: str) -> None:
        """An account starts to listen: it may have missed arrivals, so none of its channels counts as complete."""
        key = (platform, account)
        self._listens_since[key] = self._clock.now()
        for marks in (self._channels, self._replies, self._starters):
            marks.forget(lambda one: (one.platform, one.account) == key)
        self._failed = {one: at for one, at in self._failed.items() if (one.platform, one.account) != key}

    async def channel(self, channel: ConversationKey) -> str:
        """Make sure that the channel's latest messages are stored; returns a note if that failed."""
        adapter, where = self._adapter(channel), channel.whole_channel
        if adapter is None or self._channels.fresh(where):
            return ""
        async with self._alone(where):
            if self._channels.fresh(where):
                return ""
            failures, again_at = self._failed.get(where, (0, 0.0))
            if self._clock.monotonic() < again_at:
                return "Earlier messages of this channel could not be had from the platform; it is asked again later."
            note = await self._ask(where, lambda: adapter.history(where, limit=RECALLED_MESSAGES), self._channels)
            self._remember_failure(where, failures + 1 if note else 0)
            return note

    async def thread(self, channel: ConversationKey, root: str) -> str:
        """Make sure that the thread under a message is stored; returns a note if it may be incomplete."""
        if self._adapter(channel) is None or await self._is_elsewhere(channel, root):
            return ""
        return await self._thread(channel, root, self._replies, "thread")

    async def before_turn(self, anchor: StoredMessage) -> str:
        """Make sure that a turn's context is stored: its channel, and its thread with the first message."""
        note = await self.channel(anchor.conversation)
        root = anchor.conversation.thread or anchor.root
        if root is None or (anchor.conversation.thread is None and await self._kept(anchor.conversation, root)):
            return note
        return await self._thread(anchor.conversation, root, self._starters, "starter") or note

    async def _thread(self, channel: ConversationKey, root: str, marks: Marks, name: str) -> str:
        adapter, where = self._adapter(channel), replace(channel, thread=root)
        if adapter is None:
            return ""
        async with self._alone(where):
            if marks.fresh(where) or await self._heard_whole(channel, root):
                self._counts[f"{name}_hits"] += 1
                return ""
            self._counts[f"{name}_misses"] += 1
            return await self._ask(where, lambda: adapter.thread(where), self._replies, self._starters)

    async def _ask(self, where: ConversationKey, ask: Ask, *marks: Marks) -> str:
        """Make one call, store its messages and mark `where` as complete; returns a note if that failed."""
        pace = self._pace((where.platform, where.account))
        if pace.wait:
            age = marks[0].age(where)
            if self._config.overflow == "degrade" and age is not None and age <= self._config.stale_minutes * 60:
                self._counts["degraded"] += 1
                return f"The platform was not asked again, to spare its limits; this is as of {_ago(age)} ago."
            self._counts["waits"] += pace.wait <= QUEUE_SECONDS
        try:
            found = await pace.call(lambda: self._call(ask))
            wanted = [message for message in found if self._is_wanted(message)]
            whole = where.thread if len(found) < THREAD_PAGE else None
            commanders = await self._commanders(wanted)
            await self._store.take_history(where, wanted, commanders=commanders, whole_thread=whole)
            self._recalled(where, wanted)
        except RateLimited as error:
            self._counts["limited"] += 1
            return f"The platform may not be asked for {_ago(error.retry_after)}; this is what is stored."
        except Exception as error:  # noqa: BLE001 - a turn is answered even without history
            self._counts["failures"] += 1
            log.warning("the history of %s cannot be read: %s", where, type(error).__name__)
            return "The platform could not be asked; this is what is stored."
        for mark in marks:
            mark.set(where)
        return ""

    async def _call(self, ask: Ask) -> Sequence[Message]:
        self._counts["calls"] += 1
        with on_behalf(None):  # the answer concerns the whole channel
            async with asyncio.timeout(CALL_SECONDS):
                return await ask()

    async def _commanders(self, messages: Sequence[Message]) -> set[str]:
        """The authors who may command the agent."""
        if self._may_command is None:
            return set()
        by_author = {message.author.id: message for message in messages}
        return {author for author, message in by_author.items() if await self._may_command(message)}

    def _is_wanted(self, message: Message) -> bool:
        young = self._keeps is None or message.sent >= self._clock.now() - self._keeps
        return young and len(message.text) <= self._text_chars

    def _remember_failure(self, channel: ConversationKey, failures: int) -> None:
        self._failed.pop(channel, None)
        if failures:
            while len(self._failed) >= CHANNELS_MOST:
                self._failed.pop(next(iter(self._failed)))
            wait = min(FIRST_RETRY_SECONDS * 2 ** min(failures - 1, 16), LONGEST_RETRY_SECONDS)
            self._failed[channel] = (failures, self._clock.monotonic() + wait)

    async def _heard_whole(self, channel: ConversationKey, root: str) -> bool:
        """Whether the thread began while we listened, so that all of it was received."""
        message = await self._kept(channel, root)
        if message is None or message.outcome is MessageOutcome.RECALLED:
            return False
        # With a cursor, the platform delivers missed arrivals later.
        if await self._store.cursor(channel.platform, channel.account) is not None:
            return True
        since = self._listens_since.get((channel.platform, channel.account))
        return since is not None and message.received >= since

    async def _is_elsewhere(self, channel: ConversationKey, root: str) -> bool:
        """Whether this names a message of another channel only: it is treated like an unknown one, without a call."""
        if await self._kept(channel, root) is not None:
            return False
        account = (channel.platform, channel.account)
        places = [one.conversation.whole_channel for one in await self._store.find_messages(root)]
        # It may have arrived between the two reads.
        return channel.whole_channel not in places and any((one.platform, one.account) == account for one in places)

    async def _kept(self, channel: ConversationKey, message_id: str) -> StoredMessage | None:
        return next(iter(await self._store.messages(channel.whole_channel, [message_id])), None)

    def _adapter(self, channel: ConversationKey) -> ReadsHistory | None:
        adapter = self._adapters.get((channel.platform, channel.account))
        if isinstance(adapter, ReadsHistory):
            return adapter
        return None

    def _pace(self, account: Account) -> Pace:
        if account not in self._paces:
            self._paces[account] = Pace(self._config.calls_per_minute, self._clock)
        return self._paces[account]

    def _alone(self, what: ConversationKey) -> asyncio.Lock:
        """Lock for one channel or thread: concurrent requests for it wait, and then find it stored."""
        return self._asking.setdefault(what, asyncio.Lock())


def _ago(seconds: float) -> str:
    return f"{round(seconds)} seconds" if seconds < 100 else f"{round(seconds / 60)} minutes"
