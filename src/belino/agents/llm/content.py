"""Content blocks as a model's messages, and how pictures in them are found, counted and replaced."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from belino.domain.media import Block, FileBlock, ImageBlock, TextBlock
from belino.domain.tokens import IMAGE_TOKENS_AT_MOST, estimate_tokens

if TYPE_CHECKING:
    from pydantic_ai.messages import BinaryContent, ModelMessage, ToolReturnPart, UserPromptPart

    Item = str | BinaryContent

MIMES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

Note = Callable[[str], str]
"""ref → the text that replaces its picture."""


def items_of(blocks: Sequence[Block], refused: Mapping[str, str], note: Note) -> "list[Item]":
    """Blocks for a model, in order; a picture in `refused` becomes a note."""
    from pydantic_ai.messages import BinaryContent

    items: list[Item] = []
    for block in blocks:
        match block:
            case TextBlock():
                items.append(block.text)
            case FileBlock():
                items.append(f"File: {block.path} ({block.mime})")
            case ImageBlock() if block.ref in refused:
                items.append(note(block.ref))
            case ImageBlock():
                items.append(BinaryContent(data=block.data, media_type=block.mime, identifier=block.ref))
    return items


def refusals(blocks: Sequence[Block], *, most_bytes: int, sees: bool) -> dict[str, str]:
    """The pictures that the provider would refuse, and why."""
    found: dict[str, str] = {}
    for block in blocks:
        if isinstance(block, ImageBlock):
            if not sees:
                found[block.ref] = "this model sees no pictures"
            elif block.mime not in MIMES:
                found[block.ref] = f"its type, {block.mime}"
            elif len(block.data) > most_bytes:
                found[block.ref] = f"it has over {most_bytes} bytes"
    return found


def user_content(items: "list[Item]") -> "list[Item]":
    """The user content; never empty, which some providers refuse."""
    return [item for item in items if not isinstance(item, str) or item.strip()] or ["(no text)"]


def tool_content(items: "list[Item]") -> "str | list[Item]":
    """A tool's result: one text, unless it contains pictures."""
    if any(not isinstance(item, str) for item in items):
        return items
    return "\n".join(str(item) for item in items) or "(nothing)"


def pictures(messages: "Sequence[ModelMessage]") -> Iterator[tuple[int, str]]:
    """Every picture, as the index of its message and its ref."""
    for index, message in enumerate(messages):
        for part in message.parts:
            for item in _items(part):
                if not isinstance(item, str):
                    yield index, item.identifier


def refs_in(messages: "Sequence[ModelMessage]") -> set[str]:
    return {ref for _, ref in pictures(messages)}


def texts(messages: "Sequence[ModelMessage]") -> Iterator[str]:
    """Every text of users, tools and the model."""
    from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart

    for message in messages:
        for part in message.parts:
            match part:
                case TextPart() | ThinkingPart():
                    yield part.content
                case ToolCallPart():
                    yield part.args_as_json_str()
                case _:
                    yield from (item for item in _items(part) if isinstance(item, str))


def count_tokens(messages: "Sequence[ModelMessage]") -> int:
    """The estimated tokens of these messages."""
    shown = sum(1 for _ in pictures(messages))
    return shown * IMAGE_TOKENS_AT_MOST + sum(estimate_tokens(text) for text in texts(messages))


def without(messages: "Sequence[ModelMessage]", refs: set[str], note: Note) -> "list[ModelMessage]":
    """The same messages with a note in place of each of these pictures; unchanged ones are the same objects."""
    return [_without(message, refs, note) for message in messages]


def _without(message: "ModelMessage", refs: set[str], note: Note) -> "ModelMessage":
    from pydantic_ai.messages import ModelRequest

    if not isinstance(message, ModelRequest) or not refs & refs_in([message]):
        return message
    return replace(message, parts=[_part_without(part, refs, note) for part in message.parts])


def _part_without(part: Any, refs: set[str], note: Note) -> Any:
    from pydantic_ai.messages import ToolReturnPart, UserPromptPart

    items = [
        item if isinstance(item, str) or item.identifier not in refs else note(item.identifier) for item in _items(part)
    ]
    match part:
        case UserPromptPart():
            return UserPromptPart(content=items, timestamp=part.timestamp)
        case ToolReturnPart():
            return ToolReturnPart(
                tool_name=part.tool_name,
                content=tool_content(items),
                tool_call_id=part.tool_call_id,
                outcome=part.outcome,
                timestamp=part.timestamp,
            )
        case _:
            return part


def _items(part: "UserPromptPart | ToolReturnPart | object") -> "list[Item]":
    """The texts and pictures of a part from users or tools; we add nothing else."""
    from pydantic_ai.messages import BinaryContent, ToolReturnPart, UserPromptPart

    if not isinstance(part, UserPromptPart | ToolReturnPart):
        return []
    content: Any = part.content
    listed = content if isinstance(content, list | tuple) else [content]
    return [item for item in listed if isinstance(item, str | BinaryContent)]
