"""Keyed workers: one ordered worker per busy conversation, a bounded number at once, woken by events."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime

from belino.aio.deadline import deadline
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock
from belino.domain.stored import Ready

Step = Callable[[ConversationKey], Awaitable[datetime | None]]
"""Do one unit of work for a conversation; return when to run again (a past time: at once), None if all is done."""


class KeyedWorkers:
    """A step per conversation: never two at once in one, `width` at once in all, the longest woken first.

    A step must not raise: it handles and reports its own errors.
    """

    def __init__(self, step: Step, *, width: int, clock: Clock) -> None:
        self._step = step
        self._width = width
        self._clock = clock
        self._due: dict[ConversationKey, None] = {}
        self._busy: dict[ConversationKey, asyncio.Task[None]] = {}
        self._again: set[ConversationKey] = set()
        self._timers: dict[ConversationKey, tuple[datetime, asyncio.Task[None]]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._idle = asyncio.Event()
        self._stopping = asyncio.Event()
        self._grace = 0.0

    @property
    def busy(self) -> int:
        """How many steps run now."""
        return len(self._busy)

    def wake(self, conversation: ConversationKey) -> None:
        """Schedule a conversation's step now; extra calls are harmless."""
        if conversation in self._busy:
            self._again.add(conversation)
        else:
            self._due.setdefault(conversation)
            self._fill()

    def wake_at(self, conversation: ConversationKey, at: datetime) -> None:
        """Schedule a conversation's step at a time."""
        seconds = (at - self._clock.now()).total_seconds()
        if seconds <= 0:
            self.wake(conversation)
            return
        before, timer = self._timers.get(conversation, (None, None))
        if self._group is None or (before is not None and before <= at):
            return
        if timer is not None:
            timer.cancel()
        self._timers[conversation] = (at, self._group.create_task(self._wait(conversation, seconds)))

    async def run(self, waiting: Iterable[Ready] = ()) -> None:
        """Run steps until `stop`, or until cancelled, which cancels the running steps."""
        try:
            async with asyncio.TaskGroup() as self._group:
                try:
                    for ready in waiting:
                        self.wake_at(ready.conversation, ready.at)
                    self._fill()
                    await self._stopping.wait()
                    await self._wind_down()
                finally:
                    # Cancelled: a step that ends may wake others, and the group accepts no more tasks.
                    self._stopping.set()
        finally:
            self._group = None

    def stop(self, grace: float) -> None:
        """Start nothing new; give running steps `grace` seconds, then cancel them and let `run` return."""
        self._grace = grace
        self._stopping.set()

    async def _wind_down(self) -> None:
        for _, timer in self._timers.values():
            timer.cancel()
        try:
            async with deadline(self._clock, self._grace):
                while self._busy:
                    self._idle.clear()
                    await self._idle.wait()
        except TimeoutError:
            for task in self._busy.values():
                task.cancel()

    def _fill(self) -> None:
        while self._group is not None and not self._stopping.is_set() and self._due and len(self._busy) < self._width:
            conversation = next(iter(self._due))
            del self._due[conversation]
            self._busy[conversation] = self._group.create_task(self._work(conversation))

    async def _work(self, conversation: ConversationKey) -> None:
        again: datetime | None = None
        try:
            again = await self._step(conversation)
        finally:
            del self._busy[conversation]
            if not self._busy:
                self._idle.set()
        if conversation in self._again:
            self._again.discard(conversation)
            self.wake(conversation)
        elif again is not None and not self._stopping.is_set():
            self.wake_at(conversation, again)
        self._fill()

    async def _wait(self, conversation: ConversationKey, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._timers.pop(conversation, None)
        self.wake(conversation)
