"""Wire format of the HTTP agent: the turn as JSON, its signature, and the answer as JSON or server-sent events."""

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import asdict
from typing import Any

from belino.domain.errors import AgentError
from belino.domain.media import Block, FileBlock, ImageBlock, TextBlock
from belino.domain.message import Quote
from belino.domain.turn import Attachment, ToolAddress, Turn, TurnMessage

VERSION = 1
EVENT_BYTES = 32 * 1024 * 1024
"""The largest event or JSON answer, with the files in it."""
NO_EVENT = "the server sent something that is no event"


def turn_body(turn: Turn, session: str, address: ToolAddress | None) -> bytes:
    """The request's body; the same turn has the same `id` at each attempt."""
    body = {
        "version": VERSION,
        "id": f"{turn.conversation}#{turn.number}",
        "conversation": str(turn.conversation),
        "turn": turn.number,
        "system": turn.system,
        "content": [_content(block) for block in turn.blocks],
        "messages": [_message(message) for message in turn.messages],
        "session": session or None,
        "deadline": turn.deadline.isoformat(),
        "mcp": {"url": address.public_url, "token": address.token} if address else None,
    }
    return json.dumps(body, ensure_ascii=False).encode(errors="replace")


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """The value of `X-Belino-Signature`: a keyed hash of the time, a dot and the body."""
    return "sha256=" + hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def read_object(text: bytes | str) -> dict[str, Any]:
    """A JSON object; AgentError if it is none."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise AgentError(f"{NO_EVENT}: not a JSON object")
    return found


async def server_sent(chunks: AsyncIterator[bytes]) -> AsyncGenerator[dict[str, Any]]:
    """The events of a stream; the name of an event is its type. AgentError if one is too large."""
    name, data, size = "", list[str](), 0
    async for line in _lines(chunks):
        size += len(line)
        if size > EVENT_BYTES:
            raise AgentError(f"the server sent an event over {EVENT_BYTES} bytes")
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if line and field == "event":
            name = value
        elif line and field == "data":
            data.append(value)
        elif not line:
            if data:
                event = read_object("\n".join(data))
                yield {**event, "type": name} if name else event
            name, data, size = "", [], 0


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[str]:
    """Lines that end in LF or CR LF, as the servers in use write them; an unfinished last one is dropped."""
    rest = bytearray()
    async for chunk in chunks:
        rest += chunk
        while (end := rest.find(b"\n")) >= 0:
            yield rest[:end].decode(errors="replace").removesuffix("\r")
            del rest[: end + 1]
        if len(rest) > EVENT_BYTES:
            raise AgentError(f"the server sent an event over {EVENT_BYTES} bytes")


def files_in(event: Mapping[str, object]) -> list[tuple[str, bytes]]:
    """The files of an answer, each with a bare name; AgentError if one cannot be read."""
    found = event.get("files") or []
    if not isinstance(found, list):
        raise AgentError("the server's `files` is not a list")
    return [_file(each) for each in found]


def _file(said: object) -> tuple[str, bytes]:
    table = said if isinstance(said, dict) else {}
    name, data = table.get("name"), table.get("data")
    if not isinstance(name, str) or not isinstance(data, str):
        raise AgentError("a file of the server's answer needs `name` and `data`")
    bare = "".join(char for char in name.replace("\\", "/").rpartition("/")[2] if char.isprintable()).lstrip(".")[:100]
    try:
        return bare or "file", base64.b64decode(data, validate=True)
    except ValueError:
        raise AgentError("a file of the server's answer is not base64") from None


def _content(block: Block) -> dict[str, Any]:
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case FileBlock():
            return {"type": "file", "name": block.path.name, "mime": block.mime, "ref": block.ref}
        case _:
            kind = "image" if isinstance(block, ImageBlock) else "media"
            data = base64.b64encode(block.data).decode()
            return {"type": kind, "mime": block.mime, "ref": block.ref, "data": data}


def _message(message: TurnMessage) -> dict[str, Any]:
    return {
        "id": message.id,
        "author": {"id": message.author.id, "name": message.author.name},
        "sent": message.sent.isoformat(),
        "text": message.text,
        "media": [_media(attachment) for attachment in message.attachments],
        "reply_to": message.reply_to,
        "quote": _quote(message.quote),
        "forward": _quote(message.forward),
        "choice": asdict(message.choice) if message.choice is not None else None,
    }


def _quote(quote: Quote | None) -> dict[str, Any] | None:
    if quote is None:
        return None
    return {"id": quote.message_id, "author": quote.author.name if quote.author else None, "text": quote.text}


def _media(one: Attachment) -> dict[str, Any]:
    about = {"ref": one.ref, "kind": str(one.kind), "name": one.name, "mime": one.mime, "size": one.size}
    return {**about, "caption": one.caption, "duration": one.duration}
