"""What users and channels are called: asked for once, kept, and done without when Slack does not say in time."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress

from belino.adapters.slack.calls import Calls
from belino.adapters.slack.mrkdwn import mentioned
from belino.adapters.slack.pacing import Pacing
from belino.adapters.slack.people import Directory, shown_name
from belino.domain.errors import AdapterError
from belino.net.raw import Raw, line, table, tables, words

MOST_NAMES = 20_000
PAGE = 999
"""Slack takes no thousand."""
MOST_ASKED = 5
"""Names asked for at once: a message that mentions more shows ids for the others."""
LEARN_SECONDS = 2.0
SLOW_SECONDS = 30.0
"""For so long nobody is asked for after a wait in vain: what is said must be acknowledged within three seconds."""
AGAIN_SECONDS = 300.0
"""After this a name that could not be had is asked for again."""
KINDS = "public_channel,private_channel,mpim"


class Names:
    """One workspace's names."""

    def __init__(self, calls: Calls, pacing: Pacing) -> None:
        self._calls = calls
        self._pacing = pacing
        self._users: dict[str, str] = {}
        self._channels: dict[str, str] = {}
        self._not_before: dict[str, float] = {}
        self._listed = False
        self._slow_until = 0.0

    @property
    def directory(self) -> Directory:
        return Directory(users=self._users, channels=self._channels)

    def know(self, user: str, name: str) -> None:
        """A name nobody needs to be asked for."""
        self._keep(self._users, user, name)

    async def learn_channels(self) -> int:
        """The channels the app is in, by one call; how many it is in."""
        told = await self._ask("users.conversations", {"types": KINDS, "exclude_archived": "true", "limit": str(PAGE)})
        for channel in tables(told, "channels"):
            self._keep(self._channels, words(channel, "id"), line(channel, "name"))
        return len(tables(told, "channels"))

    async def learn(self, channel: str, messages: Iterable[Raw]) -> None:
        """Learn who speaks and who is mentioned. Nobody waits long for a name, and none is worth a failure."""
        wanted = [user for user in dict.fromkeys(_users_in(messages)) if self._is_wanted(user, self._users)]
        if not wanted and not self._is_wanted(channel, self._channels):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(LEARN_SECONDS):
                await self._learn_users(wanted)
                if channel[:1] in ("C", "G") and self._is_wanted(channel, self._channels):
                    await self._learn_channel(channel)
                return
        self._slow_until = self._calls.clock.monotonic() + SLOW_SECONDS
        for own in (*wanted, channel):
            self._not_again_soon(own)  # or everybody would wait for a name that does not come, again and again

    async def _learn_users(self, wanted: list[str]) -> None:
        if wanted and not self._listed:
            # One call for nearly a thousand people: after a start they all speak at once.
            self._listed = True
            for member in tables(await self._ask("users.list", {"limit": str(PAGE)}), "members"):
                self._keep(self._users, words(member, "id"), shown_name(member))
        for user in [user for user in wanted if user not in self._users][:MOST_ASKED]:
            found = table(await self._ask("users.info", {"user": user}), "user")
            self._settle(self._users, user, shown_name(found) if found else "")

    async def _learn_channel(self, channel: str) -> None:
        told = await self._ask("conversations.info", {"channel": channel})
        self._settle(self._channels, channel, line(table(told, "channel"), "name"))

    async def _ask(self, method: str, fields: dict[str, object]) -> Raw:
        try:
            return await self._pacing.call(method, "", lambda: self._calls.call(method, fields))
        except AdapterError:
            return {}

    def _is_wanted(self, own: str, kept: dict[str, str]) -> bool:
        not_before = max(self._not_before.get(own, 0.0), self._slow_until)
        return bool(own) and own not in kept and not_before <= self._calls.clock.monotonic()

    def _settle(self, kept: dict[str, str], own: str, name: str) -> None:
        if name:
            self._keep(kept, own, name)
        else:
            self._not_again_soon(own)

    def _not_again_soon(self, own: str) -> None:
        while len(self._not_before) >= MOST_NAMES:
            self._not_before.pop(next(iter(self._not_before)))
        self._not_before[own] = self._calls.clock.monotonic() + AGAIN_SECONDS

    def _keep(self, kept: dict[str, str], own: str, name: str) -> None:
        if own and name:
            while len(kept) >= MOST_NAMES:
                kept.pop(next(iter(kept)))
            kept[own] = name


def _users_in(messages: Iterable[Raw]) -> Iterator[str]:
    for message in messages:
        for one in (message, table(message, "message")):
            if words(one, "user") and not words(one, "bot_id") and not table(one, "user_profile"):
                yield words(one, "user")
            yield from mentioned(words(one, "text"))
