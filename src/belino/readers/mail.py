"""Mail (RFC 5322, MIME): headers and text, attachments listed, attached messages after it.

The standard library parses the parts of a message; headers are decoded here, because its own decoding of addresses
takes quadratic time on malicious input.
"""

import binascii
import codecs
import email.charset
import email.encoders
import email.feedparser
import email.quoprimime
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email import message_from_bytes
from email.header import decode_header
from email.message import Message
from email.policy import compat32
from email.utils import collapse_rfc2231_value
from typing import BinaryIO

from belino.domain.media import DocumentText, DocumentUnit, Unread
from belino.domain.safe_text import clean_mime, clean_name
from belino.domain.units import format_size
from belino.readers import charset, html
from belino.readers.parts import HIDDEN_NOTE, CannotRead, Parts, ReadOptions, one_line, pieces

BYTES_AT_MOST = 100 * 1024 * 1024
HEADER_CHARS = 2_000
ATTACHMENTS_AT_MOST = 500
PARTS_AT_MOST = 2_000
DEPTH_AT_MOST = 50
RAW_HEADER_CHARS = 10_000
_SHOWN = ("From", "Sender", "To", "Cc", "Bcc", "Reply-To", "Date", "Subject")
_MBOX = re.compile(rb"\r?\n\r?\n(?=From [^\r\n]{1,200}\d{4}[^\r\n]{0,20}\r?\n[A-Za-z-]{1,60}:)")
_BODIES = ("text/plain", "text/html")


@dataclass(frozen=True, slots=True, kw_only=True)
class MailAttachment:
    """A file attached to a message; listed, not read."""

    name: str
    mime: str
    size: int

    def line(self) -> str:
        """Its line in the list of attachments."""
        about = (clean_name(self.name) or "unnamed", clean_mime(self.mime), format_size(self.size))
        return f"- {', '.join(part for part in about if part)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MailMessage:
    """One message."""

    headers: tuple[tuple[str, str], ...]
    """The headers of interest to a reader, in order."""
    body: str
    attachments: tuple[MailAttachment, ...] = ()
    hides: bool = False

    @property
    def subject(self) -> str:
        """The subject, used as the title of its parts."""
        return dict(self.headers).get("Subject", "")

    def text(self) -> str:
        """Headers, body and the list of attachments."""
        shown = [f"{name}: {one_line(value)[:HEADER_CHARS]}" for name, value in self.headers if value.strip()]
        listed = [attachment.line() for attachment in self.attachments[:ATTACHMENTS_AT_MOST]]
        more = len(self.attachments) - len(listed)
        listed += [f"- and {more} more"] if more else []
        blocks = ["\n".join(shown), self.body.strip(), "\n".join(["Attachments:", *listed]) if listed else ""]
        return "\n\n".join(block for block in blocks if block)


def prepare() -> None:
    """Load the codecs and what the parser imports lazily before the sandbox forks: its child cannot."""
    html.prepare()
    charset.prepare()
    message_from_bytes(b'Content-Type: multipart/mixed; boundary="x"\n\n--x\n\na\n--x--\n', policy=compat32).as_string()
    codecs.lookup("raw-unicode-escape")  # for headers that are encoded in part


def read(file: BinaryIO, options: ReadOptions) -> DocumentText:
    """The message, split into parts if it is long, then each attached message."""
    content = file.read(BYTES_AT_MOST + 1)
    if len(content) > BYTES_AT_MOST:
        raise CannotRead(Unread.TOO_LARGE, f"messages over {BYTES_AT_MOST // 2**20} MB are not read")
    return document(messages(content), options)


def document(found: Iterable[MailMessage], options: ReadOptions) -> DocumentText:
    """Messages as a document, one or more parts each."""
    parts = Parts(options, DocumentUnit.PART)
    total = 0
    for message in found:
        if message.hides:
            parts.note(HIDDEN_NOTE)
        if message.attachments:
            parts.note("attachments are listed, not read")
        for title, piece in pieces([message.text()], headings=False):
            total += 1
            if parts.wants(total):
                parts.add(total, piece, message.subject or title)
    return parts.document(total)


def messages(content: bytes) -> Iterator[MailMessage]:
    """The message and those attached to it; a mailbox has several."""
    starts = (
        [0, *(found.end() for found in _MBOX.finditer(content))][:PARTS_AT_MOST] if content[:5] == b"From " else [0]
    )
    for begin, end in zip(starts, [*starts[1:], len(content)], strict=True):
        try:
            message = message_from_bytes(content[begin:end], policy=compat32)
        except (RecursionError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise CannotRead(Unread.UNREADABLE, "the message is broken") from error
        yield from _opened(message)


def _opened(message: Message) -> Iterator[MailMessage]:
    """A message, then the messages attached to it, in order."""
    waiting = [message]
    for _ in range(PARTS_AT_MOST):
        if not waiting:
            return
        opened, inside = _message(waiting.pop(0))
        yield opened
        waiting = [*inside, *waiting]


def _message(message: Message) -> tuple[MailMessage, list[Message]]:
    texts: dict[str, list[Message]] = {mime: [] for mime in _BODIES}
    attachments: list[MailAttachment] = []
    inside: list[Message] = []
    for part in _leaves(message):
        mime = part.get_content_type()
        if mime == "message/rfc822":
            inside += _held(part)
        elif mime in _BODIES and not _is_attached(part):
            texts[mime].append(part)
        elif mime.startswith("multipart/"):
            # Declared as multipart without being so: most likely it is text.
            texts["text/plain"].append(part)
        else:
            attachments.append(_attachment(part, mime))
    body, hides = _body(texts)
    headers = tuple((name, value) for name in _SHOWN if (value := _header(message, name)))
    return MailMessage(headers=headers, body=body, attachments=tuple(attachments), hides=hides), inside


def _leaves(message: Message) -> Iterator[Message]:
    """The leaf parts of a message, except those of attached messages."""
    waiting: list[tuple[Message, int]] = [(message, 0)]
    for _ in range(PARTS_AT_MOST):
        if not waiting:
            return
        part, depth = waiting.pop(0)
        if part.get_content_maintype() == "multipart" and part.is_multipart() and depth < DEPTH_AT_MOST:
            waiting = [*((each, depth + 1) for each in _held(part)), *waiting]
        else:
            yield part


def _held(part: Message) -> list[Message]:
    """The parts of a multipart; the payload of any other part is not accessed, because that would decode it."""
    held = part.get_payload() if part.is_multipart() else None
    return [each for each in held if isinstance(each, Message)] if isinstance(held, list) else []


def _is_attached(part: Message) -> bool:
    return str(part.get("Content-Disposition", "")).strip().lower().startswith("attachment")


def _attachment(part: Message, mime: str) -> MailAttachment:
    return MailAttachment(name=_name(part), mime=mime, size=len(_content(part)))


def _name(part: Message) -> str:
    try:
        name = part.get_param("filename", None, "content-disposition") or part.get_param("name", None)
        return _decoded_header(collapse_rfc2231_value(name)) if name else ""
    except (ValueError, LookupError, TypeError, AttributeError):
        return ""


def _body(texts: dict[str, list[Message]]) -> tuple[str, bool]:
    """The plain text; if there is hardly any, the HTML."""
    plain = "\n\n".join(text for part in texts["text/plain"] if (text := _text(part).strip()))
    if plain or not texts["text/html"]:
        return plain, False
    shown = [html.show(_text(part)) for part in texts["text/html"]]
    return "\n\n".join(each.text for each in shown), any(each.hides for each in shown)


def _text(part: Message) -> str:
    declared = part.get_param("charset", "")
    said = declared if isinstance(declared, str) else declared[2]
    content = _content(part)
    text = (
        html.decoded(content)
        if not said and part.get_content_subtype() == "html"
        else charset.decode(content, declared=said)
    )
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _content(part: Message) -> bytes:
    try:
        content = part.get_payload(decode=True)
    except (ValueError, LookupError, binascii.Error, AttributeError, TypeError):
        return b""
    return content if isinstance(content, bytes) else b""


def _header(message: Message, name: str) -> str:
    found = [value for each, value in message.raw_items() if each.lower() == name.lower()]
    return ", ".join(_decoded_header(str(value)) for value in found[:20])[:RAW_HEADER_CHARS]


def _decoded_header(value: str) -> str:
    """The text of a header, in any character set."""
    value = value[:RAW_HEADER_CHARS]
    try:
        chunks = decode_header(value) if "=?" in value else [(value, None)]
    except (ValueError, LookupError, binascii.Error, email.errors.MessageError):
        chunks = [(value, None)]
    words = []
    for chunk, said in chunks:
        # Raw bytes that the sender did not encode arrive as lone surrogates.
        raw = chunk if isinstance(chunk, bytes) else chunk.encode("utf-8", "surrogateescape")
        words.append(charset.decode(raw, declared=said or ""))
    return "".join(words)
