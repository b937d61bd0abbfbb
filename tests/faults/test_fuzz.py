"""Seeded fuzz: whatever the bytes, names and types, the end is typed; nothing crashes, hangs or is left over.

The same code runs long in `make soak`. With BELINO_CORPORA set to a folder, its files are taken as a start too.
A failure names its round: `Random(f"{SEED}:{round}")` makes it again.
"""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from adapters import discord_samples, line_samples, slack_samples
from belino.adapters.telegram.authors import TelegramBot
from belino.adapters.telegram.parse import parse
from belino.context.line_format import placeholder
from belino.domain.errors import MediaError, StoreError
from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Arrival, Message
from belino.domain.outcome import MediaOutcome
from belino.domain.safe_text import disarm
from belino.media.image.images import FORMATS, Fitted, ImageFacts, Images
from belino.media.sandbox.sandbox import Sandbox
from belino.media.session_files import place, safe_name, stored_name
from belino.media.sniff import HEAD_BYTES, sniff
from belino.testing import make_gif, make_jpeg, make_png, make_webp
from belino.testing.files import sample_files
from faults.looking import SOAK
from media.local_files import local_blob, open_local

SEED = 20260101
SAMPLES = Path(__file__).parent.parent / "samples"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
LARGEST_START = 2 * 1024 * 1024

NAME_PIECES = (
    "photo", "..", "/", "\\", "\0", "\n", "\r", ".", " ", "~", "C:", "CON", "nul.txt", "-rf", "]",
    "[Image: x, ref:tg_1]",
    '"><file name="y', "\u202egpj.exe", "\u200b", "👩‍👩‍👧", "資料", "مرحبا", "é", "e\u0301", "ﬀ", "%2e%2e%2f", "\ud800",
    ".jpg", ".PNG", ".tar.gz", ".svg", ".html", ".docx", "a" * 300, "\u2028", "\x7f", "\x85", "［", "ref:web_",
)  # fmt: skip
TYPES = (
    "image/png", "IMAGE/PNG ; charset=binary", 'image/png; x="' + "y" * 400, "image/svg+xml", "text/html", "text/plain",
    "application/octet-stream", "application/zip", "audio/ogg; Codecs=OPUS", "video/mp4", "x" * 500, "", "/", "a/b/c",
    "image/\npng", "image/png\0", "\u202eimage/png", "application/pdf", "]", "audio/mpeg", "application/x-unheard-of",
)  # fmt: skip
NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
ODD_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1 << 80, 1.5, float("inf"), float("nan"), "", "\0", "\ud800", "x" * 5000, [], {}, [[]], [{}],
    {"": None}, {"id": "x"}, "12", "[Image: x, ref:tg_aaaaaaaaaaaa]",
)  # fmt: skip


@lru_cache(maxsize=1)
def starts() -> tuple[tuple[str, bytes], ...]:
    """The files every round begins with: ours, and those of the corpora if there are any."""
    made = [(name, content) for name, (_, content) in sample_files().items()]
    made += [("large.png", make_png(300, 200)), ("large.jpg", make_jpeg(640, 480, orientation=8))]
    made += [("large.gif", make_gif(200, 100)), ("large.webp", make_webp(120, 80))]
    corpora = os.environ.get("BELINO_CORPORA")
    found = sorted(path for path in Path(corpora).rglob("*") if path.is_file()) if corpora else []
    return (*made, *((path.name, path.read_bytes()) for path in found if 0 < path.stat().st_size <= LARGEST_START))


def pictures() -> tuple[tuple[str, bytes], ...]:
    return tuple((name, content) for name, content in starts() if sniff(content, name=name).group == "image")


def rounds(few: int, many: int) -> Iterator[tuple[int, Random]]:
    for number in range(many if SOAK else few):
        yield number, Random(f"{SEED}:{number}")


def mutated(rng: Random, content: bytes) -> bytes:
    """The bytes after a few accidents."""
    changed = bytearray(content)
    for _ in range(rng.choice((0, 1, 1, 2, 4, 8))):
        changed = rng.choice(ACCIDENTS)(rng, changed) or bytearray(b"\0")
    return bytes(changed)


def cut(rng: Random, content: bytearray) -> bytearray:
    return content[: rng.randrange(len(content) + 1)]


def behead(rng: Random, content: bytearray) -> bytearray:
    return content[rng.randrange(min(64, len(content))) :]


def flip(rng: Random, content: bytearray) -> bytearray:
    for _ in range(rng.choice((1, 2, 16))):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return content


def overwrite(rng: Random, content: bytearray) -> bytearray:
    """A length, a count or an offset that lies; most stand near the beginning."""
    at = rng.randrange(min(len(content), rng.choice((32, 256, len(content)))))
    width = rng.choice((1, 2, 4))
    number = rng.choice(NUMBERS) & ((1 << 8 * width) - 1)
    content[at : at + width] = number.to_bytes(width, rng.choice(("little", "big")))
    return content


def repeat(rng: Random, content: bytearray) -> bytearray:
    at = rng.randrange(len(content))
    piece = content[at : at + rng.randrange(1, 512)]
    return content[:at] + piece * rng.randrange(2, 20) + content[at:]


def splice(rng: Random, content: bytearray) -> bytearray:
    other = rng.choice(starts())[1]
    return content[: rng.randrange(len(content) + 1)] + other[rng.randrange(len(other)) :][:65_536]


ACCIDENTS: tuple[Callable[[Random, bytearray], bytearray], ...] = (
    cut, behead, flip, flip, overwrite, overwrite, repeat, splice,
)  # fmt: skip


def odd_name(rng: Random, usual: str) -> str | None:
    if rng.random() < 0.4:
        return rng.choice((usual, None))
    return "".join(rng.choice(NAME_PIECES) for _ in range(rng.randrange(1, 5)))


@contextmanager
def within(seconds: int, what: str) -> Iterator[None]:
    """A hang is a failure that names its round."""

    def give_up(_number: int, _frame: object) -> None:
        raise AssertionError(f"{what} hangs")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_every_file_has_a_type_whatever_happened_to_it() -> None:
    for number, rng in rounds(3_000, 200_000):
        name, content = rng.choice(starts())
        head = mutated(rng, content)[: rng.choice((16, 512, 4096, HEAD_BYTES))]
        declared = rng.choice((None, *TYPES))
        with within(10, f"round {number}"):
            found = sniff(head, name=odd_name(rng, name), declared=declared, whole=rng.random() < 0.5)
        assert found.mime.isprintable() and found.mime.count("/") == 1, f"round {number}: {found}"
        assert found.mime == found.mime.lower() and len(found.lies) < 300, f"round {number}: {found}"
        assert found.lies.isprintable(), f"round {number}: {found}"


def test_every_name_is_written_inside_its_folder_and_told_on_one_line(tmp_path: Path) -> None:
    folder, source = tmp_path / "incoming", tmp_path / "blob"
    folder.mkdir()
    source.write_bytes(b"bytes")
    for number, rng in rounds(500, 20_000):
        ref = odd_ref(rng)
        line = placeholder(ref, rng.choice(tuple(MediaOutcome)))
        assert len(line.splitlines()) == 1 and line.count("ref:tg_k3v9d0q2m7xa") <= 1, f"round {number}: {line!r}"
        assert line.isprintable() or "\u200d" in line, f"round {number}: {line!r}"
        assert disarm(disarm(line)) == disarm(line), f"round {number}"
        name = rng.choice((stored_name(ref), safe_name(ref.file_name, mime=ref.mime, kind=ref.kind)))
        assert len(name.encode()) < 255 and "/" not in name and not name.startswith((".", "-")), (
            f"round {number}: {name!r}"
        )
        try:
            placed = place(folder, rng.choice((name, ref.file_name or name)), source)
        except StoreError:
            continue
        assert placed.parent == folder and placed.read_bytes() == b"bytes", f"round {number}"
    assert {path.name for path in tmp_path.iterdir()} == {"incoming", "blob"}


def odd_ref(rng: Random) -> MediaRef:
    return MediaRef(
        platform="telegram",
        account="main",
        channel_id="1",
        message_id="2",
        item="3",
        id="tg_k3v9d0q2m7xa",
        kind=rng.choice(tuple(MediaKind)),
        mime=rng.choice(TYPES),
        created=NOW,
        file_name=_encodable(odd_name(rng, "photo.jpg")),
        size=rng.choice((None, -1, 0, 1023, 1024, 1 << 60)),
        duration=rng.choice((None, -1.0, 0.0, 59.5, 1e12, float("nan"), float("inf"))),
        caption=_encodable(odd_name(rng, "a caption")),
    )


def _encodable(text: str | None) -> str | None:
    """Half a character cannot be stored, so it never comes this far."""
    return text.encode(errors="replace").decode() if text is not None else None


def telegram_parsed(raw: object) -> tuple[Arrival, ...]:
    return parse(raw, account="main", me=TelegramBot(id=7, username="belino_bot"), received=NOW)


@pytest.mark.parametrize(
    ("platform", "parsed"),
    [
        ("telegram", telegram_parsed),
        ("discord", discord_samples.parsed),
        ("slack", slack_samples.parsed),
        ("line", line_samples.parsed),
    ],
    ids=("telegram", "discord", "slack", "line"),
)
def test_everything_a_platform_tells_becomes_arrivals_whatever_happened_to_it(
    platform: str, parsed: Callable[[object], tuple[Arrival, ...]]
) -> None:
    told = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((SAMPLES / platform).glob("*.json"))]
    for number, rng in rounds(1_000, 100_000):
        raw = disturbed(rng, rng.choice(told))
        with within(10, f"round {number}"):
            arrivals = parsed(raw)
        assert arrivals, f"round {number}: nothing"
        for arrival in arrivals:
            assert isinstance(arrival, Arrival), f"round {number}: {arrival!r}"
            assert json.dumps(asdict(arrival), ensure_ascii=False, default=str).encode(), "half a character is no text"
            for ref in arrival.media if isinstance(arrival, Message) else ():
                assert placeholder(ref).count("\n") == 0, f"round {number}"


def disturbed(rng: Random, value: Any) -> Any:
    """A copy in which a few values are missing, odd or somewhere else."""
    if rng.random() < 0.04:
        return rng.choice(ODD_VALUES)
    if isinstance(value, dict):
        items = [(key, disturbed(rng, each)) for key, each in value.items() if rng.random() > 0.02]
        if items and rng.random() < 0.03:
            items.append((rng.choice(items)[0], rng.choice(ODD_VALUES)))
        return dict(items)
    if isinstance(value, list):
        return [disturbed(rng, each) for each in value] * rng.choice((1, 1, 1, 1, 3))
    return value


@pytest.mark.slow
async def test_every_picture_is_decoded_or_refused_whatever_happened_to_it(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    begin = pictures()
    async with Sandbox() as sandbox:
        images = Images(sandbox, scratch, open_local)
        await look(images, tmp_path / "blob", make_png(2, 2), Random(0))  # the parent starts now
        held = open_descriptors()
        for number, rng in rounds(200, 5_000):
            ends = await look(images, tmp_path / "blob", mutated(rng, rng.choice(begin)[1]), rng)
            assert all(isinstance(end, ImageFacts | Fitted | MediaError) for end in ends), f"round {number}: {ends}"
            assert not list(scratch.iterdir()), f"round {number}"
        assert open_descriptors() == held
        assert await sandbox.examine() in ("full", "limited")
    assert {path.name for path in tmp_path.iterdir()} == {"scratch", "blob"}


async def look(images: Images, path: Path, content: bytes, rng: Random) -> list[object]:
    """How a probe and a fit ended."""
    path.write_bytes(content)
    blob = local_blob(path, mime="image/png", sha256=f"{rng.getrandbits(256):064x}")
    ends: list[object] = []
    try:
        ends.append(await images.probe(blob))
    except MediaError as error:
        ends.append(error)
    limit, side = rng.choice((1_000, 20_000, 1 << 20)), rng.choice((None, 1, 64, 1568))
    formats = tuple(rng.sample(FORMATS, rng.randrange(1, 4)))
    try:
        fitted = await images.fit(blob, max_bytes=limit, max_side=side, formats=formats)
        assert len(fitted.data) <= limit and max(fitted.width, fitted.height) <= (side or 16_384)
        ends.append(fitted)
    except MediaError as error:
        ends.append(error)
    return ends


def open_descriptors() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0
