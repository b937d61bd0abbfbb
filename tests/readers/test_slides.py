"""A presentation is read slide by slide, in the order it is shown."""

import io

from belino.domain.media import DocumentText, DocumentUnit, Unread
from belino.readers import slides
from belino.readers.parts import HIDDEN_NOTE, ReadOptions
from readers.made import make_slides, shape


def read(content: bytes, **options: int) -> DocumentText:
    return slides.read(io.BytesIO(content), ReadOptions(mime="", **options))  # type: ignore[arg-type]


def frame(inside: str) -> str:
    return f"<p:graphicFrame><a:graphic><a:graphicData>{inside}</a:graphicData></a:graphic></p:graphicFrame>"


def test_a_slides_title_comes_first_and_titles_the_part() -> None:
    text = read(make_slides(shape("Body") + shape("Plan", kind="title") + shape("7", kind="sldNum"), shape("x")))
    assert (text.unit, text.total) == (DocumentUnit.SLIDE, 2)
    assert (text.parts[0].title, text.parts[0].text) == ("Plan", "# Plan\n\nBody")


def test_only_the_slides_asked_for_are_read() -> None:
    text = read(make_slides(shape("a"), shape("b"), shape("c")), first=2, last=2)
    assert [(part.number, part.text) for part in text.parts] == [(2, "b")]
    assert text.total == 3


def test_a_hidden_slide_and_hidden_shapes_are_marked() -> None:
    beside = '<a:off x="-500" y="0"/><a:ext cx="100" cy="100"/>'
    text = read(
        make_slides(
            "HIDDEN" + shape("draft"),
            shape("seen") + shape("pay", about='hidden="1"') + shape("now", place=beside) + shape("!", run='sz="100"'),
        )
    )
    assert text.parts[0].text == "(hidden slide)\n\ndraft"
    assert text.parts[1].text.split("\n\n") == ["seen"] + [f"(hidden text: {each})" for each in ("pay", "now", "!")]
    assert HIDDEN_NOTE in text.notes


def test_groups_tables_and_the_descriptions_of_pictures_are_read() -> None:
    cell = "<a:tc><a:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:txBody></a:tc>"
    rows = "".join(f"<a:tr>{cell.format(a)}{cell.format(b)}</a:tr>" for a, b in (("A", "B"), ("1", "2")))
    picture = '<p:pic><p:nvPicPr><p:cNvPr id="1" name="p" descr="a lake"/></p:nvPicPr></p:pic>'
    text = read(make_slides(f"<p:grpSp>{shape('inner')}</p:grpSp>" + frame(f"<a:tbl>{rows}</a:tbl>") + picture))
    assert text.parts[0].text == "inner\n\n| A | B |\n| --- | --- |\n| 1 | 2 |\n\n(picture: a lake)"


def test_a_chart_is_a_table_of_what_it_shows() -> None:
    def cached(name: str, *values: str) -> str:
        return (
            f"<c:{name}>"
            + "".join(f'<c:pt idx="{i}"><c:v>{v}</c:v></c:pt>' for i, v in enumerate(values))
            + f"</c:{name}>"
        )

    series = f"<c:ser>{cached('tx', 'Sales')}{cached('cat', 'May', 'June')}{cached('val', '3', '5')}</c:ser>"
    title = "<c:title><a:p><a:r><a:t>Year</a:t></a:r></a:p></c:title>"
    chart = f"<c:chartSpace NAMES><c:chart>{title}{series}</c:chart></c:chartSpace>"
    text = read(make_slides(frame('<c:chart r:id="rchart"/>'), chart=chart))
    assert text.parts[0].text == "Chart: Year\n\n|  | Sales |\n| --- | --- |\n| May | 3 |\n| June | 5 |"


def test_notes_comments_and_diagrams_are_read() -> None:
    notes = f"<p:notes NAMES>{shape('say hello', kind='body')}{shape('3', kind='sldNum')}</p:notes>"
    comments = "<p:cmLst NAMES><p:cm><p:text>shorter!</p:text></p:cm></p:cmLst>"
    model = "<dgm:pt><dgm:t><a:p><a:r><a:t>step one</a:t></a:r></a:p></dgm:t></dgm:pt>"
    diagram = f"<dgm:dataModel NAMES>{model}</dgm:dataModel>"
    content = make_slides(
        frame('<dgm:relIds r:dm="rdiagramData"/>'), notes=notes, comments=comments, diagramData=diagram
    )
    assert read(content).parts[0].text == "- step one\n\nNotes: say hello\n\n(comment: shorter!)"


def test_a_broken_slide_does_not_take_the_others_along() -> None:
    text = read(make_slides("<p:sp>", shape("fine")))
    assert [part.text for part in text.parts] == ["", "fine"]
    assert "slide 1 could not be read" in text.notes[0]


def test_slides_without_a_word_have_no_text() -> None:
    assert read(make_slides("", "")).unread is Unread.NO_TEXT
