"""iWork documents (Pages, Numbers, Keynote): the text of the PDF preview that they contain."""

import io
from typing import BinaryIO

from belino.domain.media import DocumentText, Unread
from belino.readers import pdf
from belino.readers.package import ZipArchive
from belino.readers.parts import CannotRead, ReadOptions

PREVIEW = "QuickLook/Preview.pdf"
_PICTURES = ("preview.jpg", "QuickLook/Thumbnail.jpg", "preview-web.jpg", "preview-micro.jpg")


def prepare() -> None:
    """Import the parser before the sandbox forks: its child cannot."""
    pdf.prepare()


def read(file: BinaryIO, options: ReadOptions) -> DocumentText:
    """The pages of the preview, like those of any PDF."""
    archive = ZipArchive(file)
    preview = archive.find(PREVIEW)
    if preview is None:
        has = "only a small picture of its first page" if any(name in archive for name in _PICTURES) else "no preview"
        raise CannotRead(Unread.NO_TEXT, f"it was saved with {has}; exported as PDF it can be read")
    return pdf.read(io.BytesIO(preview), options)
