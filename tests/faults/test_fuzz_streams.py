"""Seeded fuzz of sounds and videos: whatever the bytes, each is decoded or refused, and nothing is left over."""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from pathlib import Path
from random import Random

import pytest

from belino.domain.errors import MediaError
from belino.domain.media import Blob
from belino.media.audio import Sounds
from belino.media.image.images import Fitted, Images
from belino.media.sandbox.sandbox import Sandbox
from belino.media.sheet import Sheets
from belino.media.sniff import sniff
from belino.media.stream_header import SoundFacts
from belino.media.stream_open import TYPES
from belino.media.video import VideoFacts, Videos
from belino.testing import make_png
from faults.test_fuzz import mutated, open_descriptors, rounds, starts
from media.local_files import local_blob, open_local
from media.pictures import animation
from media.test_audio import encoded, tone
from media.videos import song_with_cover, video

LIMIT, SIDE = 20_000, 200

Ask = Callable[[Blob], Awaitable[object]]


@lru_cache(maxsize=1)
def streams() -> tuple[bytes, ...]:
    """What every round begins with: ours, and the sounds and videos of the corpora if there are any."""
    forms = (("mp4", "mpeg4"), ("webm", "libvpx"), ("avi", "mpeg4"), ("mpegts", "mpeg2video"), ("flv", "flv"))
    made = [video(12, form=form, codec=codec, key=4) for form, codec in forms]
    made += [video(6, turned=90, sound=True), video(8, options={"movflags": "frag_keyframe+empty_moov"})]
    made += [encoded("ogg", "libopus"), encoded("mp3", "libmp3lame"), encoded("flac", "flac"), encoded("ipod", "aac")]
    made += [tone(0.3), song_with_cover(), animation("GIF", 8), animation("WEBP", 8)]
    found = (content for name, content in starts() if sniff(content, name=name).mime in TYPES)
    return (*made, *found)


class Asking:
    """Every way to ask for a stream; what comes back is looked at."""

    def __init__(self, sandbox: Sandbox, scratch: Path) -> None:
        self.sounds, self.videos = Sounds(sandbox, scratch, open_local), Videos(sandbox, scratch, open_local)
        self.sheets = Sheets(Images(sandbox, scratch, open_local), sandbox, scratch, self.videos)
        self.ways: tuple[Ask, ...] = (
            self.sounds.probe, self.sounds.waveform, self.mono, self.voice,
            self.videos.probe, self.frames, self.frames, self.sheet, self.poster, self.album,
        )  # fmt: skip

    async def mono(self, blob: Blob) -> object:
        async with self.sounds.mono(blob) as path:
            return path.stat().st_size > 44

    async def voice(self, blob: Blob) -> object:
        async with self.sounds.voice(blob, max_bytes=LIMIT) as path:
            return path.stat().st_size <= LIMIT

    async def frames(self, blob: Blob) -> object:
        frames = await self.videos.frames(blob, count=5, max_side=SIDE, max_bytes=LIMIT)
        times = [frame.at for frame in frames]
        return bool(frames) and times == sorted(set(times)) and all(_small(frame.picture) for frame in frames)

    async def sheet(self, blob: Blob) -> object:
        return _small(await self.videos.sheet(blob, count=4, max_side=SIDE, max_bytes=LIMIT))

    async def poster(self, blob: Blob) -> object:
        return _small(await self.videos.poster(blob, max_side=SIDE, max_bytes=LIMIT))

    async def album(self, blob: Blob) -> object:
        return _small(await self.sheets.album([("1", blob), ("2", blob)], max_side=SIDE, max_bytes=LIMIT))


def _small(picture: Fitted) -> bool:
    return max(picture.width, picture.height) <= SIDE and len(picture.data) <= LIMIT


@pytest.mark.slow
async def test_every_sound_and_video_is_decoded_or_refused_whatever_happened_to_it(tmp_path: Path) -> None:
    scratch, path = tmp_path / "scratch", tmp_path / "blob"
    ends: list[object] = []
    async with Sandbox() as sandbox:
        asking = Asking(sandbox, scratch)
        await look(asking.poster, path, make_png(2, 2), Random(0))  # the parent starts now
        held = open_descriptors()
        for number, rng in rounds(200, 5_000):
            ask = rng.choice(asking.ways)
            end = await look(ask, path, mutated(rng, rng.choice(streams())), rng)
            fine = end is True or isinstance(end, SoundFacts | VideoFacts | tuple | MediaError)
            assert fine, f"round {number}, {ask.__name__}: {end!r}"
            assert not scratch.exists() or not list(scratch.iterdir()), f"round {number}"
            ends.append(end)
        assert open_descriptors() == held
        assert await sandbox.examine() in ("full", "limited")
    assert any(isinstance(end, MediaError) for end in ends) and any(end is True for end in ends)


async def look(ask: Ask, path: Path, content: bytes, rng: Random) -> object:
    path.write_bytes(content)
    mime = sniff(content).mime if rng.random() < 0.7 else rng.choice(sorted(TYPES))
    blob = local_blob(path, mime=mime, sha256=f"{rng.getrandbits(256):064x}")
    try:
        return await ask(blob)
    except MediaError as error:
        return error
