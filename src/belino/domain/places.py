"""Places: where the channels of an account are now, and which of them its access rules name."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A channel goes on under another id, by the platform's decision; messages there are numbered from the start."""

    old: str
    new: str


class Places(Protocol):
    """What the gateway knows about the channels of one account.

    A channel that moved keeps its first id everywhere in belino. A message of its new place has the id `ID@PLACE`, so
    that the numbers of both places stay apart.
    """

    async def moved(self, move: Moved) -> None:
        """Report a move that the platform told in an answer; reporting it again changes nothing."""
        ...

    def now(self, channel: str) -> str:
        """The id by which the platform knows a channel now."""
        ...

    def names(self, channel: str, server: str = "") -> bool:
        """Whether the access rules name a channel, its server or all channels; direct messages are not named."""
        ...

    def people(self) -> tuple[str, ...]:
        """The ids of senders who may write directly, as far as the access rules name them."""
        ...


class NoPlaces:
    """The places of an account without a gateway: nothing moved, and no rules name a channel."""

    async def moved(self, move: Moved) -> None:
        """Ignored."""

    def now(self, channel: str) -> str:
        return channel

    def names(self, channel: str, server: str = "") -> bool:
        return False

    def people(self) -> tuple[str, ...]:
        return ()


CATCH_UP = "catch-up"
"""The part of an account that a note about messages left out is reported for."""
MOST_UNHEARD = 20
"""Calls that an adapter makes at a start for missed messages of channels that it never heard from."""


def left_out(count: int) -> str:
    """The note about such channels that were not asked."""
    return (
        f"catch-up: {count} channels that were never heard from were not asked for messages from before the start; "
        f"belino asks {MOST_UNHEARD}"
    )


def message_at(message_id: str, place: str) -> str:
    """The id of a message in the place that its channel moved to."""
    return f"{message_id}@{place}"
