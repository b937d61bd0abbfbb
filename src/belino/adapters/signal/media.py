"""Media of messages: attachments and stickers as refs that hold ids only, and their bytes from the daemon."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

from belino.adapters.signal.authors import place_of
from belino.adapters.signal.client import SignalClient
from belino.adapters.signal.errors import NO_METHOD, USER_ERROR, SignalRefused
from belino.domain.errors import AdapterError, MediaExpired, MediaRefused
from belino.domain.media import MediaKind, MediaRef, kind_of
from belino.domain.message import SourceMessage
from belino.net.json_fields import Raw, count, line, mime, table, tables, whole, words, yes
from belino.net.stream import retried

NAME_CHARS = 255
STICKER_MIME = "image/webp"
MOST_FILES = 32


def refs_of(message: Raw, source: SourceMessage) -> tuple[MediaRef, ...]:
    """Every attachment, and the sticker; the first attachment carries the message's text."""
    found: dict[str, MediaRef] = {}
    for raw in tables(message, "attachments")[:MOST_FILES]:
        if (own := words(raw, "id")) and own not in found:
            found[own] = _attachment(raw, source, caption=source.caption if not found else "")
    return (*found.values(), *_sticker(table(message, "sticker"), source))


def thumbnails_of(quote: Raw, source: SourceMessage) -> Iterator[MediaRef]:
    """The thumbnails that a quote carries, under the names and kinds of what they show."""
    for raw in tables(quote, "attachments")[:MOST_FILES]:
        thumbnail = table(raw, "thumbnail")
        if words(thumbnail, "id"):
            yield _attachment(thumbnail, source, name=line(raw, "filename", most=NAME_CHARS))


def named_in(quote: Raw) -> str:
    """The names of quoted files without a thumbnail, for a quote that says nothing else."""
    without = [raw for raw in tables(quote, "attachments")[:MOST_FILES] if not words(table(raw, "thumbnail"), "id")]
    return ", ".join(line(raw, "filename") or mime(raw, "contentType") for raw in without)


def _attachment(raw: Raw, source: SourceMessage, *, caption: str = "", name: str = "") -> MediaRef:
    own, told = words(raw, "id"), mime(raw, "contentType")
    # Not every daemon marks voice messages, but only recordings of the apps have no name.
    is_recorded = told.startswith("audio/") and not line(raw, "filename")
    is_voice = is_recorded or yes(raw, "voiceNote") or yes(raw, "isVoiceNote")
    return source.ref(
        item=own,
        kind=MediaKind.VOICE if is_voice else kind_of(told),
        mime=told,
        file_name=line(raw, "filename", most=NAME_CHARS) or name or None,
        size=count(raw, "size") or None,
        width=count(raw, "width") or None,
        height=count(raw, "height") or None,
        caption=line(raw, "caption") or caption or None,
        locator={"attachment": own, "channel": source.where.channel},
        file_id=own,
    )


def _sticker(raw: Raw, source: SourceMessage) -> Iterator[MediaRef]:
    pack, number = words(raw, "packId"), whole(raw, "stickerId")
    if pack and number is not None:
        own = f"{pack}:{number}"
        locator = {"pack": pack, "sticker": str(number)}
        yield source.ref(item=own, kind=MediaKind.STICKER, mime=STICKER_MIME, locator=locator, file_id=own)


@asynccontextmanager
async def open_file(client: SignalClient, ref: MediaRef) -> AsyncIterator[AsyncIterator[bytes]]:
    """The bytes of a file that the daemon holds; a temporary failure before the first one is tried again."""
    held = ref.locator
    channel = held.get("channel", "")
    method, params = "getAttachment", {"id": held.get("attachment", ""), **place_of(channel)}
    if "pack" in held:
        method, params = "getSticker", {"packId": held["pack"], "stickerId": int(held.get("sticker", "0"))}
    async with AsyncExitStack() as opened:
        try:
            yield await retried(
                lambda: opened.enter_async_context(client.open_file(method, params)),
                clock=client.clock,
                lasting=(SignalRefused,),
            )
        except SignalRefused as error:
            raise _refusal(error, ref.id or "this file") from error


def _refusal(error: SignalRefused, shown: str) -> Exception:
    if error.code == NO_METHOD:
        return MediaRefused(f"this signal-cli is too old to hand out {shown}; it needs 0.12 or later")
    if error.code == USER_ERROR:
        return MediaExpired(
            f"signal-cli does not hold {shown} (any more); it keeps files only without --ignore-attachments and "
            "--ignore-stickers"
        )
    return AdapterError(f"signal-cli cannot hand out {shown} now: {error.said or error.code}")
