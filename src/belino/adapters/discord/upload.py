"""A multipart form that is written while it is sent, so that a large file costs no memory."""

import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence

from belino.domain.errors import MediaError, Undeliverable
from belino.domain.reply import OutgoingFile

# Browsers write names this way (HTML, "multipart/form-data"): UTF-8 as it is, and nothing that ends the quotes.
_QUOTED = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A", "\0": ""})


class Form:
    """A call's fields as `payload_json` and its files as `files[n]`; its length is known before the first byte."""

    def __init__(self, fields: Mapping[str, object], files: Sequence[OutgoingFile]) -> None:
        self._boundary = f"belino-{secrets.token_hex(16)}"
        written = json.dumps(fields, ensure_ascii=False).encode(errors="replace")
        self._fields = self._head('name="payload_json"', "application/json") + written + b"\r\n"
        self._files = [(self._file_head(number, file), file) for number, file in enumerate(files)]
        self._end = f"--{self._boundary}--\r\n".encode()
        self.trouble: Undeliverable | None = None
        """Why the form could not be written to its end: the platform has not heard the whole call."""
        self.written = False
        """Whether all of it is on its way; before that, the platform cannot have done anything."""

    @property
    def length(self) -> int:
        """How many bytes `chunks` yields."""
        return len(self._fields) + sum(len(head) + file.size + 2 for head, file in self._files) + len(self._end)

    @property
    def headers(self) -> dict[str, str]:
        return {
            "Content-Type": f"multipart/form-data; boundary={self._boundary}",
            "Content-Length": str(self.length),
        }

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body, piece by piece."""
        yield self._fields
        for head, file in self._files:
            yield head
            left = file.size
            try:
                async for piece in file.chunks():
                    left -= len(piece)
                    yield piece[:left] if left < 0 else piece
            except MediaError as error:
                raise self._cannot(f"the bytes of {file.name} cannot be read: {error}") from error
            if left:
                raise self._cannot(f"{file.name} is no longer the file that was to be sent")
            yield b"\r\n"
        self.written = True
        yield self._end

    def _cannot(self, why: str) -> Undeliverable:
        self.trouble = Undeliverable(why)
        return self.trouble

    def _file_head(self, number: int, file: OutgoingFile) -> bytes:
        return self._head(f'name="files[{number}]"; filename="{file.name.translate(_QUOTED)}"', file.mime)

    def _head(self, disposition: str, mime: str) -> bytes:
        head = f"--{self._boundary}\r\nContent-Disposition: form-data; {disposition}\r\nContent-Type: {mime}\r\n\r\n"
        return head.encode(errors="replace")
