"""`belino media text|price` on local files, and `belino media fetch --as` beside a gateway and without one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PIL import Image

from belino.domain.tokens import estimate_tokens
from belino.media.image.header import image_size
from belino.media.render import ANSWER_TOKENS
from belino.testing.faults import FILE
from belino.testing.file_server import FakeUpload
from belino.testing.files import make_wav
from belino.testing.telegram import TOKEN
from cli.hikers import Scene, hikers
from cli.shell import Belino, Done, read
from media.videos import subtitled, video
from tools.papers import line, make_pages

pytestmark = pytest.mark.slow


REPORT = make_pages(*(line(f"Page {number} of the report") for number in range(1, 8)))


@pytest.mark.parametrize("suffix", ["tiff", "bmp", "avif"])
def test_a_picture_is_priced_in_each_form_by_its_real_size(belino: Belino, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"p.{suffix}"
    Image.new("RGB", (750, 500), "teal").save(file)
    answer = read(belino("media", "price", str(file), "--json"))
    assert (answer["width"], answer["height"]) == (750, 500)
    assert {form: cost["tokens"] for form, cost in answer["price"].items()} == {
        "text": 770,
        "image": 500,
        "thumb": 58,
        "file": 0,
    }


def test_a_text_is_priced_by_what_it_says(belino: Belino, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("word " * 80)
    price = read(belino("media", "price", str(tmp_path / "a.txt"), "--json"))["price"]
    assert price["text"]["tokens"] == estimate_tokens("word " * 79 + "word") + ANSWER_TOKENS
    assert price["text"]["bytes"] == 400


def test_a_document_and_a_sound_are_priced_as_they_are_where_the_agent_takes_them(
    belino: Belino, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.pdf").write_bytes(REPORT)
    (tmp_path / "a.wav").write_bytes(make_wav(2.0))
    assert "document" not in read(belino("media", "price", str(tmp_path / "a.pdf"), "--json"))["price"]
    home.mkdir(exist_ok=True)
    (home / "belino.toml").write_text(
        '[agent]\nkind = "llm"\nmodel = "google:gemini-2.5-flash"\napi_key = "env:GEMINI_API_KEY"\n'
    )
    prices = [
        read(belino("media", "price", str(tmp_path / name), "--json", GEMINI_API_KEY="canary-0123456789"))["price"]
        for name in ("a.pdf", "a.wav")
    ]
    assert prices[0]["document"]["tokens"] == 7 * 258 and prices[1]["audio"]["tokens"] == 64


def test_a_picture_that_cannot_be_shown_is_not_priced_as_one(belino: Belino, tmp_path: Path) -> None:
    (tmp_path / "a.heic").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0heicmif1" + b"\0" * 64)
    answer = read(belino("media", "price", str(tmp_path / "a.heic"), "--json"))
    assert answer["width"] is None and set(answer["price"]) == {"file"}


def test_a_video_is_priced_with_its_length_and_a_person_reads_it(belino: Belino, tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(video(frames=40, size=(160, 90)))
    done = belino("media", "price", str(tmp_path / "a.mp4"))
    assert done.returncode == 0 and done.stdout.startswith("a.mp4: video/mp4, 160×90, 4s, ")
    assert [row.split()[:2] for row in done.stdout.splitlines()[2:]] == [
        ["frames", "114"],
        ["sheet", "~1600"],
        ["file", "0"],
        ["text", "~770"],
    ]


def test_the_text_of_a_local_video_is_its_subtitles_at_the_price_told_before(belino: Belino, tmp_path: Path) -> None:
    (tmp_path / "talk.mp4").write_bytes(subtitled())
    cost = read(belino("media", "price", str(tmp_path / "talk.mp4"), "--json"))["price"]["text"]
    done = belino("media", "text", str(tmp_path / "talk.mp4"))
    assert "[0:01] second line" in done.stdout and cost["tokens"] < 150


def test_the_text_of_a_local_file_and_of_some_of_its_pages(belino: Belino, tmp_path: Path) -> None:
    (tmp_path / "report.pdf").write_bytes(REPORT)
    done = belino("media", "text", str(tmp_path / "report.pdf"), "--pages", "2-3")
    assert done.stdout == "--- page 2 ---\nPage 2 of the report\n--- page 3 ---\nPage 3 of the report\n"
    whole = read(belino("media", "text", str(tmp_path / "report.pdf"), "--json"))
    assert whole["text"].count("of the report") == 7
    assert whole["pages"] == [{"page": number, "read_by": "belino"} for number in range(1, 8)]


def test_a_link_is_what_it_names(belino: Belino, tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("good words")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    assert read(belino("media", "text", "--json", str(tmp_path / "link.txt")))["text"] == "good words"


def test_a_text_longer_than_any_page_of_it_is_told_whole(belino: Belino, tmp_path: Path) -> None:
    lines = [f"line {number} of a very long book, in which little happens" for number in range(20_000)]
    (tmp_path / "book.txt").write_text("\n".join(lines))
    done = belino("media", "text", str(tmp_path / "book.txt"))
    assert [row for row in done.stdout.splitlines() if row.startswith("line")] == lines


@pytest.mark.parametrize(
    ("name", "content", "more", "says"),
    [
        ("a.wav", b"RIFF\x24\0\0\0WAVEfmt ", (), "belino finds no text in audio/wav"),
        ("a.pdf", b"%PDF-1.7\n%%EOF", (), "could not be read"),
        ("a.txt", b"", (), "belino: the file is empty\n"),
        ("a.txt", b"words", ("--pages", "9"), "it has only 1 part"),
        ("a.txt", b"words", ("--pages", "x"), "pages must be a number or a range"),
    ],
    ids=["sound", "broken", "empty", "beyond", "nonsense"],
)
def test_what_has_no_text_is_told_in_a_sentence(
    belino: Belino, tmp_path: Path, name: str, content: bytes, more: tuple[str, ...], says: str
) -> None:
    (tmp_path / name).write_bytes(content)
    done = belino("media", "text", str(tmp_path / name), *more)
    assert done.returncode == 1 and done.stderr.startswith("belino: ") and says in done.stderr and not done.stdout
    assert "as=file" not in done.stderr, "who has the file needs no copy of it"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--max-tokens", "10"), "--max-tokens must be a number from 300 to 100000"),
        (("--cursor", "x"), "cursor must be what the end of the page before said"),
        (("--time-range", "1:10-0:30"), "time_range must begin before it ends"),
    ],
    ids=["tokens", "cursor", "times"],
)
def test_what_cannot_be_followed_is_told_before_anybody_is_asked(
    belino: Belino, more: tuple[str, ...], says: str
) -> None:
    done = belino("media", "fetch", "tg_000000000000", "--as", "text", *more)
    assert done.returncode == 1 and done.stderr.startswith(f"belino: {says}")


def test_what_a_file_says_cannot_command_the_terminal(belino: Belino, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("red \x1b[31mred\x07 and \u202ebackwards\tend")
    done = belino("media", "text", str(tmp_path / "a.txt"))
    assert "\x1b" not in done.stdout and "\x07" not in done.stdout and "\u202e" not in done.stdout
    assert "\tend" in done.stdout


@pytest.fixture
async def scene(home: Path) -> AsyncIterator[Scene]:
    """A report and a film."""
    film = video(frames=40, size=(160, 90))
    sent = (
        {"document": FakeUpload(content=REPORT, name="report.pdf", mime="application/pdf")},
        {"video": FakeUpload(content=film, name="film.mp4", mime="video/mp4")},
    )
    async with hikers(home, *sent) as scene:
        yield scene


async def test_a_ref_in_any_form_from_a_running_gateway_and_then_without_one(
    belino: Belino, scene: Scene, tmp_path: Path
) -> None:
    async def fetch(*arguments: str) -> Done:
        return await asyncio.to_thread(belino, "media", "fetch", *arguments, BOT_TOKEN=TOKEN)

    report, film = scene.refs
    for running in (True, False):
        if not running:
            await asyncio.to_thread(scene.gateway.stop)
        told = await fetch(report, "--as", "text", "--pages", "3-4")
        assert told.returncode == 0, told.stderr
        assert told.stdout.splitlines()[0].endswith("7 pages. You read pages 3-4.")
        assert told.stdout.endswith("--- page 4 ---\nPage 4 of the report\n")
        out = tmp_path / f"frames-{running}.jpg"
        found = read(await fetch(film, "--as", "frames", "--time-range", "0:01-0:03", "-o", str(out), "--json"))
        pictures = found["rendered"]["pictures"]
        assert len(pictures) == 6 and pictures[0]["path"] == str(tmp_path / f"frames-{running}-1.jpg")
        assert all(image_size(Path(each["path"]).read_bytes()) for each in pictures)
        late = await fetch(film, "--as", "frames", "--time-range", "5:00-6:00")
        assert late.returncode == 1 and "it lasts only 0:04" in late.stderr
        page = await fetch(report, "--as", "image", "--pages", "2", "-o", str(tmp_path / f"page-{running}.png"))
        assert page.returncode == 0 and image_size((tmp_path / f"page-{running}.png").read_bytes())
        written = await fetch(report, "--as", "text", "-o", str(tmp_path / "report.txt"))
        assert written.returncode == 0 and (tmp_path / "report.txt").read_text().count("of the report") == 7
    assert scene.server.calls[FILE] == 2
    await asyncio.to_thread(scene.gateway.start)


async def test_without_a_gateway_what_is_not_held_has_no_form(belino: Belino, scene: Scene) -> None:
    await asyncio.to_thread(scene.gateway.stop)
    done = await asyncio.to_thread(belino, "media", "fetch", scene.refs[0], "--as", "text", BOT_TOKEN=TOKEN)
    assert done.returncode == 69 and "start `belino serve`" in done.stderr
    await asyncio.to_thread(scene.gateway.start)
