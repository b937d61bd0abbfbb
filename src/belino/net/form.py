"""A multipart form that is written while it is sent, so that a large file costs no memory."""

import json
import secrets
from collections.abc import AsyncIterator, Mapping

from belino.domain.errors import MediaError, Undeliverable
from belino.domain.reply import OutgoingFile

# Browsers write names this way (HTML, "multipart/form-data"): UTF-8 as it is, and nothing that ends the quotes.
_QUOTED = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A", "\0": ""})


class Form:
    """The fields and files of one call; its length is known before the first byte, and it is written once."""

    def __init__(self, fields: Mapping[str, object], files: Mapping[str, OutgoingFile]) -> None:
        self._boundary = f"belino-{secrets.token_hex(16)}"
        self._fields = b"".join(self._field(name, value) for name, value in fields.items())
        self._files = [(self._head(name, file), file) for name, file in files.items()]
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
    def headers(self) -> Mapping[str, str]:
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

    def _field(self, name: str, value: object) -> bytes:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        head = f'--{self._boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
        return f"{head}{text}\r\n".encode(errors="replace")

    def _head(self, name: str, file: OutgoingFile) -> bytes:
        head = (
            f'--{self._boundary}\r\nContent-Disposition: form-data; name="{name}"; '
            f'filename="{file.name.translate(_QUOTED)}"\r\nContent-Type: {file.mime}\r\n\r\n'
        )
        return head.encode(errors="replace")
