"""Mimes: the types that browsers may receive; everything else is a download of type application/octet-stream."""

import re

from belino.domain.media import MediaRef

UNKNOWN = "application/octet-stream"
MIME_CHARS = 127

# Shown inline: none of these can carry a script that a browser runs.
INLINE = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/avif": "avif",
    "image/apng": "apng",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "video/ogg": "ogv",
    "video/quicktime": "mov",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/wav": "wav",
    "audio/flac": "flac",
    "audio/aac": "aac",
    "audio/mp4": "m4a",
    "audio/webm": "weba",
    "text/plain": "txt",
}
_SAME = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "audio/mp3": "audio/mpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/x-flac": "audio/flac",
    "audio/x-aac": "audio/aac",
    "audio/x-m4a": "audio/mp4",
    "audio/m4a": "audio/mp4",
}
_PART = r"[a-z0-9][a-z0-9!#$&^_.+-]{0,62}"
_MIME = re.compile(rf"{_PART}/{_PART}")


def normal_mime(declared: str) -> str:
    """The declared type without parameters, in lower case; invalid ones are application/octet-stream."""
    mime = declared[:1024].partition(";")[0].strip().lower()
    if len(mime) > MIME_CHARS or not _MIME.fullmatch(mime):
        return UNKNOWN
    return _SAME.get(mime, mime)


def served_type(mime: str) -> tuple[str, bool]:
    """The Content-Type to serve, and whether it is shown inline."""
    mime = normal_mime(mime)
    if mime not in INLINE:
        return UNKNOWN, False
    return ("text/plain; charset=utf-8" if mime == "text/plain" else mime), True


def media_file_name(public_name: str, ref: MediaRef) -> str:
    """The last part of a media address."""
    return f"{public_name}.{INLINE.get(normal_mime(ref.mime), 'bin')}"
