"""Library verbs of the store: messages, threads, and their media refs."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from belino.domain.media import Blob, MediaKind
from belino.domain.message import ChatType, ConversationKey
from belino.domain.outcome import MediaOutcome
from belino.domain.reading import SenderLanguage
from belino.domain.stored import (
    ChannelSummary,
    ConversationSummary,
    MediaTally,
    MissedChanges,
    ReadPosition,
    RefRecord,
    StoredMessage,
    Story,
    Surroundings,
    ThreadSlice,
)
from belino.domain.turn import Usage
from belino.storage import deletions, expiry, messages, outcomes, refs, retention, summaries
from belino.storage.changes import missed_changes
from belino.storage.database import Verbs, maybe_from_micros, to_micros
from belino.storage.row_ids import find_channel
from belino.storage.summaries import tallies
from belino.storage.threads import around, replies_before, said_before, thread


class LibraryVerbs(Verbs):
    """Messages and their media."""

    async def channels(self) -> tuple[ChannelSummary, ...]:
        return await self._database.read(summaries.channels)

    async def has_channel(self, channel: ConversationKey) -> bool:
        return await self._database.read(lambda tx: summaries.has_channel(tx, channel.whole_channel))

    async def conversations(self, *, platform: str | None = None) -> tuple[ConversationSummary, ...]:
        return await self._database.read(lambda tx: summaries.conversations(tx, platform))

    async def open_conversation(self, conversation: ConversationKey, name: str, chat_type: ChatType) -> None:
        """Create a conversation before its first message."""
        now = self._now()
        await self._database.write(lambda tx: summaries.open_conversation(tx, conversation, name, chat_type, now))

    async def history(
        self, conversation: ConversationKey, *, before: int | None = None, after: int | None = None, limit: int = 50
    ) -> tuple[StoredMessage, ...]:
        """Oldest to newest: the newest `limit` (before a seq), or the first `limit` after a seq."""
        return await self._database.read(
            lambda tx: messages.history(tx, self._keys, conversation, before=before, after=after, limit=limit)
        )

    async def messages(self, channel: ConversationKey, ids: Sequence[str]) -> tuple[StoredMessage, ...]:
        """Those of these platform ids that this channel has, any thread."""
        return await self._database.read(lambda tx: messages.messages(tx, self._keys, channel, ids))

    async def messages_named(
        self, channel: ConversationKey, names: Sequence[str]
    ) -> Mapping[str, tuple[StoredMessage, ...]]:
        """The messages of this channel that each name may mean: an id, or a short id, which may be of several."""
        return await self._database.read(lambda tx: messages.messages_named(tx, self._keys, channel, names))

    async def around(
        self, anchor: StoredMessage, *, now: datetime, limit: int = 20, until: datetime | None = None
    ) -> Surroundings:
        """The messages of the channel before an anchor, without replies in threads other than its own.

        For an anchor in a thread: what was said in the channel itself before it. Replies after `until` do not count.
        """
        return await self._database.read(lambda tx: around(tx, self._keys, anchor, now=now, limit=limit, until=until))

    async def thread(
        self,
        channel: ConversationKey,
        root: str,
        *,
        before: int | None = None,
        limit: int = 50,
        until: datetime | None = None,
    ) -> ThreadSlice | None:
        """The newest `limit` undeleted replies under a message (before a seq, and sent up to a time).

        None if the channel has neither the message nor replies.
        """
        return await self._database.read(
            lambda tx: thread(tx, self._keys, channel, root, before=before, limit=limit, until=until)
        )

    async def replies_before(
        self, channel: ConversationKey, root: str, *, before: int, limit: int
    ) -> tuple[StoredMessage, ...]:
        """The newest `limit` undeleted replies under a message before a seq, oldest first."""
        return await self._database.read(
            lambda tx: replies_before(tx, self._keys, channel, root, before=before, limit=limit)
        )

    async def said_before(
        self, channel: ConversationKey, *, before: int, limit: int
    ) -> tuple[tuple[StoredMessage, ...], int]:
        """The messages of the channel itself, and of none of its threads, before a seq, and how many are older."""
        return await self._database.read(lambda tx: said_before(tx, self._keys, channel, before=before, limit=limit))

    async def missed_changes(
        self, conversation: ConversationKey, since: ReadPosition, *, until: int, limit: int = 200
    ) -> MissedChanges:
        """What a session has missed since its read position `since`, up to the message of seq `until`."""
        return await self._database.read(
            lambda tx: missed_changes(tx, self._keys, conversation, since, until=until, limit=limit)
        )

    async def spent(self, channel: ConversationKey, message_id: str) -> Usage | None:
        """The cost of the turn that ended with this message; None if no turn did."""
        return await self._database.read(lambda tx: messages.spent(tx, channel, message_id))

    async def find_messages(self, name: str) -> tuple[StoredMessage, ...]:
        """Messages that match `name`: a trace, or an id or short id in any channel; at most 20."""
        return await self._database.read(lambda tx: messages.find_messages(tx, self._keys, name))

    async def story(self, conversation: ConversationKey, message_id: str) -> Story | None:
        return await self._database.read(lambda tx: outcomes.story(tx, self._keys, conversation, message_id))

    async def ref(self, channel: ConversationKey, ref_id: str) -> RefRecord | None:
        """A ref of this channel; one of another channel is unknown here."""
        return await self._database.read(lambda tx: refs.ref(tx, self._keys, channel, ref_id))

    async def sender_of(self, channel: ConversationKey, ref_id: str) -> SenderLanguage:
        """What tells the language of the sender of a ref's item."""
        return await self._database.read(lambda tx: messages.sender_of(tx, channel, ref_id))

    async def refs(
        self,
        channel: ConversationKey | None,
        *,
        kind: MediaKind | None = None,
        since: datetime | None = None,
        before: int | None = None,
        limit: int = 20,
    ) -> tuple[RefRecord, ...]:
        """Newest first."""
        return await self._database.read(
            lambda tx: refs.refs(tx, self._keys, channel, kind=kind, since=since, before=before, limit=limit)
        )

    async def refs_near(
        self,
        message: StoredMessage,
        *,
        kind: MediaKind | None = None,
        since: datetime | None = None,
        limit: int = 20,
    ) -> tuple[RefRecord, ...]:
        """Nearest first: what the message itself brings or quotes, then the same conversation, then the channel."""
        return await self._database.read(
            lambda tx: refs.refs_near(tx, self._keys, message, kind=kind, since=since, limit=limit)
        )

    async def find_ref(self, ref_id: str) -> RefRecord | None:
        """A ref of any channel: for the operator, never for a channel's tools."""
        return await self._database.read(lambda tx: refs.find_ref(tx, self._keys, ref_id))

    async def ref_by_public_name(self, public_name: str) -> RefRecord | None:
        return await self._database.read(lambda tx: refs.ref_by_public_name(tx, self._keys, public_name))

    async def unclaimed_refs(
        self, conversation: ConversationKey, author_id: str, *, since: datetime, limit: int = 5
    ) -> tuple[RefRecord, ...]:
        """The author's refs that no turn has answered yet, newest first."""
        return await self._database.read(
            lambda tx: refs.unclaimed_refs(tx, self._keys, conversation, author_id, since=since, limit=limit)
        )

    async def end_media(
        self, ref_id: str, outcome: MediaOutcome, reason: str = "", *, blob: Blob | None = None, reused: bool = False
    ) -> bool:
        """Record a ref's outcome; with a blob, the ref now holds those bytes. False if it was withdrawn.

        `reused` bytes were not fetched for it; False also if they are not stored any more.
        """
        now = self._now()
        return await self._database.write(
            lambda tx: refs.end_media(tx, ref_id, outcome, reason, blob, now, reused=reused)
        )

    async def gone_since(self, channel: ConversationKey, ref_id: str) -> datetime | None:
        """When a ref of this channel was withdrawn: its message deleted, or edited to do without it."""
        return await self._database.read(lambda tx: deletions.gone_since(tx, channel, ref_id))

    async def note_fetched(self, channel: ConversationKey, size: int) -> None:
        """Count bytes that were fetched for a channel, whether they are stored or not."""
        now = self._clock.now()
        await self._database.write(lambda tx: refs.note_fetched(tx, channel, size, now))

    async def bytes_fetched(self, channel: ConversationKey, since: datetime) -> int:
        """Bytes received for a channel since then, by fetch or upload; open uploads count as announced."""
        size, last = await self._database.read(lambda tx: refs.bytes_fetched(tx, channel, since))
        now = self._now()
        if last > now:
            await self._database.write(lambda tx: refs.turn_back(tx, find_channel(tx, channel), now))
        return size

    async def expire_messages(self, before: datetime) -> int:
        """Delete messages stored before then, with all that belongs to them. Returns how many.

        Those of a turn that waits or runs, or that has parcels still to be sent, stay; so do conversations, sessions
        and pairings.
        """
        return await retention.expire_messages(self._database, to_micros(before), self._now())

    async def expire_timed(self) -> datetime | None:
        """Delete the content of messages whose timer has ended, as if they were deleted; returns when the next ends."""
        now = self._now()
        while (due := await self._database.read(expiry.next_expiry)) is not None and due <= now:
            await self._database.write(lambda tx: expiry.expire_timed(tx, now))
        return maybe_from_micros(due)

    async def counts(self) -> Mapping[str, int]:
        """Numbers for status and metrics, by name."""
        return await self._database.read(summaries.counts)

    async def media_tallies(self) -> tuple[MediaTally, ...]:
        """Media seen and fetched per channel, from which savings are computed."""
        return await self._database.read(tallies)
