"""Slack's files as refs: ids only, nothing fetched; files without bytes are told in words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from belino.adapters.slack.mrkdwn import link
from belino.adapters.slack.people import PLATFORM
from belino.domain.media import MediaKind, MediaRef, kind_of
from belino.domain.message import ConversationKey
from belino.net.raw import Raw, count, line, measure, words, yes

NAME_CHARS = 255
UNKNOWN_MIME = "application/octet-stream"
CANVAS_MIME = "application/vnd.slack-docs"

_FILE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")
# Names for what is told of a file whose bytes nobody is given.
_WITHOUT_BYTES = {
    "tombstone": "a file that was deleted",
    "hidden_by_limit": "a file that the workspace's plan no longer shows",
    "access_denied": "a file this app may not see",
    "file_not_found": "a file that is gone",
    "slack_connect_file_upload_sharing_blocked": "a file that the other workspace does not share",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearer:
    """The message that brings the files."""

    where: ConversationKey
    message_id: str
    sent: datetime
    caption: str = ""


def refs_of(files: tuple[Raw, ...], bearer: Bearer) -> tuple[MediaRef, ...]:
    """Every file that has bytes, each once; the message's text is told with the first."""
    found: dict[str, MediaRef] = {}
    for file in files:
        if has_bytes(file) and words(file, "id") not in found:
            caption = bearer.caption if not found else ""
            found[words(file, "id")] = _ref(file, bearer, caption or None)
    return tuple(found.values())


def wordings_of(files: tuple[Raw, ...]) -> Iterator[str]:
    """A line for each file that has no bytes for us."""
    for file in files:
        if has_bytes(file):
            continue
        name = line(file, "title") or line(file, "name")
        if words(file, "mode") == "external" or yes(file, "is_external"):
            address = words(file, "external_url") or words(file, "url_private")
            kept = " ".join(link(address).split())
            yield f"(a file kept elsewhere: {name}{f', {kept}' if kept else ''})"
        else:
            what = _WITHOUT_BYTES.get(words(file, "mode")) or _WITHOUT_BYTES.get(words(file, "file_access"))
            yield f"({what or 'a file Slack tells nothing of'}{f': {name}' if name else ''})"


def has_bytes(file: Raw) -> bool:
    """Whether Slack hands out the bytes; of a file it tells next to nothing of, it does when asked."""
    if not _FILE_ID.fullmatch(words(file, "id")) or yes(file, "is_external") or words(file, "mode") == "external":
        return False
    return words(file, "mode") not in _WITHOUT_BYTES and words(file, "file_access") not in _WITHOUT_BYTES


def mime_of(file: Raw) -> str:
    """The type Slack tells, without parameters; some recordings are told as films without a picture."""
    told = words(file, "mimetype")[:256].partition(";")[0].strip().lower()
    told = told if _MIME.fullmatch(told) else UNKNOWN_MIME
    is_sound = is_voice(file) or words(file, "media_display_type") == "audio"
    return f"audio/{told.partition('/')[2]}" if is_sound and told.startswith("video/") else told


def is_voice(file: Raw) -> bool:
    return words(file, "subtype") == "slack_audio"


def _ref(file: Raw, bearer: Bearer, caption: str | None) -> MediaRef:
    mime, milliseconds = mime_of(file), measure(file, "duration_ms")
    return MediaRef(
        platform=PLATFORM,
        account=bearer.where.account,
        channel_id=bearer.where.channel,
        message_id=bearer.message_id,
        item=words(file, "id"),
        kind=MediaKind.VOICE if is_voice(file) else kind_of(mime),
        mime=mime,
        created=bearer.sent,
        file_name=_name(file),
        size=count(file, "size") or None,
        duration=None if milliseconds is None else milliseconds / 1000,
        width=count(file, "original_w") or None,
        height=count(file, "original_h") or None,
        caption=caption,
        locator={"file": words(file, "id")},
    )


def _name(file: Raw) -> str | None:
    name = words(file, "name").strip() or line(file, "title")
    return name[:NAME_CHARS] or None
