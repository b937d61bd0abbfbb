"""Stored values: messages, turns, parcels, refs, uploads and grants as the store returns them."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from belino.domain.commands import CommandEffect
from belino.domain.context import OtherThread, ThreadActivity
from belino.domain.joining import Joining
from belino.domain.limits import SendAs
from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Arrival, Author, ChatType, ConversationKey, DeliveryState, Quote, SpokenText
from belino.domain.outcome import MediaOutcome, MessageOutcome, Standing, Step, TurnState
from belino.domain.reply import Doubt, Parcel, ParcelKind, ParcelState
from belino.domain.turn import Usage

NOTHING_SPENT = Usage()
LONGEST_COUNT = 20
"""Digits of a platform's largest message number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The access decision about an arrival."""

    standing: Standing
    reason: str
    answer: bool = False
    """Whether a turn answers it."""
    sender_may_command: bool = False
    """Whether its sender may command the agent here, also by a message that does not address it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenedArrival:
    """An arrival to be stored, with the access decision about it."""

    arrival: Arrival
    verdict: Verdict
    cursor: str | None = None
    ready: datetime | None = None
    """When its turn may start; None means at once."""
    command: CommandEffect | None = None
    """What it orders, if it is a command: then no turn answers it."""
    joining: Joining | None = None
    """How it may join an open turn; None means only as an item of its album."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """A message as it is stored."""

    seq: int
    """Grows with every message of its channel; pages use it to catch up."""
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
    """Emoji, each with the number of people."""
    root: str | None = None
    """The root of its thread: its conversation's thread, or the start of its chain of replies."""
    spoken: SpokenText | None = None
    """What is said in its voice messages, if that was read: as much its text as what is written."""
    short_id: str = ""
    """Its id in lines for the agent: the first characters of a keyed hash that no other message of its channel has."""
    sender_may_command: bool = False
    """Whether its sender might command the agent when it was stored, even if it did not address the agent."""

    @property
    def is_observed(self) -> bool:
        """Whether it is by a sender who may not command the agent; our own agents' messages are not."""
        is_trusted = self.standing is Standing.MAY_COMMAND or self.sender_may_command
        return not (is_trusted or self.author.is_agent)

    @property
    def is_spoken(self) -> bool:
        """Whether it is a voice message without a written word."""
        written = (self.text, *(ref.caption or "" for ref in self.media))
        voices = bool(self.media) and all(ref.kind is MediaKind.VOICE for ref in self.media)
        return voices and not any(words.strip() for words in written)

    @property
    def place_in_album(self) -> tuple[datetime, int, int]:
        """Sort key of an album's items: the message number decides between times in whole seconds."""
        counted = self.id.isascii() and self.id.isdecimal() and len(self.id) <= LONGEST_COUNT
        return self.sent, int(self.id) if counted else 0, self.seq


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearby:
    """A message before an anchor, with the activity of the thread under it."""

    message: StoredMessage
    activity: ThreadActivity | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The messages around one message of a channel."""

    channel_name: str
    nearby: tuple[Nearby, ...]
    """Oldest first."""
    replies_elsewhere: int
    older: int = 0
    """Messages of the channel before those, counted up to `MOST_COUNTED`."""
    threads_elsewhere: tuple[OtherThread, ...] = ()
    """The threads with the newest replies elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSlice:
    """The newest replies of a thread, with its totals."""

    root: StoredMessage | None
    replies: tuple[StoredMessage, ...]
    """Oldest first."""
    total: int
    """All of its replies, also those that only the platform is known to have."""
    first: datetime | None
    """When the oldest stored reply was sent."""
    stored: int = 0
    """The replies that are stored; not all of them may be in `replies`."""
    is_reported: bool = False
    """Whether the platform reported how many there are."""


class Happening(StrEnum):
    """A later event of a message."""

    EDITED = "edited"
    DELETED = "deleted"
    REACTED = "reacted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPosition:
    """How far a session has read a channel: the last message and the last change."""

    seq: int = 0
    change: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedChanges:
    """What arrived and changed since a session's read position."""

    arrived: tuple[StoredMessage, ...]
    """Oldest first, only the newest if they are many; never messages of our own agents."""
    total_arrived: int
    changed: tuple[tuple[StoredMessage, Happening], ...]
    """Messages the session has read, once for each kind of change, oldest change first."""
    replies_elsewhere: int
    now: ReadPosition
    threads_elsewhere: tuple[OtherThread, ...] = ()
    """The threads with the newest of these."""
    said_in_channel: int = 0
    """For a session in a thread: what was said in the channel itself."""
    thread: str = ""
    """The short id of that thread's first message; its full id if that is not stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSummary:
    """A channel and its totals."""

    channel: ConversationKey
    name: str
    chat_type: ChatType
    messages: int
    media: int
    media_held: int
    last: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfetched:
    """Media of one kind that was never fetched."""

    kind: MediaKind
    mime: str
    width: int | None
    height: int | None
    items: int
    size: int
    """The total size, as far as the platform reported it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaTally:
    """Media that came into a channel, and how much of it was fetched."""

    channel: ConversationKey
    name: str
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
    """A turn that is being run."""

    id: int
    conversation: ConversationKey
    number: int
    """Counts the conversation's turns from 1."""
    attempt: int
    """Counts from 1, and again from 1 after a retry."""
    fence: int
    """Counts the claims of this turn, by any gateway."""
    messages: tuple[StoredMessage, ...]
    """What it answers: one message, or several that belong together."""
    trace: str
    chat_type: ChatType = ChatType.DIRECT
    suspect: bool = False
    """It was running when the process died, and now runs alone."""
    interruptions: int = 0
    """How often the process died while it was the only turn that ran."""
    retries: int = 0
    """How often a person retried it after it failed."""
    has_parcels: bool = False
    """An earlier run of it put parcels into the outbox, such as a draft."""

    @property
    def reply_to(self) -> str | None:
        """The message that the answer is shown as a reply to.

        In a direct conversation an answer follows its message and needs none, except after a retry.
        """
        return None if self.chat_type is ChatType.DIRECT and not self.retries else self.messages[0].id


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierFiles:
    """The files that a conversation has before a reply."""

    since: datetime | None = None
    """When the last turn was answered: files changed after it are new; None before the first answer."""
    hashes: frozenset[str] = frozenset()
    """Of the bytes it received or will receive, and of the files these were made from."""
    names: frozenset[str] = frozenset()
    """Of the files that people sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """A media item that an agent was shown."""

    artifact_id: str
    display_name: str
    media_type: str
    content_hash: str
    source_message_id: str
    source_thread_id: str | None
    included_at_turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd:
    """Everything stored at the end of a turn, in one transaction."""

    state: TurnState
    reason: str = ""
    parcels: tuple[Parcel, ...] = ()
    shown: tuple[ManifestEntry, ...] = ()
    compacted: bool = False
    """Turns were removed from the agent's memory: media of its thread is to be attached again."""
    lost: tuple[str, ...] = ()
    """Refs of media removed from the agent's memory."""
    told: ReadPosition | None = None
    """The agent's read position; None leaves it unchanged."""
    context_turn: int | None = None
    """The turn whose prompt has the structured context, 0 if none in its memory has; None leaves it unchanged."""
    recovered: tuple[str, ...] | None = None
    """The refs attached again, which completes a compaction; None if there was none to complete."""
    memory: bytes | None = None
    """None leaves the session's memory unchanged."""
    forgot: bool = False
    """The agent's memory was lost, and it started again with this turn."""
    agent: str = ""
    """The kind of agent that answered, whose memory no other kind can use; empty leaves it unchanged."""
    usage: Usage = NOTHING_SPENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The stored state of a conversation's agent."""

    memory: bytes | None
    turns: int
    """Turns ended so far."""
    manifest: tuple[ManifestEntry, ...]
    """Everything the agent was ever shown."""
    lost: tuple[str, ...] = ()
    """The refs of the manifest that its memory has dropped: not in its context any more."""
    compacted: bool = False
    """Turns were removed from its memory, and nothing was attached again yet."""
    told: ReadPosition | None = None
    """Its read position; None before it was given the structured context."""
    context_turn: int = 0
    """The turn whose prompt has the structured context; 0 if none in its memory has."""
    agent: str = ""
    """The kind of agent; empty before the first turn ended."""
    begun: int = 0
    """The seq of the message that began it by `/new`; what was said before is no context of it."""

    def found_by(self, agent: str) -> "Session":
        """The session as seen by an agent of this kind: another kind has no memory of it."""
        if not agent or self.agent in ("", agent):
            return self
        return replace(self.forgotten(), agent=agent)

    def forgotten(self) -> "Session":
        """The session of an agent without memory: nothing read, and nothing shown that it still has."""
        shown = tuple(entry.artifact_id for entry in self.manifest)
        return replace(self, memory=None, lost=shown, compacted=False, told=None, context_turn=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """The author of the message that a parcel answers, and the chat type."""

    author: Author
    chat_type: ChatType
    server: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedParcel:
    """A parcel that is being sent, exclusively until its lease ends."""

    parcel: Parcel
    attempt: int
    """Counts from 1."""
    created: datetime
    fence: int = 0
    """Fencing token: grows with every claim in the conversation; results with an older one are ignored."""
    failures: int = 0
    """Failed attempts since a person last asked for it."""
    doubt: Doubt = Doubt.NONE
    insisted: bool = False
    """A person wants it sent, whatever the result of earlier calls."""
    askers: tuple[Requester, ...] = ()
    """The senders of the messages that it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParcelFile:
    """A file in a parcel, as listings show it."""

    name: str
    mime: str
    size: int
    send_as: SendAs
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParcelRecord:
    """A parcel and its state."""

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
    trace: str = ""
    files: tuple[ParcelFile, ...] = ()
    doubt: Doubt = Doubt.NONE
    dropped: bool = False
    """A person has dropped it."""
    delivery: DeliveryState | None = None
    """What the platform last reported about its message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefRecord:
    """A ref, its sender and its outcome."""

    ref: MediaRef
    conversation: ConversationKey
    author: Author
    sent: datetime
    outcome: MediaOutcome
    reason: str
    public_name: str
    """The name it is served under: a keyed hash, no extension."""
    seq: int
    """The sort key of paged listings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What happened to one message, from arrival to receipt."""

    message: StoredMessage
    steps: tuple[Step, ...]
    refs: tuple[RefRecord, ...]
    parcels: tuple[ParcelRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """An upload in pieces. Complete when offset = size; then `sha256` is known."""

    id: str
    conversation: ConversationKey
    file_name: str
    mime: str
    size: int
    offset: int
    created: datetime
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadLimits:
    """How many bytes uploads may bring."""

    channel_bytes_per_day: int
    """For one channel within 24 hours, together with what is fetched for it."""
    total_bytes: int
    """In all channels together, as long as no message took them."""


class GrantKind(StrEnum):
    """What a secret gives access to."""

    LOGIN = "login"
    """Valid once, for a browser session."""
    BROWSER = "browser"
    """Everything a person may do."""
    PROGRAM = "program"
    """Everything, for the CLI while this gateway runs."""
    CHANNEL = "channel"
    """One conversation's tools and messages."""
    MONITOR = "monitor"
    """The health of accounts and the metrics, for a monitoring system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A secret that was issued; only its hash is stored."""

    id: str
    kind: GrantKind
    conversation: ConversationKey | None
    note: str
    created: datetime
    expires: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """A person who wrote to an account directly: paired, or waiting for an operator to approve their code."""

    platform: str
    account: str
    sender_id: str
    name: str
    """Self-chosen and sanitized; it proves nothing."""
    at: datetime
    """When they were paired, or asked."""
    expires: datetime | None = None
    """When the code expires; None once paired."""
    tries_left: int = 0
    """Wrong codes the operator may still enter before this one becomes invalid."""

    @property
    def is_paired(self) -> bool:
        return self.expires is None

    @property
    def who(self) -> str:
        """The operator's name for them: `platform:account:sender`, percent-encoded like a conversation."""
        return str(ConversationKey(platform=self.platform, account=self.account, channel=self.sender_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A conversation with work to do, and when."""

    conversation: ConversationKey
    at: datetime
    alone: bool = False
    """Its turn was running when the process died: no other turn may run beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tidied:
    """The result of a garbage collection, with the bytes that were freed, or would be."""

    deleted: int = 0
    """Blobs and copies of withdrawn refs that still existed."""
    unused: int = 0
    """Blobs that no ref, upload, parcel or rendition used."""
    strays: int = 0
    """Files that no row lists, left in their place."""
    put_aside: int = 0
    """Files that no row lists, moved to `blobs/aside/`."""
    brought_back: int = 0
    """Files moved back from there, because a row lists them again."""
    expired: int = 0
    """Files deleted from there, because no row has listed them for a week."""
    lost: int = 0
    """Rows whose file is gone; their refs are fetched again, or record that they cannot be."""
    unfinished: int = 0
    """Abandoned temporary files."""
    freed: int = 0

    @property
    def total(self) -> int:
        moved = self.strays + self.put_aside + self.brought_back + self.expired
        return self.deleted + self.unused + moved + self.lost + self.unfinished


@dataclass(frozen=True, slots=True, kw_only=True)
class Strays:
    """Blob files that no row lists: a killed process left them, or the database is not the one they belong to."""

    left: int = 0
    """Those in their place."""
    left_bytes: int = 0
    files: int = 0
    """All blob files in their place, strays or not."""
    aside: int = 0
    """Those in `blobs/aside/`."""
    aside_bytes: int = 0
    missing: int = 0
    """Rows without a file while `blobs/` holds none at all; they stay, since the folder may come back."""

    @property
    def too_many(self) -> bool:
        """Whether they are more than a tenth of all blobs: more than killed processes leave."""
        return self.left * 10 > self.files


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneCopies:
    """Withdrawn refs, and the conversations whose folders may contain copies of them."""

    conversations: tuple[ConversationKey, ...]
    refs: tuple[str, ...]
