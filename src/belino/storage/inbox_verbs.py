"""Inbox verbs of the store: arrivals and the turns that answer them."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from belino.domain.message import Arrival, ConversationKey, Message
from belino.domain.outcome import Step
from belino.domain.ports import Taken
from belino.domain.stored import (
    ClaimedTurn,
    Ready,
    ScreenedArrival,
    StoredMessage,
    TurnEnd,
    Verdict,
)
from belino.storage import (
    access,
    inbox,
    outcomes,
    recovery,
)
from belino.storage.database import Tx, to_micros
from belino.storage.history_import import take_history
from belino.storage.sanitize import NOT_TEXT, mended
from belino.storage.verbs import Verbs

ALBUM_WAIT = timedelta(seconds=10)
ATTEMPTS = 3
"""How often the process may die while a turn runs alone, before the turn is given up."""


class InboxVerbs(Verbs):
    """Arrivals and the turns that answer them."""

    async def take_in(
        self,
        arrival: Arrival,
        verdict: Verdict,
        *,
        cursor: str | None = None,
        ready: datetime | None = None,
        album_wait: timedelta = ALBUM_WAIT,
    ) -> Taken:
        """Commit arrival, refs, cursor and, if `verdict.answer`, a waiting turn; detect a duplicate by its id.

        A denied arrival moves the cursor and a counter and leaves nothing else. `ready` is when its turn may start (an
        album waits for its items; a later item of a waiting album joins it and moves its time, `album_wait` at most
        from the first; one that comes later still gets a turn of its own).
        """
        judged = ScreenedArrival(arrival=arrival, verdict=verdict, cursor=cursor, ready=ready)
        return (await self.take_in_all((judged,), album_wait=album_wait))[0]

    async def take_in_all(
        self, arrivals: Sequence[ScreenedArrival], *, album_wait: timedelta = ALBUM_WAIT
    ) -> tuple[Taken, ...]:
        """The same for several, in their order, in one transaction: if one fails, none is stored."""
        now, wait = self._now(), album_wait // timedelta(microseconds=1)
        keys = self._keys

        def work(tx: Tx) -> tuple[Taken, ...]:
            return tuple(inbox.take_in(tx, keys, judged, now, wait) for judged in arrivals)

        try:
            return await self._database.write(work)
        except NOT_TEXT:
            arrivals = mended(tuple(arrivals))
            return await self._database.write(work)

    async def take_history(self, channel: ConversationKey, messages: Sequence[Message]) -> int:
        """Store messages from a platform's history as observed context. Returns how many were new.

        Live messages stay unchanged, and one that arrives live later replaces its imported copy. Messages of another
        channel are left out.
        """
        now = self._now()

        def work(tx: Tx) -> int:
            return take_history(tx, self._keys, channel, messages, now)

        try:
            return await self._database.write(work)
        except NOT_TEXT:
            messages = mended(tuple(messages))
            return await self._database.write(work)

    async def cursor(self, platform: str, account: str) -> str | None:
        return await self._database.read(lambda tx: access.cursor(tx, platform, account))

    async def keep_cursor(self, platform: str, account: str, cursor: str) -> None:
        """Store a cursor without an arrival."""
        await self._database.write(lambda tx: access.move_cursor(tx, platform, account, cursor))

    async def recover(
        self,
        owner: str = "",
        begun: datetime | None = None,
        *,
        album_wait: timedelta = ALBUM_WAIT,
        limit: int = ATTEMPTS,
    ) -> int:
        """After a crash of this owner: its turns that were running wait again, to run alone. Returns how many.

        If only one was running, its interruption is counted. From the second counted interruption on, a turn waits
        until this process has been up for 20 s, 40 s and so on; at the `limit` it is due at once, to be given up.

        A turn that waited for the rest of an album waits for it until `album_wait` after this run has `begun` (default:
        now), and less once an item joins it: no item could arrive while the gateway was down.
        """
        now, wait = self._now(), album_wait // timedelta(microseconds=1)
        at = now if begun is None else to_micros(begun)
        return await self._database.write(lambda tx: recovery.recover(tx, owner, at, wait, now, limit=limit))

    async def ready_turns(self) -> tuple[Ready, ...]:
        """Every conversation with a waiting turn, with the time its first one may start."""
        return await self._database.read(inbox.ready_turns)

    async def waiting_turns(self) -> int:
        return await self._database.read(inbox.waiting_turns)

    async def claim_turn(
        self, conversation: ConversationKey, now: datetime, *, owner: str = "", alone: bool = False
    ) -> ClaimedTurn | Ready | None:
        """Claim the conversation's oldest waiting turn for this owner; None if there is none.

        Ready if it is not due, or if it must run alone and the caller does not state that nothing else runs.
        """
        at = to_micros(now)
        return await self._database.write(
            lambda tx: inbox.claim_turn(tx, self._keys, conversation, at, owner=owner, alone=alone)
        )

    async def finish_turn(self, turn: int, end: TurnEnd) -> None:
        """End a turn: reply parcels, manifest, memory and outcomes in one transaction."""
        now = self._now()

        def work(tx: Tx) -> None:
            inbox.finish_turn(tx, turn, end, now)

        try:
            await self._database.write(work)
        except NOT_TEXT:
            end = mended(end)
            await self._database.write(work)

    async def release_turn(self, turn: int) -> None:
        """Return a running turn to the queue unchanged, as if it had not been claimed (shutdown)."""
        await self._database.write(lambda tx: inbox.release_turn(tx, turn))

    async def retry_turn(self, conversation: ConversationKey, message_id: str) -> tuple[StoredMessage, ...]:
        """Put the failed turn of a message of this channel back to waiting, with its counts reset.

        Returns the messages it answers; nothing changes, and none is returned, if the message did not fail or is gone.
        """
        now = self._now()
        return await self._database.write(lambda tx: recovery.retry_turn(tx, self._keys, conversation, message_id, now))

    async def note(self, trace: str, *steps: Step) -> None:
        """Store steps for `explain`."""
        await self._database.write(lambda tx: outcomes.note(tx, trace, steps))
