"""Content blocks as a model's messages, and how media in them is found, counted and replaced."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from belino.agents.llm.messages import (
    CallPart,
    Item,
    Message,
    RequestMessage,
    ResultPart,
    ShownMedia,
    ThoughtPart,
    UserPart,
    WordsPart,
)
from belino.domain.media import AcceptedMedia, AudioBlock, Block, DocumentBlock, FileBlock, ImageBlock, TextBlock
from belino.domain.tokens import estimate_tokens

IMAGE_MIMES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

Note = Callable[[ShownMedia], str]
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


def items_of(blocks: Sequence[Block], refused: Mapping[str, str], note: Note) -> list[Item]:
    """Blocks for a model, in order; media in `refused` becomes a note."""
    items: list[Item] = []
    for block in blocks:
        match block:
            case TextBlock():
                items.append(block.text)
            case FileBlock():
                items.append(f"[A file that you cannot open: {block.mime}, ref:{block.ref}]")
            case ImageBlock() | DocumentBlock() | AudioBlock():
                item = ShownMedia.of(block.ref, block.mime, block.data)
                items.append(note(item) if block.ref in refused else item)
    return items


def refusals(blocks: Sequence[Block], model: ModelInput) -> dict[str, str]:
    """The media that the provider would refuse, and why."""
    media = [block for block in blocks if isinstance(block, ImageBlock | DocumentBlock | AudioBlock)]
    found = {block.ref: model.why_refused(block.mime, len(block.data)) for block in media}
    return {ref: why for ref, why in found.items() if why}


def user_content(items: Sequence[Item]) -> tuple[Item, ...]:
    """The user content; never empty, which some providers refuse."""
    return tuple(item for item in items if not isinstance(item, str) or item.strip()) or ("(no text)",)


def tool_content(items: Sequence[Item]) -> tuple[Item, ...]:
    """A tool's result: one text, unless it contains media."""
    if any(not isinstance(item, str) for item in items):
        return tuple(items)
    return ("\n".join(str(item) for item in items) or "(nothing)",)


def media_in(messages: Sequence[Message]) -> Iterator[tuple[int, ShownMedia]]:
    """Every media item, with the index of its message."""
    for index, message in enumerate(messages):
        for part in message.parts if isinstance(message, RequestMessage) else ():
            for item in part.items:
                if isinstance(item, ShownMedia):
                    yield index, item


def refs_in(messages: Sequence[Message]) -> set[str]:
    return {item.ref for _, item in media_in(messages)}


def media_bytes(items: Iterable[ShownMedia]) -> int:
    """The bytes of media as a request has them: in base64."""
    return sum(len(item.base64) for item in items)


def texts(messages: Sequence[Message]) -> Iterator[str]:
    """Every text of users, tools and the model."""
    for message in messages:
        for part in message.parts:
            match part:
                case WordsPart() | ThoughtPart():
                    yield part.text
                case CallPart():
                    yield part.arguments
                case UserPart() | ResultPart():
                    yield from (item for item in part.items if isinstance(item, str))


def text_tokens(messages: Sequence[Message]) -> int:
    """The estimated tokens of their texts."""
    return sum(estimate_tokens(text) for text in texts(messages))


def without(messages: Sequence[Message], refs: set[str], note: Note) -> list[Message]:
    """The same messages with a note in place of each item of this media; unchanged ones are the same objects."""
    return [_without(message, refs, note) for message in messages]


def _without(message: Message, refs: set[str], note: Note) -> Message:
    if not isinstance(message, RequestMessage) or not refs & refs_in([message]):
        return message
    return replace(message, parts=tuple(_part_without(part, refs, note) for part in message.parts))


def _part_without(part: UserPart | ResultPart, refs: set[str], note: Note) -> UserPart | ResultPart:
    items = [item if isinstance(item, str) or item.ref not in refs else note(item) for item in part.items]
    return replace(part, items=tuple(items) if isinstance(part, UserPart) else tool_content(items))
