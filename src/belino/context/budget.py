"""Budget of the agent's context, and the pure function that chooses what fits."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from belino.domain.errors import ConfigError
from belino.net.clock import time_zone

WORTH_A_LINE = 40
"""Tokens below which a part of a message is not worth a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextConfig:
    """The context an agent gets about a channel when its session begins."""

    snapshot_tokens: int = field(
        default=1500, metadata={"says": "The most tokens for the messages before the one being answered."}
    )
    snapshot_messages: int = field(
        default=20, metadata={"says": "The most messages before it that are included.", "most": 200}
    )
    snippet_chars: int = field(
        default=150,
        metadata={
            "says": "The most characters of each of these messages that are included; fewer if they cost many tokens.",
            "least": 1,
        },
    )
    thread_tokens: int = field(
        default=8000, metadata={"says": "The most tokens for the replies of a thread; one is always included."}
    )
    root_tokens: int = field(
        default=8000, metadata={"says": "The most tokens for the first message of a thread.", "least": 1}
    )
    updates_tokens: int = field(
        default=1500,
        metadata={"says": "The most tokens for what arrived, changed or was deleted since the last turn."},
    )
    message_chars: int = field(
        default=40_000, metadata={"says": "The most characters of a message that is included in full.", "least": 1}
    )
    format: Literal["compact", "json"] = field(
        default="compact",
        metadata={"says": "How the context is written: `compact` lines, or `json` at three times the tokens."},
    )
    attach_media: Literal["auto", "never", "message", "thread"] = field(
        default="auto",
        metadata={
            "says": "Which media is attached without a request: `auto` up to three pictures of the message itself, if "
            "it has words or is direct; `never` any; all that the agent takes of the `message`, or of its `thread`."
        },
    )
    unclaimed_refs: int = field(
        default=5,
        metadata={"says": "How many pictures that a sender posted without a question belong to their next question."},
    )
    unclaimed_minutes: int = field(
        default=10, metadata={"says": "The minutes for which such pictures wait for the question."}
    )
    timezone: str = field(
        default="",
        metadata={
            "says": "The time zone of days that people name, by its IANA name such as `Europe/Berlin`; "
            "empty means the system's."
        },
    )

    def __post_init__(self) -> None:
        try:
            time_zone(self.timezone)
        except ValueError as error:
            raise ConfigError(f"timezone: {error}") from None


class NewestFit(NamedTuple):
    """How many of the newest messages are included."""

    told: int
    room: int | None = None
    """The tokens left for the oldest of them if it must be cut; None if all are whole."""


def newest_that_fit(costs: Iterable[int], budget: int, *, cuts: bool = False) -> NewestFit:
    """Take messages into a budget, newest first, until one does not fit; later ones are not read.

    With `cuts` that one is cut to the tokens that are left, if they are enough, and the newest is included whatever it
    costs. Without `cuts`, only whole messages are taken.
    """
    left, count = budget, 0
    for cost in costs:
        if cost > left:
            is_cut = cuts and (count == 0 or left >= WORTH_A_LINE)
            return NewestFit(count + 1, max(left, 0)) if is_cut else NewestFit(count)
        left -= cost
        count += 1
    return NewestFit(count)
