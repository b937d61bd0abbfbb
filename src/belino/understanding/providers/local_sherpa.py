"""Local sherpa: transcribes speech on this machine with a sherpa-onnx model from a folder, in the worker.

Models for many languages: https://k2-fsa.github.io/sherpa/onnx/pretrained_models/index.html
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.domain.errors import ProviderError
from belino.domain.provider import ProviderContext
from belino.domain.reading import Material, Read, ReadingOptions, Skill
from belino.understanding.local import samples, voice_activity
from belino.understanding.local.answers import spoken
from belino.understanding.local.packages import missing_packages

if TYPE_CHECKING:
    from sherpa_onnx import OfflineRecognizer

EXTRA = "sherpa"
THREADS = 2
LONGEST = 28.0
"""Seconds of speech at once; Whisper models read no more than 30."""


class SherpaKind(StrEnum):
    """A family of models."""

    AUTO = "auto"
    """By the names of the files in the folder."""
    TRANSDUCER = "transducer"
    WHISPER = "whisper"
    MOONSHINE = "moonshine"
    PARAFORMER = "paraformer"
    SENSE_VOICE = "sense_voice"
    NEMO_CTC = "nemo_ctc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Keys of an entry."""

    model: str | None = None
    """The folder of the model, as its archive unpacks."""
    kind: SherpaKind = SherpaKind.AUTO
    """The family of the model; needed for a folder with a single `model.onnx`."""
    languages: tuple[str, ...] = ()
    """The languages that the model understands, if not all."""
    memory_mb: int = 3_000
    """The address space of a job; about three times the memory that it needs."""


def missing(config: Config) -> str:
    """How to install what is missing here; empty if nothing is. Imports nothing."""
    if absent := missing_packages(("sherpa_onnx", "faster_whisper"), EXTRA):
        return absent
    return "" if config.model else "local_sherpa needs `model`, the folder of a sherpa-onnx model"


class Provider:
    """Transcribes with sherpa-onnx."""

    skills = frozenset({Skill.TRANSCRIBE})
    local = True

    def __init__(self, config: Config, context: ProviderContext) -> None:
        self._config = config
        self._context = context
        self.languages = frozenset(config.languages) or None

    def model(self, skill: Skill) -> str:
        return Path(self._config.model or "none").name

    async def read(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        if absent := missing(self._config):
            raise ProviderError(absent)
        (sound,) = material
        answer = await self._context.worker.run(
            f"{__name__}:transcribe",
            [sound],
            {
                "folder": str(Path(self._config.model or "").expanduser().absolute()),
                "kind": self._config.kind,
                "language": options.language or "",
                "threads": min(THREADS, os.cpu_count() or 1),
            },
            seconds=options.timeout,
            memory=self._config.memory_mb * 1024 * 1024,
        )
        return spoken(answer, model=self.model(skill))


# The rest runs in the worker.

_model: "OfflineRecognizer | None" = None


def prepare() -> None:
    """Import the libraries in the parent: they start no threads before a model is loaded."""
    os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
    samples.prepare()
    voice_activity.prepare()
    import sherpa_onnx  # noqa: F401


def load(options: Mapping[str, Any]) -> None:
    """Load the model, which takes files and starts threads."""
    global _model
    folder = Path(options["folder"])
    if not folder.is_dir():
        raise ProviderError(f"there is no folder {folder.name!r} with a model")
    voice_activity.load()
    kind = SherpaKind(options["kind"])
    made = _LOADERS[kind if kind is not SherpaKind.AUTO else _kind_of(folder)]
    _model = made(folder, options["language"], options["threads"])


def transcribe(source: int, options: Mapping[str, Any]) -> dict[str, object]:
    """The words of a WAV file, part of speech by part of speech; none without speech."""
    sound = samples.samples_of(source)
    segments: list[dict[str, object]] = []
    if _model is None:
        return {"segments": segments}
    for part in voice_activity.speech_parts(sound, longest=LONGEST):
        stream = _model.create_stream()
        stream.accept_waveform(samples.RATE, sound[part.start : part.end])
        _model.decode_stream(stream)
        segments.append(
            {"text": stream.result.text, "start": part.start / samples.RATE, "end": part.end / samples.RATE}
        )
    return {"segments": segments}


def _kind_of(folder: Path) -> SherpaKind:
    names = [path.name for path in folder.iterdir()]
    signs = {
        SherpaKind.TRANSDUCER: "joiner", SherpaKind.MOONSHINE: "decoder_model_merged", SherpaKind.WHISPER: "-decoder",
    }  # fmt: skip
    for kind, sign in signs.items():
        if any(sign in name for name in names):
            return kind
    raise ProviderError(f"the family of the model in {folder.name!r} is not clear; set `kind` of its entry")


def _file(folder: Path, *parts: str) -> str:
    """The file with one of these parts in its name; the quantized one if there are two."""
    found = [path for path in folder.iterdir() if any(part in path.name for part in parts)]
    if not found:
        raise ProviderError(f"the model in {folder.name!r} has no {' or '.join(parts)} file")
    return str(min(found, key=lambda path: ("int8" not in path.name, path.name)))


def _recognizers() -> Any:
    import sherpa_onnx

    return sherpa_onnx.OfflineRecognizer


def _transducer(folder: Path, language: str, threads: int) -> "OfflineRecognizer":
    encoder, decoder, joiner = (_file(folder, part) for part in ("encoder", "decoder", "joiner"))
    return _recognizers().from_transducer(
        encoder=encoder, decoder=decoder, joiner=joiner, tokens=_file(folder, "tokens.txt"), num_threads=threads
    )


def _whisper(folder: Path, language: str, threads: int) -> "OfflineRecognizer":
    encoder, decoder = (_file(folder, part) for part in ("-encoder", "-decoder"))
    # An empty language is recognised by the model.
    return _recognizers().from_whisper(
        encoder=encoder, decoder=decoder, tokens=_file(folder, "tokens.txt"), language=language, num_threads=threads
    )


def _moonshine(folder: Path, language: str, threads: int) -> "OfflineRecognizer":
    encoder, decoder = (_file(folder, part) for part in ("encoder_model", "decoder_model_merged"))
    return _recognizers().from_moonshine_v2(
        encoder=encoder, decoder=decoder, tokens=_file(folder, "tokens.txt"), num_threads=threads
    )


def _paraformer(folder: Path, language: str, threads: int) -> "OfflineRecognizer":
    return _recognizers().from_paraformer(
        paraformer=_file(folder, "model"), tokens=_file(folder, "tokens.txt"), num_threads=threads
    )


def _sense_voice(folder: Path, language: str, threads: int) -> "OfflineRecognizer":
    return _recognizers().from_sense_voice(
        model=_file(folder, "model"), tokens=_file(folder, "tokens.txt"), language=language, num_threads=threads
    )


def _nemo_ctc(folder: Path, language: str, threads: int) -> "OfflineRecognizer":
    return _recognizers().from_nemo_ctc(
        model=_file(folder, "model"), tokens=_file(folder, "tokens.txt"), num_threads=threads
    )


_LOADERS: "dict[SherpaKind, Callable[[Path, str, int], OfflineRecognizer]]" = {
    SherpaKind.TRANSDUCER: _transducer,
    SherpaKind.WHISPER: _whisper,
    SherpaKind.MOONSHINE: _moonshine,
    SherpaKind.PARAFORMER: _paraformer,
    SherpaKind.SENSE_VOICE: _sense_voice,
    SherpaKind.NEMO_CTC: _nemo_ctc,
}
