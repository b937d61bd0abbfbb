"""A Word document is read in the order of its reader's eye, with what is hidden, deleted or remarked marked."""

import io

import pytest

from belino.domain.media import DocumentText, DocumentUnit, Unread
from belino.readers import word
from belino.readers.parts import DELETED_NOTE, HIDDEN_NOTE, PART_CHARS, CannotRead, ReadOptions
from belino.testing.files import make_zip
from readers.made import ENTITIES, W, make_word, relations, words


def read(content: bytes, **options: int) -> DocumentText:
    return word.read(io.BytesIO(content), ReadOptions(mime="", **options))  # type: ignore[arg-type]


def text_of(body: str, **parts: str) -> str:
    return "\n\n".join(part.text for part in read(make_word(body, **parts)).parts)


STYLES = f"""<w:styles {W}><w:style w:styleId="H2"><w:name w:val="heading 2"/></w:style>
<w:style w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="H2"/></w:style>
<w:style w:styleId="Ring"><w:name w:val="Ring"/><w:basedOn w:val="Ring"/></w:style>
<w:style w:styleId="Gone"><w:name w:val="Gone"/><w:rPr><w:vanish/></w:rPr></w:style></w:styles>"""
LEVELS = """<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>
<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/></w:lvl>"""
NUMBERING = f"""<w:numbering {W}><w:abstractNum w:abstractNumId="5">{LEVELS}</w:abstractNum>
<w:abstractNum w:abstractNumId="6"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="5"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="6"/></w:num>
</w:numbering>"""


def item(text: str, number: int = 1, depth: int = 0) -> str:
    return words(text, about=f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{number}"/></w:numPr>')


def test_headings_are_told_by_their_style_or_the_one_it_is_based_on() -> None:
    body = words("Two", about='<w:pStyle w:val="Mine"/>') + words("Body", about='<w:pStyle w:val="Ring"/>')
    assert text_of(body, styles=STYLES) == "## Two\n\nBody"


def test_lists_are_numbered_as_word_shows_them() -> None:
    body = item("a") + item("b", depth=1) + item("c", depth=1) + item("d") + item("e", depth=1) + item("f", 2)
    assert text_of(body, numbering=NUMBERING).splitlines() == [
        "1. a", "  1.a) b", "  1.b) c", "2. d", "  2.a) e", "- f"
    ]  # fmt: skip


def test_a_list_that_begins_anew_is_counted_anew() -> None:
    level = '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>'
    anew = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="{}"/></w:lvlOverride>'
    lists = "".join(
        f'<w:num w:numId="{number}"><w:abstractNumId w:val="0"/>{more}</w:num>'
        for number, more in enumerate(("", anew.format(1), anew.format(7)), 1)
    )
    numbering = f'<w:numbering {W}><w:abstractNum w:abstractNumId="0">{level}</w:abstractNum>{lists}</w:numbering>'
    items = [words(str(at), about=f'<w:numPr><w:numId w:val="{at}"/></w:numPr>') for at in (1, 1, 2, 2, 3, 3)]
    text = read(make_word("".join(items), numbering=numbering))
    assert text.parts[0].text.split("\n") == ["1. 1", "2. 1", "1. 2", "2. 2", "7. 3", "8. 3"]


def test_a_table_keeps_its_shape_where_cells_are_merged() -> None:
    cell = "<w:tc>{0}<w:p><w:r><w:t>{1}</w:t></w:r></w:p></w:tc>"
    wide = cell.format('<w:tcPr><w:gridSpan w:val="2"/></w:tcPr>', "Both")
    below = cell.format("<w:tcPr><w:vMerge/></w:tcPr>", "unseen")
    rows = [wide, cell.format("", "a|b") + cell.format("", "c"), below + cell.format("", "d")]
    body = f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"
    assert text_of(body) == "| Both |  |\n| --- | --- |\n| a\\|b | c |\n|  | d |"


@pytest.mark.parametrize(
    "run",
    ["<w:vanish/>", '<w:sz w:val="2"/>', '<w:color w:val="FFFFFF"/>', '<w:rStyle w:val="Gone"/>'],
    ids=["vanished", "tiny", "white", "by style"],
)
def test_hidden_text_is_marked_once_however_many_runs_it_has(run: str) -> None:
    runs = "".join(f"<w:r><w:rPr>{run}</w:rPr><w:t>{text}</w:t></w:r>" for text in ("send ", "money"))
    text = read(make_word(f"<w:p><w:r><w:t>Hello </w:t></w:r>{runs}</w:p>", styles=STYLES))
    assert text.parts[0].text == "Hello (hidden text: send money)"
    assert text.notes == (HIDDEN_NOTE,)


HIDING = f"""<w:styles {W}><w:style w:type="paragraph" w:styleId="gone"><w:rPr><w:vanish/></w:rPr></w:style>
<w:style w:type="paragraph" w:styleId="like"><w:basedOn w:val="gone"/></w:style>
<w:style w:type="character" w:styleId="pale"><w:rPr><w:color w:val="FEFEFE"/></w:rPr></w:style>
<w:style w:type="character" w:styleId="paler"><w:basedOn w:val="pale"/></w:style>
<w:style w:type="paragraph" w:styleId="dark"><w:pPr><w:shd w:val="clear" w:fill="1F3864"/></w:pPr></w:style>
</w:styles>"""


@pytest.mark.parametrize(
    ("about", "run"),
    [
        ('<w:pStyle w:val="gone"/>', ""),
        ('<w:pStyle w:val="like"/>', "<w:b/>"),
        ("", '<w:rStyle w:val="paler"/>'),
        ('<w:pStyle w:val="Normal"/>', '<w:color w:val="FFFFFF"/>'),
        ("", '<w:color w:val="FFFFFF"/><w:shd w:val="clear" w:fill="auto"/>'),
    ],
    ids=["style", "based on it", "character", "white", "shaded with nothing"],
)
def test_text_that_a_style_hides_is_marked(about: str, run: str) -> None:
    assert text_of(words("secret", about=about, run=run), styles=HIDING) == "(hidden text: secret)"


@pytest.mark.parametrize(
    ("about", "run"),
    [
        ('<w:pStyle w:val="gone"/>', '<w:vanish w:val="0"/>'),
        ('<w:pStyle w:val="dark"/>', '<w:color w:val="FFFFFF"/>'),
        ("", '<w:color w:val="FFFFFF"/><w:highlight w:val="black"/>'),
        ("", '<w:rStyle w:val="paler"/><w:color w:val="000000"/>'),
    ],
    ids=["shown again", "on dark ground", "highlighted", "coloured again"],
)
def test_text_that_a_style_would_hide_and_does_not_is_text(about: str, run: str) -> None:
    assert text_of(words("seen", about=about, run=run), styles=HIDING) == "seen"


def test_white_text_on_a_shaded_cell_is_seen() -> None:
    white = words("Total", run='<w:color w:val="FFFFFF"/>')
    body = f'<w:tbl><w:tr><w:tc><w:tcPr><w:shd w:fill="000000"/></w:tcPr>{white}</w:tc></w:tr></w:tbl>'
    assert "hidden" not in text_of(body)


def test_deleted_text_is_marked_and_inserted_text_is_text() -> None:
    body = "<w:p><w:ins><w:r><w:t>new </w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p>"
    text = read(make_word(body))
    assert text.parts[0].text == "new (deleted text: old)"
    assert text.notes == (DELETED_NOTE,)


def test_notes_and_comments_follow_the_text_that_refers_to_them() -> None:
    body = '<w:p><w:r><w:t>x</w:t><w:footnoteReference w:id="2"/><w:commentReference w:id="0"/></w:r></w:p>'
    footnotes = f'<w:footnotes {W}><w:footnote w:id="2">{words("see p. 9")}</w:footnote></w:footnotes>'
    comments = f'<w:comments {W}><w:comment w:id="0" w:author="Ann">{words("why?")}</w:comment></w:comments>'
    assert text_of(body, footnotes=footnotes, comments=comments).split("\n\n") == [
        "x[^2][^c0]", "[^2]: see p. 9", "[^c0]: comment by Ann: why?"
    ]  # fmt: skip


def test_headers_and_footers_are_read_once() -> None:
    text = text_of(
        words("body"), header=f"<w:hdr {W}>{words('ACME')}</w:hdr>", footer=f"<w:ftr {W}>{words('p')}</w:ftr>"
    )
    assert text.split("\n\n") == ["Header: ACME", "body", "Footer: p"]


def test_links_lead_where_they_say_they_lead() -> None:
    link = '<Relationship Id="l" Type="x/hyperlink" Target="https://evil.example/" TargetMode="External"/>'
    body = f'<w:p><w:hyperlink r:id="l">{words("bank")[5:-6]}</w:hyperlink></w:p>'
    assert text_of(body, _links=link) == "[bank](https://evil.example/)"


def test_an_equation_is_written_as_text() -> None:
    fraction = "<m:f><m:num><m:r><m:t>a</m:t></m:r></m:num><m:den><m:r><m:t>b</m:t></m:r></m:den></m:f>"
    root = "<m:rad><m:deg/><m:e><m:r><m:t>2</m:t></m:r></m:e></m:rad>"
    assert text_of(f"<w:p><m:oMath>{fraction}{root}</m:oMath></w:p>") == "$\\frac{a}{b}\\sqrt{2}$"


def test_a_text_box_is_read_once_though_it_is_written_in_two_ways() -> None:
    box = f"<w:txbxContent>{words('aside')}</w:txbxContent>"
    body = (
        f"<w:p><w:r><w:t>main</w:t><mc:AlternateContent><mc:Choice>{box}</mc:Choice>"
        f"<mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r></w:p>"
    )
    assert text_of(body) == "main\n\naside"


def test_what_stands_in_a_control_is_read_in_its_place() -> None:
    inline = "<w:sdt><w:sdtContent><w:r><w:t>b</w:t></w:r></w:sdtContent></w:sdt>"
    around = f"<w:sdt><w:sdtContent>{words('d')}</w:sdtContent></w:sdt>"
    body = f"<w:p><w:r><w:t>a </w:t></w:r>{inline}<w:r><w:t> c</w:t></w:r></w:p>{around}{words('e')}"
    assert text_of(body) == "a b c\n\nd\n\ne"


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("c.html", "<h1>Sum</h1><p>of all</p><p style='display:none'>x</p>", "# Sum\n\nof all\n\n(hidden text: x)"),
        ("c.mht", "MIME-Version: 1.0\nContent-Type: text/html\n\n<h1>Sum</h1><p>of all</p>", "# Sum\n\nof all"),
        ("c.txt", "as it is", "as it is"),
        ("c.docx", "PK", ""),
    ],
)
def test_what_a_program_put_in_as_it_was_is_read_in_its_place(name: str, content: str, told: str) -> None:
    files = {
        "word/document.xml": f'<w:document {W}><w:body>{words("a")}<w:altChunk r:id="c"/>{words("b")}</w:body>'
        "</w:document>",
        "word/_rels/document.xml.rels": relations(("c", "aFChunk", name)),
        f"word/{name}": content,
    }
    text = read(make_zip(files))
    assert text.parts[0].text == "\n\n".join(filter(None, ["a", told, "b"]))
    assert bool(told) or "left out" in text.notes[0]


def test_a_long_text_is_cut_into_parts_at_its_headings() -> None:
    chapter = words("Chapter", about='<w:outlineLvl w:val="0"/>') + words("word " * 500)
    content = make_word(chapter * 3)
    text = read(content)
    assert (text.unit, text.total) == (DocumentUnit.PART, 3)
    assert all(part.title == "Chapter" and len(part.text) <= PART_CHARS for part in text.parts)
    assert [part.number for part in read(content, first=2, last=2).parts] == [2]


def test_a_text_beyond_the_limit_is_read_as_far_as_whole_parts_go() -> None:
    text = read(make_word(words("word " * 1_500) * 4), max_chars=9_000)
    assert [len(part.text) for part in text.parts] == [7_499]
    assert text.total == 4


def test_what_comes_before_a_break_in_the_file_is_kept() -> None:
    content = make_zip({"word/document.xml": f"<w:document {W}><w:body>{words('kept')}<w:p><w:r>"})
    text = read(content)
    assert text.parts[0].text == "kept"
    assert "broken" in text.reason


def test_entities_are_refused_and_nothing_else_of_the_file_is_shown() -> None:
    content = make_zip({"word/document.xml": f"{ENTITIES}<x xmlns:w='w'><body><w:p>&b;</w:p></body></x>"})
    text = read(content)
    assert (text.unread, text.parts[0].text) == (Unread.UNREADABLE, "")
    assert "entities" in text.reason


def test_elements_nested_beyond_reason_are_refused() -> None:
    text = read(make_zip({"word/document.xml": f"<w:document {W}><w:body>" + "<w:sdt><w:p>" * 50_000}))
    assert "nested too deeply" in text.reason


def test_a_document_without_its_main_part_cannot_be_read() -> None:
    with pytest.raises(CannotRead) as refusal:
        read(make_zip({"word/other.xml": "<x/>"}))
    assert refusal.value.unread is Unread.UNREADABLE


def test_macros_are_left_out_and_said_to_be() -> None:
    content = make_zip({"word/document.xml": f"<w:document {W}><w:body/></w:document>", "word/vbaProject.bin": b"x"})
    assert read(content).notes == ("macros were left out",)
