"""A PDF is read page by page, and what nobody would see on a page is marked."""

import io
import tempfile

import pytest

from belino.domain.media import DocumentText, DocumentUnit, Unread
from belino.media.image.header import image_size
from belino.readers import pdf
from belino.readers.parts import HIDDEN_NOTE, CannotRead, ReadOptions
from readers.made import SCANNED, line, make_pdf


def read(content: bytes, **options: int) -> DocumentText:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        return pdf.read(file, ReadOptions(mime="application/pdf", **options))  # type: ignore[arg-type]


def drawn(content: bytes, number: int, max_side: int) -> bytes:
    written = io.BytesIO()
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        pdf.draw(file, written, number=number, max_side=max_side)
    return written.getvalue()


def test_each_page_is_a_part_and_only_those_asked_for_are_read() -> None:
    content = make_pdf(line("one"), line("two"), line("three"))
    whole, some = read(content), read(content, first=2, last=2)
    assert (whole.unit, whole.total) == (DocumentUnit.PAGE, 3)
    assert [part.text for part in whole.parts] == ["one", "two", "three"]
    assert [(part.number, part.text) for part in some.parts] == [(2, "two")]
    assert some.total == 3


def test_beyond_two_hundred_pages_reading_goes_on_by_number() -> None:
    content = make_pdf(*(line(str(number)) for number in range(1, 204)))
    text = read(content)
    assert (text.total, len(text.parts)) == (203, 200)
    assert text.reason == "", "nothing is lost: whoever wants more asks for it"
    assert [part.text for part in read(content, first=202).parts] == ["202", "203"]


def test_pages_beyond_the_last_are_not_there_and_said_so() -> None:
    text = read(make_pdf(line("one")), first=5)
    assert (text.parts, text.unread) == ((), None)
    assert "only one page" in text.reason


@pytest.mark.parametrize(
    "unseen",
    [
        line("give me money", y=150, how="3 Tr"),
        line("give me money", y=150, how="1 1 1 rg"),
        line("give me money", y=150, size=0.4),
        line("give me money", y=-150),
        line("give me money", x=900, y=150),
    ],
    ids=["invisible", "white", "tiny", "below the page", "beside the page"],
)
def test_text_that_nobody_sees_is_marked(unseen: str) -> None:
    text = read(make_pdf(line("Hello") + unseen + line("Bye", y=100)))
    assert text.parts[0].text.splitlines() == ["Hello", "(hidden text: give me money)", "Bye"]
    assert HIDDEN_NOTE in text.notes


def test_hidden_text_cannot_end_its_own_mark() -> None:
    text = read(make_pdf(line("Hello") + line("a\\) b \\(c", y=150, how="3 Tr")))
    assert text.parts[0].text.endswith("(hidden text: a] b [c)")


def test_white_text_on_a_dark_ground_is_seen() -> None:
    ground = "0 0 .5 rg 0 140 300 40 re f\n"
    text = read(make_pdf(line("Hello") + ground + line("Total", y=150, how="1 1 1 rg")))
    assert text.parts[0].text == "Hello\nTotal"
    assert not text.notes


@pytest.mark.parametrize(
    "content",
    [
        line("secret") + "1 g 0 190 300 30 re f\n",
        line("secret") + "0 g 0 190 300 30 re f\n",
        "0 g 0 190 300 30 re f\n" + line("secret"),
        ".5 g 0 190 300 30 re f\n" + line("secret", how=".5 g"),
        "1 g 0 190 300 30 re f\n" + line("secret", how="1 g"),
    ],
    ids=["under white", "under black", "black on black", "grey on grey", "white on white"],
)
def test_text_under_a_box_or_in_the_colour_of_its_ground_is_marked(content: str) -> None:
    assert read(make_pdf(content)).parts[0].text == "(hidden text: secret)"


GRADIENT = (
    "<< /Type /Pattern /PatternType 2 /Shading << /ShadingType 2 /ColorSpace /DeviceRGB /Coords [0 0 300 0] /Function"
    " << /FunctionType 2 /Domain [0 1] /C0 [0 0 .5] /C1 [.5 0 0] /N 1 >> >> >>"
)


@pytest.mark.parametrize(
    "content",
    [
        "/Pattern cs /P1 scn 0 190 300 30 re f\n" + line("title", how="1 g"),
        line("title", how="1 Tr 0 G 1 g"),
        line("title") + "/G1 gs 1 1 0 rg 0 190 300 30 re f\n",
        line("title") + "q 0 0 10 10 re W n 1 g 0 0 300 300 re f Q\n",
        "0 g 0 203 300 1 re f\n" + line("title"),
        "1 g 0 190 300 30 re f\n" + line("title", how="0 g"),
    ],
    ids=["white on a gradient", "outlined", "highlighted", "beside a clipped box", "struck through", "black on white"],
)
def test_text_that_is_seen_is_not_marked(content: str) -> None:
    about = "/Resources << /Font << /F1 3 0 R >> /Pattern << /P1 101 0 R >> /ExtGState << /G1 << /BM /Multiply >> >> >>"
    assert read(make_pdf(content, extra={101: GRADIENT}, page=about)).parts[0].text == "title"


def test_a_small_full_stop_is_not_taken_for_tiny_text() -> None:
    assert read(make_pdf(line("Hello") + line(".", y=150, size=8))).parts[0].text == "Hello\n."


def test_a_scan_has_no_text_and_is_to_be_looked_at() -> None:
    text = read(make_pdf(SCANNED, SCANNED))
    assert text.unread is Unread.RENDERED
    assert [part.text for part in text.parts] == ["", ""]


FAX = "From: ACME Ltd, fax 030 555 0142, on 17 November 2026 at 10:22, page 2 of 5"
PROSE = " ".join(["Running text that fills a page, line by line, over a picture in its background."] * 3)
SHAPES = "".join(f"{x} 50 3 9 re f\n" for x in range(0, 300, 5))


@pytest.mark.parametrize(
    "content",
    [
        SCANNED,
        SCANNED + line("7"),
        SCANNED + line(FAX),
        SCANNED + line("7") + line(PROSE, y=100, how="1 g 1 1 1 rg 3 Tr"),
        "q 300 0 0 150 0 150 cm /Im1 Do Q\nq 300 0 0 150 0 0 cm /Im1 Do Q\n" + line("7"),
        "q 30 0 0 30 0 0 cm /Im1 Do Q\n",
        SHAPES + line("Page 7"),
    ],
    ids=["bare", "page number", "fax header", "hidden text", "in strips", "small picture alone", "letters as shapes"],
)
def test_a_page_whose_text_is_in_its_picture_is_a_scan(content: str) -> None:
    assert [part.scanned for part in read(make_pdf(content)).parts] == [True]


@pytest.mark.parametrize(
    "content",
    [
        "",
        line("Chapter 3"),
        line("Chapter 3") + "0 0 300 1 re f\n",
        "q 30 0 0 30 0 0 cm /Im1 Do Q\n" + line("Thank you"),
        SCANNED + line(PROSE),
        SCANNED + line("Invoice 7 of November 2026", how="3 Tr"),
    ],
    ids=["blank", "short", "ruled", "with a logo", "on a picture", "recognised before"],
)
def test_a_page_with_text_worth_reading_is_none(content: str) -> None:
    assert [part.scanned for part in read(make_pdf(content)).parts] == [False]


def test_a_page_whose_letters_are_mere_numbers_in_a_font_counts_as_a_scan() -> None:
    drawn = "500 0 0 0 500 500 d1 0 0 9 9 re f"
    glyph = f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream"
    font = (
        "<< /Type /Font /Subtype /Type3 /FontBBox [0 0 500 500] /FontMatrix [0.001 0 0 0.001 0 0] /FirstChar 1 "
        "/LastChar 3 /Widths [500 500 500] /Encoding << /Type /Encoding /Differences [1 /g1 /g2 /g3] >> "
        "/CharProcs << /g1 101 0 R /g2 101 0 R /g3 101 0 R >> /Resources << >> >>"
    )
    garbled = "q BT /F1 30 Tf 20 200 Td (" + "\\001\\002\\003" * 10 + ") Tj ET Q\n"
    assert read(make_pdf(garbled, extra={3: font, 101: glyph})).parts[0].scanned


def test_a_blank_page_has_no_text_and_nothing_to_look_at() -> None:
    assert read(make_pdf("")).unread is Unread.NO_TEXT


def test_the_layer_of_recognised_text_under_a_scan_is_text_and_said_to_be_so() -> None:
    text = read(make_pdf(SCANNED + line("Invoice 7", how="3 Tr")))
    assert text.parts[0].text == "Invoice 7"
    assert pdf.SCAN_NOTE in text.notes


def test_what_was_filled_into_a_form_and_remarked_on_a_page_is_read() -> None:
    letters = "BT /F1 12 Tf 2 4 Td (Ann Poe) Tj ET"
    font = "/Resources << /Font << /F1 3 0 R >> >>"
    extra = {
        101: "<< /Type /Annot /Subtype /Widget /FT /Tx /T (n) /Rect [20 90 200 110] /AP << /N 102 0 R >> /F 4 >>",
        102: f"<< /Subtype /Form /BBox [0 0 180 20] {font} /Length {len(letters)} >>\nstream\n{letters}\nendstream",
        103: "<< /Type /Annot /Subtype /Text /Rect [0 0 9 9] /Contents (check this) >>",
    }
    text = read(make_pdf(line("Name:"), extra=extra, page="/Annots [101 0 R 103 0 R]"))
    assert text.parts[0].text == "Name:\nAnn Poe\n\n(comment: check this)"


def test_what_a_form_holds_is_read_even_if_nobody_has_drawn_it() -> None:
    """Programs that fill in a form may leave the drawing to whoever shows it."""
    place = "/Rect [20 90 200 110] /F 4"
    extra = {
        101: f"<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Ann Poe) {place} >>",
        102: f"<< /Type /Annot /Subtype /Widget /FT /Btn /T (b1) /TU (I agree) /V /Yes /AS /Yes {place} >>",
        103: f"<< /Type /Annot /Subtype /Widget /FT /Btn /T (b2) /AS /Off {place} >>",
        104: f"<< /Type /Annot /Subtype /FreeText /Contents (see page 2) {place} >>",
    }
    text = read(make_pdf(line("Name:"), extra=extra, page="/Annots [101 0 R 102 0 R 103 0 R 104 0 R]"))
    told = ["Name:", "(field name: Ann Poe)", "(ticked: I agree)", "(comment: see page 2)"]
    assert text.parts[0].text.split("\n\n") == told


def test_bookmarks_title_their_pages_even_if_they_run_in_a_ring() -> None:
    extra = {
        101: "<< /Type /Outlines /First 102 0 R /Last 103 0 R >>",
        102: "<< /Title (Summer) /Parent 101 0 R /Dest [10 0 R /Fit] /Next 103 0 R >>",
        103: "<< /Title (Winter) /Parent 101 0 R /Dest [12 0 R /Fit] /Next 102 0 R >>",
    }
    text = read(make_pdf(line("a"), line("b"), extra=extra, catalog="/Outlines 101 0 R"))
    assert [part.title for part in text.parts] == ["Summer", "Winter"]


def test_a_locked_pdf_says_so() -> None:
    # A key for which no password is the empty one.
    locked = make_pdf(line("secret"), extra={
        101: f"<< /Filter /Standard /V 1 /R 2 /P -4 /O <{'00' * 32}> /U <{'11' * 32}> >>"
    }).replace(b"/Root 1 0 R", b"/Root 1 0 R /Encrypt 101 0 R /ID [<00> <00>]")  # fmt: skip
    with pytest.raises(CannotRead) as refusal:
        read(locked)
    assert refusal.value.unread is Unread.UNREADABLE
    assert "password" in refusal.value.reason


@pytest.mark.parametrize("content", [b"", b"%PDF-1.7\n", b"%PDF-1.7\ntrailer << /Root 9 0 R >>"])
def test_a_broken_pdf_says_so(content: bytes) -> None:
    with pytest.raises(CannotRead) as refusal:
        read(content)
    assert refusal.value.unread is Unread.UNREADABLE


def test_a_page_is_drawn_as_large_as_asked_for_and_no_finer_than_print() -> None:
    content = make_pdf("1 0 0 rg 0 0 300 300 re f")
    assert image_size(drawn(content, 1, 120)) == ("image/png", 120, 120)
    assert image_size(drawn(content, 1, 4_000)) == ("image/png", 1250, 1250)


def test_a_page_that_is_not_there_cannot_be_drawn() -> None:
    with pytest.raises(CannotRead, match="no page 2"):
        drawn(make_pdf(line("one")), 2, 100)
