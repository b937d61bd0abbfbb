"""Tool context: what the tools of one channel work on, how they find refs and albums, and how they fetch bytes."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from belino.context.history import History
from belino.domain.errors import (
    MediaError,
    MediaExpired,
    MediaNotFound,
    MediaRefused,
    MediaTooLarge,
    OverDailyLimit,
    StoreError,
    ToolError,
)
from belino.domain.media import TEXT_AND_PICTURES, AcceptedMedia, Blob, FileBlock, MediaBlock, MediaKind
from belino.domain.message import ConversationKey
from belino.domain.outcome import MediaOutcome, Stage, Step
from belino.domain.ports import Clock
from belino.domain.safe_text import clean_name
from belino.domain.stored import ManifestEntry, RefRecord
from belino.domain.units import format_size
from belino.media.fetch import Fetcher
from belino.media.price import BLOCK_SIDE
from belino.media.render import Renderer
from belino.media.session_files import place, stored_name
from belino.storage.library_verbs import LibraryVerbs
from belino.storage.store import Store

if TYPE_CHECKING:
    from belino.understanding.read import Understanding

NO_MEDIA = "there is no such media in this channel; list_media shows what there is"
REF_ID = re.compile(r"[a-z0-9]{1,8}_[a-z0-9]{12}")

Notes = Callable[[Step], Awaitable[None]]

ALBUM_MOST = 30
"""The most pictures on one contact sheet."""
CONTAINER_IMAGE_BYTES = 1024 * 1024
"""The largest picture that an agent in a container gets as a picture."""
NEARBY = 100
"""Items of an album arrive together: the others are among this many refs before and after."""


PROGRESS: ContextVar[Callable[[int, int | None], None] | None] = ContextVar("PROGRESS", default=None)
"""Gets the bytes fetched so far, and how many there will be, for a client that asked for it."""
TOLD: ContextVar[Callable[[Literal["info", "warning"], str], None] | None] = ContextVar("TOLD", default=None)
"""Gets what a tool begins and has done, for the log of a client that asked for it; never what media hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """Everything the media tools work on; the channel is fixed here, no argument can change it."""

    conversation: ConversationKey
    library: LibraryVerbs
    archive: Store
    fetcher: Fetcher
    history: History | None = None
    """Requests history that is not stored from the platform; None if that is not allowed."""
    folder: Path
    clock: Clock
    renderer: Renderer
    understanding: "Understanding | None" = None
    """Reads media as text; None where nothing can."""
    sees_images: bool
    accepts: AcceptedMedia = TEXT_AND_PICTURES
    """The blocks that the agent accepts in a tool's result besides text and pictures."""
    image_block_bytes: int
    image_block_side: int = BLOCK_SIDE
    fence: str
    """The fence marker around file contents; not guessable."""
    notes: Notes | None = None
    manifest: Sequence[ManifestEntry] = ()
    """The media in the agent's context; may change while the turn runs."""
    shown: Callable[[MediaBlock], None] | None = None
    shown_now: set[str] = field(default_factory=set)
    """Refs and hashes of the pictures given in this turn."""
    link: Callable[[RefRecord, Blob], Awaitable[str]] | None = None
    """Makes a link under which the bytes can be fetched; ConfigError without a public address."""
    answers: Collection[str] = ()
    """The ids of the messages that the turn answers."""
    refs_since: datetime | None = None
    """Older refs have expired for this agent; None if none do."""

    @property
    def channel(self) -> ConversationKey:
        """The scope of the tools: the conversation's channel, with all its threads."""
        return self.conversation.whole_channel

    async def note(self, record: RefRecord, what: str, tokens: int) -> None:
        """Record for `explain` what was made of a ref; never any of its content."""
        if self.notes is not None:
            step = Step(
                at=self.clock.now(),
                stage=Stage.MEDIA,
                outcome="rendered",
                reason=f"{what}: about {tokens} tokens",
                subject=record.ref.id,
            )
            await self.notes(step)


def as_in_container(context: ToolContext, folder: Path, lifetime: timedelta) -> ToolContext:
    """The context of an agent in a container: its own folder, refs that expire, and pictures of any model's size."""
    return replace(
        context,
        folder=folder,
        refs_since=context.clock.now() - lifetime,
        sees_images=True,
        accepts=TEXT_AND_PICTURES,
        image_block_bytes=min(context.image_block_bytes, CONTAINER_IMAGE_BYTES),
    )


async def known_ref(context: ToolContext, ref_id: str) -> RefRecord | None:
    """A ref of this channel; None if it is unknown here, of another channel or not. ToolError if it was deleted."""
    if not REF_ID.fullmatch(ref_id):
        return None
    record = await context.library.ref(context.channel, ref_id)
    if record is None and await context.library.gone_since(context.channel, ref_id) is not None:
        raise ToolError(f"{ref_id} was deleted by its sender; do not use what you saw of it")
    if record is not None and context.refs_since is not None and record.sent < context.refs_since:
        raise ToolError(f"{ref_id} has expired (media.ref_ttl_minutes); ask for the file to be sent again")
    return record


async def find_ref(context: ToolContext, ref_id: str) -> RefRecord:
    """The same; an unknown one is refused."""
    record = await known_ref(context, ref_id)
    if record is None:
        raise ToolError(NO_MEDIA)
    return record


async def held(context: ToolContext, record: RefRecord) -> Blob:
    """The bytes of a ref, fetched if necessary; ToolError with the reason if they are unavailable."""
    ref, progress, size = record.ref.id, PROGRESS.get(), record.ref.size
    if record.outcome is not MediaOutcome.HELD:
        tell_client(f"fetching {ref}" if size is None else f"fetching {ref}, {format_size(size)}")
    try:
        return await context.fetcher.fetch(record, progress=progress)
    except MediaTooLarge as error:
        raise ToolError(f"{ref} is over {format_size(error.limit)}; ask the sender for a smaller copy") from error
    except OverDailyLimit as error:
        limit = format_size(error.limit)
        raise ToolError(
            f"this channel may fetch {limit} a day and {ref} does not fit any more; try tomorrow"
        ) from error
    except (MediaExpired, MediaNotFound) as error:
        raise ToolError(f"the platform no longer has {ref} (expired); ask the sender to send it again") from error
    except MediaRefused as error:
        raise ToolError(f"the bytes of {ref} were refused; ask the sender for the file in another form") from error
    except MediaError as error:
        raise ToolError(f"{ref} could not be fetched just now; try again in a moment") from error
    except StoreError as error:
        raise ToolError(f"{ref} could not be kept: the gateway's disk is full or failing; tell the operator") from error


def tell_client(says: str, level: Literal["info", "warning"] = "info") -> None:
    """Tell the client of this call what is being done, if it wants to know."""
    if (told := TOLD.get()) is not None:
        told(level, says)


async def placed(context: ToolContext, record: RefRecord, blob: Blob, mime: str) -> FileBlock:
    """A copy of the bytes in the session's folder."""
    try:
        async with context.archive.local(blob.sha256) as held:
            path = await asyncio.to_thread(place, context.folder, stored_name(record.ref), held)
    except (StoreError, MediaNotFound) as error:
        raise ToolError(f"{record.ref.id} could not be copied to your folder: {error}") from error
    return FileBlock(path=path, mime=mime, ref=record.ref.id, sha256=blob.sha256)


def title(record: RefRecord) -> str:
    """The display name of a ref: its name, or its kind."""
    ref = record.ref
    name = clean_name(ref.file_name or "") or f"{ref.kind.value.capitalize()} {ref.id}"
    # A sticker's caption is its emoji, which says more than its bytes.
    return f"{name} ({clean_name(ref.caption)})" if ref.kind is MediaKind.STICKER and ref.caption else name


async def album_of(library: LibraryVerbs, channel: ConversationKey, record: RefRecord) -> tuple[RefRecord, ...]:
    """The refs of the album in order; the ref alone if it is not in an album."""
    near = await library.refs(channel, before=record.seq + NEARBY, limit=2 * NEARBY)
    ids = list(dict.fromkeys(each.ref.message_id for each in near))
    albums = {message.id: message.album for message in await library.messages(channel, ids)}
    album, own = albums.get(record.ref.message_id), record.ref.message_id
    together = {own} | {message_id for message_id, name in albums.items() if album is not None and name == album}
    found = [each for each in near if each.ref.message_id in together]
    return tuple(sorted(found, key=lambda each: each.seq)) or (record,)
