"""Sessions: one ordered worker per conversation with turns to run, a bounded number at once.

Turns that a crash interrupted run in isolation: one at a time, with no other turn beside them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from random import Random

from belino.aio.keyed_workers import KeyedWorkers
from belino.aio.retry import Retry, backoff
from belino.config import SessionsConfig
from belino.domain.errors import Busy, place_of
from belino.domain.failpoints import failpoint
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock
from belino.domain.stored import ClaimedTurn, Ready
from belino.storage.inbox import InboxVerbs

log = logging.getLogger(__name__)

COUNTS = 10
"""How often the queue is counted at the start, until nothing arrives while it is."""


class Sessions:
    """Runs queued turns, each conversation's in order; the queue is in the store, so a restart continues it.

    Turns that were running when the process died run one at a time, with no other turn beside them.
    """

    def __init__(
        self,
        inbox: InboxVerbs,
        run_turn: Callable[[ClaimedTurn], Awaitable[None]],
        *,
        owner: str,
        config: SessionsConfig,
        clock: Clock,
        rng: Random,
        insist: Retry,
    ) -> None:
        self._inbox = inbox
        self._run_turn = run_turn
        self._owner = owner
        self._config = config
        self._clock = clock
        self._rng = rng
        self._insist = insist
        self._begun = clock.now()
        self._waiting = 0
        self._storing = 0
        """Arrivals that are being stored, and may be counted by the store already."""
        self._stored = 0
        self._claimed = asyncio.Event()
        self._stopping = False
        self._failures: dict[ConversationKey, int] = {}
        self._lanes = KeyedWorkers(self._step, width=config.max_running, clock=clock)
        self._isolation = Isolation(self._lanes.wake)

    @property
    def running(self) -> int:
        return self._lanes.busy

    @property
    def is_full(self) -> bool:
        """Whether a turn that is due now waits for those of other conversations."""
        return self._lanes.busy >= self._config.max_running or self._isolation.is_closed

    @property
    def waiting(self) -> int:
        """How many turns are queued."""
        return max(0, self._waiting)

    async def run(self) -> None:
        """Run turns until stopped, starting with those of an earlier run."""
        album_wait = timedelta(milliseconds=self._config.album_max_ms)
        recover = partial(
            self._inbox.recover, self._owner, self._begun, album_wait=album_wait, limit=self._config.attempts
        )
        if recovered := await self._insist("inbox", recover):
            log.info("turns interrupted by a crash, which run again one at a time: %d", recovered)
        failpoint("start.recovered")
        await self._count()
        ready = await self._insist("inbox", self._inbox.ready_turns)
        now = self._clock.now()
        for one in ready:
            if one.alone and one.at <= now:
                self._isolation.isolate(one.conversation)
        await self._lanes.run(ready)

    def stop(self) -> None:
        """Start no more turns; running ones get a few seconds and are then requeued."""
        self._stopping = True
        self._claimed.set()
        self._lanes.stop(self._config.shutdown_seconds)

    async def room(self) -> None:
        """Wait until another turn may be queued; this is the back-pressure on adapters."""
        while self._waiting >= self._config.max_waiting:
            # Our own count may be too high, never too low: near the limit the store is asked. Its answer is not kept,
            # because a claim may be in progress.
            self._claimed.clear()
            if await self._inbox.waiting_turns() < self._config.max_waiting:
                break
            await self._claimed.wait()
            self._refuse_when_stopping()
        self._refuse_when_stopping()

    def has_room(self, beside: int) -> bool:
        """Whether another turn may be queued besides this many that are not counted yet."""
        return self._waiting + beside < self._config.max_waiting

    @contextmanager
    def storing(self) -> Iterator[None]:
        """While arrivals are stored, until `queued` was called for them."""
        self._storing += 1
        try:
            yield
        finally:
            self._storing -= 1
            self._stored += 1

    def queued(self, turns: int) -> None:
        """Count turns that wait now, or, below zero, that wait no longer although none of them was claimed."""
        self._waiting += turns  # below zero for a moment, if a turn is claimed before its message is counted
        if turns < 0:
            self._claimed.set()

    def wake(self, conversation: ConversationKey) -> None:
        """Run the turn that waits in this conversation."""
        self._lanes.wake(conversation)

    async def _count(self) -> None:
        """Count the turns of earlier runs."""
        for _ in range(COUNTS):
            before, stored = self._waiting, self._stored
            found = await self._insist("inbox", self._inbox.waiting_turns)
            if not self._storing and stored == self._stored:
                break
        # Arrivals during the last count may be in it or not: too high is corrected near the limit.
        self._waiting += found - before

    async def _step(self, conversation: ConversationKey) -> datetime | None:
        if not self._isolation.enter(conversation):
            return None
        try:
            return await self._claim_and_run(conversation)
        finally:
            self._isolation.leave(conversation)

    async def _claim_and_run(self, conversation: ConversationKey) -> datetime | None:
        try:
            failpoint("turn.claim.before")
            alone = self._isolation.is_alone(conversation)
            claimed = await self._inbox.claim_turn(conversation, self._clock.now(), owner=self._owner, alone=alone)
            if claimed is None:
                return None
            if isinstance(claimed, Ready):
                if not claimed.alone or claimed.at > self._clock.now():
                    return claimed.at
                self._isolation.isolate(conversation)
                return None
            failpoint("turn.claim.after")
            self.queued(-1)
            await self._run(claimed)
            self._failures.pop(conversation, None)
            return self._clock.now()
        except Exception as error:  # noqa: BLE001 - an error in one conversation must not stop the others
            failures = self._failures[conversation] = self._failures.get(conversation, 0) + 1
            log.error("a turn in %s could not be run: %s", conversation, place_of(error))
            return self._clock.now() + timedelta(seconds=backoff(failures, rng=self._rng))

    async def _run(self, claimed: ClaimedTurn) -> None:
        try:
            await self._run_turn(claimed)
        except BaseException:
            self.queued(1)  # it was given back, and waits again
            raise

    def _refuse_when_stopping(self) -> None:
        if self._stopping:
            raise Busy("belino is stopping; send it again in a moment")


class Isolation:
    """Decides whether a conversation may claim a turn now. A conversation that may not is woken once it may.

    As soon as a suspect is due no other turn starts; when the running turns have ended, the suspect runs.
    `enter` does not block, so a conversation that is held back takes no slot and needs no stopping.
    """

    def __init__(self, wake: Callable[[ConversationKey], None]) -> None:
        self._wake = wake
        self._inside = 0
        self._alone: ConversationKey | None = None
        self._suspects: dict[ConversationKey, None] = {}
        """Conversations whose next turn must run alone, in the order they run."""
        self._held: dict[ConversationKey, None] = {}
        """Conversations to wake when no suspect is due any more."""

    @property
    def is_closed(self) -> bool:
        """Whether only a suspect may run."""
        return bool(self._suspects) or self._alone is not None

    def isolate(self, conversation: ConversationKey) -> None:
        """Mark the next turn of this conversation as due and to be run alone."""
        self._suspects.setdefault(conversation)

    def is_alone(self, conversation: ConversationKey) -> bool:
        """Whether this conversation has entered and no other may."""
        return self._alone == conversation

    def enter(self, conversation: ConversationKey) -> bool:
        """Whether the conversation may claim and run a turn now; if so, `leave` must follow."""
        if self._inside == 0 and conversation == next(iter(self._suspects), None):
            del self._suspects[conversation]
            self._alone = conversation
        elif self._suspects or self._alone is not None:
            self._held.setdefault(conversation)
            return False
        self._inside += 1
        return True

    def leave(self, conversation: ConversationKey) -> None:
        """End the turn, or an `enter` without one."""
        self._inside -= 1
        if self._alone == conversation:
            self._alone = None
        if self._inside:
            return
        if self._suspects:
            self._wake(next(iter(self._suspects)))
            return
        held, self._held = self._held, {}
        for waiting in held:
            self._wake(waiting)
