"""Prepare files for sending: fitted, re-encoded, or refused with the reason; each result is a blob."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from belino.delivery.decide import FORM_NAMES, Action, Decision, Fit, decide_one, voice_type
from belino.domain.errors import MediaError, MediaNotFound, StoreError
from belino.domain.limits import FileLimit, Limits, SendAs
from belino.domain.media import Blob
from belino.domain.reply import Offer
from belino.domain.safe_text import one_line
from belino.domain.units import format_size
from belino.media.audio import VOICE_MIME, VOICES
from belino.storage.blob_verbs import BlobVerbs

if TYPE_CHECKING:
    from belino.media.image.images import Fitted
    from belino.media.stream_header import SoundFacts

SECONDS = 60.0
"""The limit for one file, queueing included."""
PIECE = 256 * 1024
WAVEFORM_POINTS, LOUDEST = 256, 100
SUFFIXES = {
    "image/jpeg": (".jpg", ".jpeg"),
    "image/png": (".png",),
    "image/webp": (".webp",),
    **{mime: (voice.suffix,) for mime, voice in VOICES.items()},
}


class Fits(Protocol):
    """Shrinks and converts pictures; see media/image/images.py."""

    async def fit(
        self, blob: Blob, *, max_bytes: int, max_side: int | None = None, formats: tuple[str, ...] = ...
    ) -> "Fitted": ...


class Speaks(Protocol):
    """Reads and encodes audio; see media/audio.py."""

    async def facts(self, blob: Blob) -> "SoundFacts": ...

    def voice(self, blob: Blob, *, max_bytes: int, mime: str = VOICE_MIME) -> AbstractAsyncContextManager[Path]: ...

    async def waveform(self, blob: Blob, *, points: int) -> tuple[int, ...]: ...


class Preparer:
    """Carries out decisions, and decides again on the result; ends in `send` or `refuse` for every file."""

    def __init__(
        self,
        blobs: BlobVerbs,
        images: Callable[[], Fits],
        sounds: Callable[[], Speaks],
        *,
        unpublished: Callable[[], str] = lambda: "",
    ) -> None:
        """`unpublished` says why files cannot be fetched from us now; empty if they can."""
        self._blobs = blobs
        self._unpublished = unpublished
        self._images = images
        self._sounds = sounds

    async def prepare(self, offers: Sequence[Offer], limits: Limits) -> tuple[Decision, ...]:
        """A decision for each offer, in the same order."""
        if limits.fetches_files and (why := self._unpublished()):
            return tuple(Decision(offer=offer, action=Action.REFUSE, reason=why) for offer in offers)
        return tuple(
            [await self._drawn(await self._ready(await self._measured(offer), limits), limits) for offer in offers]
        )

    async def _ready(self, offer: Offer, limits: Limits) -> Decision:
        barred: dict[SendAs, str] = {}
        while True:  # each round ends, or bars one more form
            decision = decide_one(offer, limits, barred=barred)
            if decision.action in (Action.SEND, Action.REFUSE):
                return decision
            try:
                async with asyncio.timeout(SECONDS):
                    made = await self._made(decision, limits)
            except TimeoutError:
                barred[decision.send_as] = f"making it {FORM_NAMES[decision.send_as]} took longer than {SECONDS:g} s"
            except (MediaError, StoreError) as error:
                why = one_line(str(error)).rstrip(". ")
                barred[decision.send_as] = f"it could not be made {FORM_NAMES[decision.send_as]}: {why}"
            else:
                # The result may violate another limit, which is known only now.
                again = decide_one(replace(made, wanted=decision.send_as), limits)
                if (again.action, again.send_as) == (Action.SEND, decision.send_as):
                    reasons = (f"{decision.reason}, so {_done(decision, made)}", again.reason)
                    return replace(again, offer=made, reason="; ".join(filter(None, reasons)))
                barred[decision.send_as] = again.reason

    async def _made(self, decision: Decision, limits: Limits) -> Offer:
        offer = decision.offer
        blob = await self._blobs.blob(offer.sha256)
        if blob is None:
            raise MediaNotFound("its bytes are no longer here")
        if decision.fit is not None:
            return await self._fitted(offer, blob, decision.fit)
        return await self._spoken(offer, blob, limits.files[decision.send_as])

    async def _fitted(self, offer: Offer, blob: Blob, fit: Fit) -> Offer:
        picture = await self._images().fit(blob, max_bytes=fit.max_bytes, max_side=fit.max_side, formats=fit.formats)
        kept = await self._blobs.keep(_once(picture.data), mime=picture.mime, limit=fit.max_bytes)
        return replace(_copy(offer, kept), width=picture.width, height=picture.height)

    async def _spoken(self, offer: Offer, blob: Blob, limit: FileLimit) -> Offer:
        sounds, mime = self._sounds(), voice_type(limit) or VOICE_MIME
        async with sounds.voice(blob, max_bytes=limit.max_bytes, mime=mime) as path:
            kept = await self._blobs.keep(_pieces(path), mime=mime, limit=limit.max_bytes)
        facts = await sounds.facts(kept)
        return replace(_copy(offer, kept), codec=VOICES[mime].codec, seconds=facts.seconds or offer.seconds)

    async def _drawn(self, decision: Decision, limits: Limits) -> Decision:
        """Add the waveform of audio, for a platform that shows it; without one if the audio cannot be decoded here."""
        limit = limits.files.get(decision.send_as)
        if decision.action is not Action.SEND or limit is None or not limit.waveform:
            return decision
        blob = await self._blobs.blob(decision.offer.sha256)
        if blob is None:
            return decision
        try:
            async with asyncio.timeout(SECONDS):
                heights = await self._sounds().waveform(blob, points=WAVEFORM_POINTS)
        except (MediaError, StoreError, TimeoutError):
            return decision
        waveform = bytes(min(height, LOUDEST) * 255 // LOUDEST for height in heights)
        return replace(decision, offer=replace(decision.offer, waveform=waveform))

    async def _measured(self, offer: Offer) -> Offer:
        """Add duration and codec from the headers of audio; pictures are measured when they are collected."""
        if not offer.mime.startswith(("audio/", "video/")) or offer.codec:
            return offer
        blob = await self._blobs.blob(offer.sha256)
        if blob is None:
            return offer
        facts = await self._sounds().facts(blob)
        width, height = offer.width or facts.width, offer.height or facts.height
        return replace(offer, codec=facts.codec, seconds=offer.seconds or facts.seconds, width=width, height=height)


def _copy(offer: Offer, kept: Blob) -> Offer:
    """The same offer with other bytes; its name follows their type."""
    stem, _, suffix = offer.name.rpartition(".")
    endings = SUFFIXES.get(kept.mime, ())
    known = not endings or (bool(stem) and f".{suffix.lower()}" in endings)
    name = offer.name if known else f"{stem or offer.name}{endings[0]}"
    source = offer.source or offer.sha256
    return replace(offer, name=name, mime=kept.mime, size=kept.size, sha256=kept.sha256, source=source)


def _done(decision: Decision, made: Offer) -> str:
    if decision.action is Action.TRANSCODE:
        return f"it was encoded as {made.codec} ({format_size(made.size)})"
    return f"it was made {made.mime}, {made.width}×{made.height}, {format_size(made.size)}"


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece
