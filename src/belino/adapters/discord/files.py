"""Discord's files as refs: ids only, because a link lives for a day and is asked for when the bytes are wanted."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from mimetypes import MimeTypes

from belino.adapters.discord.people import PLATFORM
from belino.adapters.discord.raw import identity
from belino.domain.media import MediaKind, MediaRef, kind_of
from belino.domain.message import ConversationKey
from belino.net.raw import Raw, count, line, measure, tables, words

VOICE_MESSAGE = 1 << 13
NAME_CHARS = 255
CAPTION_CHARS = 1_024
UNKNOWN_MIME = "application/octet-stream"
# PNG, APNG, Lottie and GIF, by their numbers; each has a path of its own at the CDN.
STICKERS = {1: ("png", "image/png"), 2: ("png", "image/png"), 3: ("json", "application/json"), 4: ("gif", "image/gif")}

_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearer:
    """The message that brings the files."""

    where: ConversationKey
    channel: str
    """Where Discord keeps the message: the thread's own id, if it is in one."""
    message_id: str
    sent: datetime


def refs_of(message: Raw, bearer: Bearer) -> tuple[MediaRef, ...]:
    """Every file of a message, each once; also of a forwarded one, which has the same fields."""
    found: dict[str, MediaRef] = {}
    for ref in (*_attachments(message, bearer), *_stickers(message, bearer)):
        found.setdefault(ref.item, ref)
    return tuple(found.values())


def attachment_ref(file: Raw, bearer: Bearer, *, voice: bool = False) -> MediaRef | None:
    """A file of a message."""
    own = identity(file, "id")
    if not own:
        return None
    mime = _mime(file)
    kind = MediaKind.VOICE if voice and not mime.startswith(("image/", "video/")) else kind_of(mime)
    return MediaRef(
        platform=PLATFORM,
        account=bearer.where.account,
        channel_id=bearer.where.channel,
        message_id=bearer.message_id,
        item=own,
        kind=kind,
        mime=mime,
        created=bearer.sent,
        file_name=words(file, "filename").strip()[:NAME_CHARS] or None,
        size=count(file, "size"),
        duration=measure(file, "duration_secs"),
        width=count(file, "width"),
        height=count(file, "height"),
        caption=words(file, "description").strip()[:CAPTION_CHARS] or None,
        locator={"channel": bearer.channel, "message": bearer.message_id, "attachment": own},
    )


def _attachments(message: Raw, bearer: Bearer) -> Iterator[MediaRef]:
    voice = bool((count(message, "flags") or 0) & VOICE_MESSAGE)
    for file in tables(message, "attachments"):
        if (ref := attachment_ref(file, bearer, voice=voice)) is not None:
            yield ref


def _stickers(message: Raw, bearer: Bearer) -> Iterator[MediaRef]:
    for sticker in tables(message, "sticker_items") or tables(message, "stickers"):
        own, form = identity(sticker, "id"), STICKERS.get(count(sticker, "format_type") or 0)
        if not own or form is None:
            continue
        ending, mime = form
        yield MediaRef(
            platform=PLATFORM,
            account=bearer.where.account,
            channel_id=bearer.where.channel,
            message_id=bearer.message_id,
            item=own,
            kind=MediaKind.STICKER,
            mime=mime,
            created=bearer.sent,
            file_name=f"{line(sticker, 'name', most=64) or 'sticker'}.{ending}",
            locator={"sticker": own, "ending": ending},
        )


def _mime(file: Raw) -> str:
    """The type Discord tells, without parameters; the one the name tells where there is none."""
    declared = words(file, "content_type")[:256].partition(";")[0].strip().lower()
    if _MIME.fullmatch(declared):
        return declared
    return _types().guess_type(words(file, "filename")[-NAME_CHARS:], strict=False)[0] or UNKNOWN_MIME


@cache
def _types() -> MimeTypes:
    """Python's own list: the same on every machine, whatever its system knows."""
    return MimeTypes()
