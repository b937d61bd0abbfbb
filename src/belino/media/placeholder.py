"""Placeholder: the one line of text that stands for a ref.

It assures the agent that a ref exists; `domain/safe_text.py` keeps other people's text from imitating one.
"""

import math

from belino.domain.media import MediaKind, MediaRef
from belino.domain.outcome import MediaOutcome
from belino.domain.safe_text import clean_mime, clean_name, one_line
from belino.domain.units import format_duration, format_size

LOST_FOR_GOOD = frozenset({MediaOutcome.EXPIRED, MediaOutcome.TOO_LARGE, MediaOutcome.NOT_FOUND, MediaOutcome.REFUSED})
"""A ref with such an outcome is shown without its id: asking for it again cannot help."""

_FINE = frozenset({MediaOutcome.REFERENCED, MediaOutcome.HELD})


def placeholder(ref: MediaRef, outcome: MediaOutcome = MediaOutcome.REFERENCED) -> str:
    """The placeholder of a ref, with its outcome if that is a failure."""
    parts = [_name_or_duration(ref), _size(ref.size), clean_mime(ref.mime)]
    if outcome not in _FINE:
        parts.append(outcome.value)
    if outcome not in LOST_FOR_GOOD:
        parts.append(f"ref:{ref.id}")
    line = f"[{ref.kind.value.capitalize()}: {', '.join(part for part in parts if part)}]"
    caption = one_line(ref.caption or "")
    return f"{line} {caption}" if caption else line


def _name_or_duration(ref: MediaRef) -> str:
    name = clean_name(ref.file_name or "")
    if name or ref.kind not in (MediaKind.VOICE, MediaKind.AUDIO) or ref.duration is None:
        return name
    return format_duration(ref.duration) if math.isfinite(ref.duration) and ref.duration >= 0 else ""


def _size(size: int | None) -> str:
    return format_size(size) if size is not None and size >= 0 else ""
