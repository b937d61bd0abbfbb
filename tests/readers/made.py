"""Small documents that tests make themselves."""

from collections.abc import Mapping

from belino.testing.files import make_zip

W = 'xmlns:w="w" xmlns:r="r" xmlns:m="m" xmlns:mc="mc" xmlns:wp="wp"'
PICTURE = (
    "<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 /Length 1 >>\n"
    "stream\n\x80\nendstream"
)
SCANNED = "q 300 0 0 300 0 0 cm /Im1 Do Q\n"
ENTITIES = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'


def make_pdf(*pages: str, extra: Mapping[int, str] | None = None, catalog: str = "", page: str = "") -> bytes:
    """A PDF of these content streams; `extra` are objects of one's own, 100 a picture."""
    kids = " ".join(f"{10 + 2 * at} 0 R" for at in range(len(pages)))
    objects = {
        1: f"<< /Type /Catalog /Pages 2 0 R {catalog} >>",
        2: f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} /MediaBox [0 0 300 300] >>",
        3: "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        100: PICTURE,
        **(extra or {}),
    }
    resources = "/Resources << /Font << /F1 3 0 R >> /XObject << /Im1 100 0 R >> >>"
    for at, content in enumerate(pages):
        objects[10 + 2 * at] = f"<< /Type /Page /Parent 2 0 R {resources} /Contents {11 + 2 * at} 0 R {page} >>"
        objects[11 + 2 * at] = f"<< /Length {len(content)} >>\nstream\n{content}\nendstream"
    body = "".join(f"{number} 0 obj\n{written}\nendobj\n" for number, written in sorted(objects.items()))
    # Without a table of places PDFium looks for the objects itself, as it must in many a real file.
    return f"%PDF-1.7\n{body}trailer\n<< /Root 1 0 R >>\n%%EOF\n".encode("latin-1")


def line(text: str, *, x: float = 20, y: float = 200, size: float = 12, how: str = "") -> str:
    """Drawing instructions for a line of text."""
    return f"q BT /F1 {size} Tf {how} {x} {y} Td ({text}) Tj ET Q\n"


def relations(*links: tuple[str, str, str], external: bool = False) -> str:
    """A part's relations: id, kind and target of each."""
    mode = ' TargetMode="External"' if external else ""
    listed = "".join(f'<Relationship Id="{i}" Type="http://x/{kind}" Target="{to}"{mode}/>' for i, kind, to in links)
    return f"<Relationships>{listed}</Relationships>"


def make_word(body: str, **parts: str) -> bytes:
    """A Word document; parts are named as in `word/`, and related by that name."""
    links = [(f"r{name}", name, f"{name}.xml") for name in parts if not name.startswith("_")]
    outside = parts.pop("_links", "")
    related = relations(*links).replace("</Relationships>", outside + "</Relationships>")
    return make_zip(
        {
            "_rels/.rels": relations(("r1", "officeDocument", "word/document.xml")),
            "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": related,
            **{f"word/{name}.xml": content for name, content in parts.items()},
        }
    )


def words(*texts: str, about: str = "", run: str = "") -> str:
    """A paragraph of a Word document, each text a run."""
    runs = "".join(f"<w:r>{run and f'<w:rPr>{run}</w:rPr>'}<w:t>{text}</w:t></w:r>" for text in texts)
    return f"<w:p>{about and f'<w:pPr>{about}</w:pPr>'}{runs}</w:p>"


def make_workbook(*sheets: str, strings: str = "", styles: str = "", states: tuple[str, ...] = ()) -> bytes:
    """An Excel workbook; each sheet is what stands inside `worksheet`."""
    listed = "".join(
        f'<sheet name="Sheet {n}" r:id="s{n}"{f" state={states[n - 1]!r}" if n <= len(states) else ""}/>'
        for n in range(1, len(sheets) + 1)
    )
    links = [(f"s{n}", "worksheet", f"worksheets/sheet{n}.xml") for n in range(1, len(sheets) + 1)]
    return make_zip(
        {
            "xl/workbook.xml": f'<workbook xmlns:r="r"><sheets>{listed}</sheets></workbook>',
            "xl/_rels/workbook.xml.rels": relations(
                *links, ("t", "sharedStrings", "sharedStrings.xml"), ("y", "styles", "styles.xml")
            ),
            "xl/sharedStrings.xml": f"<sst>{strings}</sst>",
            "xl/styles.xml": f"<styleSheet>{styles}</styleSheet>",
            **{f"xl/worksheets/sheet{n}.xml": f"<worksheet>{sheet}</worksheet>" for n, sheet in enumerate(sheets, 1)},
        }
    )


def make_opendocument(body: str, *, styles: str = "", margins: str = "", manifest: str = "<m/>") -> bytes:
    """An OpenDocument file with this inside its body."""
    known = ("office", "text", "table", "draw", "presentation", "style", "fo", "xlink", "dc", "svg")
    names = " ".join(f'xmlns:{each}="{each}"' for each in known)
    content = f"<office:automatic-styles>{styles}</office:automatic-styles><office:body>{body}</office:body>"
    return make_zip(
        {
            "META-INF/manifest.xml": manifest,
            "content.xml": f"<office:document-content {names}>{content}</office:document-content>",
            "styles.xml": f"<office:document-styles {names}>{margins}</office:document-styles>",
        }
    )


def make_slides(*slides: str, size: str = '<p:sldSz cx="1000" cy="1000"/>', **parts: str) -> bytes:
    """A presentation; each slide is what stands in its tree of shapes, parts are named as in `ppt/`."""
    listed = "".join(f'<p:sldId id="{255 + n}" r:id="s{n}"/>' for n in range(1, len(slides) + 1))
    links = [(f"s{n}", "slide", f"slides/slide{n}.xml") for n in range(1, len(slides) + 1)]
    names = 'xmlns:p="p" xmlns:a="a" xmlns:r="r" xmlns:c="c" xmlns:dgm="dgm"'
    related = [(f"r{name}", "notesSlide" if name == "notes" else name, f"../{name}.xml") for name in parts]
    files = {
        "ppt/presentation.xml": f"<p:presentation {names}><p:sldIdLst>{listed}</p:sldIdLst>{size}</p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(*links),
    }
    for n, slide in enumerate(slides, 1):
        hides, _, shapes = slide.rpartition("HIDDEN")
        show = ' show="0"' if hides or "HIDDEN" in slide else ""
        files[f"ppt/slides/slide{n}.xml"] = (
            f"<p:sld {names}{show}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"
        )
        files[f"ppt/slides/_rels/slide{n}.xml.rels"] = relations(*related)
    files |= {f"ppt/{name}.xml": content.replace("NAMES", names) for name, content in parts.items()}
    return make_zip(files)


def shape(text: str, *, kind: str = "", about: str = "", place: str = "", run: str = "") -> str:
    """A shape of a slide."""
    placed = f"<a:xfrm>{place}</a:xfrm>" if place else ""
    told = f'<p:ph type="{kind}"/>' if kind else ""
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="1" name="x" {about}/><p:cNvSpPr/><p:nvPr>{told}</p:nvPr></p:nvSpPr>'
        f"<p:spPr>{placed}</p:spPr><p:txBody><a:p><a:r><a:rPr {run}/><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
    )
