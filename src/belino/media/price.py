"""What a rendition of a file costs, told before it is made: from what the platform says, corrected by what is known."""

from belino.domain.media import MediaKind
from belino.domain.record import RefRecord
from belino.domain.tokens import IMAGE_TOKENS_AT_MOST, estimate_image_tokens
from belino.media.image_header import DRAWN_MIMES
from belino.media.placeholder import clean_mime

BLOCK_SIDE = 1568
"""Models shrink what is larger themselves, and are paid for it."""
THUMB_SIDE = 256
THUMB_BYTES = 64 * 1024

_BYTES_PER_TOKEN = 4
_TEXT_MIMES = frozenset({"application/json", "application/xml", "application/x-yaml", "application/toml"})


def price(record: RefRecord, *, side: int = BLOCK_SIDE) -> dict[str, int]:
    """Estimated tokens for each rendition of a ref: as a picture of at most `side`, as a thumb, as text, as a file."""
    ref = record.ref
    size = (ref.width, ref.height) if ref.width and ref.height else None
    return prices(ref.mime, ref.size, size, picture=is_picture(ref.kind, ref.mime), side=side)


def prices(
    mime: str, size: int | None, dimensions: tuple[int, int] | None, *, picture: bool, side: int = BLOCK_SIDE
) -> dict[str, int]:
    """Estimated tokens for each rendition of a file, by its name in `fetch_media`."""
    found: dict[str, int] = {}
    if picture:
        found["image"] = _picture_tokens(dimensions, side)
        found["thumb"] = _picture_tokens(dimensions, THUMB_SIDE)
    if is_text(mime) and size is not None:
        found["text"] = -(-size // _BYTES_PER_TOKEN)
    found["file"] = 0
    return found


def is_picture(kind: MediaKind, mime: str) -> bool:
    """Whether a ref is said to be a picture that can be shown; a moving sticker is none."""
    plain = clean_mime(mime)
    return plain in DRAWN_MIMES or (not plain and kind in (MediaKind.IMAGE, MediaKind.STICKER))


def within(width: int, height: int, side: int) -> tuple[int, int]:
    """The size of a picture once its longer side is no longer than `side`."""
    longer = max(width, height)
    if longer <= side:
        return width, height
    return max(1, round(width * side / longer)), max(1, round(height * side / longer))


def _picture_tokens(dimensions: tuple[int, int] | None, side: int) -> int:
    if dimensions is None:
        return min(IMAGE_TOKENS_AT_MOST, estimate_image_tokens(side, side))
    return estimate_image_tokens(*within(*dimensions, side))


def is_text(mime: str) -> bool:
    """Whether a type is one an agent reads as text."""
    plain = clean_mime(mime)
    return plain.startswith("text/") or plain in _TEXT_MIMES or plain.endswith(("+json", "+xml"))
