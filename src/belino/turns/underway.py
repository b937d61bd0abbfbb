"""Turns underway: which turn runs in a conversation, whether people have seen anything of it, and how it is stopped."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Protocol

from belino.aio.deadline import ring
from belino.domain.media import Block
from belino.domain.message import ConversationKey
from belino.domain.stored import ClaimedTurn
from belino.domain.turn import Toolbox, ToolSpec

BY_PERSON = "stopped by a person"
BY_MESSAGE = "stopped by a newer message"


class MakeToolbox(Protocol):
    """Makes the tools of a turn; for a container, its files are in the folder that the container sees."""

    def __call__(self, *, in_container: bool = False) -> Toolbox: ...


class Underway:
    """The turns that run now, at most one in each conversation."""

    def __init__(self) -> None:
        self.scopes: dict[ConversationKey, asyncio.Timeout] = {}
        """The deadline of what a turn does at the moment, by which it is stopped."""
        self.aborted: dict[ConversationKey, str] = {}
        """Conversations whose turn is stopped, each with the reason."""
        self.tools: dict[ConversationKey, MakeToolbox] = {}
        """Makes the tools of the turn that runs in a conversation."""
        self._turns: dict[ConversationKey, ClaimedTurn] = {}
        self._unseen: set[int] = set()
        self._again: set[int] = set()
        self._ended: dict[int, asyncio.Event] = {}

    @contextmanager
    def turn(self, claimed: ClaimedTurn) -> Iterator[None]:
        """For as long as the turn runs."""
        ended = self._ended[claimed.id] = asyncio.Event()
        self._turns[claimed.conversation] = claimed
        self._unseen.add(claimed.id)
        try:
            yield
        finally:
            self.answered(claimed)
            self._again.discard(claimed.id)
            del self._ended[claimed.id]
            ended.set()

    def answered(self, claimed: ClaimedTurn) -> None:
        """The agent is done: the turn can no longer be stopped. It may still start again until its end is stored."""
        if self.running(claimed.conversation) == claimed.id:
            del self._turns[claimed.conversation]
        self._unseen.discard(claimed.id)
        self.scopes.pop(claimed.conversation, None)
        self.tools.pop(claimed.conversation, None)
        self.aborted.pop(claimed.conversation, None)

    def begins(self, claimed: ClaimedTurn, scope: asyncio.Timeout) -> None:
        """The agent starts within this scope; at once ended if the turn was stopped before."""
        self.scopes[claimed.conversation] = scope
        if claimed.conversation in self.aborted or claimed.id in self._again:
            ring(scope)

    def abort(self, conversation: ConversationKey, *, turn: int | None = None, reason: str = BY_PERSON) -> bool:
        """Stop the conversation's turn, or only this one; False if it does not run."""
        claimed = self._turns.get(conversation)
        if claimed is None or turn not in (None, claimed.id):
            return False
        self.aborted[conversation] = reason
        self._ring(conversation)
        return True

    def running(self, conversation: ConversationKey) -> int | None:
        """The turn that runs in a conversation."""
        claimed = self._turns.get(conversation)
        return None if claimed is None else claimed.id

    def unseen(self, conversation: ConversationKey) -> int | None:
        """The turn that runs in a conversation, if it has neither called a tool nor shown text."""
        turn = self.running(conversation)
        return turn if turn in self._unseen and conversation not in self.aborted else None

    def seen(self, turn: int) -> None:
        """A turn called a tool or showed text."""
        self._unseen.discard(turn)

    def watched(self, claimed: ClaimedTurn, make: MakeToolbox) -> MakeToolbox:
        """Make the turn's tools so that their use is seen; a container gets them for as long as the turn runs."""

        def watched(*, in_container: bool = False) -> Toolbox:
            return WatchedToolbox(make(in_container=in_container), partial(self.seen, claimed.id))

        self.tools[claimed.conversation] = watched
        return watched

    def restart(self, conversation: ConversationKey, turn: int) -> None:
        """End a turn that the store has put back, without an answer."""
        claimed = self._turns.get(conversation)
        if claimed is None or claimed.id != turn:
            return
        self._again.add(turn)
        self.seen(turn)
        self._ring(conversation)

    def is_restarted(self, turn: int) -> bool:
        return turn in self._again

    async def drained(self) -> None:
        """Wait until the turns that run now have ended."""
        for ended in tuple(self._ended.values()):
            await ended.wait()

    def _ring(self, conversation: ConversationKey) -> None:
        if (scope := self.scopes.get(conversation)) is not None:
            ring(scope)


class WatchedToolbox:
    """A toolbox that reports that it is used."""

    def __init__(self, toolbox: Toolbox, used: Callable[[], None]) -> None:
        self._toolbox = toolbox
        self._used = used

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._toolbox.specs

    async def call(self, name: str, arguments: Mapping[str, object]) -> tuple[Block, ...]:
        """Run a tool."""
        self._used()
        return await self._toolbox.call(name, arguments)
