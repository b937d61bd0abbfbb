"""Check of every entry for the doctor: each reads a small sample of our own."""

import math
import os
import struct
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from belino.domain.errors import MediaError
from belino.domain.media import Blob, open_files
from belino.domain.outcome import Finding
from belino.domain.reading import Material, Skill
from belino.media.audio import MONO_RATE, wav_header
from belino.understanding.calls import Calls
from belino.understanding.config import ReadingLimits
from belino.understanding.entries import Entries
from belino.understanding.material import Materials
from belino.understanding.policy import Candidate, EntryChoice

if TYPE_CHECKING:
    from belino.media.image.images import Runs

CHECK_SECONDS = 60.0
CURE = "Check the entry in belino.toml, its key, and the provider's own status page."
SIDE = 64


async def check_entries(entries: Entries, calls: Calls, sandbox: "Runs", scratch: Path) -> Sequence[Finding]:
    """A finding for each entry."""
    found = []
    for place, candidate in entries.configured():
        name = f"{place} ({candidate.entry.provider})" if place != candidate.entry.provider else place
        if candidate.unusable:
            found.append(Finding(name=name, ok=False, says=candidate.unusable, cure=CURE))
            continue
        found.append(await _tried(name, candidate, calls, sandbox, scratch))
    return found


async def _tried(name: str, candidate: Candidate, calls: Calls, sandbox: "Runs", scratch: Path) -> Finding:
    skill = Skill.TRANSCRIBE if Skill.TRANSCRIBE in candidate.skills else _picture_skill(candidate)
    if skill is None:
        return Finding(name=name, ok=True, says="it is tried with the first video")
    timeout = candidate.entry.timeout_seconds or CHECK_SECONDS
    limits = ReadingLimits(max_bytes=1024 * 1024, max_chars=200, timeout=timeout)
    choice = EntryChoice(
        candidate=candidate, skill=skill, limits=limits, prompt=None, language=candidate.entry.language
    )
    try:
        async with calls.room, _sample(skill, candidate, sandbox, scratch) as material:
            result = await calls.call(choice, (material,))
    except MediaError as error:
        return Finding(name=name, ok=False, says=f"no sample could be made for it: {error}")
    last = result.attempts[-1]
    if result.read is None:
        return Finding(name=name, ok=False, says=last.reason, cure=CURE)
    return Finding(name=name, ok=True, says=f"{last.model} read a sample in {last.milliseconds} ms")


def _picture_skill(candidate: Candidate) -> Skill | None:
    return next((skill for skill in (Skill.READ_TEXT, Skill.DESCRIBE) if skill in candidate.skills), None)


@asynccontextmanager
async def _sample(skill: Skill, candidate: Candidate, sandbox: "Runs", scratch: Path) -> AsyncIterator[Material]:
    """A second of a falling tone, or a small picture with a line in it."""
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = scratch / f"sample-{os.urandom(8).hex()}"
    sound = skill is Skill.TRANSCRIBE
    try:
        path.write_bytes(_tone() if sound else _picture())
        blob = Blob(sha256="sample", mime="audio/wav" if sound else "image/png", size=path.stat().st_size)
        materials = Materials(sandbox, scratch, open_files({"sample": path}))
        if sound:
            async with materials.sound(blob, start=0.0, end=1.0, local=candidate.local) as heard:
                yield heard.material
        else:
            async with materials.picture(blob, local=candidate.local, max_bytes=1024 * 1024) as shown:
                yield shown
    finally:
        path.unlink(missing_ok=True)


def _tone() -> bytes:
    heights = (int(6_000 * math.sin(at * (0.12 - at * 2e-6))) for at in range(MONO_RATE))
    samples = b"".join(struct.pack("<h", height) for height in heights)
    return wav_header(len(samples)) + samples


def _picture() -> bytes:
    rows = b"".join(b"\0" + (b"\0" if 30 <= row < 34 else b"\xff") * SIDE for row in range(SIDE))
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    made = b"\x89PNG\r\n\x1a\n"
    for name, body in chunks:
        made += struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    return made
