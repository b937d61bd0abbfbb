"""Local moonshine: transcribes English speech on this machine with moonshine-voice, in the worker.

The model comes with the package: MIT, https://github.com/moonshine-ai/moonshine. It tells speech from other sounds
itself, and gives no confidence.
"""

import ctypes
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from belino.domain.errors import ProviderError
from belino.domain.provider import ProviderContext
from belino.domain.reading import Material, Read, ReadingOptions, Skill
from belino.understanding.local import samples
from belino.understanding.local.answers import spoken
from belino.understanding.local.packages import missing_packages

if TYPE_CHECKING:
    from moonshine_voice.transcriber import Transcriber

EXTRA = "moonshine"
MODEL = "tiny-en"
SHORTEST = 0.3
"""Seconds. A shorter line is a click at the beginning of speech, for which the model invents a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Keys of an entry."""

    model: str | None = None
    """Left empty: the model comes with the package."""
    memory_mb: int = 1_500
    """The address space of a job; about three times the memory that it needs."""


def missing(config: Config) -> str:
    """How to install what is missing here; empty if nothing is. Imports nothing."""
    return missing_packages(("moonshine_voice",), EXTRA)


class Provider:
    """Transcribes with moonshine-voice."""

    skills = frozenset({Skill.TRANSCRIBE})
    local = True
    languages = frozenset({"en"})

    def __init__(self, config: Config, context: ProviderContext) -> None:
        self._config = config
        self._context = context

    def model(self, skill: Skill) -> str:
        return f"moonshine {MODEL}"

    async def read(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        if absent := missing(self._config):
            raise ProviderError(absent)
        (sound,) = material
        answer = await self._context.worker.run(
            f"{__name__}:transcribe",
            [sound],
            {},
            seconds=options.timeout,
            memory=self._config.memory_mb * 1024 * 1024,
        )
        return spoken(answer, model=self.model(skill))


# The rest runs in the worker.

_model: "Transcriber | None" = None


def prepare() -> None:
    """Import the library in the parent: it starts no threads before a model is loaded."""
    samples.prepare()
    os.environ["HOME"] = "/nonexistent"
    import moonshine_voice.transcriber  # noqa: F401


def load(options: Mapping[str, Any]) -> None:
    """Load the model, which takes files and starts threads."""
    from moonshine_voice.moonshine_api import ModelArch
    from moonshine_voice.transcriber import Transcriber
    from moonshine_voice.utils import get_model_path

    global _model
    _model = Transcriber(get_model_path(MODEL), ModelArch.TINY, options={"return_audio_data": "false"})


def transcribe(source: int, options: Mapping[str, Any]) -> dict[str, object]:
    """The words of a WAV file, with times; no segments without speech."""
    sound = samples.samples_of(source)
    if _model is None or not len(sound):
        return {"segments": []}
    # The library copies a sequence of floats; one that lies in memory as C has it saves a list of them.
    floats = (ctypes.c_float * len(sound)).from_buffer_copy(sound.tobytes())
    lines = _model.transcribe_without_streaming(floats, samples.RATE).lines
    return {
        "segments": [
            {"text": line.text, "start": max(0.0, line.start_time), "end": max(0.0, line.start_time) + line.duration}
            for line in lines
            if line.duration >= SHORTEST
        ],
        "language": "en",
    }
