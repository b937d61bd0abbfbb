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


class NoPlaces:
    """The places of an account without a gateway: nothing moved, and no rules name a channel."""

    async def moved(self, move: Moved) -> None:
        """Ignored."""

    def now(self, channel: str) -> str:
        return channel

    def names(self, channel: str, server: str = "") -> bool:
        return False


def message_at(message_id: str, place: str) -> str:
    """The id of a message in the place that its channel moved to."""
    return f"{message_id}@{place}"
