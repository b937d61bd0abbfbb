"""Documents: text, part by part, and PDF pages as pictures, read in the sandbox.

Every line of the child's answer is checked: an attacker may control the child.
"""

import asyncio
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from belino.domain.errors import MediaRefused
from belino.domain.media import Blob, DocumentText, DocumentUnit, OpenBlob, Part, Unread, open_files
from belino.media.subtitles import TYPES as SUBTITLED
from belino.readers.parts import NOTE_CHARS, NOTES_AT_MOST, TITLE_CHARS, nothing
from belino.readers.read import reads

if TYPE_CHECKING:
    from belino.media.image.images import Fitted, Runs

MAX_CHARS = 2_000_000
PARTS_AT_MOST = 10_000
PAGE_SIDE_AT_MOST = 4_096

_STRING = r'"(?:[^"\\\x00-\x1f]++|\\.)*+"'
# Matched before parsing: hostile JSON could be a million small lists.
_PART = re.compile(rf"\[\d{{1,9}}, {_STRING}, {_STRING}, (?:true|false)\]\n?")
_HEAD_BYTES = 64 * 1024
_NOT_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


class Documents:
    """Asks the sandbox, and checks every answer."""

    def __init__(self, sandbox: "Runs", scratch: Path, open_blob: OpenBlob) -> None:
        self._sandbox = sandbox
        self._scratch = scratch
        self._open_blob = open_blob

    async def read(
        self,
        blob: Blob,
        *,
        mime: str,
        name: str = "",
        parts: tuple[int, int] | None = None,
        max_chars: int = MAX_CHARS,
    ) -> DocumentText:
        """The text of the parts from first to last, or why there is none; raises only when the sandbox fails."""
        job = "video.subtitles" if mime in SUBTITLED else "document.read"
        if not reads(mime) and mime not in SUBTITLED:
            return nothing(Unread.UNSUPPORTED, f"belino finds no text in files of type {mime[:100]}")
        first, last = parts if parts is not None else (1, None)
        options = {"mime": mime, "name": name[:255], "first": first, "last": last, "max_chars": max_chars}
        output = self._output("text")
        try:
            async with self._open_blob(blob.sha256) as path:
                await self._sandbox.run(job, path, options, output=output)
            return await asyncio.to_thread(_taken, output, max_chars)
        except MediaRefused as error:
            return nothing(Unread.UNREADABLE, str(error))
        finally:
            output.unlink(missing_ok=True)

    async def page(self, blob: Blob, number: int, *, max_bytes: int, max_side: int) -> "Fitted":
        """A page of a PDF as a picture; MediaRefused if there is no such page, or it cannot be drawn."""
        from belino.media.image.images import Images

        drawn = self._output("page")
        options = {"number": number, "max_side": max(1, min(max_side, PAGE_SIDE_AT_MOST))}
        try:
            async with self._open_blob(blob.sha256) as path:
                await self._sandbox.run("document.page", path, options, output=drawn)
            # The page is untrusted: its drawing goes through the sandbox like every other picture.
            picture = Blob(sha256=drawn.name, mime="image/png", size=drawn.stat().st_size)
            images = Images(self._sandbox, self._scratch, open_files({picture.sha256: drawn}))
            return await images.fit(picture, max_bytes=max_bytes, max_side=max_side)
        finally:
            drawn.unlink(missing_ok=True)

    def _output(self, kind: str) -> Path:
        self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._scratch / f"{kind}-{os.urandom(8).hex()}"


def scanned_pages(text: DocumentText) -> tuple[int, ...]:
    """Pages whose text is in a picture, which can be shown, or read by text recognition."""
    return tuple(part.number for part in text.parts if text.unit is DocumentUnit.PAGE and part.scanned)


def _taken(output: Path, max_chars: int) -> DocumentText:
    """The document that the child wrote, line by line."""
    with output.open("rb") as file:
        head = _head(file.readline(_HEAD_BYTES))
        parts: list[Part] = []
        room, last = max_chars, 0
        # A character takes six bytes at most, `\u0000`; a title and the marks around it come on top.
        while line := file.readline(6 * (room + TITLE_CHARS) + 64):
            part = _part(line)
            room -= len(part.text)
            if not last < part.number <= head.total or room < 0 or len(parts) >= PARTS_AT_MOST:
                raise _improper()
            last = part.number
            parts.append(part)
    return DocumentText(
        unit=head.unit,
        total=head.total,
        parts=tuple(parts),
        unread=head.unread if not any(part.text for part in parts) else None,
        reason=head.reason,
        notes=head.notes,
    )


def _head(line: bytes) -> DocumentText:
    try:
        told = json.loads(line)
        match told:
            case {"unit": str(unit), "total": int(total), "unread": unread, "reason": str(reason), "notes": [*notes]}:
                if 0 <= total < 10**9 and len(notes) <= NOTES_AT_MOST and all(isinstance(note, str) for note in notes):
                    return DocumentText(
                        unit=DocumentUnit(unit),
                        total=int(total),
                        unread=Unread(unread) if unread is not None else None,
                        reason=_text(reason[:NOTE_CHARS]),
                        notes=tuple(_text(note[:NOTE_CHARS]) for note in notes),
                    )
    except (ValueError, RecursionError):
        pass
    raise _improper()


def _part(line: bytes) -> Part:
    try:
        written = line.decode()
        if _PART.fullmatch(written):
            number, title, text, scanned = json.loads(written)
            return Part(number=number, title=_text(title[:TITLE_CHARS]), text=_text(text), scanned=scanned)
    except ValueError:
        pass
    raise _improper()


def _improper() -> MediaRefused:
    return MediaRefused("reading it gave no proper answer")


def _text(text: str) -> str:
    return _NOT_TEXT.sub("\ufffd", text)
