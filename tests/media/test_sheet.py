"""Contact sheets: many pictures on one, in their order, each under its label."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PIL import Image

from belino.domain.errors import MediaRefused
from belino.domain.media import Blob
from belino.media.image.images import Images
from belino.media.sandbox.sandbox import Sandbox
from belino.media.sheet import CELLS_AT_MOST, Sheets, laid_out, prepare, stamps
from belino.media.video import Videos
from media.local_files import local_blob, open_local
from media.pictures import BLUE, GREEN, RED, opened, saved
from media.videos import Here, Lying, video

COLOURS = {"1": RED, "2": GREEN, "3": BLUE}


def picture(path: Path, colour: tuple[int, int, int], size: tuple[int, int] = (300, 200)) -> Blob:
    path.write_bytes(saved(Image.new("RGB", size, colour), "PNG"))
    return local_blob(path, mime="image/png", sha256=f"{hash(colour):064x}"[-64:])


def nearest(sheet: Image.Image, place: tuple[int, int]) -> str:
    found = sheet.convert("RGB").getpixel(place)
    assert isinstance(found, tuple)
    return min(COLOURS, key=lambda label: sum(abs(a - b) for a, b in zip(COLOURS[label], found, strict=True)))


@pytest.fixture
def sheets(tmp_path: Path) -> Sheets:
    here, scratch = Here(), tmp_path / "scratch"
    return Sheets(Images(here, scratch, open_local), here, scratch, Videos(here, scratch, open_local))


@pytest.fixture
async def shut_in(tmp_path: Path) -> AsyncIterator[Sheets]:
    async with Sandbox() as sandbox:
        scratch = tmp_path / "scratch"
        yield Sheets(Images(sandbox, scratch, open_local), sandbox, scratch, Videos(sandbox, scratch, open_local))


async def test_an_album_is_laid_out_row_by_row_within_the_limits(sheets: Sheets, tmp_path: Path) -> None:
    items = [(label, picture(tmp_path / label, colour)) for label, colour in COLOURS.items()]
    made = await sheets.album([*items, *items, *items], max_side=620, max_bytes=60_000)
    assert max(made.width, made.height) <= 620 and len(made.data) <= 60_000
    sheet = opened(made.data)
    middles = [((2 * x + 1) * made.width // 6, (2 * y + 1) * made.height // 6) for y in range(3) for x in range(3)]
    assert [nearest(sheet, place) for place in middles] == ["1", "2", "3"] * 3
    assert not list((tmp_path / "scratch").iterdir())


async def test_a_video_in_an_album_is_shown_by_its_poster(sheets: Sheets, tmp_path: Path) -> None:
    moving = tmp_path / "moving"
    moving.write_bytes(video(3, picture=lambda _: Image.new("RGB", (64, 32), RED)))
    blob = local_blob(moving, mime="video/mp4", sha256="1" * 64)
    made = await sheets.album([("1", blob)])
    assert nearest(opened(made.data), (made.width - 5, made.height - 5)) == "1"


async def test_what_cannot_be_shown_keeps_its_place(sheets: Sheets, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"no picture")
    lost = local_blob(broken, mime="image/png", sha256="2" * 64)
    made = await sheets.album([("1", lost), ("2", picture(tmp_path / "ok", GREEN))])
    sheet = opened(made.data).convert("L")
    one, other = (made.width - 5, made.height // 4), (made.width - 5, 3 * made.height // 4)
    assert sheet.getpixel(one) == pytest.approx(255, abs=5)
    assert nearest(opened(made.data), other) == "2"
    with pytest.raises(MediaRefused, match="none of these"):
        await sheets.album([("1", lost)])


@pytest.mark.parametrize("count", [0, CELLS_AT_MOST + 1])
async def test_a_sheet_holds_only_so_many(sheets: Sheets, tmp_path: Path, count: int) -> None:
    with pytest.raises(MediaRefused, match="between 1 and 30"):
        await sheets.album([("1", picture(tmp_path / "one", RED))] * count)


def test_every_label_can_be_read_on_light_and_dark() -> None:
    prepare()
    for colour in ((255, 255, 255), (0, 0, 0)):
        plain = Image.new("RGB", (400, 300), colour)
        sheet = laid_out([("1:23:45", plain)], max_side=400).convert("L")
        lowest, highest = sheet.crop((0, 0, 120, 40)).getextrema()
        assert lowest == 0 and highest == 255
    other = laid_out([("8", plain)], max_side=400)
    assert other.tobytes() != laid_out([("3", plain)], max_side=400).tobytes()


def test_small_pictures_are_not_blown_up_to_a_large_sheet() -> None:
    small = Image.new("RGB", (64, 32))
    assert laid_out([(str(number), small) for number in range(9)], max_side=1_568).width <= 3 * 164


@pytest.mark.parametrize("shape", [(1, 400), (400, 1), (90, 160)], ids=str)
def test_odd_shapes_fit_too(shape: tuple[int, int]) -> None:
    sheet = laid_out([(str(number), Image.new("RGB", shape)) for number in range(7)], max_side=300)
    assert max(sheet.size) <= 300


def test_times_are_written_as_a_player_does_and_with_tenths_where_they_would_be_the_same() -> None:
    assert stamps([0.0, 9.96, 61.5, 3_725.0]) == ["0:00", "0:09", "1:01", "1:02:05"]
    assert stamps([0.2, 0.75, 61.5]) == ["0:00.2", "0:00.7", "1:01.5"]


async def test_a_sheet_of_a_video_shows_its_frames_in_order(tmp_path: Path) -> None:
    path = tmp_path / "in"
    colours = list(COLOURS.values())
    path.write_bytes(
        video(18, size=(160, 96), picture=lambda number: Image.new("RGB", (160, 96), colours[number // 6]))
    )
    blob = local_blob(path, mime="video/mp4", sha256="3" * 64)
    made = await Videos(Here(), tmp_path / "scratch", open_local).sheet(blob, count=9, max_side=600, max_bytes=50_000)
    sheet = opened(made.data)
    assert max(made.width, made.height) <= 600
    rows = [(made.width - 20, (2 * row + 1) * made.height // 6) for row in range(3)]
    assert [nearest(sheet, place) for place in rows] == ["1", "2", "3"]


@pytest.mark.parametrize("content", [b"", b"no picture", b"\xff" * 2_000], ids=["nothing", "text", "too much"])
async def test_the_sheet_a_child_wrote_is_checked(tmp_path: Path, content: bytes) -> None:
    sheets = Sheets(Images(Here(), tmp_path, open_local), Lying({}, content), tmp_path / "scratch")
    with pytest.raises(MediaRefused):
        await sheets.album([("1", picture(tmp_path / "one", RED))], max_bytes=1_000)


@pytest.mark.slow
async def test_behind_the_walls_the_labels_can_be_written_too(shut_in: Sheets, tmp_path: Path) -> None:
    items = [(str(number), picture(tmp_path / "one", RED)) for number in range(10)]
    made = await shut_in.album(items)
    label = opened(made.data).convert("L").crop((0, 0, 30, 30))
    assert made.mime == "image/jpeg" and max(label.tobytes()) > 200 and min(label.tobytes()) < 20
