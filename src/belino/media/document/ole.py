"""Old office containers that nothing else claims: locked documents, and what we have no reader for."""

from typing import BinaryIO

from belino.domain.document import DocumentText, Unread
from belino.media.document.parts import CannotRead, Wish


def prepare() -> None:
    """Import what reading needs."""
    import olefile  # type: ignore[import-untyped]  # noqa: F401


def read(file: BinaryIO, wish: Wish) -> DocumentText:
    """Never any text: says whether a password is in the way."""
    import olefile

    try:
        with olefile.OleFileIO(file) as storage:
            locked = storage.exists("EncryptedPackage") or storage.exists("EncryptionInfo")
    except (OSError, ValueError, IndexError) as error:
        raise CannotRead(Unread.UNREADABLE, "the file is broken") from error
    if locked:
        raise CannotRead(Unread.UNREADABLE, "it is protected by a password")
    raise CannotRead(Unread.UNSUPPORTED, "belino finds no text in this kind of office file")
