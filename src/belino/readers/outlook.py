"""Outlook messages (MS-OXMSG): properties in the streams of an OLE container; compressed RTF bodies (MS-OXRTFCP)."""

import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, BinaryIO

from belino.domain.media import DocumentText, Unread
from belino.readers import charset, html, ole, rtf
from belino.readers.mail import MailAttachment, MailMessage, document
from belino.readers.parts import CannotRead, ReadOptions, one_line

if TYPE_CHECKING:
    from olefile import OleFileIO  # type: ignore[import-untyped]

STREAM_BYTES = 50 * 1024 * 1024
MESSAGES_AT_MOST = 200
ATTACHMENTS_AT_MOST = 500

_SUBJECT, _FROM_NAME, _FROM_ADDRESS, _FROM_SMTP = "0037", "0C1A", "0C1F", "5D01"
_TO, _CC, _BODY, _HTML, _RTF = "0E04", "0E03", "1000", "1013", "1009"
_LONG_NAME, _SHORT_NAME, _SHOWN_NAME, _MIME, _CONTENT = "3707", "3704", "3001", "370E", "3701"
_SENT, _DELIVERED, _CODE_PAGE, _HTML_CODE_PAGE = 0x0039, 0x0E06, 0x3FFD, 0x3FDE
_HEADER_SIZES = {True: 32, False: 24}
"""Header size of the property list, by whether the message is the outermost one."""
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
_Path = tuple[str, ...]

RTF_BYTES = 20 * 1024 * 1024
_RTF_BEGIN = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript "
    b"\\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n"
    b"\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
"""The initial dictionary of compressed RTF."""
_RTF_WINDOW = 4096
_RTF_HEAD = 16


def prepare() -> None:
    """Import the parser before the sandbox forks: its child cannot."""
    html.prepare()
    ole.prepare()
    rtf.prepare()


def read(file: BinaryIO, options: ReadOptions) -> DocumentText:
    """The message, split into parts if it is long, then each attached message."""
    return document(messages(file), options)


def messages(file: BinaryIO) -> Iterator[MailMessage]:
    """The message, then those attached to it."""
    container = ole.opened(file)
    streams = [tuple(path) for path in container.listdir(streams=True, storages=True)]
    waiting: list[_Path] = [()]
    for _ in range(MESSAGES_AT_MOST):
        if not waiting:
            return
        folder = _Folder(container, streams, waiting.pop(0))
        yield folder.message()
        waiting = [*folder.messages(), *waiting]


class _Folder:
    """A message or an attachment in the container."""

    def __init__(self, container: "OleFileIO", streams: list[_Path], path: _Path) -> None:
        self._container = container
        self._streams = streams
        self._path = path
        self._here = {
            stream[len(path)].upper(): stream
            for stream in streams
            if stream[: len(path)] == path and len(stream) == len(path) + 1
        }
        self._codec = ""

    def message(self) -> MailMessage:
        """The message: headers, body and attachments."""
        numbers = self._properties()
        page = numbers.get(_CODE_PAGE, numbers.get(_HTML_CODE_PAGE, 0))
        self._codec = charset.codec_of(f"cp{page & 0xFFFF}") or ""
        body, hides = self._body(numbers.get(_HTML_CODE_PAGE, 0))
        sent = _date(numbers.get(_SENT) or numbers.get(_DELIVERED) or 0)
        headers = (
            ("From", self._sender()), ("To", self._text(_TO)), ("Cc", self._text(_CC)), ("Date", sent),
            ("Subject", self._text(_SUBJECT)),
        )  # fmt: skip
        attachments = tuple(folder.attachment() for folder in self._attached() if not folder.holds_message())
        return MailMessage(
            headers=tuple((name, value.strip("\0 ")) for name, value in headers if value),
            body=body, attachments=attachments, hides=hides,
        )  # fmt: skip

    def messages(self) -> list[_Path]:
        """The paths of the messages attached to this one."""
        return [
            (*folder._path, folder._here[_message_name()][-1]) for folder in self._attached() if folder.holds_message()
        ]

    def attachment(self) -> MailAttachment:
        """This folder as an attachment."""
        name = self._text(_LONG_NAME) or self._text(_SHORT_NAME) or self._text(_SHOWN_NAME)
        stream = self._here.get(f"__SUBSTG1.0_{_CONTENT}0102")
        size = self._container.get_size(list(stream)) if stream else 0
        return MailAttachment(name=name.strip("\0"), mime=self._text(_MIME).strip("\0"), size=size)

    def holds_message(self) -> bool:
        """Whether the attachment is a message."""
        return _message_name() in self._here

    def _attached(self) -> Iterator["_Folder"]:
        found = [stream for name, stream in sorted(self._here.items()) if name.startswith("__ATTACH_VERSION1.0_#")]
        for stream in found[:ATTACHMENTS_AT_MOST]:
            folder = _Folder(self._container, self._streams, stream)
            folder._codec = self._codec
            yield folder

    def _sender(self) -> str:
        name, address = self._text(_FROM_NAME).strip("\0"), self._text(_FROM_SMTP) or self._text(_FROM_ADDRESS)
        address = address.strip("\0")
        return f"{name} <{address}>" if "@" in address and address != name else name or address

    def _body(self, page: int) -> tuple[str, bool]:
        if (plain := self._text(_BODY).replace("\r\n", "\n").strip("\0\n ")) != "":
            return plain, False
        if found := self._bytes(f"{_HTML}0102"):
            declared = "utf-8" if page & 0xFFFF == 65001 else f"cp{page & 0xFFFF}"
            shown = html.show(charset.decode(found, declared=declared) if page else html.decoded(found))
            return shown.text, shown.hides
        packed = self._bytes(f"{_RTF}0102")
        return rtf.text_of(unpacked_rtf(packed)) if packed else ("", False)

    def _text(self, tag: str) -> str:
        if found := self._bytes(f"{tag}001F"):
            return found.decode("utf-16-le", "replace")
        found = self._bytes(f"{tag}001E")
        return charset.decode(found, declared=self._codec) if found else ""

    def _bytes(self, tag: str) -> bytes:
        return self._named(f"__SUBSTG1.0_{tag}")

    def _named(self, name: str) -> bytes:
        stream = self._here.get(name)
        if stream is None:
            return b""
        try:
            return ole.stream(self._container, stream, STREAM_BYTES)
        except CannotRead:
            return b""

    def _properties(self) -> dict[int, int]:
        """The numeric and date properties, by their tag."""
        content = self._named("__PROPERTIES_VERSION1.0")
        found: dict[int, int] = {}
        for at in range(_HEADER_SIZES[not self._path], len(content) - 15, 16):
            _, tag, _, value = struct.unpack_from("<HHIQ", content, at)
            found.setdefault(tag, value)
        return found


def _message_name() -> str:
    return f"__SUBSTG1.0_{_CONTENT}000D"


def _date(stamp: int) -> str:
    """A date from a FILETIME: tenths of microseconds since 1601."""
    try:
        moment = _EPOCH + timedelta(microseconds=stamp // 10)
    except (OverflowError, ValueError):
        return ""
    return one_line(f"{moment:%Y-%m-%d %H:%M} UTC") if stamp else ""


def unpacked_rtf(content: bytes) -> bytes:
    """The RTF of a compressed body, as far as it is complete."""
    kind = content[8:12]
    size = int.from_bytes(content[4:8], "little")
    if kind == b"MELA":
        return content[_RTF_HEAD : _RTF_HEAD + size]
    if kind != b"LZFu" or size > RTF_BYTES:
        raise CannotRead(Unread.UNREADABLE, "the body of the message is broken")
    window = bytearray(_RTF_WINDOW)
    window[: len(_RTF_BEGIN)] = _RTF_BEGIN
    out, place, at = bytearray(), len(_RTF_BEGIN), _RTF_HEAD
    while at < len(content) and len(out) < size:
        control, at = content[at], at + 1
        for bit in range(8):
            if at >= len(content):
                break
            if not control >> bit & 1:
                piece, at = content[at : at + 1], at + 1
            else:
                token, at = int.from_bytes(content[at : at + 2]), at + 2
                begin = token >> 4
                if begin == place:
                    return bytes(out[:size])
                piece = _repeated(window, begin, (token & 0xF) + 2, place)
            for byte in piece:
                window[place] = byte
                place = (place + 1) % _RTF_WINDOW
            out += piece
    return bytes(out[:size])


def _repeated(window: bytearray, begin: int, length: int, place: int) -> bytes:
    """A run of the window; it may extend into what it has just written itself."""
    before = (place - begin) % _RTF_WINDOW or _RTF_WINDOW
    first = bytes(window[(begin + step) % _RTF_WINDOW] for step in range(min(length, before)))
    return (first * (length // len(first) + 1))[:length]
