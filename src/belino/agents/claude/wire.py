"""Wire format: content blocks as the Messages API and the SDK's tools take them, and back."""

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from belino.domain.media import AudioBlock, Block, DocumentBlock, FileBlock, ImageBlock, TextBlock

SERVER = "belino"
PREFIX = f"mcp__{SERVER}__"

# The CLI would write a longer result to a file that the agent cannot open.
RESULT_CHARS = 400_000
CUT = "… (cut here: the result is too long; ask for less at a time)"


def message_content(blocks: Iterable[Block], refused: Mapping[str, str]) -> list[dict[str, Any]]:
    """The user message's content; refused media becomes a note."""
    return [_content(block, refused) for block in blocks] or [_text("(an empty message)")]


def tool_content(blocks: Iterable[Block], refused: Mapping[str, str]) -> list[dict[str, Any]]:
    """A tool's result for the SDK: text and pictures only, anything else is described in text."""
    left, content = RESULT_CHARS, list[dict[str, Any]]()
    for block in blocks:
        if isinstance(block, ImageBlock) and block.ref not in refused:
            content.append({"type": "image", "data": _base64(block), "mimeType": block.mime})
            continue
        words = _words(block, refused)
        content.append(_text(words if len(words) <= left else words[:left] + CUT))
        left = max(0, left - len(words))
    return content or [_text("(nothing)")]


def tool_name(name: str) -> str:
    """A tool's own name, without the server prefix."""
    return name.removeprefix(PREFIX)


def _content(block: Block, refused: Mapping[str, str]) -> dict[str, Any]:
    if isinstance(block, ImageBlock | DocumentBlock) and block.ref not in refused:
        kind = "image" if isinstance(block, ImageBlock) else "document"
        return {"type": kind, "source": {"type": "base64", "media_type": block.mime, "data": _base64(block)}}
    return _text(_words(block, refused))


def _words(block: Block, refused: Mapping[str, str]) -> str:
    match block:
        case TextBlock():
            return block.text if block.text.strip() else "(empty)"
        case FileBlock():
            # Its working folder is the session's: a name is enough, and says nothing about the machine.
            return f"[File: {block.path.name}, {block.mime}, ref:{block.ref}] {block.note}".rstrip()
        case ImageBlock():
            return f"[The picture ref:{block.ref} cannot be shown: {refused.get(block.ref, 'it was refused')}]"
        case DocumentBlock() | AudioBlock():
            what = "document" if isinstance(block, DocumentBlock) else "sound"
            why = refused.get(block.ref, "this agent takes it only with a message")
            return f"[The {what} ref:{block.ref} cannot be shown: {why}]"


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _base64(block: ImageBlock | DocumentBlock) -> str:
    return base64.b64encode(block.data).decode()
