"""Scenes: pictures, documents, videos and sounds like those that people send, of exactly the announced size."""

import io
import math
import struct
import zipfile
from array import array
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from belino.testing.files import make_pdf, make_webp

if TYPE_CHECKING:
    from PIL.Image import Image

WIDTH, HEIGHT = 1280, 960
VARIETIES = 8
SCENES = ("hills", "board", "hills", "chart", "hills", "receipt")

_NOTES = {
    "board": (
        "WHO BRINGS WHAT",
        "Ana      tent, stove",
        "Bo       coffee (lots)",
        "Chidi    first aid",
        "Dana     maps",
    ),
    "receipt": (
        "HARBOUR CAFE",
        "4 x fish soup   38.00",
        "2 x pie         11.00",
        "coffee          12.50",
        "TOTAL 61.50",
    ),
}
_VOTES = {"Tacos": 7, "Soup": 3, "Pizza": 9, "Grill": 5}
_PACKING = ("Packing list", "Tent and all of its poles", "Stove, matches, coffee", "Boots: the path is muddy", "Maps")
_SITE = "http://schemas.openxmlformats.org"
_COMMENT = 0xFE
FRAMES_A_SECOND = 2
VOICE_RATE = 48_000
VOICE_BITS = 24_000
VOICE_BYTES_A_SECOND = 4_000
"""More than the recording takes, so that there is something left to pad."""
FILM_BYTES_A_SECOND = 250_000
SONG_BYTES_A_SECOND = 16_000

_PIECE = VOICE_RATE // 50
_WAVES = 4
"""Whole periods in a piece, so that its ends are inaudible."""
_LOUDEST = 9_000


def picture(scene: str, size: int, variety: int) -> bytes:
    """A photo of a scene as a JPEG of exactly this many bytes."""
    for quality in (85, 70, 50, 30, 10):
        made = _photo(scene, variety % VARIETIES if scene == "hills" else 0, quality)
        if len(made) <= size - 4:
            break
    return _padded_jpeg(made, size)


@lru_cache(maxsize=64)
def _photo(scene: str, variety: int, quality: int) -> bytes:
    from PIL import Image as Images

    drawn = hills(variety) if scene == "hills" else _chart() if scene == "chart" else _written(scene)
    grain = Images.effect_noise((WIDTH, HEIGHT), 18).convert("RGB")
    made = io.BytesIO()
    Images.blend(drawn, grain, 0.06).save(made, "JPEG", quality=quality)
    return made.getvalue()


def sticker(size: int) -> bytes:
    """A lossless WebP of 512 pixels, with a chunk that readers skip."""
    body = make_webp(512, 512)[8:]
    pad = max(0, size - len(body) - 16) & ~1
    body += b"XTRA" + struct.pack("<I", pad) + bytes(pad)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def table(size: int) -> bytes:
    """A CSV of expenses."""
    lines = b"".join(b"2026-07-%02d;Ana;boat;%d.50\n" % (day % 28 + 1, day % 90) for day in range(size // 20 + 1))
    return (b"day;who;what;amount\n" + lines)[:size]


def report(size: int) -> bytes:
    """A PDF of one page, padded with a comment."""
    page = make_pdf("Tide table and ferry times")
    end = page[page.rindex(b"startxref") :]
    return page + b"%" + b" " * max(0, size - len(page) - len(end) - 2) + b"\n" + end


def letter(size: int) -> bytes:
    """A Word document with a large picture in it."""
    return _zipped(size - len(_zipped(0)))


def _zipped(padding: int) -> bytes:
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    leads = f"{_SITE}/officeDocument/2006/relationships/officeDocument"
    lines = "".join(f"<w:p><w:r><w:t>{line}</w:t></w:r></w:p>" for line in _PACKING)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as file:
        for name, text in {
            "[Content_Types].xml": f'<Types xmlns="{_SITE}/package/2006/content-types">'
            f'<Override PartName="/word/document.xml" ContentType="{main}"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{_SITE}/package/2006/relationships">'
            f'<Relationship Id="rId1" Type="{leads}" Target="word/document.xml"/></Relationships>',
            "word/document.xml": f'<w:document xmlns:w="{_SITE}/wordprocessingml/2006/main">'
            f"<w:body>{lines}</w:body></w:document>",
        }.items():
            file.writestr(zipfile.ZipInfo(name), text)
        file.writestr(zipfile.ZipInfo("word/media/image1.bin"), bytes(max(0, padding)))
    return made.getvalue()


def _padded_jpeg(jpeg: bytes, size: int) -> bytes:
    """Pad with comments before the last marker: decoders skip them."""
    missing, comments = size - len(jpeg), b""
    while missing >= 4:
        length = min(missing, 65_537)
        # The rest must be zero or enough for another comment.
        length -= 4 if 0 < missing - length < 4 else 0
        comments += struct.pack(">BBH", 0xFF, _COMMENT, length - 2) + bytes(length - 4)
        missing -= length
    return jpeg[:-2] + comments + jpeg[-2:]


def hills(variety: int) -> "Image":
    from PIL import Image as Images
    from PIL import ImageDraw

    rng = Random(variety)  # noqa: S311 - scenery
    sky = Images.linear_gradient("L").resize((WIDTH, HEIGHT))
    warm, cool = Images.new("RGB", (WIDTH, HEIGHT), (250, 190, 140)), Images.new("RGB", (WIDTH, HEIGHT), (84, 128, 180))
    scene = Images.composite(warm, cool, sky)
    draw = ImageDraw.Draw(scene)
    x, y = rng.randint(300, 980), rng.randint(240, 420)
    draw.ellipse((x - 80, y - 80, x + 80, y + 80), fill=(255, 238, 200))
    for base, height, color in ((600, 130, (62, 116, 108)), (720, 110, (38, 84, 74)), (850, 60, (24, 56, 52))):
        tops = [(step * 160, base - rng.randint(0, height)) for step in range(9)]
        draw.polygon([(0, HEIGHT), *tops, (WIDTH, HEIGHT)], fill=color)
    return scene


def _chart() -> "Image":
    from PIL import Image as Images
    from PIL import ImageDraw, ImageFont

    scene = Images.new("RGB", (WIDTH, HEIGHT), (250, 249, 245))
    draw, font = ImageDraw.Draw(scene), ImageFont.load_default(size=52)
    draw.text((110, 60), "Dinner on Saturday", fill=(30, 40, 40), font=font)
    for place, (name, votes) in enumerate(_VOTES.items()):
        left = 130 + place * 280
        draw.rectangle((left, 820 - votes * 68, left + 180, 820), fill=(29, 107 + place * 20, 88))
        draw.text((left, 850), f"{name} {votes}", fill=(30, 40, 40), font=font)
    return scene


def _written(scene: str) -> "Image":
    from PIL import Image as Images
    from PIL import ImageDraw

    paper = Images.new("RGB", (WIDTH, HEIGHT), (238, 238, 232) if scene == "board" else (212, 202, 188))
    if scene == "receipt":
        ImageDraw.Draw(paper).rectangle((220, 40, 1060, 920), fill=(252, 251, 247))
    _write(paper, _NOTES[scene], 280 if scene == "receipt" else 120, step=150, size=64)
    return paper


def _write(paper: "Image", lines: Sequence[str], left: int, *, step: int, size: int) -> None:
    from PIL import ImageDraw, ImageFont

    draw, font = ImageDraw.Draw(paper), ImageFont.load_default(size=size)
    for row, line in enumerate(lines):
        draw.text((left, 110 + row * step), line, fill=(38, 52, 110), font=font)


def written_photo(lines: Sequence[str]) -> bytes:
    """A photo of a paper, board or screen with these lines."""
    from PIL import Image as Images

    paper = Images.new("RGB", (WIDTH, HEIGHT), (238, 238, 232))
    _write(paper, lines, 120, step=90, size=48)
    grain = Images.effect_noise(paper.size, 18).convert("RGB")
    made = io.BytesIO()
    Images.blend(paper, grain, 0.06).save(made, "JPEG", quality=70)
    return made.getvalue()


def scan(pages: Sequence[Sequence[str]]) -> bytes:
    """A PDF whose pages are pictures, as a scanner makes it."""
    from PIL import Image as Images

    sheets = []
    for lines in pages:
        sheets.append(Images.new("RGB", (1240, 1754), (252, 252, 250)))
        _write(sheets[-1], lines, 110, step=56, size=34)
    made = io.BytesIO()
    sheets[0].save(made, "PDF", save_all=True, append_images=sheets[1:], resolution=150)
    return made.getvalue()


def talk(sound: Path, lines: Sequence[str]) -> bytes:
    """An MP4 that shows these lines while a WAV is heard."""
    import av
    from PIL import Image as Images

    picture = Images.open(io.BytesIO(written_photo(lines))).resize((960, 720))
    written = io.BytesIO()
    with av.open(str(sound)) as source, av.open(written, "w", format="mp4") as target:
        shown: Any = target.add_stream("libx264", rate=FRAMES_A_SECOND, options={"preset": "ultrafast", "crf": "23"})
        shown.width, shown.height, shown.pix_fmt = *picture.size, "yuv420p"
        heard: Any = target.add_stream("aac", rate=16_000, layout="mono")
        seconds = 0.0
        for sample in source.decode(audio=0):
            seconds = float((sample.pts or 0) * (sample.time_base or 0)) + sample.samples / sample.sample_rate
            target.mux(heard.encode(sample))
        target.mux(heard.encode(None))
        for number in range(max(1, round(seconds * FRAMES_A_SECOND))):
            frame: Any = av.VideoFrame.from_image(picture)  # type: ignore[no-untyped-call]
            frame.pts, frame.time_base = number, Fraction(1, FRAMES_A_SECOND)
            target.mux(shown.encode(frame))
        target.mux(shown.encode(None))
    return written.getvalue()


def film(size: int, width: int, height: int) -> bytes:
    """An MP4 of a coast, padded with a free box."""
    shot = _film(size // FILM_BYTES_A_SECOND, width, height) if _can_record() else _no_film()
    return shot + struct.pack(">I", size - len(shot)) + b"free" + bytes(size - len(shot) - 8)


def voice(size: int) -> bytes:
    """A voice note: humming of varying loudness."""
    return (_voice(size // VOICE_BYTES_A_SECOND) if _can_record() else _no_voice()).ljust(size, b"\0")


def song(size: int) -> bytes:
    """Silence as MP3 frames."""
    frame = (b"\xff\xfb\x90\x64" + bytes(413)) * (size // 417 + 1)
    return (b"ID3\x03\x00\x00\x00\x00\x00\x00" + frame)[:size]


def _can_record() -> bool:
    """Whether PyAV is installed; without it videos and sounds are never decoded, and a header is enough."""
    return find_spec("av") is not None


@lru_cache(maxsize=16)
def _film(seconds: int, width: int, height: int) -> bytes:
    import av

    view = hills(seconds).resize((width * 5 // 4, height))
    frames = max(1, seconds) * FRAMES_A_SECOND
    written = io.BytesIO()
    with av.open(written, "w", format="mp4") as target:
        stream: Any = target.add_stream("libx264", rate=FRAMES_A_SECOND, options={"preset": "ultrafast", "crf": "30"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for number in range(frames):
            left = (view.width - width) * number // frames
            frame: Any = av.VideoFrame.from_image(view.crop((left, 0, left + width, height)))  # type: ignore[no-untyped-call]
            frame.pts, frame.time_base = number, Fraction(1, FRAMES_A_SECOND)
            target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
    return written.getvalue()


@lru_cache(maxsize=16)
def _voice(seconds: int) -> bytes:
    import av

    written = io.BytesIO()
    pieces = [_hum(_LOUDEST * loud // 8) for loud in range(1, 9)]
    with av.open(written, "w", format="ogg") as target:
        stream: Any = target.add_stream("libopus", rate=VOICE_RATE, options={"vbr": "off"})
        stream.layout, stream.bit_rate = "mono", VOICE_BITS
        for number in range(max(1, seconds) * 50):
            frame: Any = av.AudioFrame(format="s16", layout="mono", samples=_PIECE)
            frame.planes[0].update(pieces[int(7.99 * abs(math.sin(number / 9) * math.sin(number / 31)))])
            frame.sample_rate, frame.pts, frame.time_base = VOICE_RATE, number * _PIECE, Fraction(1, VOICE_RATE)
            target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
    return written.getvalue()


def _hum(loudness: int) -> bytes:
    turns = (math.sin(2 * math.pi * _WAVES * at / _PIECE) for at in range(_PIECE))
    return array("h", (int(loudness * turn) for turn in turns)).tobytes()


def _no_film() -> bytes:
    return struct.pack(">I", 24) + b"ftypisom" + struct.pack(">I", 512) + b"isommp42"


def _no_voice() -> bytes:
    head = b"OpusHead" + struct.pack("<BBHIhB", 1, 1, 312, VOICE_RATE, 0, 0)
    return b"OggS" + struct.pack("<BBqIIIB", 0, 2, 0, 1, 0, 0, 1) + bytes([len(head)]) + head
