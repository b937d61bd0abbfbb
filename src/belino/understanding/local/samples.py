"""Samples and pixels: the worker's material as arrays."""

import os
import struct
from typing import TYPE_CHECKING

from belino.domain.errors import ProviderError
from belino.understanding.local.pixmap import HEADER_BYTES, header_of

if TYPE_CHECKING:
    from numpy import float32, uint8
    from numpy.typing import NDArray

RATE = 16_000
"""Samples a second."""
WAV_HEADER = 44
QUIET, AUDIBLE = 0.02, 0.25
"""Speech that stays below `QUIET` is amplified to `AUDIBLE`; from 0.005 on down, no detector hears it as speech."""
LOUDEST = 0.999
"""The share of samples that are as loud or less; a click is among the others."""


def prepare() -> None:
    """Import numpy, with one thread: the libraries that use it have threads of their own."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    # Threads that wait for each other with their CPU busy take a third more of it.
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    import numpy  # noqa: F401 - the child cannot import


def samples_of(source: int) -> "NDArray[float32]":
    """The samples of a WAV file (16 kHz, one channel, 16 bits), from -1 to 1; those of a very quiet one amplified."""
    import numpy as np

    head = os.pread(source, WAV_HEADER, 0)
    if len(head) < WAV_HEADER or struct.unpack("<4x4x4s4xIHHIIHH", head[:36]) != (
        b"WAVE", 16, 1, 1, RATE, 2 * RATE, 2, 16
    ):  # fmt: skip
        raise ProviderError("the material is no WAV of 16 kHz, one channel and 16 bits")
    with os.fdopen(os.dup(source), "rb") as file:
        file.seek(WAV_HEADER)
        whole = file.read()
    samples = np.frombuffer(whole[: len(whole) & ~1], "<i2").astype(np.float32) / 32_768.0
    if not samples.size:
        return samples
    place = int(LOUDEST * (samples.size - 1))
    loudness = float(np.partition(np.abs(samples), place)[place])
    return np.clip(samples * (AUDIBLE / loudness), -1.0, 1.0) if 0 < loudness < QUIET else samples


def pixels_of(source: int) -> "NDArray[uint8]":
    """The pixels of a portable pixmap: rows, columns, and red, green and blue."""
    import numpy as np

    width, height, start = header_of(os.pread(source, HEADER_BYTES, 0))
    with os.fdopen(os.dup(source), "rb") as file:
        file.seek(start)
        whole = file.read(width * height * 3)
    if len(whole) < width * height * 3:
        raise ProviderError("the material is a pixmap that ends too early")
    return np.frombuffer(whole, np.uint8).reshape(height, width, 3)
