"""Memory of a conversation: whole turns within a budget, and the pictures of the last few."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from belino.agents.llm.content import count_tokens, refs_in, without

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

log = logging.getLogger(__name__)

VERSION = 1
# Cut more than necessary, and less often: the rest stays byte-equal until the next cut, so prompt caches stay valid.
KEPT_OF_BUDGET = 2 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """One past turn."""

    number: int
    messages: "Sequence[ModelMessage]"


def recall(memory: bytes | None) -> list[Past] | None:
    """The turns in a memory; None if it cannot be read and counts as lost."""
    if memory is None:
        return []
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    try:
        table = json.loads(memory)
        if table["version"] != VERSION:
            raise ValueError("written by another belino")
        return [
            Past(number=int(turn["number"]), messages=ModelMessagesTypeAdapter.validate_python(turn["messages"]))
            for turn in table["turns"]
        ]
    except (ValueError, KeyError, TypeError) as error:  # validation errors are ValueErrors too
        log.warning("a session's memory cannot be read: %s", type(error).__name__)
        return None


def remember(turns: Sequence[Past]) -> bytes:
    """The turns as bytes."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    told = [
        {"number": turn.number, "messages": ModelMessagesTypeAdapter.dump_python(list(turn.messages), mode="json")}
        for turn in turns
    ]
    return json.dumps({"version": VERSION, "turns": told}, ensure_ascii=False, separators=(",", ":")).encode()


def shorten(
    turns: Sequence[Past], *, history_tokens: int, image_turns: int, names: Mapping[str, str]
) -> tuple[list[Past], set[str]]:
    """The turns to keep, and the pictures removed from them. Idempotent."""
    before = refs_in([message for turn in turns for message in turn.messages])
    older = max(0, len(turns) - image_turns)
    kept = [*(marked(turn, names) for turn in turns[:older]), *turns[older:]]
    kept = _within(kept, history_tokens)
    after = refs_in([message for turn in kept for message in turn.messages])
    return kept, before - after


def marked(turn: Past, names: Mapping[str, str]) -> Past:
    """The turn with a line in place of each of its pictures."""
    refs = refs_in(turn.messages)
    if not refs:
        return turn

    def marker(ref: str) -> str:
        return f"[Image: {names.get(ref, 'a picture')}, shown at turn {turn.number}; fetch_media({ref}) shows it again]"

    return replace(turn, messages=without(turn.messages, refs, marker))


def _within(turns: list[Past], budget: int) -> list[Past]:
    costs = [count_tokens(turn.messages) for turn in turns]
    if sum(costs) <= budget:
        return turns
    left = sum(costs)
    first = 0
    while first < len(turns) - 1 and left > budget * KEPT_OF_BUDGET:
        left -= costs[first]
        first += 1
    kept = turns[first:]
    if left > budget and kept:
        # The newest turn alone exceeds the budget: keep its question and its answer.
        thin = replace(kept[-1], messages=[kept[-1].messages[0], kept[-1].messages[-1]])
        kept = [thin] if count_tokens(thin.messages) <= budget else []
    return kept
