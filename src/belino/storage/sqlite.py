"""The Store on SQLite: opened under a lock, with every verb as one job for the writer or a reader."""

import asyncio
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import datetime, timedelta

from belino.domain.errors import StoreError
from belino.domain.failpoints import failpoint
from belino.domain.media import Blob, MediaKind
from belino.domain.message import Arrival, Author, ChatType, ConversationKey, Message
from belino.domain.outcome import CacheSize, MediaOutcome, Step
from belino.domain.ports import Clock, Taken
from belino.domain.reply import Parcel
from belino.domain.search import SearchHits, SearchQuery
from belino.domain.store import ALBUM_WAIT, ATTEMPTS
from belino.domain.stored import (
    ChannelSummary,
    ClaimedTurn,
    ConversationSummary,
    Grant,
    GrantKind,
    Meanwhile,
    MediaTally,
    Pairing,
    ReadPosition,
    Ready,
    RefRecord,
    ScreenedArrival,
    Session,
    StoredMessage,
    Story,
    Surroundings,
    ThreadSlice,
    TurnEnd,
    Verdict,
)
from belino.domain.turn import Usage
from belino.storage import (
    access,
    deletions,
    fetches,
    inbox,
    messages,
    outcomes,
    pairing,
    recovery,
    refs,
    retention,
    sessions,
    summaries,
    uploads,
)
from belino.storage.blobs import BlobFolder
from belino.storage.changes_since import meanwhile
from belino.storage.encryption import Keys, load_keys
from belino.storage.history_import import take_history
from belino.storage.home import Home
from belino.storage.lock import lock_folder
from belino.storage.migrations import migrate
from belino.storage.opening import (
    forget_old_key,
    has_rows,
    refuse_empty,
    refuse_missing_database,
    refuse_missing_key,
)
from belino.storage.parcel_verbs import ParcelVerbs
from belino.storage.restore import finish_restore
from belino.storage.row_ids import RowIds, find_channel
from belino.storage.sanitize import NOT_TEXT, mended
from belino.storage.savings import tallies
from belino.storage.search_rows import SearchIndex
from belino.storage.soundness import quick_check, why_unreadable
from belino.storage.threads import around, thread
from belino.storage.timestamps import to_micros
from belino.storage.writer import (
    CORRUPTION,
    WRITER_PAGES,
    DiskState,
    Readers,
    Writer,
    as_store_error,
    connect,
    held_pages,
    primary_code,
)


async def open_store(home: Home, *, clock: Clock, start_empty: bool = False, new_key: bool = False) -> "SqliteStore":
    """Open a state folder's store. StoreInUse while another process has it, StoreTooNew if a newer belino wrote it.

    StoreIncomplete if its database or key is missing beside other state, unless the operator chose to `start_empty` or
    to continue with a `new_key`.
    """
    with ExitStack() as opened:
        lock = lock_folder(home)
        opened.callback(os.close, lock)
        failpoint("start.locked")
        try:
            finish_restore(home)
            refuse_missing_database(home, start_empty=start_empty, now=clock.now())
            connection = opened.enter_context(closing(_open_database(home)))
            keys = _load_keys(home, connection, start_empty=start_empty, new_key=new_key)
            uploads.drop_interrupted(connection, to_micros(clock.now()))
            failpoint("start.migrated")
            folder = BlobFolder(home.blobs)
            arriving = uploads.unfinished_uploads(connection)
            folder.sweep(keep={uploads.file_of(folder.temporary, upload_id).name for upload_id in arriving})
        except (sqlite3.Error, OSError) as error:
            raise as_store_error(error) from error
        opened.pop_all()  # success: from here on the store closes them
        return SqliteStore(home, clock, keys, connection, folder, lock)


class SqliteStore(ParcelVerbs):
    """Everything belino stores, in one state folder."""

    def __init__(
        self, home: Home, clock: Clock, keys: Keys, connection: sqlite3.Connection, folder: BlobFolder, lock: int
    ) -> None:
        places = RowIds()
        writer = Writer(connection, undone=places.undo, settle=places.arrivals.write)
        super().__init__(writer, Readers(home.database), folder, clock, keys, places)
        self.home = home
        self._index = SearchIndex(self._readers, self._writer, keys)
        self._connection = connection
        self._lock: int | None = lock

    async def close(self) -> None:
        """Finish pending writes, then release the state folder."""
        await self._writer.close()
        await self._readers.close()
        self._connection.close()
        failpoint("stop.closed")
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def cache_sizes(self) -> Mapping[str, CacheSize]:
        """Sizes of the store's in-memory caches."""
        return {
            **self._index.cache_sizes(),
            "checksums": self._proof.size,
            "row_ids": self._places.size,
            "sqlite_reader_pages": self._readers.pages,
            "sqlite_writer_pages": CacheSize(
                entries=1, bytes=held_pages(self.home.database, WRITER_PAGES), most_bytes=WRITER_PAGES
            ),
        }

    @property
    def disk(self) -> DiskState:
        """The state of recent writes."""
        return self._writer.state

    async def quick_check(self) -> str:
        """The corruption that `PRAGMA quick_check` reports; empty if none. StoreError if the check cannot be made."""
        try:
            with closing(connect(self.home.database, read_only=True)) as connection:
                looking = asyncio.get_running_loop().run_in_executor(None, quick_check, connection)
                try:
                    return await asyncio.shield(looking)
                except asyncio.CancelledError:
                    connection.interrupt()
                    await asyncio.wait([looking])
                    raise
        except sqlite3.Error as error:
            if primary_code(error) in CORRUPTION:
                return str(error)
            raise StoreError(why_unreadable(error, self.home.database)) from error

    # --- inbox ---

    async def take_in(
        self,
        arrival: Arrival,
        verdict: Verdict,
        *,
        cursor: str | None = None,
        ready: datetime | None = None,
        album_wait: timedelta = ALBUM_WAIT,
    ) -> Taken:
        judged = ScreenedArrival(arrival=arrival, verdict=verdict, cursor=cursor, ready=ready)
        return (await self.take_in_all((judged,), album_wait=album_wait))[0]

    async def take_in_all(
        self, arrivals: Sequence[ScreenedArrival], *, album_wait: timedelta = ALBUM_WAIT
    ) -> tuple[Taken, ...]:
        now, wait = self._now(), album_wait // timedelta(microseconds=1)
        keys, places = self._keys, self._places

        def work(connection: sqlite3.Connection) -> tuple[Taken, ...]:
            return tuple(inbox.take_in(connection, keys, places, judged, now, wait) for judged in arrivals)

        try:
            return await self._writer.write(work)
        except NOT_TEXT:
            arrivals = mended(tuple(arrivals))
            return await self._writer.write(work)

    async def take_history(self, channel: ConversationKey, messages: Sequence[Message]) -> int:
        now = self._now()

        def work(connection: sqlite3.Connection) -> int:
            return take_history(connection, self._keys, self._places, channel, messages, now)

        try:
            return await self._writer.write(work)
        except NOT_TEXT:
            messages = mended(tuple(messages))
            return await self._writer.write(work)

    async def cursor(self, platform: str, account: str) -> str | None:
        return await self._readers.read(lambda connection: access.cursor(connection, platform, account))

    async def keep_cursor(self, platform: str, account: str, cursor: str) -> None:
        await self._writer.write(lambda connection: access.move_cursor(connection, platform, account, cursor))

    async def recover(
        self, begun: datetime | None = None, *, album_wait: timedelta = ALBUM_WAIT, limit: int = ATTEMPTS
    ) -> int:
        now, wait = self._now(), album_wait // timedelta(microseconds=1)
        at = now if begun is None else to_micros(begun)
        return await self._writer.write(lambda connection: recovery.recover(connection, at, wait, now, limit=limit))

    async def ready_turns(self) -> tuple[Ready, ...]:
        return await self._readers.read(inbox.ready_turns)

    async def waiting_turns(self) -> int:
        return await self._readers.read(inbox.waiting_turns)

    async def claim_turn(
        self, conversation: ConversationKey, now: datetime, *, alone: bool = False
    ) -> ClaimedTurn | Ready | None:
        at = to_micros(now)
        return await self._writer.write(
            lambda connection: inbox.claim_turn(connection, self._keys, conversation, at, alone=alone)
        )

    async def finish_turn(self, turn: int, end: TurnEnd) -> None:
        now = self._now()

        def work(connection: sqlite3.Connection) -> None:
            inbox.finish_turn(connection, self._places, turn, end, now)

        try:
            await self._writer.write(work)
        except NOT_TEXT:
            end = mended(end)
            await self._writer.write(work)

    async def release_turn(self, turn: int) -> None:
        await self._writer.write(lambda connection: inbox.release_turn(connection, turn))

    async def retry_turn(self, conversation: ConversationKey, message_id: str) -> tuple[StoredMessage, ...]:
        now = self._now()
        return await self._writer.write(
            lambda connection: recovery.retry_turn(connection, self._keys, conversation, message_id, now)
        )

    async def note(self, trace: str, *steps: Step) -> None:
        await self._writer.write(lambda connection: outcomes.note(connection, trace, steps))

    # --- library ---

    async def channels(self) -> tuple[ChannelSummary, ...]:
        return await self._readers.read(summaries.channels)

    async def conversations(self, *, platform: str | None = None) -> tuple[ConversationSummary, ...]:
        return await self._readers.read(lambda connection: summaries.conversations(connection, platform))

    async def open_conversation(self, conversation: ConversationKey, name: str, chat_type: ChatType) -> None:
        now = self._now()
        await self._writer.write(
            lambda connection: summaries.open_conversation(connection, self._places, conversation, name, chat_type, now)
        )

    async def history(
        self, conversation: ConversationKey, *, before: int | None = None, after: int | None = None, limit: int = 50
    ) -> tuple[StoredMessage, ...]:
        return await self._readers.read(
            lambda connection: messages.history(
                connection, self._keys, conversation, before=before, after=after, limit=limit
            )
        )

    async def messages(self, channel: ConversationKey, ids: Sequence[str]) -> tuple[StoredMessage, ...]:
        return await self._readers.read(lambda connection: messages.messages(connection, self._keys, channel, ids))

    async def around(self, anchor: StoredMessage, *, now: datetime, limit: int = 20) -> Surroundings:
        return await self._readers.read(lambda connection: around(connection, self._keys, anchor, now=now, limit=limit))

    async def thread(
        self, channel: ConversationKey, root: str, *, before: int | None = None, limit: int = 50
    ) -> ThreadSlice | None:
        return await self._readers.read(
            lambda connection: thread(connection, self._keys, channel, root, before=before, limit=limit)
        )

    async def meanwhile(
        self, conversation: ConversationKey, since: ReadPosition, *, until: int, limit: int = 200
    ) -> Meanwhile:
        return await self._readers.read(
            lambda connection: meanwhile(connection, self._keys, conversation, since, until=until, limit=limit)
        )

    async def spent(self, channel: ConversationKey, message_id: str) -> Usage | None:
        return await self._readers.read(lambda connection: messages.spent(connection, channel, message_id))

    async def find_messages(self, name: str) -> tuple[StoredMessage, ...]:
        return await self._readers.read(lambda connection: messages.find_messages(connection, self._keys, name))

    async def story(self, conversation: ConversationKey, message_id: str) -> Story | None:
        return await self._readers.read(
            lambda connection: outcomes.story(connection, self._keys, conversation, message_id)
        )

    async def ref(self, channel: ConversationKey, ref_id: str) -> RefRecord | None:
        return await self._readers.read(lambda connection: refs.ref(connection, self._keys, channel, ref_id))

    async def refs(
        self,
        channel: ConversationKey | None,
        *,
        kind: MediaKind | None = None,
        since: datetime | None = None,
        before: int | None = None,
        limit: int = 20,
    ) -> tuple[RefRecord, ...]:
        return await self._readers.read(
            lambda connection: refs.refs(
                connection, self._keys, channel, kind=kind, since=since, before=before, limit=limit
            )
        )

    async def find_ref(self, ref_id: str) -> RefRecord | None:
        return await self._readers.read(lambda connection: refs.find_ref(connection, self._keys, ref_id))

    async def ref_by_public_name(self, public_name: str) -> RefRecord | None:
        return await self._readers.read(lambda connection: refs.ref_by_public_name(connection, self._keys, public_name))

    async def unclaimed_refs(
        self, conversation: ConversationKey, author_id: str, *, since: datetime, limit: int = 5
    ) -> tuple[RefRecord, ...]:
        return await self._readers.read(
            lambda connection: refs.unclaimed_refs(
                connection, self._keys, conversation, author_id, since=since, limit=limit
            )
        )

    async def end_media(
        self, ref_id: str, outcome: MediaOutcome, reason: str = "", *, blob: Blob | None = None
    ) -> bool:
        now = self._now()
        return await self._writer.write(
            lambda connection: refs.end_media(connection, ref_id, outcome, reason, blob, now)
        )

    async def gone_since(self, channel: ConversationKey, ref_id: str) -> datetime | None:
        return await self._readers.read(lambda connection: deletions.gone_since(connection, channel, ref_id))

    async def note_fetched(self, channel: ConversationKey, size: int) -> None:
        now = self._clock.now()
        await self._writer.write(lambda connection: fetches.note_fetched(connection, self._places, channel, size, now))

    async def bytes_fetched(self, channel: ConversationKey, since: datetime) -> int:
        size, last = await self._readers.read(lambda connection: fetches.bytes_fetched(connection, channel, since))
        now = self._now()
        if last > now:
            await self._writer.write(
                lambda connection: fetches.turn_back(connection, find_channel(connection, channel), now)
            )
        return size

    async def expire_messages(self, before: datetime) -> int:
        return await retention.expire_messages(self._readers, self._writer, to_micros(before), self._now())

    async def counts(self) -> Mapping[str, int]:
        return await self._readers.read(summaries.counts)

    async def media_tallies(self) -> tuple[MediaTally, ...]:
        return await self._readers.read(tallies)

    # --- search ---

    async def search(self, channel: ConversationKey, query: SearchQuery) -> SearchHits:
        return await self._index.search(channel, query)

    async def index_ahead(self) -> int:
        return await self._index.index_ahead()

    # --- sessions and credentials ---

    async def session(self, conversation: ConversationKey) -> Session:
        return await self._readers.read(lambda connection: sessions.session(connection, conversation))

    @property
    def instance(self) -> str:
        return self._keys.instance

    async def grant(
        self,
        kind: GrantKind,
        *,
        conversation: ConversationKey | None = None,
        note: str = "",
        lifetime: timedelta | None = None,
    ) -> tuple[Grant, str]:
        now = self._now()
        return await self._writer.write(
            lambda connection: access.grant(
                connection, self._keys, kind, conversation=conversation, note=note, lifetime=lifetime, now=now
            )
        )

    async def check(self, secret: str) -> Grant | None:
        now = self._now()
        return await self._readers.read(lambda connection: access.check(connection, self._keys, secret, now))

    async def redeem(self, secret: str, *, lifetime: timedelta) -> tuple[Grant, str] | None:
        now = self._now()
        return await self._writer.write(
            lambda connection: access.redeem(connection, self._keys, secret, lifetime=lifetime, now=now)
        )

    async def grants(self) -> tuple[Grant, ...]:
        now = self._now()
        return await self._readers.read(lambda connection: access.grants(connection, now))

    async def revoke(self, grant_id: str) -> bool:
        now = self._now()
        return await self._writer.write(lambda connection: access.revoke(connection, grant_id, now))

    # --- pairings ---

    async def ask_pairing(self, sender: Author, parcel: Parcel, code: str) -> bool:
        now = self._now()

        def work(connection: sqlite3.Connection) -> bool:
            return pairing.ask(connection, self._keys, self._places, sender, parcel, code, now)

        try:
            return await self._writer.write(work)
        except NOT_TEXT:
            sender, parcel = mended((sender, parcel))
            return await self._writer.write(work)

    async def is_paired(self, platform: str, account: str, sender_id: str) -> bool:
        return await self._readers.read(lambda connection: pairing.is_paired(connection, platform, account, sender_id))

    async def pairings(self) -> tuple[Pairing, ...]:
        now = self._now()
        return await self._readers.read(lambda connection: pairing.pairings(connection, now))

    async def pair(self, code: str) -> Pairing | None:
        now = self._now()
        return await self._writer.write(lambda connection: pairing.pair(connection, self._keys, code, now))

    async def unpair(self, platform: str, account: str, sender_id: str) -> bool:
        now = self._now()
        return await self._writer.write(
            lambda connection: pairing.unpair(connection, platform, account, sender_id, now)
        )


def _open_database(home: Home) -> sqlite3.Connection:
    # Created here first: SQLite would follow the umask, and gives its side files the mode of the database.
    os.close(os.open(home.database, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
    home.database.chmod(0o600)
    return connect(home.database)


def _load_keys(home: Home, connection: sqlite3.Connection, *, start_empty: bool, new_key: bool) -> Keys:
    """Migrate the database and load the keys; a key is made only for a new database, or when requested."""
    has_content = has_rows(connection)
    if has_content:
        refuse_missing_key(home, new_key=new_key)
    elif not start_empty:
        refuse_empty(home, "has no rows")
    migrate(connection)
    if has_content and not home.key_file.exists():
        forget_old_key(connection)
    return load_keys(home.key_file)
