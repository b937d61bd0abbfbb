"""Old office containers whose kind the first bytes do not show: what they hold, locked or not."""

from dataclasses import replace
from typing import BinaryIO

from belino.domain.document import DocumentText, Unread
from belino.media.document import container, mail, sheets, slides97, word97
from belino.media.document.parts import CannotRead, Wish

_LOCKED = frozenset({"encryptedpackage", "encryptioninfo"})
_BOOKS = frozenset({"workbook", "book"})
_DOCUMENT, _SLIDES, _MAIL = "worddocument", "powerpoint document", "__properties_version1.0"


def prepare() -> None:
    """Import what reading needs; in the child it would be too late."""
    container.prepare()


def read(file: BinaryIO, wish: Wish) -> DocumentText:
    """The text, if it is a document after all; else why there is none."""
    names = container.names(container.opened(file))
    file.seek(0)
    if not _LOCKED.isdisjoint(names):
        raise CannotRead(Unread.UNREADABLE, "it is protected by a password")
    if _DOCUMENT in names:
        return word97.read(file, wish)
    if _SLIDES in names:
        return slides97.read(file, wish)
    if not _BOOKS.isdisjoint(names):
        return sheets.read(file, replace(wish, mime="application/vnd.ms-excel"))
    if _MAIL in names:
        return mail.read(file, replace(wish, mime="application/vnd.ms-outlook"))
    raise CannotRead(Unread.UNSUPPORTED, "belino finds no text in this kind of office file")
