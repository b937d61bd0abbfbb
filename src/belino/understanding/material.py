"""Material for providers, made from blobs in the sandbox; its files exist during a call only."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from belino.domain.errors import MediaRefused
from belino.domain.media import Blob, OpenBlob, open_files
from belino.domain.reading import Material
from belino.media.image.formats import TIFF
from belino.media.image.plain import PPM, PlainPictures
from belino.media.remux import Remuxer
from belino.media.render import Renderer, make_makers
from belino.media.samples import FLAC, WAV

if TYPE_CHECKING:
    from belino.media.image.images import Fitted, Images, Runs

PAGE_SIDE = 2_400
"""The longer side of a page: 200 dots per inch of A4, at which small print is readable."""
PAGE_BYTES = 8 * 1024 * 1024
PICTURE_SIDE = 2_048
FRAMES = 6
FRAME_SIDE = 1_024
FRAME_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """A window of a sound, and whether the sound ends in it."""

    material: Material
    ended: bool


class Materials:
    """Makes material out of the blobs of one store, or of local files."""

    def __init__(
        self,
        sandbox: "Runs",
        scratch: Path,
        open_blob: OpenBlob,
        renderer: Renderer | None = None,
        images: "Images | None" = None,
    ) -> None:
        """`renderer` reads documents and stores what it read; without one nothing is stored."""
        self._sandbox = sandbox
        self._scratch = scratch
        from belino.media.image.images import Images

        self._images = images or Images(sandbox, scratch, open_blob)
        self._makers = make_makers(sandbox, scratch, open_blob, images=self._images)
        self.renderer = renderer or Renderer(self._makers)
        self._plain = PlainPictures(sandbox, scratch, open_blob)
        self._remuxer = Remuxer(sandbox, scratch, open_blob)

    async def pages(self, blob: Blob) -> int:
        """How many pages a picture has: only a TIFF may have several."""
        return (await self._images.probe(blob)).pages if blob.mime == TIFF else 1

    async def has_subtitles(self, blob: Blob) -> bool:
        """Whether a video has subtitles, which may be its text."""
        try:
            return (await self.renderer.video(blob)).subtitles > 0
        except MediaRefused:
            return False

    async def seconds(self, blob: Blob) -> float | None:
        """The length of a sound or video, if it tells one."""
        return (await self._makers.sounds.probe(blob)).seconds

    @asynccontextmanager
    async def sound(self, blob: Blob, *, start: float, end: float, local: bool) -> AsyncIterator[Sound]:
        """The sound from `start` to `end` seconds, of a video too."""
        async with self._makers.windows.samples(blob, start=start, end=end, mime=WAV if local else FLAC) as made:
            material = Material(path=made.path, mime=made.mime, size=made.size, seconds=made.seconds)
            yield Sound(material=material, ended=made.ended)

    @asynccontextmanager
    async def picture(self, blob: Blob, *, local: bool, max_bytes: int, page: int = 1) -> AsyncIterator[Material]:
        """A picture, upright and without metadata; `page` is of a TIFF."""
        if local:
            async with self._plain.pixels(blob, page=page) as path:
                yield _pixels(path)
            return
        fitted = await self._images.fit(blob, max_bytes=max_bytes, max_side=PICTURE_SIDE, page=page)
        async with self._written(fitted) as material:
            yield material

    @asynccontextmanager
    async def page(self, blob: Blob, number: int, *, local: bool, max_bytes: int) -> AsyncIterator[Material]:
        """A page of a PDF or TIFF as a picture."""
        if blob.mime == TIFF:
            async with self.picture(blob, local=local, max_bytes=max_bytes, page=number) as material:
                yield material
            return
        most = PAGE_BYTES if local else min(PAGE_BYTES, max_bytes)
        fitted = await self._makers.documents.page(blob, number, max_bytes=most, max_side=PAGE_SIDE)
        async with self._drawn(fitted, local=local) as material:
            yield material

    @asynccontextmanager
    async def frames(
        self, blob: Blob, *, start: float | None, end: float | None, local: bool, max_bytes: int
    ) -> AsyncIterator[tuple[Material, ...]]:
        """Some frames of a video as pictures, each with its time."""
        found = await self._makers.videos.frames(
            blob,
            count=FRAMES,
            start=start,
            end=end,
            max_side=FRAME_SIDE,
            max_bytes=max(1_024, min(FRAME_BYTES, max_bytes // FRAMES)),
        )
        async with AsyncExitStack() as files:
            yield tuple(
                [await files.enter_async_context(self._drawn(each.picture, local=local, at=each.at)) for each in found]
            )

    @asynccontextmanager
    async def video(self, blob: Blob, *, max_bytes: int) -> AsyncIterator[Material]:
        """A whole video without metadata."""
        seconds = await self.seconds_or_none(blob)
        async with self._remuxer.remuxed(blob, max_bytes=max_bytes) as (path, mime):
            yield Material(path=path, mime=mime, size=path.stat().st_size, seconds=seconds)

    async def seconds_or_none(self, blob: Blob) -> float | None:
        """The length of a video, also of one without sound."""
        try:
            return (await self._makers.videos.probe(blob)).seconds
        except MediaRefused:
            return None

    @asynccontextmanager
    async def _drawn(self, fitted: "Fitted", *, local: bool, at: float | None = None) -> AsyncIterator[Material]:
        """A picture that the sandbox made; for a local provider, decoded by it again."""
        async with self._written(fitted, at=at) as material:
            if not local:
                yield material
                return
            blob = Blob(sha256=material.path.name, mime=material.mime, size=material.size)
            own = PlainPictures(self._sandbox, self._scratch, open_files({blob.sha256: material.path}))
            async with own.pixels(blob) as path:
                yield _pixels(path, at=at)

    @asynccontextmanager
    async def _written(self, fitted: "Fitted", *, at: float | None = None) -> AsyncIterator[Material]:
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._scratch / f"material-{os.urandom(8).hex()}"
        try:
            path.touch(mode=0o600, exist_ok=False)
            path.write_bytes(fitted.data)
            yield Material(path=path, mime=fitted.mime, size=len(fitted.data), at=at)
        finally:
            path.unlink(missing_ok=True)


def _pixels(path: Path, at: float | None = None) -> Material:
    return Material(path=path, mime=PPM, size=path.stat().st_size, at=at)
