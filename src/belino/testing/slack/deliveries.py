"""What Slack tells an app: every event until it is acknowledged, three times more, and then never again."""

import asyncio
from collections.abc import Mapping
from itertools import count
from typing import Protocol

from belino.domain.ports import Clock
from belino.testing.slack.shapes import APP, BOT_USER, TEAM, Json

ACK_SECONDS = 3.0
RETRY_SECONDS = (0.0, 60.0, 300.0)
EVENTS = "events_api"
COMMANDS = "slash_commands"
NO_RETRY = "no_retry"
"""Why an event did not arrive when the app wants no second attempt."""
ALL_EVENTS = frozenset(
    {
        "message.channels",
        "message.groups",
        "message.im",
        "message.mpim",
        "app_mention",
        "reaction_added",
        "reaction_removed",
        "member_joined_channel",
    }
)


class EventTransport(Protocol):
    """A way to the app: Socket Mode or its request URL."""

    async def attempt(self, kind: str, payload: Json, *, number: int, reason: str) -> str | None:
        """Hand something over; None once the app took it, otherwise why not."""
        ...


class Deliveries:
    """Everything on its way to the app."""

    def __init__(self, clock: Clock, line: EventTransport) -> None:
        self._clock = clock
        self.line = line
        self.retry_seconds: tuple[float, ...] = RETRY_SECONDS
        self.subscribed: set[str] = set(ALL_EVENTS)
        self.acknowledged: list[str] = []
        """The event ids the app took, in the order it took them."""
        self.lost: list[str] = []
        """The event ids nobody took however often they were sent."""
        self._numbers = count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._group: asyncio.TaskGroup | None = None

    @property
    def waiting(self) -> int:
        """How many are on their way."""
        return len(self._tasks)

    def start(self, group: asyncio.TaskGroup) -> None:
        self._group = group

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._group = None

    def event(self, event: Json, subscription: str, *, shared: bool = False) -> None:
        """Tell of an event, if the app subscribed to its kind."""
        if subscription in self.subscribed:
            self._send(EVENTS, self._callback(event, shared=shared))

    def command(self, fields: Mapping[str, str]) -> None:
        self._send(COMMANDS, dict(fields))

    def _send(self, kind: str, payload: Json) -> None:
        assert self._group is not None, "people can only speak while the server runs"
        task = self._group.create_task(self._deliver(kind, payload))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, kind: str, payload: Json) -> None:
        name = str(payload.get("event_id") or payload.get("trigger_id"))
        reason: str | None = ""
        # Only events are tried again: whoever typed a command is told at once that it failed.
        pauses = (0.0, *self.retry_seconds) if kind == EVENTS else (0.0,)
        for number, pause in enumerate(pauses):
            if pause:
                await self._clock.sleep(pause)
            reason = await self.line.attempt(kind, payload, number=number, reason=reason or "")
            if reason is None:
                self.acknowledged.append(name)
                return
            if (
                reason == NO_RETRY or self._group is None
            ):  # a line that ends with the server may take the end for a delay
                break
        self.lost.append(name)

    def _callback(self, event: Json, *, shared: bool) -> Json:
        number = next(self._numbers)
        authorization = {"enterprise_id": None, "team_id": TEAM, "user_id": BOT_USER, "is_bot": True}
        return {
            "token": "deprecated-verification-token",
            "team_id": TEAM,
            "context_team_id": TEAM,
            "context_enterprise_id": None,
            "api_app_id": APP,
            "event": event,
            "type": "event_callback",
            "event_id": f"Ev0BLN{number:06}",
            "event_time": int(self._clock.now().timestamp()),
            "authorizations": [authorization | {"is_enterprise_install": False}],
            "is_ext_shared_channel": shared,
            "event_context": f"4-{event['type']}-{TEAM}-{number}",
        }
