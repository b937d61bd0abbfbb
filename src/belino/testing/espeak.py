"""Espeak: spoken sentences for tests and benchmarks, synthesized by espeak-ng from a package of the dev group."""

import ctypes
import wave
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from belino.domain.errors import BelinoError

PACKAGE = "espeakng_loader"
RATE = 16_000
"""Samples a second, as recognisers take them."""
WORDS_A_MINUTE = 150

_SYNCHRONOUS = 2
_UTF8 = 1
_RATE_PARAMETER = 1
_Heard = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


def installed() -> bool:
    """Whether the package with espeak-ng is installed."""
    return find_spec(PACKAGE) is not None


def speak(text: str, path: Path, *, voice: str = "en-us") -> float:
    """Write the sentence as WAV (16 kHz, mono, 16 bits); returns its length in seconds."""
    rate, samples = _synthesize(text, voice)
    return write_wav(path, _resampled(samples, rate))


def write_wav(path: Path, samples: bytes) -> float:
    """Write samples of 16 bits as WAV (16 kHz, mono); returns the length in seconds."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples)
    return len(samples) / 2 / RATE


def _synthesize(text: str, voice: str) -> tuple[int, bytes]:
    import espeakng_loader

    library = ctypes.CDLL(espeakng_loader.get_library_path())
    rate = library.espeak_Initialize(_SYNCHRONOUS, 0, espeakng_loader.get_data_path().encode(), 0)
    heard: list[bytes] = []

    def hear(samples: Any, count: int, events: object) -> int:
        if samples and count > 0:
            heard.append(ctypes.string_at(samples, 2 * count))
        return 0

    hearing = _Heard(hear)
    library.espeak_SetSynthCallback(hearing)
    if library.espeak_SetVoiceByName(voice.encode()) != 0:
        raise BelinoError(f"espeak-ng has no voice {voice!r}")
    library.espeak_SetParameter(_RATE_PARAMETER, WORDS_A_MINUTE, 0)
    sentence = text.encode() + b"\0"
    library.espeak_Synth(sentence, len(sentence), 0, 0, 0, _UTF8, None, None)
    library.espeak_Synchronize()
    return rate, b"".join(heard)


def _resampled(samples: bytes, rate: int) -> bytes:
    import av

    frame = av.AudioFrame(format="s16", layout="mono", samples=len(samples) // 2)
    frame.sample_rate = rate
    frame.planes[0].update(samples)
    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
    made = [*resampler.resample(frame), *resampler.resample(None)]
    return b"".join(bytes(piece.planes[0])[: 2 * piece.samples] for piece in made)
