"""Channel agent: pass messages on to a client that is connected by `belino mcp --channel`, such as Claude Code.

The client answers with tools, in its own time, so a turn ends as soon as the message is passed on. Messages stay in the
channel inbox until the client acknowledges them.
"""

import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from belino.domain.media import AcceptedMedia
from belino.domain.outcome import PASSED_ON, Finding
from belino.domain.ports import Question
from belino.domain.turn import Accepted, Final, ReplyPart, Turn

SETUP: Sequence[Question] = ()
"""There is nothing to ask; the client is set up where it runs."""
CONNECT = "connect one with `belino mcp --channel --conversation CONVERSATION`; see docs/agents/channel.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The channel agent has no settings."""


class Agent:
    """Passes every message on."""

    remembers = True
    sees_images = True
    accepts = AcceptedMedia(tokens=0, texts=False)
    """No media is attached, and only voice is read: the client fetches what it needs."""

    def __init__(self, config: Config) -> None:
        self._config = config

    async def check(self) -> Sequence[Finding]:
        """Tell how a client is connected; it may run as another user or program, so its absence is no fault."""
        found = "Claude Code is installed" if shutil.which("claude") else "claude is not on PATH"
        return (Finding(name="agent channel", ok=True, says=f"messages wait for a client ({found}); {CONNECT}"),)

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        """End the turn without an answer."""
        yield Accepted()
        yield Final(text=PASSED_ON, silent=True)
