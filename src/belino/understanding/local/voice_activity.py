"""Voice activity detection: the parts of a sound in which someone speaks; silence, noise and music are none."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from belino.understanding.local.samples import RATE

if TYPE_CHECKING:
    from faster_whisper.vad import VadOptions
    from numpy import float32
    from numpy.typing import NDArray

THRESHOLD = 0.5
LEAST_SPEECH_MS = 200
"""A shorter sound is a click or a cough, for which a recogniser would invent a word."""
LEAST_PAUSE_MS = 600
PAD_MS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechPart:
    """A stretch of speech, in samples."""

    start: int
    end: int


def prepare() -> None:
    """Import the detector; the child cannot import."""
    from faster_whisper import vad  # noqa: F401


def load() -> None:
    """Load the detector's model, which comes with its library."""
    from faster_whisper.vad import get_vad_model

    get_vad_model()


def settings(*, longest: float) -> "VadOptions":
    """How speech is told from pauses; a part is at most `longest` seconds."""
    from faster_whisper.vad import VadOptions

    return VadOptions(
        threshold=THRESHOLD,
        min_speech_duration_ms=LEAST_SPEECH_MS,
        min_silence_duration_ms=LEAST_PAUSE_MS,
        max_speech_duration_s=longest,
        speech_pad_ms=PAD_MS,
    )


def speech_parts(samples: "NDArray[float32]", *, longest: float) -> list[SpeechPart]:
    """The parts in which someone speaks, each cut at a pause where there is one."""
    from faster_whisper.vad import get_speech_timestamps

    found = get_speech_timestamps(samples, settings(longest=longest), sampling_rate=RATE)
    return [SpeechPart(start=part["start"], end=part["end"]) for part in found]
