"""What Telegram makes of a file: the form it keeps it in, which need not be the form it was sent in."""

from belino.media.image_header import image_size
from belino.testing.file_server import FakeUpload
from belino.testing.telegram.request import TelegramRefusal

PHOTO_BYTES = 10 * 1024 * 1024
PHOTO_SIDES = 10_000
PHOTO_RATIO = 20
STICKER_BYTES = {"webp": 512 * 1024, "webm": 256 * 1024, "tgs": 64 * 1024}


def refuse_photo(upload: FakeUpload) -> None:
    """CallError for what cannot be a photo."""
    if upload.announced > PHOTO_BYTES:
        size = upload.announced
        raise TelegramRefusal(
            400,
            f"Bad Request: file of size {size} bytes is too big for a photo; the maximum size is {PHOTO_BYTES} bytes",
        )
    if not upload.head:
        return  # a file that is on the platform already
    found = image_size(upload.head)
    if found is None:
        raise TelegramRefusal(400, "Bad Request: IMAGE_PROCESS_FAILED")
    _, width, height = found
    if width + height > PHOTO_SIDES or max(width, height) > PHOTO_RATIO * min(width, height):
        raise TelegramRefusal(400, "Bad Request: PHOTO_INVALID_DIMENSIONS")


def kept_form(form: str, upload: FakeUpload, *, detect: bool) -> str:
    """The field of Message a file ends up in: other formats than the documented ones are kept as documents."""
    if not upload.head:
        return form
    kind = _kind(upload.head)
    match form:
        case "voice":
            fits = kind in ("ogg", "mp3", "mp4")
        case "audio":
            fits = kind in ("mp3", "mp4")
        case "video" | "video_note":
            fits = kind == "mp4"
        case "animation":
            fits = kind in ("gif", "mp4")
        case "sticker":
            fits = upload.announced <= STICKER_BYTES.get(kind, -1)
        case "document" if detect:
            return {"gif": "animation", "mp3": "audio", "mp4": "video"}.get(kind, form)
        case _:
            fits = True
    return form if fits else "document"


def _kind(head: bytes) -> str:
    if head[4:8] == b"ftyp":
        return "mp4"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "webp"
    if head[0] == 0xFF and head[1:2] and head[1] & 0xE0 == 0xE0 and head[1] != 0xD8:
        return "mp3"
    starts = {b"OggS": "ogg", b"ID3": "mp3", b"GIF8": "gif", b"\x1a\x45\xdf\xa3": "webm", b"\x1f\x8b": "tgs"}
    return next((kind for start, kind in starts.items() if head.startswith(start)), "")
