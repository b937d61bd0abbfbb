"""Environment of a turn: the settings, media and observers that its runner is given."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from belino.aio.retry import Retry
from belino.config import Config
from belino.delivery.typing import Signs
from belino.domain.commands import ChatCommand, CommandEffect
from belino.domain.media import Blob
from belino.domain.message import ConversationKey
from belino.domain.outcome import Counters
from belino.domain.ports import Agent, Clock
from belino.domain.stored import ClaimedTurn, RefRecord, TurnEnd
from belino.domain.turn import ReplyPart, Turn
from belino.media.fetch import Fetcher
from belino.media.render import Renderer
from belino.storage.home import Home
from belino.turns.drafts import TurnEvents
from belino.turns.failure import TellsOwners
from belino.turns.tool_access import ToolAccess

if TYPE_CHECKING:
    from belino.understanding.read import Understanding


class RecordsTurns(Protocol):
    """The part of the recorder that a running turn needs."""

    def run_turn(self, agent: Agent, turn: Turn) -> AsyncIterator[ReplyPart]: ...
    def ended(self, claimed: ClaimedTurn, end: TurnEnd) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnMedia:
    """Where a turn's tools get media from."""

    fetcher: Fetcher
    renderer: Callable[[], Renderer]
    """Made with the first toolbox: its cache costs start-up time."""
    understanding: "Callable[[], Understanding | None]"
    """Made with the first media that is to be read."""
    wake_words: Callable[[ConversationKey], Awaitable[Sequence[str]]]
    """The words that address the agent in a conversation like its name."""
    link: Callable[[RefRecord, Blob], Awaitable[str]]
    """Makes a link under which the bytes of a ref can be fetched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnObservers:
    """The parts of the gateway that are notified of a turn's progress."""

    events: TurnEvents
    counters: Counters
    recorder: RecordsTurns
    owners: TellsOwners
    replied: Callable[[ConversationKey], None]
    """Called when parcels of a conversation are in the outbox."""
    signs: Signs
    commanded: Callable[[ChatCommand, ClaimedTurn], Awaitable[CommandEffect]]
    """Says what the spoken command of a turn changes, and its answer; with the id of its message."""
    begins: Callable[[ConversationKey], Awaitable[None]]
    """Called before the agent runs: for a container, its folder is made ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The environment that turns run in."""

    config: Config
    home: Home
    clock: Clock
    insist: Retry
    """Retries a store call until it succeeds."""
    tools: ToolAccess = field(default_factory=ToolAccess)
    """Serves the tools of a turn to programs outside this process."""
