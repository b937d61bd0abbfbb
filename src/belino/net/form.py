"""Multipart form, and a file as a body, written while they are sent, so that a large file costs no memory."""

import json
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from belino.domain.errors import AdapterError, MediaError, Unanswered, Undeliverable, Unreached
from belino.domain.reply import OutgoingFile

# Browsers encode names this way (HTML, "multipart/form-data"): plain UTF-8, with quotes and line breaks escaped.
_QUOTED = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A", "\0": ""})


class UploadBody(Protocol):
    """The body of a call that takes effect only once it is complete."""

    @property
    def trouble(self) -> Undeliverable | None:
        """Why it could not be written completely: the platform has not received the whole call."""
        ...

    @property
    def written(self) -> bool:
        """Whether all of it was sent; before that, the platform cannot have acted."""
        ...


@contextmanager
def as_upload_errors(body: UploadBody) -> Iterator[None]:
    """The errors of a call with a body: its own failure first, and Unreached where nothing can have happened."""
    try:
        yield
    except AdapterError as error:
        if body.trouble is not None:
            raise body.trouble from None
        if isinstance(error, Unanswered) and not body.written:
            raise Unreached("the upload broke off before its end") from None
        raise


class FileBody:
    """A file's bytes, exactly as many as announced; the upload alone shows nothing until a later call."""

    written = False

    def __init__(self, file: OutgoingFile) -> None:
        self._file = file
        self.trouble: Undeliverable | None = None

    async def chunks(self) -> AsyncIterator[bytes]:
        left, name = self._file.size, self._file.name
        try:
            async for piece in self._file.chunks():
                left -= len(piece)
                yield piece[:left] if left < 0 else piece
        except MediaError as error:
            raise self._cannot(f"the bytes of {name} cannot be read: {error}") from error
        if left:
            raise self._cannot(f"{name} is no longer the file that was to be sent")

    def _cannot(self, why: str) -> Undeliverable:
        self.trouble = Undeliverable(why)
        return self.trouble


class Form:
    """The fields and files of one call; its length is known in advance, and it is written once."""

    def __init__(self, fields: Mapping[str, object], files: Mapping[str, OutgoingFile]) -> None:
        self._boundary = f"belino-{secrets.token_hex(16)}"
        self._fields = b"".join(self._field(name, value) for name, value in fields.items())
        self._files = [(self._head(name, file), file) for name, file in files.items()]
        self._end = f"--{self._boundary}--\r\n".encode()
        self.trouble: Undeliverable | None = None
        self.written = False

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
            body = FileBody(file)
            try:
                async for piece in body.chunks():
                    yield piece
            finally:
                self.trouble = body.trouble
            yield b"\r\n"
        self.written = True
        yield self._end

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
