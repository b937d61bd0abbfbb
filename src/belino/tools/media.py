"""The media tools: what the channel has, and one item of it."""

import asyncio
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from belino.context.compact import line, short_time
from belino.context.history import History
from belino.context.wire import iso_time, json_text, media_json
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
from belino.domain.media import Blob, Block, FileBlock, ImageBlock, MediaKind, TextBlock
from belino.domain.message import ConversationKey
from belino.domain.outcome import MediaOutcome
from belino.domain.ports import Clock
from belino.domain.record import ManifestEntry, RefRecord
from belino.domain.store import Archive, Library
from belino.domain.turn import ToolSpec
from belino.media.fetch import Fetcher
from belino.media.paths import place, stored_name
from belino.media.placeholder import clean_mime, clean_name, format_size, one_line
from belino.media.price import THUMB_BYTES, THUMB_SIDE, is_text, price
from belino.tools.arguments import Arguments
from belino.tools.pictures import Draws, Looked, look, measured, reason_of, shown

FORMATS = ("compact", "json")
RENDITIONS = ("auto", "image", "thumb", "file")
LIST_DEFAULT = 20
LIST_MOST = 100
SEQ_MOST = 2**63 - 1
REF_ID = re.compile(r"[a-z0-9]{1,8}_[a-z0-9]{12}")
COLUMNS = "ref|kind|name|size|type|from|MM-DD HH:MM UTC|bytes|tokens|caption"

LIST_MEDIA = ToolSpec(
    name="list_media",
    description=(
        "List the media of this channel, newest first: ref, kind, name, size, type, sender, time, whether the bytes "
        "are here, the price in tokens of each form, and the caption."
    ),
    schema={
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "kind": {"type": "string", "enum": [kind.value for kind in MediaKind]},
            "since": {"type": "string", "description": "ISO 8601, or how long ago: 30m, 2h, 3d."},
            "limit": {"type": "integer", "minimum": 1, "maximum": LIST_MOST, "default": LIST_DEFAULT},
            "cursor": {"type": "string", "description": "From the end of the list before."},
            "format": {"type": "string", "enum": list(FORMATS), "default": "compact"},
        },
    },
)

FETCH_MEDIA = ToolSpec(
    name="fetch_media",
    description=(
        "Get one media item of this channel by its ref: a picture to look at (made upright and shrunk where need be, "
        "then with the path of the original), anything else as the path of a copy in your folder. as=thumb: the "
        "picture small and cheap; as=file: only the path. A picture shown to you before is only named, unless "
        "again=true."
    ),
    schema={
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "ref": {"type": "string", "description": "As in a placeholder or list_media, like tg_k3v9d0q2m7xa."},
            "as": {"type": "string", "enum": list(RENDITIONS), "default": "auto"},
            "again": {"type": "boolean", "default": False},
        },
        "required": ["ref"],
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """Everything the media tools work on; the channel is fixed here, no argument can change it."""

    channel: ConversationKey
    library: Library
    archive: Archive
    fetcher: Fetcher
    history: History | None
    """Asks the platform for what is not stored; None where nobody may be asked."""
    folder: Path
    clock: Clock
    images: Draws
    sees_images: bool
    image_block_bytes: int
    image_block_side: int
    manifest: Sequence[ManifestEntry]
    shown: Callable[[ImageBlock], None] | None
    shown_now: set[str]
    """Refs and hashes given as pictures since this toolbox was made."""
    answers: Collection[str] = ()
    """The ids of the messages that the turn answers."""


async def list_media(shelf: Shelf, given: Mapping[str, object]) -> tuple[Block, ...]:
    """The channel's media, newest first, a page at a time."""
    arguments = Arguments(given, ("kind", "since", "limit", "cursor", "format"))
    kind = arguments.choice("kind", [*MediaKind], "")
    since = arguments.since("since", shelf.clock.now())
    limit = arguments.number("limit", default=LIST_DEFAULT, most=LIST_MOST)
    before = read_cursor(arguments.text("cursor"))
    style = arguments.choice("format", FORMATS, "compact")
    found = await shelf.library.refs(
        shelf.channel, kind=MediaKind(kind) if kind else None, since=since, before=before, limit=limit + 1
    )
    records, more = found[:limit], len(found) > limit
    cursor = str(records[-1].seq) if more else None
    told = _list_json if style == "json" else _list_lines
    text = told(records, cursor, shelf.image_block_side)
    return (TextBlock(text=text),)


async def fetch_media(shelf: Shelf, given: Mapping[str, object]) -> tuple[Block, ...]:
    """One item: a picture as a picture where that is possible, anything else as a file."""
    arguments = Arguments(given, ("ref", "mediaRef", "as", "again"))
    ref_id = arguments.text("ref") or arguments.text("mediaRef")
    if ref_id is None:
        raise ToolError("ref is missing; list_media shows the refs of this channel")
    rendition = arguments.choice("as", RENDITIONS, "auto")
    return await fetch_one(shelf, ref_id, rendition=rendition, again=arguments.flag("again"))


async def fetch_one(shelf: Shelf, ref_id: str, *, rendition: str, again: bool) -> tuple[Block, ...]:
    """The way to bytes that every tool takes. A ref of another channel is answered exactly like an unknown one."""
    record = await find_ref(shelf, ref_id)
    if rendition in ("auto", "image") and not again and (note := _shown_before(shelf, record, ref_id)):
        return (note,)
    blob = await held(shelf, record)
    with shelf.fetcher.pin(blob.sha256):
        looked = await look(shelf.fetcher, record.ref, blob)
        if looked.is_picture:
            looked = await measured(shelf.images, blob, looked)
        if rendition in ("image", "thumb"):
            _must_be_seen(shelf, record, looked)
        if rendition == "file" or not shelf.sees_images or not looked.is_picture:
            return await _as_file(shelf, record, blob, looked)
        if rendition != "thumb" and not again and (note := _shown_before(shelf, record, blob.sha256)):
            return (note,)
        return await _as_picture(shelf, record, blob, looked, thumb=rendition == "thumb")


def _must_be_seen(shelf: Shelf, record: RefRecord, looked: Looked) -> None:
    if not shelf.sees_images:
        raise ToolError("you cannot look at pictures here; as=file gives the path of a copy")
    if not looked.is_picture:
        raise ToolError(f"{record.ref.id} is {looked.mime}, not a picture; as=file gives the path of a copy")


def read_cursor(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 19 or int(text) > SEQ_MOST:
        raise ToolError("cursor must be what the end of the list before said; leave it out to start from the newest")
    return int(text)


def _list_lines(records: Sequence[RefRecord], cursor: str | None, side: int) -> str:
    if not records:
        return "No media here."
    lines = [f"{len(records)} media, newest first: {COLUMNS}"]
    lines += [line(_fields(record, side)) for record in records]
    if cursor:
        lines.append(f"More: cursor={cursor}")
    return "\n".join(lines)


def _fields(record: RefRecord, side: int) -> list[str]:
    ref = record.ref
    return [
        ref.id,
        ref.kind.value,
        clean_name(ref.file_name or ""),
        "" if ref.size is None else format_size(ref.size),
        clean_mime(ref.mime),
        clean_name(record.author.name),
        short_time(record.sent),
        "not fetched" if record.outcome is MediaOutcome.REFERENCED else record.outcome.value,
        " ".join(f"{form} {tokens}" for form, tokens in price(record, side=side).items()),
        one_line(ref.caption or ""),
    ]


def _list_json(records: Sequence[RefRecord], cursor: str | None, side: int) -> str:
    return json_text({"media": [record_json(record, side) for record in records], "next_cursor": cursor})


def record_json(record: RefRecord, side: int) -> dict[str, object]:
    """A ref as `list_media` tells it."""
    ref = record.ref
    return media_json(ref) | {
        "kind": ref.kind.value,
        "message_id": ref.message_id,
        "author": clean_name(record.author.name),
        "ts": iso_time(record.sent),
        "caption": one_line(ref.caption) if ref.caption else None,
        "outcome": record.outcome.value,
        "is_held": record.outcome is MediaOutcome.HELD,
        "price": price(record, side=side),
    }


def _shown_before(shelf: Shelf, record: RefRecord, key: str) -> TextBlock | None:
    """A note instead of bytes the agent has in its context already, by ref or by hash."""
    name = _title(record)
    if key in shelf.shown_now:
        return TextBlock(text=f"{name} was shown to you in this turn already; again=true shows it again.")
    for entry in shelf.manifest:
        if key in (entry.artifact_id, entry.content_hash):
            turn = entry.included_at_turn
            return TextBlock(text=f"{name} was shown to you at turn {turn}; again=true shows it again.")
    return None


async def find_ref(shelf: Shelf, ref_id: str) -> RefRecord:
    """A ref of this channel; one of another is as unknown as one that never was."""
    record = await shelf.library.ref(shelf.channel, ref_id) if REF_ID.fullmatch(ref_id) else None
    if record is None:
        raise ToolError("there is no such media in this channel; list_media shows what there is")
    return record


async def held(shelf: Shelf, record: RefRecord) -> Blob:
    """The bytes of a ref, fetched if need be; a ToolError says why they cannot be had."""
    ref = record.ref.id
    try:
        return await shelf.fetcher.fetch(record)
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


async def _as_picture(shelf: Shelf, record: RefRecord, blob: Blob, looked: Looked, *, thumb: bool) -> tuple[Block, ...]:
    max_bytes = min(THUMB_BYTES, shelf.image_block_bytes) if thumb else shelf.image_block_bytes
    max_side = min(THUMB_SIDE, shelf.image_block_side) if thumb else shelf.image_block_side
    try:
        seen = await shown(shelf.fetcher, shelf.images, blob, looked, max_bytes=max_bytes, max_side=max_side)
    except MediaError as error:
        return await _as_file(shelf, record, blob, looked, why=f" It cannot be shown: {reason_of(error)}.")
    picture = ImageBlock(mime=seen.mime, data=seen.data, ref=record.ref.id, sha256=blob.sha256)
    about = f"{_title(record)}: {looked.told(blob)}"
    if thumb:
        # Seen this small it is not known yet: asked for in full it is shown in full.
        return TextBlock(text=f"{about} {seen.changes}".rstrip()), picture
    shelf.shown_now.update((record.ref.id, blob.sha256))
    if shelf.shown:
        shelf.shown(picture)
    if not seen.changes:
        return TextBlock(text=about), picture
    original = await _placed(shelf, record, blob, looked)
    return TextBlock(text=f"{about} {seen.changes} The original is at {original.path}."), picture, original


async def _as_file(shelf: Shelf, record: RefRecord, blob: Blob, looked: Looked, *, why: str = "") -> tuple[Block, ...]:
    file = await _placed(shelf, record, blob, looked)
    how = "read it as text" if is_text(file.mime) else "open it with a program that knows its type"
    return TextBlock(text=f"{_title(record)}: {looked.told(blob)}{why} A copy is at {file.path}; {how}."), file


async def _placed(shelf: Shelf, record: RefRecord, blob: Blob, looked: Looked) -> FileBlock:
    try:
        path = await asyncio.to_thread(place, shelf.folder, stored_name(record.ref), blob.path)
    except StoreError as error:
        raise ToolError(f"{record.ref.id} could not be copied to your folder: {error}") from error
    return FileBlock(path=path, mime=looked.mime, ref=record.ref.id, sha256=blob.sha256)


def _title(record: RefRecord) -> str:
    ref = record.ref
    name = clean_name(ref.file_name or "") or f"{ref.kind.value.capitalize()} {ref.id}"
    # A sticker's caption is the emoji it stands for, which says more than its bytes.
    return f"{name} ({clean_name(ref.caption)})" if ref.kind is MediaKind.STICKER and ref.caption else name
