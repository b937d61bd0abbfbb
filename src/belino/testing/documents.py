"""Documents of some pages in every format that text is read from, generated; for benchmarks and fuzz runs."""

import json
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from html import escape
from random import Random

from belino.testing.files import make_zip

_WORDS = (
    "the", "of", "and", "to", "in", "harbour", "morning", "report", "bridge", "water", "letter", "market", "seven",
    "between", "carried", "window", "paper", "quiet", "number", "station", "evening", "answer", "little", "people",
    "under", "river", "found", "always", "garden", "question", "winter", "several", "company", "during", "early",
    "Zürich", "café", "naïve", "Ångström", "façade", "Пётр", "Москва", "東京", "会議", "서울", "Αθήνα",
)  # fmt: skip
_SITE = "http://schemas.openxmlformats.org"
_RELATED = f"{_SITE}/officeDocument/2006/relationships"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
_OFFICE = "application/vnd.openxmlformats-officedocument"
_ODF = "urn:oasis:names:tc:opendocument:xmlns"

Files = dict[str, bytes]


def document_files(*, paragraphs: int = 60) -> Mapping[str, bytes]:
    """The bytes by file name; deterministic."""
    prose = make_prose(paragraphs)
    return {**_office(prose), **_books(prose), **_texts(prose), **_mails(prose), **_archives(prose)}


def make_prose(paragraphs: int) -> list[str]:
    """Paragraphs of words that say nothing."""
    rng = Random(7)  # noqa: S311 - the same words each time
    return [
        " ".join(" ".join(rng.choices(_WORDS, k=rng.randrange(6, 16))).capitalize() + "." for _ in range(5))
        for _ in range(paragraphs)
    ]


def _package(
    kind: str, main: str, parts: Mapping[str, tuple[str, str]], links: Mapping[str, Mapping[str, str]]
) -> bytes:
    """An office file: its parts with their types, and their relationships."""
    types = "".join(f'<Override PartName="/{name}" ContentType="{mime}"/>' for name, (mime, _) in parts.items())
    files = {
        "[Content_Types].xml": (
            f'{_HEAD}<Types xmlns="{_SITE}/package/2006/content-types"><Default Extension="rels" '
            f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>{types}</Types>'
        ),
        "_rels/.rels": _links({main: "officeDocument"}),
        **{name: content for name, (_, content) in parts.items()},
        **{f"{kind}/{name}": _links(targets) for name, targets in links.items()},
    }
    return make_zip(files)


def _links(targets: Mapping[str, str]) -> str:
    each = "".join(
        f'<Relationship Id="rId{at}" Type="{_RELATED}/{kind}" Target="{target}"/>'
        for at, (target, kind) in enumerate(targets.items(), 1)
    )
    return f'{_HEAD}<Relationships xmlns="{_SITE}/package/2006/relationships">{each}</Relationships>'


def _office(prose: list[str]) -> Files:
    return {
        "letter.docx": make_docx(prose),
        "figures.xlsx": _xlsx(),
        "talk.pptx": _pptx(prose),
        "letter.odt": _odt(prose),
    }


def make_docx(prose: Sequence[str]) -> bytes:
    """A Word document of these paragraphs, with a table at its end."""
    body = "".join(
        (
            f'<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Chapter {at}</w:t></w:r></w:p>'
            if at % 10 == 0
            else ""
        )
        + f"<w:p><w:r><w:t>{escape(text)}</w:t></w:r></w:p>"
        for at, text in enumerate(prose)
    )
    rows = "".join(
        f"<w:tr><w:tc><w:p><w:r><w:t>row {at}</w:t></w:r></w:p></w:tc>"
        f"<w:tc><w:p><w:r><w:t>{at * at}</w:t></w:r></w:p></w:tc></w:tr>"
        for at in range(20)
    )
    document = (
        f'{_HEAD}<w:document xmlns:w="{_SITE}/wordprocessingml/2006/main"><w:body>{body}<w:tbl>{rows}</w:tbl></w:body>'
        "</w:document>"
    )
    main = "word/document.xml"
    return _package("word", main, {main: (f"{_OFFICE}.wordprocessingml.document.main+xml", document)}, {})


def _xlsx() -> bytes:
    space = f'xmlns="{_SITE}/spreadsheetml/2006/main"'
    rows = "".join(
        f'<row r="{at}"><c r="A{at}" t="inlineStr"><is><t>item {at}</t></is></c><c r="B{at}"><v>{at * 1.25}</v></c>'
        f'<c r="C{at}"><v>{at * at}</v></c></row>'
        for at in range(1, 301)
    )
    book = (
        f'{_HEAD}<workbook {space} xmlns:r="{_RELATED}"><sheets>'
        '<sheet name="Figures" sheetId="1" r:id="rId1"/></sheets></workbook>'
    )
    parts = {
        "xl/workbook.xml": (f"{_OFFICE}.spreadsheetml.sheet.main+xml", book),
        "xl/worksheets/sheet1.xml": (
            f"{_OFFICE}.spreadsheetml.worksheet+xml",
            f"{_HEAD}<worksheet {space}><sheetData>{rows}</sheetData></worksheet>",
        ),
    }
    return _package("xl", "xl/workbook.xml", parts, {"_rels/workbook.xml.rels": {"worksheets/sheet1.xml": "worksheet"}})


def _pptx(prose: list[str]) -> bytes:
    spaces = f'xmlns:a="{_SITE}/drawingml/2006/main" xmlns:r="{_RELATED}" xmlns:p="{_SITE}/presentationml/2006/main"'
    slides = [
        f'{_HEAD}<p:sld {spaces}><p:cSld><p:spTree><p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/>'
        '</p:nvGrpSpPr><p:grpSpPr/><p:sp><p:nvSpPr><p:cNvPr id="2" name="Text"/><p:cNvSpPr txBox="1"/><p:nvPr/>'
        f"</p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/><a:p><a:r><a:t>{escape(text)}</a:t></a:r></a:p></p:txBody></p:sp></p:spTree>"
        "</p:cSld></p:sld>"
        for text in prose[:12]
    ]
    ids = "".join(f'<p:sldId id="{256 + at}" r:id="rId{at + 1}"/>' for at in range(len(slides)))
    main = "ppt/presentation.xml"
    shown = (
        f"{_HEAD}<p:presentation {spaces}><p:sldIdLst>{ids}</p:sldIdLst>"
        '<p:sldSz cx="9144000" cy="6858000"/></p:presentation>'
    )
    parts = {main: (f"{_OFFICE}.presentationml.presentation.main+xml", shown)}
    for at, slide in enumerate(slides, 1):
        parts[f"ppt/slides/slide{at}.xml"] = (f"{_OFFICE}.presentationml.slide+xml", slide)
    targets = {f"slides/slide{at}.xml": "slide" for at in range(1, len(slides) + 1)}
    return _package("ppt", main, parts, {"_rels/presentation.xml.rels": targets})


def _odt(prose: list[str]) -> bytes:
    body = "".join(f"<text:p>{escape(text)}</text:p>" for text in prose)
    content = (
        f'{_HEAD}<office:document-content xmlns:office="{_ODF}:office:1.0" xmlns:text="{_ODF}:text:1.0">'
        f"<office:body><office:text><text:h>Report</text:h>{body}</office:text></office:body></office:document-content>"
    )
    return make_zip({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content})


def _books(prose: list[str]) -> Files:
    chapters = {f"chapter{at}": prose[at * 10 : at * 10 + 10] for at in range(len(prose) // 10)}
    items = "".join(f'<item id="{name}" href="{name}.xhtml" media-type="application/xhtml+xml"/>' for name in chapters)
    spine = "".join(f'<itemref idref="{name}"/>' for name in chapters)
    package = (
        f'{_HEAD}<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata><dc:title>The Harbour</dc:title><dc:creator>Ann Poe</dc:creator></metadata><manifest>{items}"
        f"</manifest><spine>{spine}</spine></package>"
    )
    files = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": (
            f'{_HEAD}<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile '
            'full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
        ),
        "OEBPS/book.opf": package,
        **{f"OEBPS/{name}.xhtml": _page(name, texts) for name, texts in chapters.items()},
    }
    return {"novel.epub": make_zip(files), "report.pdf": make_report(prose)}


def make_report(prose: Sequence[str]) -> bytes:
    """A PDF with a page for every ten paragraphs; only ASCII, as the font has no more."""
    lines = [[_plain(text)[at : at + 90] for text in prose[page : page + 10] for at in range(0, len(_plain(text)), 90)]
             for page in range(0, len(prose), 10)]  # fmt: skip
    objects: list[bytes] = [b"", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    pages = []
    for page in lines:
        shown = "".join(f"({line}) Tj 0 -12 Td " for line in page)
        stream = f"BT /F1 9 Tf 40 800 Td {shown} ET".encode("ascii")
        pages.append(len(objects) + 1)
        objects += [
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents %d 0 R/Resources<</Font<</F1 3 0 R>>>>>>"
            % (len(objects) + 2),
            b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream),
        ]
    objects[0] = b"<</Type/Catalog/Pages 2 0 R>>"
    kids = " ".join(f"{number} 0 R" for number in pages).encode()
    objects[1] = b"<</Type/Pages/Kids[%b]/Count %d>>" % (kids, len(pages))
    written, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(written))
        written += b"%d 0 obj%b\nendobj\n" % (number, body)
    start, table = len(written), b"".join(b"%010d 00000 n \n" % place for place in places)
    written += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table
    return written + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)


def _plain(text: str) -> str:
    return text.encode("ascii", "ignore").decode()


def _page(title: str, texts: list[str]) -> str:
    rows = "".join(f"<tr><td>{at}</td><td>{at * at}</td></tr>" for at in range(10))
    body = "".join(
        f"<p>{escape(text)} <a href='https://example.org/{at}'>more</a></p>" for at, text in enumerate(texts)
    )
    return (
        f"<html><head><title>{title}</title><style>p {{ color: black }}</style></head><body><h1>{title}</h1>{body}"
        f"<ul><li>one</li><li>two</li></ul><table><tr><th>n</th><th>square</th></tr>{rows}</table></body></html>"
    )


def _texts(prose: list[str]) -> Files:
    table = "\n".join(
        ["number,name,note", *(f'{at},item {at},"{text[:40]}, and more"' for at, text in enumerate(prose))]
    )
    cells = [{"cell_type": "markdown", "metadata": {}, "source": [text]} for text in prose[:20]]
    code = {"cell_type": "code", "metadata": {}, "source": ["print(6*7)"], "outputs": [], "execution_count": 1}
    notebook = {"cells": [*cells, code], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    entries = "".join(
        f"<item><title>News {at}</title><description>{escape(text)}</description></item>"
        for at, text in enumerate(prose)
    )
    feed = f'{_HEAD}<rss version="2.0"><channel><title>Town</title>{entries}</channel></rss>'
    rtf = "".join(f"\\par {''.join(_rtf(character) for character in text)}\n" for text in prose)
    russian = "Поезд из Самары опаздывает на сорок минут, встречающих просят подождать.\n" * 40
    return {
        "notes.txt": "\n\n".join(prose).encode(),
        "old.txt": russian.encode("koi8_r"),
        "readme.md": ("# Report\n\n" + "\n\n## Part\n\n".join(prose)).encode(),
        "people.csv": table.encode(),
        "page.html": _page("Harbour", prose).encode(),
        "answer.json": json.dumps({"texts": prose}, ensure_ascii=False, indent=1).encode(),
        "work.ipynb": json.dumps(notebook).encode(),
        "feed.xml": feed.encode(),
        "letter.rtf": (r"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}\pard " + rtf + "}").encode("ascii"),
    }


def _rtf(character: str) -> str:
    return character if character.isascii() else f"\\u{ord(character)}?"


def _mails(prose: list[str]) -> Files:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "Ann <ann@example.org>", "bob@example.org", "The harbour"
    mail["Date"] = "Thu, 01 Jan 2026 10:00:00 +0000"
    mail.set_content("\n\n".join(prose), cte="8bit")
    mail.add_attachment(b"%PDF-1.4", maintype="application", subtype="pdf", filename="plan.pdf")
    mail.set_boundary("=belino=")
    return {"letter.eml": mail.as_bytes()}


def _archives(prose: list[str]) -> Files:
    return {"files.zip": make_zip({f"notes/{at}.txt": text for at, text in enumerate(prose)})}
