"""Image matches: pictures that were sent before, searched once, when their bytes are first fetched."""

import asyncio
import logging
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

from belino.domain.errors import MediaError, StoreError
from belino.domain.media import Blob, Likeness
from belino.domain.message import ConversationKey
from belino.media.image.images import Runs
from belino.media.image_greys import SIDE
from belino.media.image_hash import ImagePrint, make_print, read_print, recognise
from belino.storage.reading_verbs import ReadingVerbs

COMPARED = 1_000
"""The newest pictures of a channel that a new one is compared with."""
REMEMBERED = 4_096
LONGEST = 100_000.0
"""The maximum aspect ratio."""

_WORDS = {
    Likeness.SAME: "",
    Likeness.RECOMPRESSED: ", recompressed",
    Likeness.CROPPED: ", cropped",
    Likeness.UNCROPPED: ", with more around it",
}

log = logging.getLogger(__name__)


class Likenesses:
    """Notes like "same picture as tg_k3v9d0q2m7xa, cropped"; they never raise."""

    def __init__(self, sandbox: Runs, store: ReadingVerbs) -> None:
        self._sandbox = sandbox
        self._store = store
        from cachebox import LRUCache  # Imports asyncio, which the sandbox's parent does not need.

        self._compared: LRUCache[tuple[ConversationKey, str], None] = LRUCache(REMEMBERED)
        self._turn = asyncio.Lock()
        """One comparison at a time: each costs a tenth of a second of CPU."""

    async def note(self, channel: ConversationKey, ref: str, blob: Blob) -> str:
        """The note about a held picture; empty if it was not seen before."""
        key = (channel.whole_channel, blob.sha256)
        try:
            if key not in self._compared:
                async with self._turn:
                    await self._compare(channel, blob)
                self._compared[key] = None
            return (await self.notes(channel, (ref,))).get(ref, "")
        except (MediaError, StoreError) as error:
            log.info("%s is compared with no other picture: %s", ref, type(error).__name__)
            return ""

    async def notes(self, channel: ConversationKey, refs: Sequence[str]) -> Mapping[str, str]:
        """The same for many refs, from stored results."""
        found = await self._store.likenesses(channel, refs)
        return {ref: f"same picture as {other}{_WORDS[likeness]}" for ref, (other, likeness) in found.items()}

    async def _compare(self, channel: ConversationKey, blob: Blob) -> None:
        others = {printed.sha256: printed.bits for printed in await self._store.prints(channel, limit=COMPARED)}
        bits = others.pop(blob.sha256, None)
        if bits is None or read_print(bits) is None:
            greys, shape = _checked(await self._sandbox.run("image.greys", blob.path))
            bits = await asyncio.to_thread(make_print, greys, shape)
            await self._store.keep_print(blob.sha256, bits)
        known = await asyncio.to_thread(_recognised, bits, others)
        if known:
            await self._store.keep_likenesses(blob.sha256, known)


def _recognised(bits: bytes, others: Mapping[str, bytes]) -> Mapping[str, Likeness]:
    picture = read_print(bits)
    prints: dict[str, ImagePrint] = {name: found for name, kept in others.items() if (found := read_print(kept))}
    return recognise(picture, prints) if picture is not None and prints else {}


def _checked(told: Mapping[str, Any]) -> tuple[bytes, float]:
    """An attacker may control the child: the exact number of greys and a shape, or nothing."""
    match told:
        case {"greys": str(text), "shape": float(shape)} if len(text) <= 2 * SIDE * SIDE and 0 < shape < LONGEST:
            try:
                greys = b64decode(text, validate=True)
            except ValueError:
                greys = b""
            if len(greys) == SIDE * SIDE:
                return greys, shape
    raise MediaError("decoding the picture gave no proper answer")
