"""Small documents with pages: some with words, some only drawn."""

from belino.testing.files import make_zip

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"

DRAWN = "20 20 100 100 re f"
"""A page with a black square on it, and nothing to read."""


def line(text: str, *, y: float = 200) -> str:
    """Drawing instructions for a line of text."""
    return f"BT /F1 12 Tf 20 {y} Td ({text}) Tj ET"


def make_pages(*pages: str) -> bytes:
    """A PDF of these drawing instructions, a page for each."""
    kids = " ".join(f"{10 + 2 * at} 0 R" for at in range(len(pages)))
    objects = {
        1: "<</Type/Catalog/Pages 2 0 R>>",
        2: f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}/MediaBox[0 0 300 300]>>",
        3: "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    }
    for at, content in enumerate(pages):
        resources = "/Resources<</Font<</F1 3 0 R>>>>"
        objects[10 + 2 * at] = f"<</Type/Page/Parent 2 0 R{resources}/Contents {11 + 2 * at} 0 R>>"
        objects[11 + 2 * at] = f"<</Length {len(content)}>>stream\n{content}\nendstream"
    body = "".join(f"{number} 0 obj{written}\nendobj\n" for number, written in sorted(objects.items()))
    # Without a table of contents, as in many a real file: whoever opens it looks for the objects.
    return f"%PDF-1.7\n{body}trailer<</Root 1 0 R>>\n%%EOF\n".encode("latin-1")


def make_letter(text: str) -> bytes:
    """A Word document of one paragraph."""
    related = f'<Relationship Id="r1" Type="{OFFICE}" Target="word/document.xml"/>'
    body = f"<w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body>"
    return make_zip(
        {
            "_rels/.rels": f'<Relationships xmlns="{RELATIONS}">{related}</Relationships>',
            "word/document.xml": f'<w:document xmlns:w="{WORD}">{body}</w:document>',
        }
    )
