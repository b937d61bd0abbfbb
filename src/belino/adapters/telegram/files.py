"""Telegram's files as refs: ids only, the largest size of a photo, nothing fetched."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from belino.adapters.telegram.download import FETCH_BYTES
from belino.adapters.telegram.people import PLATFORM
from belino.domain.media import MediaKind, MediaRef, kind_of
from belino.domain.message import ConversationKey
from belino.net.raw import Raw, count, line, real, table, tables, words, yes

NAME_CHARS = 255
UNKNOWN_MIME = "application/octet-stream"

_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearer:
    """The message that brings the files."""

    where: ConversationKey
    message_id: str
    sent: datetime
    caption: str = ""
    most: int = FETCH_BYTES
    """The largest file that this bot is handed."""


def refs_of(message: Raw, bearer: Bearer) -> tuple[MediaRef, ...]:
    """Every file of a message (or of an external reply, which has the same fields), each once.

    A caption belongs to the message; it is told with the first file.
    """
    found = {ref.item: ref for ref in reversed([*_own(message, bearer), *_inside(message, bearer)])}
    refs = tuple(reversed(found.values()))
    return (replace(refs[0], caption=bearer.caption), *refs[1:]) if refs and bearer.caption else refs


def _own(message: Raw, bearer: Bearer) -> Iterator[MediaRef]:
    # Beside a live photo stands its picture; where there is no place beside it, the picture is in it.
    photo = largest(tables(message, "photo") or tables(table(message, "live_photo"), "photo"))
    if photo is not None:
        yield from _ref(photo, bearer, MediaKind.IMAGE, "image/jpeg")
    for key in ("live_photo", "video", "video_note"):
        yield from _ref(_to_be_had(table(message, key), bearer.most), bearer, MediaKind.VIDEO, "video/mp4")
    yield from _ref(table(message, "audio"), bearer, MediaKind.AUDIO, "audio/mpeg")
    yield from _ref(table(message, "voice"), bearer, MediaKind.VOICE, "audio/ogg")
    sticker = table(message, "sticker")
    yield from _ref(sticker, bearer, MediaKind.STICKER, sticker_mime(sticker))
    # Telegram repeats an animation under `document`, for clients that do not know animations.
    if animation := table(message, "animation"):
        yield from _ref(animation, bearer, kind_of(_mime(animation, "video/mp4")), "video/mp4")
    elif document := table(message, "document"):
        yield from _ref(document, bearer, kind_of(_mime(document, UNKNOWN_MIME)), UNKNOWN_MIME)


def _inside(message: Raw, bearer: Bearer) -> Iterator[MediaRef]:
    """Files that come wrapped: paid media, a game's pictures, and those of a poll and of its options."""
    for item in tables(table(message, "paid_media"), "paid_media"):
        yield from _own(item, bearer)
    yield from _own(table(message, "game"), bearer)
    poll = table(message, "poll")
    yield from _own(table(poll, "media"), bearer)
    for option in tables(poll, "options"):
        for ref in _own(table(option, "media"), bearer):
            yield replace(ref, caption=line(option, "text"))
    yield from _own(table(poll, "explanation_media"), bearer)


def largest(sizes: tuple[Raw, ...]) -> Raw | None:
    """The largest of a photo's sizes, wherever it stands in the list."""
    usable = [size for size in sizes if words(size, "file_id")]
    return max(usable, key=_extent, default=None)


def _to_be_had(video: Raw, most: int) -> Raw:
    """The video, or the best of its smaller qualities if no bot is handed the video itself."""
    if (count(video, "file_size") or 0) <= most:
        return video
    best = largest(tuple(one for one in tables(video, "qualities") if 0 < (count(one, "file_size") or 0) <= most))
    return video if best is None else {**video, "file_unique_id": None, "mime_type": None, **best}


def _extent(size: Raw) -> tuple[int, int]:
    return (count(size, "width") or 0) * (count(size, "height") or 0), count(size, "file_size") or 0


def sticker_mime(sticker: Raw) -> str:
    """A sticker's type, which Telegram tells by two flags: a picture, an animation (.tgs) or a video."""
    if yes(sticker, "is_animated"):
        return "application/x-tgsticker"
    return "video/webm" if yes(sticker, "is_video") else "image/webp"


def _ref(file: Raw, bearer: Bearer, kind: MediaKind, mime: str) -> Iterator[MediaRef]:
    file_id = words(file, "file_id")
    if not file_id:
        return
    side = count(file, "length")  # a video note is round: one number for both sides
    yield MediaRef(
        platform=PLATFORM,
        account=bearer.where.account,
        channel_id=bearer.where.channel,
        message_id=bearer.message_id,
        item=words(file, "file_unique_id") or file_id,
        kind=kind,
        mime=_mime(file, mime),
        created=bearer.sent,
        file_name=_name(file),
        size=count(file, "file_size"),
        duration=_duration(file),
        width=count(file, "width") if side is None else side,
        height=count(file, "height") if side is None else side,
        locator={"file_id": file_id},
    )


def _mime(file: Raw, otherwise: str) -> str:
    """The type the sender declares, without parameters; ours where it is no type at all."""
    declared = words(file, "mime_type")[:256].partition(";")[0].strip().lower()
    return declared if _MIME.fullmatch(declared) else otherwise


def _name(file: Raw) -> str | None:
    """The sender's file name; for music without one, what its tags say."""
    name = words(file, "file_name").strip()
    if not name:
        name = " - ".join(part for part in (line(file, "performer"), line(file, "title")) if part)
    return name[:NAME_CHARS] or None


def _duration(file: Raw) -> float | None:
    seconds = real(file, "duration")
    return seconds if seconds is not None and seconds >= 0 else None
