"""Discord's files as refs: ids only, because a link lives for a day and is asked for when the bytes are wanted."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from mimetypes import MimeTypes
from pathlib import PurePosixPath
from urllib.parse import unquote

from belino.adapters.discord.people import PLATFORM
from belino.adapters.discord.raw import components_in, identity
from belino.domain.media import MediaKind, MediaRef, kind_of
from belino.domain.message import ConversationKey
from belino.net.raw import NOTHING, Raw, count, line, measure, table, tables, words

VOICE_MESSAGE = 1 << 13
NAME_CHARS = 255
CAPTION_CHARS = 1_024
UNKNOWN_MIME = "application/octet-stream"
UPLOADED = re.compile(
    r"https?://[^/?#]+/(?P<path>(?:ephemeral-)?attachments/\d{1,20}/(?P<own>\d{1,20})/(?P<name>[^/?#\s]{1,255}))"
)
"""Where the CDN keeps what somebody uploaded."""
RICH = ("rich", "")
"""The cards that bots make; Discord makes the others, of links that stand in the text."""
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
    return refs_of_all((message,), bearer)


def refs_of_all(messages: tuple[Raw, ...], bearer: Bearer) -> tuple[MediaRef, ...]:
    """Every file of a message and of those it carries, each once."""
    found: dict[str, MediaRef] = {}
    for message in messages:
        for ref in (*_attachments(message, bearer), *_stickers(message, bearer)):
            found.setdefault(ref.item, ref)
    return tuple(found.values())


def carried(message: Raw) -> tuple[Raw, ...]:
    """The messages that a forward holds."""
    return tuple(filter(None, (table(snapshot, "message") for snapshot in tables(message, "message_snapshots"))))


def files_in(message: Raw) -> Iterator[Raw]:
    """What was uploaded with a message; a file that its components or cards show is told by them alone."""
    yield from tables(message, "attachments")
    for component in components_in(message):
        for item in (component, *tables(component, "items")):
            yield from filter(None, (uploaded(table(item, "media"), item), uploaded(table(item, "file"), item)))
    for embed in tables(message, "embeds"):
        if words(embed, "type") in RICH:
            shown = (table(embed, name) for name in ("image", "thumbnail", "video"))
            yield from filter(None, (uploaded(media, NOTHING) for media in shown))


def uploaded(media: Raw, item: Raw) -> Raw:
    """A shown file as an attachment would tell it; nothing if it is somebody else's, of which there is only a link."""
    path = UPLOADED.match(words(media, "url"))
    own = identity(media, "attachment_id") or (path["own"] if path is not None else "")
    if not own:
        return NOTHING
    name = words(item, "name") or (unquote(path["name"]) if path is not None else "")
    return {"description": item.get("description"), "size": item.get("size"), **media, "id": own, "filename": name}


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
        file_name=_name(file),
        size=count(file, "size"),
        duration=measure(file, "duration_secs"),
        width=count(file, "width"),
        height=count(file, "height"),
        caption=words(file, "description").strip()[:CAPTION_CHARS] or None,
        locator={"channel": bearer.channel, "message": bearer.message_id, "attachment": own},
    )


def _attachments(message: Raw, bearer: Bearer) -> Iterator[MediaRef]:
    voice = bool((count(message, "flags") or 0) & VOICE_MESSAGE)
    for file in files_in(message):
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


def _name(file: Raw) -> str | None:
    """The name somebody gave a file; of one that does not fit into a link Discord keeps the beginning as a title."""
    name, title = words(file, "filename").strip(), words(file, "title").strip()
    ending = PurePosixPath(name).suffix
    if title and not title.endswith(ending or title):
        title += ending
    return (title or name)[:NAME_CHARS] or None


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
