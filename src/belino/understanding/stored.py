"""Stored readings of a media item: what providers read in it before, put together from its pieces; pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from belino.domain.media import MediaKind
from belino.domain.reading import KINDS, MediaCapability, Reading, ReadingForm, StoredText
from belino.domain.transcript import stitched, stretches, whole_text
from belino.understanding.pieces import UNCERTAIN

CAPABILITIES = {
    MediaKind.IMAGE: MediaCapability.IMAGE,
    MediaKind.STICKER: MediaCapability.IMAGE,
    MediaKind.AUDIO: MediaCapability.AUDIO,
    MediaKind.VOICE: MediaCapability.AUDIO,
    MediaKind.VIDEO: MediaCapability.VIDEO,
    MediaKind.DOCUMENT: MediaCapability.DOCUMENT,
}


@dataclass(frozen=True, slots=True)
class _Reader:
    """The parts of a reader's key that tell who read what."""

    form: ReadingForm
    provider: str
    model: str
    settings: str


def stored_readings(texts: Sequence[StoredText], kind: MediaKind, index: int = 0) -> tuple[Reading, ...]:
    """The readings of an attachment, one for each form: the newest, if several providers read it."""
    pieces: dict[_Reader, list[StoredText]] = {}
    for text in texts:
        if (reader := _reader(text.reader)) is not None:
            pieces.setdefault(reader, []).append(text)
    newest = {reader.form: reader for reader in pieces}
    ordered = sorted(newest, key=list(ReadingForm).index)
    found = (_joined(newest[form], pieces[newest[form]], CAPABILITIES[kind], index) for form in ordered)
    return tuple(reading for reading in found if reading.text.strip())


def _joined(reader: _Reader, pieces: Sequence[StoredText], capability: MediaCapability, index: int) -> Reading:
    windows = sorted((piece.window for piece in pieces if piece.window is not None), key=lambda window: window.start)
    segments = stretches(stitched(windows)) if windows else ()
    parts = sorted((part for piece in pieces for part in piece.text.parts), key=lambda part: part.number)
    return Reading(
        kind=f"{capability}.{KINDS[reader.form]}",
        text=whole_text(segments) if windows else "\n\n".join(part.text for part in parts if part.text.strip()),
        provider=reader.provider,
        model=reader.model,
        attachment_index=index,
        segments=segments,
        uncertain=any(window.uncertain for window in windows) or any(UNCERTAIN in each.text.notes for each in pieces),
    )


def _reader(key: str) -> _Reader | None:
    """The key's parts; None for the key of another kind of reader."""
    form, _, rest = key.partition(".1:")
    provider, _, rest = rest.partition(":")
    model, *others = rest.rsplit(":", 2)
    if form not in [*ReadingForm] or len(others) != 2:
        return None
    return _Reader(ReadingForm(form), provider, model, others[0])
