"""The Store port: one transaction per verb, grouped by user.

Nothing here knows SQL or files. Each package gets only the group it needs; an implementation offers them all, including
those for bytes (`blobs.py`), for what is derived from them (`readings.py`) and for access (`credentials.py`).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from belino.domain.blobs import Blobs, Uploads
from belino.domain.credentials import Credentials, Pairings
from belino.domain.delivery_doubt import Doubt
from belino.domain.media import Blob, MediaKind
from belino.domain.message import Arrival, Author, ChatType, ConversationKey, Message
from belino.domain.outcome import MediaOutcome, Step
from belino.domain.ports import Taken
from belino.domain.readings import Readings
from belino.domain.reply import Parcel, ParcelState, Receipt
from belino.domain.search import SearchHits, SearchQuery
from belino.domain.stored import (
    ChannelSummary,
    ClaimedParcel,
    ClaimedTurn,
    ConversationSummary,
    Meanwhile,
    MediaTally,
    ParcelRecord,
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

ALBUM_WAIT = timedelta(seconds=10)
ATTEMPTS = 3
"""How often the process may die while a turn runs alone, before the turn is given up."""


class Inbox(Protocol):
    """Arrivals and the turns that answer them."""

    async def take_in(
        self,
        arrival: Arrival,
        verdict: Verdict,
        *,
        cursor: str | None = None,
        ready: datetime | None = None,
        album_wait: timedelta = ALBUM_WAIT,
    ) -> Taken:
        """Commit arrival, refs, cursor and, if `verdict.answer`, a waiting turn; detect a duplicate by its id.

        A denied arrival moves the cursor and a counter and leaves nothing else. `ready` is when its turn may start (an
        album waits for its items; a later item of a waiting album joins it and moves its time, `album_wait` at most
        from the first; one that comes later still gets a turn of its own).
        """
        ...

    async def take_history(self, channel: ConversationKey, messages: Sequence[Message]) -> int:
        """Store messages from a platform's history as observed context. Returns how many were new.

        Live messages stay unchanged, and one that arrives live later replaces its imported copy. Messages of another
        channel are left out.
        """
        ...

    async def take_in_all(
        self, arrivals: Sequence[ScreenedArrival], *, album_wait: timedelta = ALBUM_WAIT
    ) -> tuple[Taken, ...]:
        """The same for several, in their order, in one transaction: if one fails, none is stored."""
        ...

    async def cursor(self, platform: str, account: str) -> str | None: ...

    async def keep_cursor(self, platform: str, account: str, cursor: str) -> None:
        """Store a cursor without an arrival."""
        ...

    async def recover(
        self, begun: datetime | None = None, *, album_wait: timedelta = ALBUM_WAIT, limit: int = ATTEMPTS
    ) -> int:
        """After a crash: turns that were running wait again, to run alone. Returns how many.

        If only one was running, its interruption is counted. From the second counted interruption on, a turn waits
        until this process has been up for 20 s, 40 s and so on; at the `limit` it is due at once, to be given up.

        A turn that waited for the rest of an album waits for it until `album_wait` after this run has `begun` (default:
        now), and less once an item joins it: no item could arrive while the gateway was down.
        """
        ...

    async def ready_turns(self) -> tuple[Ready, ...]:
        """Every conversation with a waiting turn, with the time its first one may start."""
        ...

    async def waiting_turns(self) -> int: ...

    async def claim_turn(
        self, conversation: ConversationKey, now: datetime, *, alone: bool = False
    ) -> ClaimedTurn | Ready | None:
        """The conversation's oldest waiting turn; None if there is none.

        Ready if it is not due, or if it must run alone and the caller does not state that nothing else runs.
        """
        ...

    async def finish_turn(self, turn: int, end: TurnEnd) -> None:
        """End a turn: reply parcels, manifest, memory and outcomes in one transaction."""
        ...

    async def release_turn(self, turn: int) -> None:
        """Return a running turn to the queue unchanged, as if it had not been claimed (shutdown)."""
        ...

    async def retry_turn(self, conversation: ConversationKey, message_id: str) -> tuple[StoredMessage, ...]:
        """Put the failed turn of a message of this channel back to waiting, with its counts reset.

        Returns the messages it answers; nothing changes, and none is returned, if the message did not fail or is gone.
        """
        ...

    async def note(self, trace: str, *steps: Step) -> None:
        """Store steps for `explain`."""
        ...


class Outbox(Protocol):
    """Parcels to send."""

    async def ready_parcels(self) -> tuple[Ready, ...]:
        """Every conversation with a parcel to send, with the time its first one is ready."""
        ...

    async def claim_parcel(
        self, conversation: ConversationKey, now: datetime, *, owner: str = ""
    ) -> ClaimedParcel | Ready | None:
        """Claim the conversation's next parcel, exclusively for this owner until its lease ends.

        Parcels of a conversation leave in order, except that those behind a file that fails repeatedly may overtake it.
        Ready while nothing may leave yet: too early, rate-limited by the platform, or another owner's lease.
        """
        ...

    async def confirm_parcel(
        self, key: str, receipt: Receipt, author: Author, *, reason: str = ""
    ) -> StoredMessage | None:
        """Mark a parcel as sent; it becomes a message of the conversation, with the agent as author, once.

        Returns it, or the message that an edit changed; None if none is stored (for notices to unpaired senders).
        `reason` records an anomaly of a parcel that was sent.
        """
        ...

    async def delay_parcel(
        self,
        key: str,
        ready: datetime,
        reason: str,
        *,
        fence: int | None = None,
        failed: bool = False,
        doubt: Doubt | None = None,
        patience: bool = False,
    ) -> bool:
        """Put a parcel back as ready at a later time; with `patience`, the whole conversation waits until then.

        False, and nothing changes, if it was claimed again since `fence`. `doubt=None` leaves the doubt unchanged.
        """
        ...

    async def say_anew(self, key: str, reason: str, *, fence: int | None = None) -> bool:
        """Turn an edit of a message that is gone into a text, `ready` at once; the message is marked as deleted.

        False, and nothing changes, if it was claimed again since `fence`.
        """
        ...

    async def take_apart(self, key: str, parts: Sequence[Parcel], reason: str, *, fence: int | None = None) -> bool:
        """Replace a parcel by several that are sent one by one: the first of `parts` under this key, `ready` at once.

        False, and nothing changes, if it was claimed again since `fence`.
        """
        ...

    async def keep_waiting(self, conversation: ConversationKey, reason: str) -> tuple[str, ...]:
        """Record why a conversation's parcels are not sent; no attempt is counted.

        Returns the keys whose reason changed.
        """
        ...

    async def end_parcel(
        self,
        key: str,
        state: ParcelState,
        reason: str,
        *,
        fence: int | None = None,
        doubt: Doubt | None = None,
        notices: Sequence[Parcel] = (),
    ) -> bool:
        """End a parcel, which is not retried until a person asks; notices about it are added in the same transaction.

        The notices carry its text, which is then removed from it.

        False, and nothing changes, if it was claimed again since `fence`. `doubt=None` leaves the doubt unchanged.
        """
        ...

    async def recover_parcels(self, before: datetime, *, held: str, uncertain: str) -> int:
        """After a start: release the leases of earlier runs, and stop automatic sending of parcels older than `before`.

        They become `held`, or `uncertain` if they were being sent, for these reasons. Returns how many.
        """
        ...

    async def retry_parcel(self, key: str) -> ParcelRecord | None:
        """Send a parcel now, at a person's request. None if it is sent, being sent, dropped or unknown."""
        ...

    async def drop_parcel(self, key: str) -> ParcelRecord | None:
        """Drop a parcel for good, at a person's request. None if it is sent, being sent, dropped or unknown."""
        ...

    async def put_parcels(self, parcels: Sequence[Parcel]) -> None:
        """Put parcels of no turn into the outbox; once sent, they are messages of the conversation like any other."""
        ...

    async def start_draft(self, turn: int, parcel: Parcel) -> None:
        """Put a running turn's draft into the outbox at once; the answer will be a parcel that edits it."""
        ...

    async def carried_files(self, conversation: ConversationKey) -> tuple[tuple[str, ParcelState, str, datetime], ...]:
        """Files from the folder `pending` that parcels carry, newest first: mark, state, reason and since when."""
        ...

    async def parcel(self, key: str) -> ParcelRecord | None: ...

    async def parcel_of(self, channel: ConversationKey, message_id: str) -> ParcelRecord | None:
        """The parcel that made a message of this channel, if any."""
        ...

    async def parcels(
        self,
        *,
        limit: int = 50,
        state: ParcelState | None = None,
        conversation: ConversationKey | None = None,
        unsent: bool = False,
    ) -> tuple[ParcelRecord, ...]:
        """Newest first; `unsent` leaves out sent and dropped ones."""
        ...


class Library(Protocol):
    """Messages and their media."""

    async def channels(self) -> tuple[ChannelSummary, ...]: ...

    async def conversations(self, *, platform: str | None = None) -> tuple[ConversationSummary, ...]: ...

    async def open_conversation(self, conversation: ConversationKey, name: str, chat_type: ChatType) -> None:
        """Create a conversation before its first message."""
        ...

    async def history(
        self, conversation: ConversationKey, *, before: int | None = None, after: int | None = None, limit: int = 50
    ) -> tuple[StoredMessage, ...]:
        """Oldest to newest: the newest `limit` (before a seq), or the first `limit` after a seq."""
        ...

    async def messages(self, channel: ConversationKey, ids: Sequence[str]) -> tuple[StoredMessage, ...]:
        """Those of these platform ids that this channel has, any thread."""
        ...

    async def around(self, anchor: StoredMessage, *, now: datetime, limit: int = 20) -> Surroundings:
        """The messages of the channel before an anchor, without replies in threads other than its own.

        For an anchor in a thread: what was said in the channel itself before it.
        """
        ...

    async def thread(
        self, channel: ConversationKey, root: str, *, before: int | None = None, limit: int = 50
    ) -> ThreadSlice | None:
        """The newest `limit` undeleted replies under a message (before a seq); None if the channel has neither."""
        ...

    async def meanwhile(
        self, conversation: ConversationKey, since: ReadPosition, *, until: int, limit: int = 200
    ) -> Meanwhile:
        """What a session has missed since its read position `since`, up to the message of seq `until`."""
        ...

    async def spent(self, channel: ConversationKey, message_id: str) -> Usage | None:
        """The cost of the turn that ended with this message; None if no turn did."""
        ...

    async def find_messages(self, name: str) -> tuple[StoredMessage, ...]:
        """Messages that match `name`: a trace, or a platform id in any channel; at most 20."""
        ...

    async def story(self, conversation: ConversationKey, message_id: str) -> Story | None: ...

    async def ref(self, channel: ConversationKey, ref_id: str) -> RefRecord | None:
        """A ref of this channel; one of another channel is unknown here."""
        ...

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
        ...

    async def find_ref(self, ref_id: str) -> RefRecord | None:
        """A ref of any channel: for the operator, never for a channel's tools."""
        ...

    async def ref_by_public_name(self, public_name: str) -> RefRecord | None: ...

    async def unclaimed_refs(
        self, conversation: ConversationKey, author_id: str, *, since: datetime, limit: int = 5
    ) -> tuple[RefRecord, ...]:
        """The author's refs that no turn has answered yet, newest first."""
        ...

    async def end_media(
        self, ref_id: str, outcome: MediaOutcome, reason: str = "", *, blob: Blob | None = None
    ) -> bool:
        """Record a ref's outcome; with a blob, the ref now holds those bytes. False if it was withdrawn."""
        ...

    async def gone_since(self, channel: ConversationKey, ref_id: str) -> datetime | None:
        """When a ref of this channel was withdrawn: its message deleted, or edited to do without it."""
        ...

    async def note_fetched(self, channel: ConversationKey, size: int) -> None:
        """Count bytes that were fetched for a channel, whether they are stored or not."""
        ...

    async def bytes_fetched(self, channel: ConversationKey, since: datetime) -> int:
        """Bytes received for a channel since then, by fetch or upload; open uploads count as announced."""
        ...

    async def expire_messages(self, before: datetime) -> int:
        """Delete messages stored before then, with all that belongs to them. Returns how many.

        Those of a turn that waits or runs, or that has parcels still to be sent, stay; so do conversations, sessions
        and pairings.
        """
        ...

    async def counts(self) -> Mapping[str, int]:
        """Numbers for status and metrics, by name."""
        ...

    async def media_tallies(self) -> tuple[MediaTally, ...]:
        """Media seen and fetched per channel, from which savings are computed."""
        ...


class MessageSearch(Protocol):
    """Search in one channel's messages and documents."""

    async def search(self, channel: ConversationKey, query: SearchQuery) -> SearchHits:
        """One page of the messages that match a query, from an index that includes every stored message."""
        ...

    async def index_ahead(self) -> int:
        """Index what no search has needed yet. Returns how many channels were behind."""
        ...


class SessionStore(Protocol):
    """The memory of agents."""

    async def session(self, conversation: ConversationKey) -> Session: ...


class Store(
    Inbox, Outbox, Library, MessageSearch, SessionStore, Blobs, Readings, Uploads, Credentials, Pairings, Protocol
):
    """Everything belino stores."""

    async def close(self) -> None: ...
