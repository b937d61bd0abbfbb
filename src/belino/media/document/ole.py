"""Old office containers whose kind the first bytes do not show: what they hold, locked or not."""

from dataclasses import replace
from typing import BinaryIO

from belino.domain.document import DocumentText, Unread
from belino.media.document import mail, sheets
from belino.media.document.parts import CannotRead, Wish

_LOCKED = frozenset({"encryptedpackage", "encryptioninfo"})
_BOOKS = frozenset({"workbook", "book"})
_MAIL = "__properties_version1.0"


def prepare() -> None:
    """Import what reading needs; in the child it would be too late."""
    import olefile  # type: ignore[import-untyped]  # noqa: F401


def read(file: BinaryIO, wish: Wish) -> DocumentText:
    """The text, if it is a workbook or a message after all; else why there is none."""
    names = _names(file)
    file.seek(0)
    if names & _LOCKED:
        raise CannotRead(Unread.UNREADABLE, "it is protected by a password")
    if names & _BOOKS:
        return sheets.read(file, replace(wish, mime="application/vnd.ms-excel"))
    if _MAIL in names:
        return mail.read(file, replace(wish, mime="application/vnd.ms-outlook"))
    raise CannotRead(Unread.UNSUPPORTED, "belino finds no text in this kind of office file")


def _names(file: BinaryIO) -> set[str]:
    """The streams at the top, whatever their case: some writers shout."""
    import olefile

    try:
        # Closing it would close the file, which others still read.
        storage = olefile.OleFileIO(file)
        return {path[0].lower() for path in storage.listdir()}
    except (OSError, ValueError, IndexError) as error:
        raise CannotRead(Unread.UNREADABLE, "the file is broken") from error
