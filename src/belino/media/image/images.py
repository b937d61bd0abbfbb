"""Images: probe a picture, make the best copy of it under a limit, and reduce it to greys, all in the sandbox."""

import os
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from mmap import PROT_READ, mmap
from pathlib import Path
from typing import Any, Protocol

from belino.domain.errors import MediaRefused
from belino.domain.media import Blob, OpenBlob
from belino.domain.outcome import CacheSize
from belino.media.image import decode
from belino.media.image.decode import Header
from belino.media.image.fit import FitLimits, Search
from belino.media.image.formats import MIMES, PictureNote
from belino.media.image.strip import strip

GREYS_SIDE = 64
"""Greys each way, of which the hash of a picture is made."""
MAX_BYTES = 32 * 1024 * 1024
"""Higher limits are reduced to this one: no platform accepts a larger picture."""
FORMATS = ("image/jpeg", "image/png", "image/webp")
"""Types that are written."""
TAKEN = (*FORMATS, "image/gif")
"""Types that models accept: a GIF is passed on unchanged, and never written."""
CACHE_BYTES = 16 * 1024 * 1024
FACTS_KEPT = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """The facts of a picture, upright."""

    mime: str
    width: int
    height: int
    frames: int
    has_alpha: bool
    pages: int = 1
    """Of a TIFF."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A picture made to fit."""

    data: bytes = field(repr=False)
    mime: str
    width: int
    height: int
    note: PictureNote | None = None


_FitKey = tuple[str, int, int | None, tuple[str, ...], int]


class Runs(Protocol):
    """The part of the sandbox that pictures need."""

    async def run(
        self, job: str, source: int | Path, options: Mapping[str, Any] = ..., *, output: Path | None = None
    ) -> dict[str, Any]: ...


class Images:
    """Asks the sandbox, and checks every answer."""

    def __init__(self, sandbox: Runs, scratch: Path, open_blob: OpenBlob) -> None:
        self._sandbox = sandbox
        self._scratch = scratch
        self._open_blob = open_blob
        from cachebox import LRUCache  # Imports asyncio, which the sandbox's parent does not need.

        self._facts: LRUCache[str, ImageFacts] = LRUCache(FACTS_KEPT)
        self._fitted: dict[_FitKey, Fitted] = {}

    def cache_sizes(self) -> Mapping[str, CacheSize]:
        """The cache of pictures."""
        held = sum(len(fitted.data) for fitted in self._fitted.values())
        return {
            "image_facts": CacheSize.of_entries(len(self._facts), most=FACTS_KEPT, each=600),
            "fitted_images": CacheSize(entries=len(self._fitted), bytes=held, most_bytes=CACHE_BYTES),
        }

    async def probe(self, blob: Blob) -> ImageFacts:
        """The facts of the picture; MediaRefused if it is unsupported, or too large."""
        known = self._facts.get(blob.sha256)
        if known is None:
            async with self._open_blob(blob.sha256) as path:
                known = _facts(await self._sandbox.run("image.probe", path))
            self._facts[blob.sha256] = known
        return known

    async def fit(
        self,
        blob: Blob,
        *,
        max_bytes: int,
        max_side: int | None = None,
        formats: tuple[str, ...] = TAKEN,
        page: int = 1,
    ) -> Fitted:
        """The best copy within the limits: upright, in sRGB, without metadata, not animated; `page` is of a TIFF."""
        key = (blob.sha256, max_bytes, max_side, formats, page)
        if (known := self._fitted.pop(key, None)) is None:
            limits = {"max_bytes": min(max_bytes, MAX_BYTES), "max_side": max_side}
            options = {**limits, "formats": list(formats), "page": page}
            known = await self._made("image.fit", blob, options, max_bytes=min(max_bytes, MAX_BYTES))
        self._keep(key, known)
        return known

    async def _made(self, job: str, blob: Blob, options: Mapping[str, Any], *, max_bytes: int) -> Fitted:
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        output = self._scratch / f"picture-{os.urandom(8).hex()}"
        try:
            async with self._open_blob(blob.sha256) as path:
                told = await self._sandbox.run(job, path, options, output=output)
            data = _read(output, max_bytes)
        finally:
            output.unlink(missing_ok=True)
        return replace(checked(data, max_bytes=max_bytes, max_side=options["max_side"]), note=_note(told))

    def _keep(self, key: _FitKey, fitted: Fitted) -> None:
        """Newest last; the oldest are evicted."""
        self._fitted[key] = fitted
        held = sum(len(each.data) for each in self._fitted.values())
        while held > CACHE_BYTES:
            held -= len(self._fitted.pop(next(iter(self._fitted))).data)


def _facts(told: Mapping[str, Any]) -> ImageFacts:
    match told:
        case {
            "mime": str(mime),
            "width": int(width),
            "height": int(height),
            "frames": int(frames),
            "has_alpha": bool(alpha),
            "pages": int(pages),
        }:
            if mime in MIMES and min(width, height, frames, pages) > 0 and pages <= decode.TIFF_PICTURES:
                return ImageFacts(mime=mime, width=width, height=height, frames=frames, has_alpha=alpha, pages=pages)
    raise MediaRefused("decoding the picture gave no proper answer")


def _note(told: Mapping[str, Any]) -> PictureNote | None:
    return PictureNote(told["note"]) if told.get("note") in [*PictureNote] else None


def _read(path: Path, limit: int) -> bytes:
    with path.open("rb") as file:
        return file.read(limit + 1)


def checked(data: bytes, *, max_bytes: int, max_side: int | None) -> Fitted:
    """An attacker may control the child: type and size are read from the bytes it wrote."""
    from belino.media.image.header import image_size

    found = image_size(data)
    if found is None or found[0] not in TAKEN or len(data) > max_bytes:
        raise MediaRefused("decoding the picture gave no picture")
    mime, width, height = found
    if max(width, height) > (max_side or decode.MAX_SIDE):
        raise MediaRefused("decoding the picture gave one that is too large")
    return Fitted(data=data, mime=mime, width=width, height=height)


# The rest runs in the sandbox's child.


def prepare() -> None:
    """Import what the jobs need; the child cannot import."""
    decode.prepare()


def probe(source: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of the picture, from its header."""
    header = decode.look(source)
    width, height = header.upright
    return {
        "mime": header.mime,
        "width": width,
        "height": height,
        "frames": header.frames,
        "has_alpha": header.has_alpha,
        "pages": len(decode.page_indices(source, header.mime)),
        "orientation": header.orientation,
    }


def fit(source: int, target: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The best copy of a `page` under `max_bytes`, `max_side` and `max_pixels` in one of the `formats`."""
    wish = FitLimits(
        max_bytes=options["max_bytes"],
        max_side=options.get("max_side"),
        max_pixels=options.get("max_pixels"),
        formats=tuple(options.get("formats") or TAKEN),
    )
    header = decode.look(source, options.get("page", 1))
    if (content := _as_it_is(source, header, wish)) is not None:
        width, height = header.upright
        return _written(target, content, {"mime": header.mime, "width": width, "height": height, "quality": 100})
    search = Search(wish)
    found = search.best(source, header)
    facts = {"mime": found.mime, "width": found.width, "height": found.height, "quality": found.quality}
    note = PictureNote.PARTIAL if search.partial else header.note
    return _written(target, found.content, {**facts, "encodes": search.encodes, "note": note})


def greys(source: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """The upright picture as a square of greys, and its aspect ratio; transparent is white."""
    header = decode.look(source)
    image = decode.decode(source, header, (GREYS_SIDE, GREYS_SIDE)).opaque().image
    grey = image.colourspace("b-w")[0].cast("uchar")
    width, height = header.upright
    return {"greys": b64encode(bytes(grey.write_to_memory())).decode(), "shape": width / height}


def write_all(target: int, content: bytes) -> None:
    """Write all of it, in as many writes as necessary."""
    left = memoryview(content)
    while left:
        left = left[os.write(target, left) :]


def _as_it_is(source: int, header: Header, wish: FitLimits) -> bytes | None:
    """The original without its metadata, if it needs no other change."""
    still = header.frames == 1 or header.mime == "image/png"
    if not (header.mime in wish.formats and still and header.plain and header.orientation == 1):
        return None
    if wish.box(header.width, header.height) != (header.width, header.height):
        return None
    if header.size > 2 * wish.max_bytes:
        return None
    content = strip(header.mime, mmap(source, 0, prot=PROT_READ), wish.max_bytes)
    return content if content is not None and decode.is_whole(source, header) else None


def _written(target: int, content: bytes, facts: Mapping[str, Any]) -> dict[str, Any]:
    write_all(target, content)
    return {"encodes": 0, **facts, "bytes": len(content)}
