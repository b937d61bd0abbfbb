"""The gateway asks the sandbox about pictures and believes only what it can check."""

from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageOps

from belino.domain.errors import MediaError, MediaRefused
from belino.domain.media import Blob
from belino.media.image import images as image
from belino.media.image.images import Images
from belino.media.sandbox.sandbox import Sandbox
from belino.testing import make_gif, make_png
from media.local_files import local_blob, open_local
from media.pictures import FOREIGN, FORMATS, FURTHER, corners, exif, opened, photo, picture, quarters, saved, with_hole


def blob_of(content: bytes, path: Path, *, sha256: str = "0" * 64) -> Blob:
    path.write_bytes(content)
    return local_blob(path, mime="image/jpeg", sha256=sha256)


class Told:
    """A sandbox whose child says and writes what it likes."""

    def __init__(self, answer: dict[str, Any], written: bytes = b"") -> None:
        self.answer, self.written, self.runs = answer, written, 0

    async def run(self, job: str, source: Any, options: Any = None, *, output: Path | None = None) -> dict[str, Any]:
        self.runs += 1
        if output:
            output.write_bytes(self.written)
        return self.answer


@pytest.mark.parametrize(
    "written",
    [b"", b"<svg/>", make_png(20, 20)[:10], make_png(900, 20), b"\x89PNG" + bytes(5_000)],
    ids=["nothing", "svg", "half a header", "too wide", "too long"],
)
async def test_a_child_that_lies_is_not_believed(written: bytes, tmp_path: Path) -> None:
    lie = {"mime": "image/png", "width": 20, "height": 20, "bytes": 90, "quality": 100, "encodes": 0}
    images = Images(Told(lie, written), tmp_path / "scratch", open_local)
    with pytest.raises(MediaRefused):
        await images.fit(blob_of(b"x", tmp_path / "blob"), max_bytes=2_000, max_side=100)
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.parametrize(
    "answer",
    [{}, {"mime": "image/svg+xml"}, {"mime": "image/png", "width": -1, "height": 2, "frames": 1, "has_alpha": False}],
)
async def test_facts_that_cannot_be_are_refused(answer: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(MediaRefused):
        await Images(Told(answer), tmp_path, open_local).probe(blob_of(b"x", tmp_path / "blob"))


async def test_the_same_wish_is_granted_once(tmp_path: Path) -> None:
    sandbox = Told({}, make_png(20, 20))
    images, blob = Images(sandbox, tmp_path / "scratch", open_local), blob_of(b"x", tmp_path / "blob")
    first = await images.fit(blob, max_bytes=2_000)
    assert await images.fit(blob, max_bytes=2_000) is first
    await images.fit(blob, max_bytes=3_000)
    assert sandbox.runs == 2


async def test_what_is_remembered_stays_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = make_png(20, 20)
    monkeypatch.setattr(image, "CACHE_BYTES", 3 * len(picture))
    sandbox = Told({}, picture)
    images = Images(sandbox, tmp_path / "scratch", open_local)
    blobs = [blob_of(b"x", tmp_path / str(number), sha256=f"{number:064}") for number in range(5)]
    for blob in [*blobs, blobs[-1]]:
        await images.fit(blob, max_bytes=2_000)
    assert sandbox.runs == 5
    await images.fit(blobs[0], max_bytes=2_000)
    assert sandbox.runs == 6


@pytest.mark.slow
async def test_in_the_sandbox_every_format_is_opened_and_everything_else_refused(tmp_path: Path) -> None:
    async with Sandbox() as sandbox:
        images = Images(sandbox, tmp_path / "scratch", open_local)
        for number, (name, make) in enumerate(FURTHER.items()):
            blob = blob_of(make(), tmp_path / name, sha256=f"further{number:057}")
            facts = await images.probe(blob)
            fitted = await images.fit(blob, max_bytes=64 * 1024)
            assert (fitted.width, fitted.height) == (facts.width, facts.height), name
            assert corners(opened(fitted.data)) == ["red", "green", "blue", "white"], name
        for number, format_ in enumerate(FORMATS):
            blob = blob_of(saved(photo(600, 400), format_), tmp_path / format_, sha256=f"{number:064}")
            facts = await images.probe(blob)
            assert (facts.width, facts.height) == (600, 400)
            fitted = await images.fit(blob, max_bytes=20_000, max_side=500)
            assert opened(fitted.data).size == (fitted.width, fitted.height)
            assert len(fitted.data) <= 20_000
            assert 300 < fitted.width <= 500
            small = await images.fit(blob, max_bytes=64 * 1024, max_side=256)
            assert max(small.width, small.height) == 256
        for number, content in enumerate(
            (*(make() for make in FOREIGN.values()), make_gif(7_000, 7_000), picture("photo")[:9_000])
        ):
            blob = blob_of(content, tmp_path / "bad", sha256=f"bad{number:061}")
            for wish in (images.probe(blob), images.fit(blob, max_bytes=20_000)):
                try:
                    await wish
                except MediaError:
                    continue
                assert content == picture("photo")[:9_000]
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("orientation", [1, 6])
async def test_in_the_sandbox_the_largest_webp_is_opened(orientation: int, tmp_path: Path) -> None:
    content = saved(quarters((7_300, 5_400)), "WEBP", method=0, exif=exif(orientation))
    blob = blob_of(content, tmp_path / "blob")
    async with Sandbox() as sandbox:
        fitted = await Images(sandbox, tmp_path / "scratch", open_local).fit(blob, max_bytes=50_000, max_side=300)
    upright = ImageOps.exif_transpose(opened(saved(quarters((300, 222)), "JPEG", exif=exif(orientation))))
    assert corners(opened(fitted.data)) == corners(upright)
    assert (fitted.width, fitted.height) == pytest.approx(upright.size, abs=1)


@pytest.mark.slow
async def test_in_the_sandbox_the_largest_transparent_picture_is_written(tmp_path: Path) -> None:
    tile, large = with_hole(photo(730, 540)), Image.new("RGBA", (7_300, 5_400))
    for place in range(100):
        large.paste(tile, (place % 10 * 730, place // 10 * 540))
    blob = blob_of(saved(large, "PNG", compress_level=1), tmp_path / "blob")
    async with Sandbox() as sandbox:
        fitted = await Images(sandbox, tmp_path / "scratch", open_local).fit(blob, max_bytes=2_000_000)
    assert fitted.mime == "image/webp"
    assert fitted.width * fitted.height > 4_000_000
