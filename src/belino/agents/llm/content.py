"""Content blocks as a model's messages, and how media in them is found, counted and replaced."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from belino.domain.media import AcceptedMedia, AudioBlock, Block, DocumentBlock, FileBlock, ImageBlock, TextBlock
from belino.domain.tokens import estimate_tokens

if TYPE_CHECKING:
    from pydantic_ai.messages import BinaryContent, ModelMessage, ToolReturnPart, UserPromptPart

    Item = str | BinaryContent

IMAGE_MIMES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

Note = Callable[["BinaryContent"], str]
"""The text that replaces a media item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInput:
    """The media that a model takes."""

    sees_images: bool
    image_bytes: int
    """The largest picture, before base64."""
    request_bytes: int
    """The largest request."""
    request_images: int
    """The most pictures in one request."""
    accepts: AcceptedMedia

    def why_refused(self, mime: str, size: int) -> str:
        """Why the provider would refuse an item of this type and size; empty if it would not."""
        kind = kind_of_type(mime)
        formats = {"Audio": self.accepts.audio, "Document": self.accepts.documents}.get(kind)
        if kind == "Image" and not self.sees_images:
            return "this model sees no pictures"
        if kind != "Image" and formats is None:
            return "this model hears no sounds" if kind == "Audio" else "this model takes no documents"
        mimes, most = (formats.mimes, formats.max_bytes) if formats else (IMAGE_MIMES, self.image_bytes)
        if mime not in mimes:
            return f"its type, {mime}"
        return f"it has over {most} bytes" if size > most else ""


def kind_of_type(mime: str) -> str:
    """The kind of media, as a placeholder names it."""
    return {"image": "Image", "audio": "Audio"}.get(mime.partition("/")[0], "Document")


def items_of(blocks: Sequence[Block], refused: Mapping[str, str], note: Note) -> "list[Item]":
    """Blocks for a model, in order; media in `refused` becomes a note."""
    from pydantic_ai.messages import BinaryContent

    items: list[Item] = []
    for block in blocks:
        match block:
            case TextBlock():
                items.append(block.text)
            case FileBlock():
                items.append(f"[A file that you cannot open: {block.mime}, ref:{block.ref}]")
            case ImageBlock() | DocumentBlock() | AudioBlock():
                item = BinaryContent(data=block.data, media_type=block.mime, identifier=block.ref)
                items.append(note(item) if block.ref in refused else item)
    return items


def refusals(blocks: Sequence[Block], model: ModelInput) -> dict[str, str]:
    """The media that the provider would refuse, and why."""
    media = [block for block in blocks if isinstance(block, ImageBlock | DocumentBlock | AudioBlock)]
    found = {block.ref: model.why_refused(block.mime, len(block.data)) for block in media}
    return {ref: why for ref, why in found.items() if why}


def user_content(items: "list[Item]") -> "list[Item]":
    """The user content; never empty, which some providers refuse."""
    return [item for item in items if not isinstance(item, str) or item.strip()] or ["(no text)"]


def tool_content(items: "list[Item]") -> "str | list[Item]":
    """A tool's result: one text, unless it contains media."""
    if any(not isinstance(item, str) for item in items):
        return items
    return "\n".join(str(item) for item in items) or "(nothing)"


def media_in(messages: "Sequence[ModelMessage]") -> "Iterator[tuple[int, BinaryContent]]":
    """Every media item, with the index of its message."""
    for index, message in enumerate(messages):
        for part in message.parts:
            for item in _items(part):
                if not isinstance(item, str):
                    yield index, item


def refs_in(messages: "Sequence[ModelMessage]") -> set[str]:
    return {item.identifier for _, item in media_in(messages)}


def media_bytes(items: "Iterable[BinaryContent]") -> int:
    """The bytes of media as a request has them: in base64."""
    return sum(-(-len(item.data) // 3) * 4 for item in items)


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


def text_tokens(messages: "Sequence[ModelMessage]") -> int:
    """The estimated tokens of their texts."""
    return sum(estimate_tokens(text) for text in texts(messages))


def without(messages: "Sequence[ModelMessage]", refs: set[str], note: Note) -> "list[ModelMessage]":
    """The same messages with a note in place of each item of this media; unchanged ones are the same objects."""
    return [_without(message, refs, note) for message in messages]


def _without(message: "ModelMessage", refs: set[str], note: Note) -> "ModelMessage":
    from pydantic_ai.messages import ModelRequest

    if not isinstance(message, ModelRequest) or not refs & refs_in([message]):
        return message
    return replace(message, parts=[_part_without(part, refs, note) for part in message.parts])


def _part_without(part: Any, refs: set[str], note: Note) -> Any:
    from pydantic_ai.messages import ToolReturnPart, UserPromptPart

    items = [item if isinstance(item, str) or item.identifier not in refs else note(item) for item in _items(part)]
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
    """The texts and media of a part from users or tools; we add nothing else."""
    from pydantic_ai.messages import BinaryContent, ToolReturnPart, UserPromptPart

    if not isinstance(part, UserPromptPart | ToolReturnPart):
        return []
    content: Any = part.content
    listed = content if isinstance(content, list | tuple) else [content]
    return [item for item in listed if isinstance(item, str | BinaryContent)]
