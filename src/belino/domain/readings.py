"""What was made of bytes once, so that it is never made twice: readings, renditions and prints, by sha256."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from belino.domain.document import DocumentText
from belino.domain.media import Blob
from belino.domain.message import ConversationKey


class Likeness(StrEnum):
    """What a picture is of another."""

    SAME = "same"
    """The very bytes."""
    RECOMPRESSED = "recompressed"
    """All of it, in other bytes: written anew, resized."""
    CROPPED = "cropped"
    """A part of it."""
    UNCROPPED = "uncropped"
    """All of it, and more around."""

    @property
    def reverse(self) -> "Likeness":
        """What the other is of it."""
        return {Likeness.CROPPED: Likeness.UNCROPPED, Likeness.UNCROPPED: Likeness.CROPPED}.get(self, self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A picture of a channel and what it is recognised by."""

    ref: str
    sha256: str
    bits: bytes


class Readings(Protocol):
    """What was made of bytes. It lasts as long as a ref that has not expired names them, and goes with the last one."""

    async def reading(self, sha256: str, reader: str, *, parts: tuple[int, int] | None = None) -> DocumentText | None:
        """What a reader has read of these bytes so far; of its parts only those from … to, if they are given."""
        ...

    async def keep_reading(self, sha256: str, reader: str, text: DocumentText) -> bool:
        """Keep what was read, beside the parts that were read before.

        False, and nothing is kept, if no ref names the bytes any more: they were deleted meanwhile.
        """
        ...

    async def read_before(self, sha256s: Sequence[str]) -> frozenset[str]:
        """Those of these bytes of which some reader has found text."""
        ...

    async def rendition(self, sha256: str, name: str) -> Blob | None:
        """What these bytes were made into under this name, if it is still here."""
        ...

    async def keep_rendition(self, sha256: str, name: str, data: bytes, mime: str, *, also: Sequence[str] = ()) -> Blob:
        """Keep what bytes were made into, in the place of an older one; it may make room for others at any time.

        `also`: others it was made of, under a name that tells which; it goes with the first of them that goes.
        MediaNotFound if no ref names some of the bytes any more: they were deleted meanwhile.
        """
        ...

    async def keep_print(self, sha256: str, bits: bytes) -> bool:
        """Keep what a picture is recognised by; False, and nothing is kept, if no ref names the bytes any more."""
        ...

    async def has_print(self, sha256: str) -> bool: ...

    async def prints(self, channel: ConversationKey, *, limit: int = 2_000) -> tuple[Printed, ...]:
        """The channel's pictures that have a print, oldest first; if they are too many, the newest of them."""
        ...

    async def keep_likenesses(self, sha256: str, likenesses: Mapping[str, Likeness]) -> None:
        """Keep what a picture is of others, by their hashes; of those that no ref names any more nothing is kept."""
        ...

    async def likenesses(self, channel: ConversationKey, refs: Sequence[str]) -> Mapping[str, tuple[str, Likeness]]:
        """For those of these refs that show an earlier picture of the channel: its ref, and what they are of it."""
        ...
