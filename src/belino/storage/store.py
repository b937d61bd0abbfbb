"""The store: everything belino keeps, as verbs that are one transaction each, on a database and its blobs."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from belino.domain.errors import ConfigError
from belino.domain.failpoints import failpoint
from belino.domain.message import ConversationKey
from belino.domain.outcome import CacheSize
from belino.domain.ports import Clock
from belino.domain.search import SearchHits, SearchQuery
from belino.search.weights import WEIGHTS, Weights
from belino.storage import uploads
from belino.storage.access import AccessVerbs
from belino.storage.blobs import Blobs
from belino.storage.channel_inbox import ChannelInboxVerbs
from belino.storage.choices import ChoiceVerbs
from belino.storage.commands import CommandVerbs
from belino.storage.database import Database, DiskState, to_micros
from belino.storage.encryption import Keys
from belino.storage.folder import BlobFolder
from belino.storage.garbage import arriving_files, sweep_scratch
from belino.storage.home import Home
from belino.storage.inbox import InboxVerbs
from belino.storage.library_verbs import LibraryVerbs
from belino.storage.moves import MoveVerbs
from belino.storage.outbox import OutboxVerbs
from belino.storage.owner import OwnerVerbs
from belino.storage.participation import ParticipationVerbs
from belino.storage.published import PublishedVerbs
from belino.storage.read_ahead import ReadAheadVerbs
from belino.storage.search_rows import SearchIndex
from belino.storage.short_ids import fill_short_ids
from belino.storage.speeches import SpeechVerbs
from belino.storage.sqlite_opening import open_sqlite
from belino.storage.static_vectors import SearchConfig
from belino.storage.transcripts import TranscriptVerbs

if TYPE_CHECKING:
    from belino.domain.audit import Repaired


async def open_store(
    place: Home | str,
    *,
    clock: Clock,
    zone: tzinfo = UTC,
    search: SearchConfig = SearchConfig(),  # noqa: B008 - frozen
    start_empty: bool = False,
    new_key: bool = False,
) -> "Store":
    """Open the store of a state folder, or of a URL whose scheme names the engine: `sqlite:///path/to/folder`.

    StoreInUse while another process has it, StoreTooNew if a newer belino wrote it. StoreIncomplete if its database or
    key is missing beside other state, unless the operator chose to `start_empty` or to continue with a `new_key`.
    In `zone` are the days that messages and searches name.
    """
    home = place if isinstance(place, Home) else _home_of(place)
    async with AsyncExitStack() as opened:
        database, keys = await open_sqlite(home, now=clock.now(), start_empty=start_empty, new_key=new_key)
        opened.push_async_callback(database.close)
        now = to_micros(clock.now())
        await database.write(lambda tx: uploads.drop_interrupted(tx, now))
        await fill_short_ids(database, keys)
        failpoint("start.migrated")
        blobs = BlobFolder(home.blobs, clock)
        sweep_scratch(blobs.scratch, keep=await arriving_files(database))
        opened.pop_all()
        return Store(database, blobs, clock, keys, zone, search)


def repair_store(place: Home | str, *, now: datetime) -> "Repaired":
    """Replace a damaged database by what can be salvaged from it; the old one is kept. StoreInUse while it is open."""
    from belino.storage.sqlite_repair import repair

    return repair(place if isinstance(place, Home) else _home_of(place), now=now)


class Store(
    InboxVerbs,
    OutboxVerbs,
    LibraryVerbs,
    TranscriptVerbs,
    ReadAheadVerbs,
    SpeechVerbs,
    PublishedVerbs,
    AccessVerbs,
    OwnerVerbs,
    ChoiceVerbs,
    ChannelInboxVerbs,
    CommandVerbs,
    ParticipationVerbs,
    MoveVerbs,
):
    """Everything belino stores."""

    def __init__(
        self,
        database: Database,
        blobs: Blobs,
        clock: Clock,
        keys: Keys,
        zone: tzinfo = UTC,
        search: SearchConfig = SearchConfig(),  # noqa: B008 - frozen
    ) -> None:
        super().__init__(database, blobs, clock, keys)
        self.zone = zone
        """The time zone of days that people name."""
        self._index = SearchIndex(database, keys, zone, search.vectors)

    @property
    def disk(self) -> DiskState:
        """The state of recent writes."""
        return self._database.disk

    async def check_database(self) -> str:
        """The corruption found in the database; empty if none. StoreError if the check cannot be made."""
        return await self._database.check()

    def cache_sizes(self) -> Mapping[str, CacheSize]:
        """Sizes of the store's in-memory caches."""
        return {**self._index.cache_sizes(), **self._blobs.cache_sizes(), **self._database.cache_sizes()}

    async def search(self, channel: ConversationKey, query: SearchQuery, weights: Weights = WEIGHTS) -> SearchHits:
        """One page of the messages that match a query, from an index that includes every stored message."""
        return await self._index.search(channel, query, weights)

    async def index_ahead(self) -> int:
        """Index what no search has needed yet. Returns how many channels were behind."""
        return await self._index.index_ahead()

    async def close(self) -> None:
        """Finish pending writes, then release the state."""
        await self._database.close()


def _home_of(url: str) -> Home:
    parts = urlsplit(url)
    if parts.scheme != "sqlite" or parts.netloc or not parts.path:
        raise ConfigError(f"{url} names no store; the only engine is sqlite:///path/to/folder")
    return Home.at(Path(unquote(parts.path)))
