"""A presentation of the old kind is read slide by slide, as it was saved last."""

import io

import pytest

from belino.domain.media import DocumentText, DocumentUnit
from belino.readers import legacy_slides
from belino.readers.parts import CannotRead, ReadOptions
from readers.office97 import make_slides97, words


def read(content: bytes, **options: int) -> DocumentText:
    return legacy_slides.read(io.BytesIO(content), ReadOptions(mime="", **options))  # type: ignore[arg-type]


def test_the_title_comes_first_then_the_text_then_what_the_speaker_says() -> None:
    text = read(make_slides97((words("Body\rMore") + words("Plan", 0), "Say hello", False), (words("x"), "", False)))
    assert (text.unit, text.total) == (DocumentUnit.SLIDE, 2)
    assert (text.parts[0].title, text.parts[0].text) == ("Plan", "# Plan\n\nBody\nMore\n\nNotes: Say hello")
    assert text.parts[1].text == "x"


def test_texts_of_the_outline_stand_where_the_slide_refers_to_them() -> None:
    text = read(make_slides97((words("Box"), "", False), outline=words("Première", 1)))
    assert text.parts[0].text == "Première\n\nBox"


def test_only_the_slides_asked_for_are_read_and_hidden_ones_are_marked() -> None:
    made = make_slides97(*[(words(name), "", name == "b") for name in "abc"])
    text = read(made, first=2, last=2)
    assert [(part.number, part.text) for part in text.parts] == [(2, "(hidden slide)\n\nb")]
    assert text.total == 3 and text.notes == ("hidden slides are marked",)


def test_slides_that_nobody_lists_are_found_all_the_same() -> None:
    text = read(make_slides97((words("a"), "", False), (words("b"), "", False), lost=True))
    assert [part.text for part in text.parts] == ["a", "b"]
    assert "damaged" in text.notes[0]


def test_a_stream_that_is_said_to_be_larger_than_the_file_is_not_followed() -> None:
    made = bytearray(make_slides97((words("a"), "", False)))
    entry = made.index("PowerPoint Document".encode("utf-16-le"))
    made[entry + 120 : entry + 128] = (2**30).to_bytes(8, "little")
    with pytest.raises(CannotRead, match="broken"):
        read(bytes(made))


@pytest.mark.parametrize("at", [30, 32])
@pytest.mark.parametrize("shift", [0, 10, 40, 255])
def test_sectors_of_a_size_that_does_not_exist_are_not_read(at: int, shift: int) -> None:
    made = bytearray(make_slides97((words("a"), "", False)))
    made[at : at + 2] = shift.to_bytes(2, "little")
    with pytest.raises(CannotRead, match="broken"):
        read(bytes(made))


def test_a_password_is_told_from_damage() -> None:
    with pytest.raises(CannotRead, match="password"):
        read(make_slides97((words("a"), "", False), locked=True))
