"""Memory of a conversation: whole turns within a budget, with the media that they hold.

It changes only at its end as long as it fits, so that the provider's prompt cache stays valid.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from belino.agents.llm.content import (
    ModelInput,
    Note,
    kind_of_type,
    media_bytes,
    media_in,
    refs_in,
    text_tokens,
    without,
)
from belino.agents.llm.messages import Message, ShownMedia, from_json, pack, to_json, unpack
from belino.domain.media import AudioBlock, Block, DocumentBlock, ImageBlock
from belino.domain.tokens import IMAGE_TOKENS_AT_MOST
from belino.domain.turn import Compacted, media_names

log = logging.getLogger(__name__)

VERSION = 3
# Version 1 has no costs of media; both have the messages of pydantic-ai.
READABLE = (1, 2, VERSION)
# Cut more than necessary, and less often: the rest stays byte-equal until the next cut, so prompt caches stay valid.
KEPT_OF_BUDGET = 2 / 3

MEDIA_OF_REQUEST = 0.9
"""The share of a request's size that media may take; the rest is text."""

Marker = Callable[[ShownMedia, int], str]
"""The line for a media item that left the memory, with the number of its turn."""


class MediaCost(NamedTuple):
    """What media adds to a request besides its bytes."""

    tokens: int = IMAGE_TOKENS_AT_MOST
    pages: int = 0
    """Of a document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """One past turn."""

    number: int
    messages: Sequence[Message]
    costs: Mapping[str, MediaCost] = field(default_factory=dict)
    """Of its media, by ref; a memory of version 1 has none."""

    @property
    def refs(self) -> set[str]:
        """The media that it holds."""
        return refs_in(self.messages)

    @property
    def bytes(self) -> int:
        """The bytes of its media in a request."""
        return media_bytes(item for _, item in media_in(self.messages))

    @property
    def tokens(self) -> int:
        """The estimated tokens of its texts and media."""
        return text_tokens(self.messages) + sum(self.costs.get(ref, MediaCost()).tokens for ref in self.refs)

    def without(self, refs: set[str], marker: Marker) -> "Past":
        """The turn with a line in place of each item of this media."""
        if not refs & self.refs:
            return self
        kept = {ref: cost for ref, cost in self.costs.items() if ref not in refs}
        return replace(self, messages=without(self.messages, refs, lambda item: marker(item, self.number)), costs=kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortened:
    """What stays of a memory."""

    turns: list[Past]
    gone: frozenset[str]
    """Media that is in none of them any more."""
    cut: bool
    """Whether turns were removed, or what they said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How much may be remembered."""

    tokens: int
    media_bytes: int
    """As much of a request's size as may be old media."""
    media_turns: int
    """For so many of the last turns media stays, when something must go."""


class Window:
    """What the next request holds: the turns in memory, and the messages of the current one."""

    def __init__(self, number: int) -> None:
        self.number = number
        """Of the current turn."""
        self.past: list[Past] = []
        self.now: list[Message] = []
        self._costs: dict[str, MediaCost] = {}
        self.names: dict[str, str] = {}
        """Names of media, by ref."""

    @property
    def messages(self) -> list[Message]:
        return [*(message for past in self.past for message in past.messages), *self.now]

    def learn_names(self, found: Iterable[str]) -> None:
        """Learn the names of media from texts."""
        for text in found:
            self.names |= media_names(text)

    def count(self, blocks: Iterable[Block]) -> None:
        """Add the cost of media that becomes part of the current turn."""
        for block in blocks:
            if isinstance(block, ImageBlock | DocumentBlock | AudioBlock):
                tokens, pages = self._costs.get(block.ref, (0, 0))
                pages += block.pages if isinstance(block, DocumentBlock) else 0
                self._costs[block.ref] = MediaCost(tokens + block.tokens, pages)

    def title(self, item: ShownMedia) -> str:
        """The kind and name of a media item."""
        kind = kind_of_type(item.mime)
        unnamed = {"Image": "a picture", "Audio": "a sound"}.get(kind, "a document")
        return f"{kind}: {self.names.get(item.ref, unnamed)}"

    def marker(self, item: ShownMedia, turn: int) -> str:
        """The line for a media item that left the window."""
        return f"[{self.title(item)}, shown at turn {turn}; fetch_media({item.ref}) shows it again]"

    def remove(self, refs: set[str], note: Note | None = None) -> None:
        """Replace media by a line: a note, or how to see it again."""
        self.past = [past.without(refs, _noted(note) if note else self.marker) for past in self.past]
        self.now = without(self.now, refs, note or (lambda item: self.marker(item, self.number)))

    def unaccepted(self, model: ModelInput) -> set[str]:
        """Media that a model does not take: another one may have been configured."""
        items = [item for _, item in media_in(self.messages)]
        return {item.ref for item in items if model.why_refused(item.mime, item.size)}

    def excess(self, model: ModelInput) -> set[str]:
        """The oldest media, as far as there is more than a model takes in one request."""
        items, gone = [item for _, item in media_in(self.messages)], set[str]()
        for item in items:
            left = [each for each in items if each.ref not in gone]
            if media_bytes(left) <= model.request_bytes * MEDIA_OF_REQUEST and self._is_within(left, model):
                break
            gone.add(item.ref)
        return gone

    def _is_within(self, items: Sequence[ShownMedia], model: ModelInput) -> bool:
        """Whether a request may have so many pictures, and pages of documents."""
        costs = {ref: cost for past in self.past for ref, cost in past.costs.items()} | self._costs
        pages = sum(costs.get(ref, MediaCost()).pages for ref in {item.ref for item in items})
        formats = model.accepts.documents
        return sum(item.is_image for item in items) <= model.request_images and (
            formats is None or pages <= formats.max_pages
        )

    def cut(self) -> Compacted:
        """Which turns and media are left, after some were removed."""
        first = self.past[0].number if self.past else self.number if self.now else None
        return Compacted(first=first, kept=tuple(sorted(refs_in(self.messages))))

    def end_turn(self, room: Room) -> Compacted | None:
        """Make the current turn a past one, and keep the memory within its room; returns what left it."""
        before = [*self.past, Past(number=self.number, messages=self.now, costs=dict(self._costs))]
        kept = shorten(before, room, self.marker)
        self.past, self.now = kept.turns, []
        if kept.cut:
            return self.cut()
        return Compacted(only=tuple(sorted(kept.gone))) if kept.gone else None


def _noted(note: Note) -> Marker:
    return lambda item, _turn: note(item)


def recall(memory: bytes | None) -> list[Past] | None:
    """The turns in a memory; None if it cannot be read and counts as lost."""
    if memory is None:
        return []
    try:
        table = unpack(memory)
        if table["version"] not in READABLE:
            raise ValueError("written by another belino")
        return [
            Past(
                number=int(turn["number"]),
                messages=[from_json(message) for message in turn["messages"]],
                costs={str(ref): MediaCost(int(cost[0]), int(cost[1])) for ref, cost in turn.get("costs", {}).items()},
            )
            for turn in table["turns"]
        ]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        log.warning("a session's memory cannot be read: %s", type(error).__name__)
        return None


def remember(turns: Sequence[Past]) -> bytes:
    """The turns as bytes."""
    told = [
        {
            "number": turn.number,
            "messages": [to_json(message) for message in turn.messages],
            "costs": dict(turn.costs),
        }
        for turn in turns
    ]
    return pack({"version": VERSION, "turns": told})


def shorten(turns: Sequence[Past], room: Room, marker: Marker) -> Shortened:
    """The same turns if there is room for them. Otherwise, older media leaves; and if that is not enough, older turns.

    Idempotent.
    """
    kept, cut = list(turns), False
    is_long = _tokens(kept) > room.tokens
    if is_long or _bytes(kept) > room.media_bytes:
        enough = int(room.tokens * KEPT_OF_BUDGET)
        older = max(0, len(kept) - room.media_turns)
        marked = [*(turn.without(turn.refs, marker) for turn in kept[:older]), *kept[older:]]
        cut = is_long and _tokens(marked) > enough
        kept = _lighter(_newest(kept, enough, room.tokens, marker) if cut else marked, room, marker)
    return Shortened(turns=kept, gone=frozenset(_all_refs(turns) - _all_refs(kept)), cut=cut)


def _newest(turns: list[Past], enough: int, most: int, marker: Marker) -> list[Past]:
    """The newest turns within `enough` tokens; the last one in any case, if there is a form of it within `most`."""
    costs = [turn.tokens for turn in turns]
    first, left = len(turns) - 1, enough - costs[-1]
    while first and costs[first - 1] <= left:
        first -= 1
        left -= costs[first]
    if first < len(turns) - 1 or costs[-1] <= most:
        return turns[first:]
    # The last turn alone is too long: without its media, else only its question and its answer.
    last = turns[-1].without(turns[-1].refs, marker)
    thin = replace(last, messages=[last.messages[0], last.messages[-1]])
    return next(([turn] for turn in (last, thin) if turn.tokens <= most), [])


def _lighter(turns: list[Past], room: Room, marker: Marker) -> list[Past]:
    """The turns without the media of the oldest, if all of it is too large for a request."""
    kept = list(turns)
    if _bytes(kept) > room.media_bytes:
        for at, turn in enumerate(kept):
            kept[at] = turn.without(turn.refs, marker)
            if _bytes(kept) <= room.media_bytes * KEPT_OF_BUDGET:
                break
    return kept


def _tokens(turns: Sequence[Past]) -> int:
    return sum(turn.tokens for turn in turns)


def _bytes(turns: Sequence[Past]) -> int:
    return sum(turn.bytes for turn in turns)


def _all_refs(turns: Sequence[Past]) -> set[str]:
    return {ref for turn in turns for ref in turn.refs}
