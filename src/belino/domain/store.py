"""The Store port: some forty-five verbs of use, each one transaction, grouped by who uses them.

Nothing here knows SQL or files. A room is handed only the group it needs; an implementation offers them all.
"""

from collections.abc import AsyncIterator, Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from belino.domain.media import Blob, MediaKind, MediaRef
from belino.domain.message import Arrival, Author, ChatType, ConversationKey, Quote
from belino.domain.outcome import MediaOutcome, MessageOutcome, Standing, Step, TurnState
from belino.domain.ports import Taken
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind, ParcelState, Receipt

ALBUM_WAIT = timedelta(seconds=10)

# --- values ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What access decided about an arrival."""

    standing: Standing
    reason: str
    answer: bool = False
    """A turn shall answer it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """A message as the store keeps it."""

    seq: int
    """Grows with every message of its channel; what pages catch up by."""
    conversation: ConversationKey
    id: str
    author: Author
    sent: datetime
    received: datetime
    text: str
    media: tuple[MediaRef, ...]
    standing: Standing
    outcome: MessageOutcome
    reason: str
    trace: str
    reply_to: str | None = None
    quote: Quote | None = None
    forward: Quote | None = None
    album: str | None = None
    edited: datetime | None = None
    deleted: datetime | None = None
    reactions: tuple[tuple[str, int], ...] = ()
    """Emoji and how many people put it there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSummary:
    """A channel and what it holds."""

    channel: ConversationKey
    name: str
    chat_type: ChatType
    messages: int
    media: int
    media_held: int
    last: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfetched:
    """Media of one sort that nobody has asked for."""

    kind: MediaKind
    mime: str
    width: int | None
    height: int | None
    items: int
    size: int
    """Of all of them together, as far as the platform said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaTally:
    """What came, and what of it was fetched."""

    messages: int
    seen: int
    fetched: int
    fetched_bytes: int
    unfetched: tuple[Unfetched, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSummary:
    """A conversation and its last message."""

    conversation: ConversationKey
    name: str
    messages: int
    last: datetime | None
    last_author: str
    last_text: str
    waiting: int
    """Turns waiting or running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedTurn:
    """A turn somebody works on."""

    id: int
    conversation: ConversationKey
    number: int
    """Counts the conversation's turns from 1."""
    attempt: int
    messages: tuple[StoredMessage, ...]
    """What it answers: one message, or the items of an album."""
    trace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """A media item the agent of a conversation was shown."""

    artifact_id: str
    display_name: str
    media_type: str
    content_hash: str
    source_message_id: str
    source_thread_id: str | None
    included_at_turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd:
    """Everything that ends a turn, in one transaction."""

    state: TurnState
    reason: str = ""
    parcels: tuple[Parcel, ...] = ()
    shown: tuple[ManifestEntry, ...] = ()
    forget_shown: bool = False
    """The agent's memory was compacted: the manifest no longer suppresses anything shown before."""
    memory: bytes | None = None
    """None leaves the session's memory as it is."""
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What the store remembers of a conversation's agent."""

    memory: bytes | None
    turns: int
    """Turns ended so far."""
    manifest: tuple[ManifestEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedParcel:
    """A parcel somebody is about to send."""

    parcel: Parcel
    attempt: int
    """Counts from 1."""
    created: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ParcelRecord:
    """A parcel and where it is."""

    key: str
    conversation: ConversationKey
    kind: ParcelKind
    text: str
    state: ParcelState
    attempts: int
    reason: str
    created: datetime
    changed: datetime
    ready: datetime
    message_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefRecord:
    """A ref, who sent it, and what became of it."""

    ref: MediaRef
    conversation: ConversationKey
    author: Author
    sent: datetime
    outcome: MediaOutcome
    reason: str
    public_name: str
    """The name it is served under: a keyed hash, no extension."""
    seq: int
    """What listings are paged by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What happened to one message, from arrival to receipt."""

    message: StoredMessage
    steps: tuple[Step, ...]
    refs: tuple[RefRecord, ...]
    parcels: tuple[ParcelRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """Bytes arriving piece by piece. Complete when offset = size; then `sha256` is known."""

    id: str
    conversation: ConversationKey
    file_name: str
    mime: str
    size: int
    offset: int
    created: datetime
    sha256: str | None = None


class GrantKind(StrEnum):
    """What a secret opens."""

    LOGIN = "login"
    """Once, for a browser session."""
    BROWSER = "browser"
    """Everything a person may do."""
    PROGRAM = "program"
    """Everything, for the CLI while this gateway runs."""
    CHANNEL = "channel"
    """One conversation's tools and messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A secret that was handed out; only its hash is kept."""

    id: str
    kind: GrantKind
    conversation: ConversationKey | None
    note: str
    created: datetime
    expires: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Somebody who wrote to an account directly: paired, or waiting for an operator to approve their code."""

    platform: str
    account: str
    sender_id: str
    name: str
    """As they call themselves, made harmless; it proves nothing."""
    at: datetime
    """Paired since, or asked at."""
    expires: datetime | None = None
    """When the code ends; None once paired."""
    tries_left: int = 0
    """Wrong codes the operator may still enter before this one opens nothing."""

    @property
    def is_paired(self) -> bool:
        return self.expires is None

    @property
    def who(self) -> str:
        """How an operator names them: `platform:account:sender`, percent-encoded like a conversation."""
        return str(ConversationKey(platform=self.platform, account=self.account, channel=self.sender_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A conversation with something to do, and when."""

    conversation: ConversationKey
    at: datetime


# --- verbs ----------------------------------------------------------------------------------------------------------


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
        """Commit arrival, refs, cursor and, if `verdict.answer`, a waiting turn; know a duplicate by its id.

        A denied arrival moves the cursor and a counter and leaves nothing else. `ready` is when its turn may start
        (an album waits for its items; a later item of a waiting album joins it and moves its time, `album_wait` at
        most from the first; one that comes later still gets a turn of its own).
        """
        ...

    async def cursor(self, platform: str, account: str) -> str | None: ...

    async def recover(self) -> int:
        """After a crash: turns that were running wait again. Returns how many."""
        ...

    async def ready_turns(self) -> tuple[Ready, ...]:
        """Every conversation with a waiting turn, with the time its first one may start."""
        ...

    async def waiting_turns(self) -> int: ...

    async def claim_turn(self, conversation: ConversationKey, now: datetime) -> ClaimedTurn | Ready | None:
        """The conversation's oldest waiting turn; Ready if its time has not come; None if there is none."""
        ...

    async def finish_turn(self, turn: int, end: TurnEnd) -> None:
        """End a turn: reply parcels, manifest, memory and outcomes in one transaction."""
        ...

    async def release_turn(self, turn: int) -> None:
        """Give a running turn back unchanged, as if it had not been claimed (shutdown)."""
        ...

    async def note(self, trace: str, *steps: Step) -> None:
        """Keep steps for `explain`."""
        ...


class Outbox(Protocol):
    """Parcels on their way."""

    async def ready_parcels(self) -> tuple[Ready, ...]:
        """Every conversation with a parcel to send, with the time its first one may go."""
        ...

    async def claim_parcel(self, conversation: ConversationKey, now: datetime) -> ClaimedParcel | Ready | None:
        """The conversation's oldest unsent parcel, now `sending`; parcels of a conversation leave in order."""
        ...

    async def confirm_parcel(self, key: str, receipt: Receipt, author: Author) -> StoredMessage | None:
        """`sent`; what was sent becomes a message of the conversation, by the agent as author, once.

        None for a parcel that makes no message of its own (an edit, or what the gateway itself tells a stranger).
        """
        ...

    async def delay_parcel(self, key: str, ready: datetime, reason: str) -> None: ...

    async def end_parcel(self, key: str, state: ParcelState, reason: str) -> None: ...

    async def parcels(self, *, limit: int = 50, state: ParcelState | None = None) -> tuple[ParcelRecord, ...]: ...


class Library(Protocol):
    """What was said and what media came with it."""

    async def channels(self) -> tuple[ChannelSummary, ...]: ...

    async def conversations(self, *, platform: str | None = None) -> tuple[ConversationSummary, ...]: ...

    async def open_conversation(self, conversation: ConversationKey, name: str, chat_type: ChatType) -> None:
        """Make a conversation known before anything was said in it."""
        ...

    async def history(
        self, conversation: ConversationKey, *, before: int | None = None, after: int | None = None, limit: int = 50
    ) -> tuple[StoredMessage, ...]:
        """Oldest to newest: the newest `limit` (before a seq), or the first `limit` after a seq."""
        ...

    async def messages(self, channel: ConversationKey, ids: Sequence[str]) -> tuple[StoredMessage, ...]:
        """Those of these platform ids that this channel has, any thread."""
        ...

    async def find_messages(self, name: str) -> tuple[StoredMessage, ...]:
        """Messages a person may mean by `name`: a trace, or a platform id in any channel; at most 20."""
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
        """A ref of any channel: for the person the gateway belongs to, never for a channel's tools."""
        ...

    async def ref_by_public_name(self, public_name: str) -> RefRecord | None: ...

    async def unclaimed_refs(
        self, conversation: ConversationKey, author_id: str, *, since: datetime, limit: int = 5
    ) -> tuple[RefRecord, ...]:
        """The author's refs that no turn has answered yet, newest first."""
        ...

    async def end_media(
        self, ref_id: str, outcome: MediaOutcome, reason: str = "", *, blob: Blob | None = None
    ) -> None:
        """Record what became of a ref; with a blob, the ref now holds those bytes."""
        ...

    async def bytes_fetched(self, channel: ConversationKey, since: datetime) -> int: ...

    async def counts(self) -> Mapping[str, int]:
        """Numbers for status and metrics, by name."""
        ...

    async def media_tally(self) -> MediaTally:
        """Media seen and fetched: what the savings are made of."""
        ...


class Sessions(Protocol):
    """What agents remember."""

    async def session(self, conversation: ConversationKey) -> Session: ...


class Blobs(Protocol):
    """Bytes by sha256."""

    async def keep(self, chunks: AsyncIterator[bytes], *, mime: str | Callable[[], str], limit: int) -> Blob:
        """Hash while writing, fsync, rename. MediaTooLarge past `limit`; nothing half-written is ever visible.

        A `mime` that is asked for is asked once the bytes are whole.
        """
        ...

    async def blob(self, sha256: str) -> Blob | None: ...

    async def drop_unused(self) -> int:
        """Delete the bytes that no ref, upload or parcel uses any more. Returns how many blobs went."""
        ...

    async def touch(self, sha256: str) -> None:
        """These bytes were asked for: others go before them."""
        ...

    async def evict(self, limit: int, *, keep: Container[str] = ()) -> int:
        """Delete bytes that can be fetched again, those used longest ago first, until `limit` are held or none is left.

        Bytes in `keep`, which may change meanwhile, of a running turn, of an undelivered parcel, and those that came
        with their message and cannot be had again stay. Returns how many bytes are held.
        """
        ...

    async def expire_media(self, before: datetime, *, keep: Container[str] = ()) -> int:
        """Refs stored before then end as `expired` and let go of their bytes. Returns how many did."""
        ...

    def outgoing(self, sha256: str, *, name: str, mime: str) -> OutgoingFile:
        """A held blob as a file to send."""
        ...


class Uploads(Protocol):
    """Bytes a client sends piece by piece."""

    async def start_upload(
        self, conversation: ConversationKey, *, file_name: str, mime: str, size: int, sha256: str | None
    ) -> Upload: ...

    async def upload(self, upload_id: str) -> Upload | None: ...

    async def extend_upload(self, upload_id: str, offset: int, chunks: AsyncIterator[bytes]) -> Upload:
        """Append at exactly `offset`; what was written before the client went away counts.

        The last byte completes it: hashed, checked against the announced hash, moved to the blobs. UploadError on a
        wrong offset, a wrong hash or a byte too many.
        """
        ...

    async def drop_upload(self, upload_id: str) -> None: ...

    async def sweep_uploads(self, older_than: datetime) -> int:
        """Forget uploads that no message took."""
        ...


class Doors(Protocol):
    """Secrets that open doors; only their hashes are kept."""

    async def grant(
        self,
        kind: GrantKind,
        *,
        conversation: ConversationKey | None = None,
        note: str = "",
        lifetime: timedelta | None = None,
    ) -> tuple[Grant, str]:
        """A new grant and its secret, which is shown once."""
        ...

    async def check(self, secret: str) -> Grant | None: ...

    async def redeem(self, secret: str, *, lifetime: timedelta) -> tuple[Grant, str] | None:
        """Trade a login secret, once, for a browser grant."""
        ...

    async def grants(self) -> tuple[Grant, ...]: ...

    async def revoke(self, grant_id: str) -> bool: ...


class Pairings(Protocol):
    """Strangers who may command in direct messages because an operator approved their code."""

    async def ask_pairing(self, sender: Author, parcel: Parcel, code: str) -> bool:
        """Keep that a stranger asked, and put the parcel that tells them their code into the outbox.

        The account and the place are the parcel's. False, and nothing is kept or sent, while the sender's last code
        lives or as many others of the account as may are waiting.
        """
        ...

    async def is_paired(self, platform: str, account: str, sender_id: str) -> bool: ...

    async def pairings(self) -> tuple[Pairing, ...]:
        """Who waits, and who is paired; oldest first."""
        ...

    async def pair(self, code: str) -> Pairing | None:
        """Approve whom a code was given to. A wrong one costs every code that is waiting one of its tries."""
        ...

    async def unpair(self, platform: str, account: str, sender_id: str) -> bool:
        """Take a pairing back, or let the code of one who waits open nothing."""
        ...


class Store(Inbox, Outbox, Library, Sessions, Blobs, Uploads, Doors, Pairings, Protocol):
    """Everything belino keeps."""

    async def close(self) -> None: ...
