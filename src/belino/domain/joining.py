"""Joining messages: which of them are answered together, in one turn, and why."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Literal

WhileBusy = Literal["queue", "join", "interrupt"]

SPLIT_MARGIN = 96
"""A text this much shorter than the limit may be one piece of a longer one: clients split at words."""
JOIN_WAIT = timedelta(milliseconds=500)
JOIN_MOST = timedelta(seconds=3)
SOON = timedelta(seconds=1.5)
"""How long after a message a forward, a continuation or an album's item still belongs to it."""

JOINED_AT_MOST = 50
"""Messages of one turn; the next one begins another."""
JOINED_CHARS = 100_000
"""Characters of the messages of one turn, beyond which no other joins."""


class JoinReason(StrEnum):
    """Why a message is answered together with the one before it."""

    ALBUM = "album"
    BATCH = "batch"
    CONTINUATION = "continuation"
    FORWARD = "forward"
    WAITING = "waiting"
    BUSY = "busy"

    @property
    def says(self) -> str:
        """The reason in words for a person."""
        return _WORDS[self]


_WORDS = {
    JoinReason.ALBUM: "an item of the same album",
    JoinReason.BATCH: "it came together with the message before it",
    JoinReason.CONTINUATION: "it continues a text that fills the platform's limit",
    JoinReason.FORWARD: "a forward right after the message before it",
    JoinReason.WAITING: "it came before the turn began",
    JoinReason.BUSY: "it came while another turn ran",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """How a message may join an open turn of its conversation. A command has none: it joins nothing."""

    is_line: bool
    """It is to be answered itself: it may join as any line does, not only by its content."""
    is_forward: bool = False
    fills: bool = False
    """It fills the platform's limit, so that the next one may continue it."""
    while_busy: WhileBusy = "queue"
    restarts: int | None = None
    """The running turn that may start again, because it has neither called a tool nor shown text."""
    interrupts: int | None = None
    """The turn that ran when it came, which it stops with `interrupt`."""
    wait: timedelta = JOIN_WAIT
    most: timedelta = JOIN_MOST
