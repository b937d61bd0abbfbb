"""E-mail, EML and MSG: who wrote what to whom and when, with attachments listed and messages inside it after it."""

from collections.abc import Iterator
from typing import BinaryIO

from belino.domain.document import DocumentText, Unit, Unread
from belino.media.document import charset, eml, markup, msg
from belino.media.document.cutting import pieces
from belino.media.document.letter import Letter
from belino.media.document.parts import HIDDEN_NOTE, CannotRead, Parts, Wish

BYTES_AT_MOST = 100 * 1024 * 1024
OUTLOOK = "application/vnd.ms-outlook"


def prepare() -> None:
    """Import what parses; in the child it would be too late."""
    markup.prepare()
    eml.prepare()
    msg.prepare()
    charset.prepare()


def read(file: BinaryIO, wish: Wish) -> DocumentText:
    """The message, cut into parts if it is long, then each message inside it."""
    parts = Parts(wish, Unit.PART)
    total = 0
    for letter in _letters(file, wish.mime):
        if letter.hides:
            parts.note(HIDDEN_NOTE)
        if letter.attachments:
            parts.note("attachments are listed, not read")
        for title, piece in pieces([letter.text()], headings=False):
            total += 1
            if parts.wants(total):
                parts.add(total, piece, letter.subject or title)
    return parts.document(total)


def _letters(file: BinaryIO, mime: str) -> Iterator[Letter]:
    if mime == OUTLOOK:
        return msg.letters(file)
    content = file.read(BYTES_AT_MOST + 1)
    if len(content) > BYTES_AT_MOST:
        raise CannotRead(Unread.TOO_LARGE, f"messages over {BYTES_AT_MOST // 2**20} MB are not read")
    return eml.letters(content)
