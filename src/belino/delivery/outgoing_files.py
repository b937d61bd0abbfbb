"""Outgoing files: bytes offered for sending, stored by hash, named and typed by their content."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from belino.delivery.decide import WEBM
from belino.domain.errors import MediaError, MediaTooLarge
from belino.domain.media import Blob
from belino.domain.reply import Offer
from belino.domain.safe_text import one_line
from belino.domain.units import format_size
from belino.media.image.header import HEADER_BYTES, PHOTO_MIMES, image_size
from belino.media.stream_header import film_facts
from belino.storage.blob_verbs import BlobVerbs

if TYPE_CHECKING:
    from belino.media.image.images import ImageFacts

NAME_CHARS = 120
# The header of these formats is enough; for others, only a decoder knows the number of frames.
_STILL = frozenset({"image/jpeg", "image/bmp"})


class Probes(Protocol):
    """Measures pictures in the sandbox; see media/image/images.py."""

    async def probe(self, blob: Blob) -> "ImageFacts": ...


class Keeper:
    """Stores offered files; only stored bytes are ever sent."""

    def __init__(self, blobs: BlobVerbs, images: Probes, *, max_bytes: int) -> None:
        self._blobs = blobs
        self._images = images
        self.max_bytes = max_bytes

    async def keep(self, chunks: AsyncIterator[bytes], *, name: str, declared: str = "") -> Offer:
        """Store these bytes as an offer. MediaTooLarge past the limit; incomplete files are not kept."""
        from belino.media.sniff import HEAD_BYTES, sniff  # imported with the first file: it costs 50 ms

        head = bytearray()

        async def watched() -> AsyncIterator[bytes]:
            async for chunk in chunks:
                if len(head) < HEADER_BYTES:
                    head.extend(chunk[: HEADER_BYTES - len(head)])
                yield chunk

        def mime() -> str:
            whole = len(head) < HEAD_BYTES
            return sniff(bytes(head[:HEAD_BYTES]), name=name, declared=declared, whole=whole).mime

        try:
            blob = await self._blobs.keep(watched(), mime=mime, limit=self.max_bytes)
        except MediaTooLarge as error:
            raise MediaTooLarge(f"it is over {format_size(self.max_bytes)}", limit=self.max_bytes) from error
        return await self._measured(_offer(blob, name), blob, bytes(head))

    async def held(self, blob: Blob, *, name: str, head: bytes) -> Offer:
        """An offer of bytes that are already stored."""
        return await self._measured(_offer(blob, name), blob, head)

    async def _measured(self, offer: Offer, blob: Blob, head: bytes) -> Offer:
        if offer.mime == WEBM:
            return _filmed(offer, head)
        if offer.mime not in PHOTO_MIMES:
            return offer
        if (found := image_size(head)) is not None:
            offer = replace(offer, width=found[1], height=found[2])
            if offer.mime in _STILL or (offer.mime == "image/png" and b"acTL" not in head):
                return offer
        try:
            facts = await self._images.probe(blob)
        except MediaError:
            return offer  # code that needs the size refuses it with a reason
        return replace(offer, width=facts.width, height=facts.height, frames=facts.frames)


def _offer(blob: Blob, name: str) -> Offer:
    return Offer(name=shown_name(name), mime=blob.mime, size=blob.size, sha256=blob.sha256)


def _filmed(offer: Offer, head: bytes) -> Offer:
    facts = film_facts(head)
    if facts is None:
        return offer
    codec = facts.codec if facts.silent else f"{facts.codec} with sound"
    return replace(offer, width=facts.width, height=facts.height, seconds=facts.seconds, codec=codec)


def shown_name(name: str) -> str:
    """A file's name as people see it: one line, no path, bounded length."""
    line = one_line(name.rpartition("/")[2].encode(errors="replace").decode()) or "file"
    return line if len(line) <= NAME_CHARS else f"{line[: NAME_CHARS - 13]}…{line[-12:]}"
