"""Channel agent: pass messages on to a client that is connected by `belino mcp --channel`, such as Claude Code.

The client answers with tools, in its own time, so a turn ends as soon as the message is passed on. Messages stay in the
channel inbox until the client acknowledges them.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from belino.domain.media import AcceptedMedia
from belino.domain.outcome import PASSED_ON
from belino.domain.turn import Accepted, Final, ReplyPart, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The channel agent has no settings."""


class Agent:
    """Passes every message on."""

    remembers = True
    sees_images = True
    accepts = AcceptedMedia(tokens=0)
    """No media is attached: the client fetches what it needs."""

    def __init__(self, config: Config) -> None:
        self._config = config

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        """End the turn without an answer."""
        yield Accepted()
        yield Final(text=PASSED_ON, silent=True)
