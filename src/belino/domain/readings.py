"""Readings, renditions and image prints, cached by the sha256 of their source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from belino.domain.document import DocumentText
from belino.domain.media import Blob
from belino.domain.message import ConversationKey


class Likeness(StrEnum):
    """How a picture relates to another."""

    SAME = "same"
    """Equal bytes."""
    RECOMPRESSED = "recompressed"
    """The whole picture in other bytes: encoded again or resized."""
    CROPPED = "cropped"
    """A part of it."""
    UNCROPPED = "uncropped"
    """The whole picture, and more around it."""

    @property
    def reverse(self) -> "Likeness":
        """The relation in the other direction."""
        return {Likeness.CROPPED: Likeness.UNCROPPED, Likeness.UNCROPPED: Likeness.CROPPED}.get(self, self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A picture of a channel and its image print."""

    ref: str
    sha256: str
    bits: bytes


class Readings(Protocol):
    """What was derived from bytes. It is kept as long as a ref that has not expired names them."""

    async def reading(self, sha256: str, reader: str, *, parts: tuple[int, int] | None = None) -> DocumentText | None:
        """The text a reader has found in these bytes so far; only the parts from … to, if they are given."""
        ...

    async def keep_reading(self, sha256: str, reader: str, text: DocumentText) -> bool:
        """Store a reading, with the parts that were read before.

        False, and nothing is stored, if no ref names the bytes any more: they were deleted in between.
        """
        ...

    async def read_before(self, sha256s: Sequence[str]) -> frozenset[str]:
        """Those of these bytes in which some reader has found text."""
        ...

    async def rendition(self, sha256: str, name: str) -> Blob | None:
        """The rendition of these bytes with this name, if it is still stored."""
        ...

    async def keep_rendition(self, sha256: str, name: str, data: bytes, mime: str, *, also: Sequence[str] = ()) -> Blob:
        """Store a rendition of bytes, replacing an older one; it may be evicted at any time.

        `also`: other bytes it was made from, under a name that tells which; it is deleted with the first of them.
        MediaNotFound if no ref names some of the bytes any more: they were deleted in between.
        """
        ...

    async def keep_print(self, sha256: str, bits: bytes) -> bool:
        """Store the image print of a picture; False, and nothing is stored, if no ref names the bytes any more."""
        ...

    async def has_print(self, sha256: str) -> bool: ...

    async def prints(self, channel: ConversationKey, *, limit: int = 2_000) -> tuple[Printed, ...]:
        """The channel's pictures with image prints, oldest first; only the newest if there are too many."""
        ...

    async def keep_likenesses(self, sha256: str, likenesses: Mapping[str, Likeness]) -> None:
        """Store how a picture relates to others, by their hashes; those that no ref names any more are skipped."""
        ...

    async def likenesses(self, channel: ConversationKey, refs: Sequence[str]) -> Mapping[str, tuple[str, Likeness]]:
        """For those of these refs that repeat an earlier picture of the channel: its ref, and the relation."""
        ...
