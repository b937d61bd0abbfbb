"""Pictures for an agent: unchanged if small and clean, else rotated upright, converted and shrunk."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from belino.domain.errors import MediaError
from belino.domain.media import Blob, MediaRef
from belino.domain.safe_text import clean_mime
from belino.domain.tokens import estimate_image_tokens
from belino.domain.units import format_size
from belino.media.fetch import Fetcher
from belino.media.image.header import BLOCK_MIMES, DRAWN_MIMES, HEADER_BYTES, carries_metadata, image_size
from belino.media.render import Draws
from belino.media.sniff import HEAD_BYTES, Sniffed, sniff

if TYPE_CHECKING:
    from belino.media.image.images import Fitted

UNKNOWN = "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """The type and size of a ref's bytes, found without decoding."""

    sniffed: Sniffed
    size: tuple[int, int] | None
    """Upright, as the picture is displayed; None if only a decoder can tell."""
    declared: str

    @property
    def mime(self) -> str:
        return self.sniffed.mime

    @property
    def is_picture(self) -> bool:
        return self.mime in DRAWN_MIMES

    def told(self, blob: Blob) -> str:
        """Real type, dimensions and size; and a note if the declared type is wrong."""
        dimensions = f"{self.size[0]}×{self.size[1]}, " if self.size else ""
        unknown = self.mime == UNKNOWN
        lie = f" It was sent as {self.declared}, but its bytes are {'not' if unknown else self.mime}."
        untrue = self.sniffed.lies and self.declared not in ("", UNKNOWN)
        kind = "unknown type" if unknown else self.mime
        return f"{kind}, {dimensions}{format_size(blob.size)}.{lie if untrue else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A picture ready to be shown, and what was changed."""

    data: bytes
    mime: str
    changes: str
    """Empty if these are the original bytes."""
    tokens: int


async def look(fetcher: Fetcher, ref: MediaRef, blob: Blob) -> Looked:
    """The type of a blob, by its first bytes."""
    head = await fetcher.read(blob, HEADER_BYTES)
    declared = clean_mime(ref.mime)
    sniffed = sniff(head[:HEAD_BYTES], name=ref.file_name, declared=declared, whole=blob.size <= HEAD_BYTES)
    found = image_size(head)
    return Looked(sniffed=sniffed, size=found[1:] if found else None, declared=declared)


async def measured(images: Draws, blob: Blob, looked: Looked) -> Looked:
    """The same with its dimensions, if only a decoder can find them and it succeeds."""
    if looked.size is not None or not looked.is_picture:
        return looked
    try:
        facts = await images.probe(blob)
    except MediaError:
        return looked
    return Looked(sniffed=looked.sniffed, size=(facts.width, facts.height), declared=looked.declared)


async def shown(fetcher: Fetcher, images: Draws, blob: Blob, looked: Looked, *, max_bytes: int, max_side: int) -> Shown:
    """The picture within these limits. MediaError if it cannot be decoded."""
    if looked.mime in BLOCK_MIMES and looked.size and max(looked.size) <= max_side and blob.size <= max_bytes:
        data = await fetcher.read(blob, max_bytes)
        if not carries_metadata(data):
            return Shown(data=data, mime=looked.mime, changes="", tokens=estimate_image_tokens(*looked.size))
    fitted = await images.fit(blob, max_bytes=max_bytes, max_side=max_side)
    tokens = estimate_image_tokens(fitted.width, fitted.height)
    return Shown(data=fitted.data, mime=fitted.mime, changes=_changes(fitted, blob, looked), tokens=tokens)


def _changes(fitted: "Fitted", blob: Blob, looked: Looked) -> str:
    """The changes that the agent should know about."""
    size = (fitted.width, fitted.height)
    done = []
    if looked.size is not None and size != looked.size:
        done.append("shrunk")
    if fitted.mime != looked.mime:
        done.append("converted")
    how = " and ".join(done) or "upright and without its metadata"
    return f"You see it {how}: {fitted.mime}, {size[0]}×{size[1]}, {format_size(len(fitted.data))}."
