"""A glance shows what there is, says why there is not more, and says nothing of what was deleted."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from belino.domain.errors import MediaError, MediaNotFound, MediaRefused
from belino.domain.media import Blob, DocumentText, DocumentUnit, Part, Unread
from belino.domain.units import NoRange
from belino.media.preview import FilePreview, Loudness, Nothing, Shape, Words, glance, picture, promised
from belino.media.render import Makers, Renderer
from belino.media.renditions import CannotRender, Item
from belino.media.stream_header import SoundFacts

PDF = "application/pdf"


@dataclass
class Hand:
    """Reads what it is told to, and fails when it is told to."""

    text: DocumentText = field(default_factory=lambda: DocumentText(unit=DocumentUnit.PART, total=0))
    error: MediaError | None = None

    async def read(self, blob: Blob, **_: object) -> DocumentText:
        if self.error:
            raise self.error
        return self.text

    async def probe(self, blob: Blob) -> SoundFacts:
        return SoundFacts(codec="opus", seconds=4.5)

    async def waveform(self, blob: Blob, *, points: int) -> tuple[int, ...]:
        assert self.error is not None
        raise self.error


def made(hand: Hand) -> Renderer:
    maker: Any = hand
    return Renderer(Makers(images=maker, documents=maker, videos=maker, sounds=maker, windows=maker, sheets=maker))


def item(mime: str) -> Item:
    return Item(blob=Blob(sha256="0" * 64, size=1, mime=mime), title="it")


def pages(*texts: str, **more: Any) -> DocumentText:
    parts = tuple(Part(number=number, text=text) for number, text in enumerate(texts, 1))
    return DocumentText(unit=DocumentUnit.PAGE, total=len(texts), parts=parts, **more)


@pytest.mark.parametrize(
    ("mime", "shape"),
    [
        ("video/mp4", Shape.POSTER),
        ("Audio/OGG; codecs=opus", Shape.WAVEFORM),
        ("image/heic", Shape.PICTURE),
        ("image/svg+xml", Shape.PICTURE),
        ("application/zip", Shape.TEXT),
        ("text/csv", Shape.TEXT),
        ("application/octet-stream", None),
        ("nonsense", None),
    ],
)
def test_a_type_promises_what_there_is_to_see(mime: str, shape: Shape | None) -> None:
    assert promised(mime) is shape


async def test_a_cut_never_falls_inside_a_character() -> None:
    family = "👩‍👩‍👧"
    seen = await glance(made(Hand(pages(f"abc{family}d"))), item(PDF), FilePreview(chars=5))
    assert isinstance(seen, Words)
    assert (seen.text, seen.rest) == ("abc", 3)


@pytest.mark.parametrize("chars", [1, 2, 7])
async def test_reading_on_always_comes_to_an_end(chars: int) -> None:
    whole = "👩‍👩‍👧 abc " * 3
    read, offset = "", 0
    for _ in range(len(whole)):
        seen = await glance(made(Hand(pages(whole))), item(PDF), FilePreview(offset=offset, chars=chars))
        assert isinstance(seen, Words)
        read += seen.text
        if seen.rest is None:
            break
        assert seen.rest > offset
        offset = seen.rest
    assert read == whole


async def test_a_page_without_text_is_a_scan_only_where_pages_can_be_drawn() -> None:
    scan = await glance(made(Hand(pages("", unread=Unread.RENDERED))), item(PDF), FilePreview())
    assert isinstance(scan, Words) and scan.drawn
    word = await glance(made(Hand(pages("", unread=Unread.NO_TEXT))), item("application/rtf"), FilePreview())
    assert word == Nothing(reason="no text", failed=False)


async def test_a_page_beyond_the_last_is_told_how_many_there_are() -> None:
    text = DocumentText(unit=DocumentUnit.PAGE, total=3)
    with pytest.raises(NoRange, match="it has only 3 pages"):
        await glance(made(Hand(text)), item(PDF), FilePreview(part=4))


async def test_a_sound_that_cannot_be_drawn_still_tells_its_length() -> None:
    seen = await glance(made(Hand(error=MediaRefused("too odd."))), item("audio/ogg"), FilePreview())
    assert seen == Loudness(seconds=4.5, heights=(), reason="too odd")


async def test_what_fails_says_why_and_what_was_deleted_says_nothing() -> None:
    seen = await glance(made(Hand(error=MediaError("the sandbox\u202e is busy"))), item(PDF), FilePreview())
    assert seen == Nothing(reason="the sandbox is busy", failed=True)
    for mime in (PDF, "audio/ogg"):
        with pytest.raises(MediaNotFound):
            await glance(made(Hand(error=MediaNotFound("gone"))), item(mime), FilePreview())


async def test_there_is_no_picture_of_a_text() -> None:
    with pytest.raises(CannotRender):
        await picture(made(Hand()), item("text/plain"), 1)
