"""Updates for a Telegram bot: kept until confirmed, for one poller at a time, or pushed to a webhook."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from belino.aio.deadline import deadline
from belino.domain.ports import Clock
from belino.testing.platform_server import Json

FIRST_UPDATE = 700_000_001
KEPT_SECONDS = 24 * 3600
WEBHOOK_SECONDS = 30.0
MOST_DELAY = 60.0
# Sent only on request.
ONLY_ON_REQUEST = frozenset({"chat_member", "message_reaction", "message_reaction_count"})

WEBHOOK_ACTIVE = (
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
)
OTHER_POLLER = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
WEBHOOK_SET = "Conflict: terminated by setWebhook request"
RESTART = "Internal Server Error: restart"


class GetUpdatesConflict(Exception):
    """Another poller or a webhook took over, or the server restarts."""


@dataclass(slots=True)
class PendingUpdate:
    """One unconfirmed update."""

    update: Json
    since: float


@dataclass(slots=True, kw_only=True)
class Webhook:
    """The webhook that updates are pushed to; the fields of getWebhookInfo."""

    url: str = ""
    secret_token: str = ""
    max_connections: int = 40
    last_error: tuple[int, str] | None = None
    deliveries: list[int] = field(default_factory=list)
    """The status of every attempt, 0 if the connection failed."""


class Updates:
    """All unconfirmed updates."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: list[PendingUpdate] = []
        self._next = FIRST_UPDATE
        self._more = asyncio.Event()
        self._poller: asyncio.Future[str] | None = None
        self.allowed: frozenset[str] | None = None
        self.webhook = Webhook()
        self.confirmed: int = 0
        """How many updates the bot has confirmed."""

    @property
    def pending(self) -> list[Json]:
        return [waiting.update for waiting in self._waiting]

    def allow(self, kinds: Sequence[str]) -> None:
        """An empty list is the default: everything except what must be requested."""
        self.allowed = frozenset(kinds) or None

    def add(self, kind: str, payload: Mapping[str, Any]) -> Json | None:
        """Queue an update, unless the bot excludes its type."""
        wanted = kind in self.allowed if self.allowed is not None else kind not in ONLY_ON_REQUEST
        if not wanted:
            return None
        update: Json = {"update_id": self._next, kind: dict(payload)}
        self._next += 1
        self._waiting.append(PendingUpdate(update, self._clock.monotonic()))
        self._more.set()
        return update

    async def poll(self, *, offset: int, limit: int, timeout: float) -> list[Json]:
        """The answer of getUpdates; a later poller ends an earlier one that waits."""
        if self.webhook.url:
            raise GetUpdatesConflict(WEBHOOK_ACTIVE)
        self._confirm(offset)
        if not self._waiting and timeout > 0:
            await self._wait(timeout)
        return self.pending[:limit]

    def interrupt(self, reason: str) -> None:
        """End the waiting poller."""
        if self._poller is not None and not self._poller.done():
            self._poller.set_result(reason)

    def drop(self) -> None:
        self._waiting.clear()

    async def next_waiting(self) -> Json:
        """The first update, once there is one: for the webhook."""
        while not self._waiting:
            self._more.clear()
            await self._more.wait()
        return self._waiting[0].update

    def done(self, update: Json) -> None:
        """The webhook accepted it; it may have been dropped before."""
        if self._waiting and self._waiting[0].update is update:
            del self._waiting[0]
            self.confirmed += 1

    def _confirm(self, offset: int) -> None:
        self._forget_old()
        before = len(self._waiting)
        if offset > 0:
            self._waiting = [waiting for waiting in self._waiting if waiting.update["update_id"] >= offset]
        elif offset < 0:
            self._waiting = self._waiting[offset:]
        self.confirmed += before - len(self._waiting)

    def _forget_old(self) -> None:
        oldest = self._clock.monotonic() - KEPT_SECONDS
        self._waiting = [waiting for waiting in self._waiting if waiting.since >= oldest]

    async def _wait(self, timeout: float) -> None:
        self.interrupt(OTHER_POLLER)
        mine = self._poller = asyncio.get_running_loop().create_future()
        self._more.clear()
        try:
            async with deadline(self._clock, timeout), asyncio.TaskGroup() as group:
                more = group.create_task(self._more.wait())
                await asyncio.wait((mine, more), return_when=asyncio.FIRST_COMPLETED)
                more.cancel()
        except TimeoutError:
            return
        if mine.done():
            raise GetUpdatesConflict(mine.result())


async def push(updates: Updates, clock: Clock) -> None:
    """Deliver to the webhook in order, repeated until it answers 2xx, while one is set."""
    from aiohttp import ClientSession, ClientTimeout

    async with ClientSession(timeout=ClientTimeout(total=WEBHOOK_SECONDS)) as session:
        delay = 1.0
        while True:
            update = await updates.next_waiting()
            hook = updates.webhook
            if await _delivered(session, hook, update, clock):
                updates.done(update)
                delay = 1.0
            else:
                await clock.sleep(delay)
                delay = min(delay * 2, MOST_DELAY)


async def _delivered(session: Any, hook: Webhook, update: Json, clock: Clock) -> bool:
    from aiohttp import ClientError

    headers = {"X-Telegram-Bot-Api-Secret-Token": hook.secret_token} if hook.secret_token else {}
    try:
        async with session.post(hook.url, json=update, headers=headers, allow_redirects=False) as answer:
            hook.deliveries.append(answer.status)
            if 200 <= answer.status <= 299:
                return True
            why = f"Wrong response from the webhook: {answer.status} {answer.reason}"
    except (ClientError, TimeoutError, OSError):
        hook.deliveries.append(0)
        why = "Connection refused"
    hook.last_error = (int(clock.now().timestamp()), why)
    return False
