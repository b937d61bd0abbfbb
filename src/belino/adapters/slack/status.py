"""A sign that an answer is on its way, which Slack shows in threads only."""

from belino.adapters.slack.calls import Calls, Refused
from belino.domain.message import ConversationKey

THINKING, UPLOADING = "is thinking…", "is sending a file…"
SHOWN_SECONDS = 60.0
"""Slack shows it until the answer comes, for two minutes at most."""
REFUSED_SECONDS = 3_600.0
MOST_CHARS = 100


class Status:
    """Sets a thread's status, and not again while it still shows."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._shown: dict[ConversationKey, tuple[str, float]] = {}

    async def show(self, conversation: ConversationKey, status: str) -> None:
        now = self._calls.clock.monotonic()
        self._shown = {where: shown for where, shown in self._shown.items() if shown[1] > now}
        known, _ = self._shown.get(conversation, ("", 0.0))
        status = status[:MOST_CHARS]
        if conversation.thread is None or known in (status, _REFUSED):
            return
        self._shown[conversation] = status, now + SHOWN_SECONDS
        fields = {"channel_id": conversation.channel, "thread_ts": conversation.thread, "status": status}
        try:
            await self._calls.call("assistant.threads.setStatus", fields)
        except Refused:
            self._shown[conversation] = _REFUSED, now + REFUSED_SECONDS

    def over(self, conversation: ConversationKey) -> None:
        """A message takes the sign away."""
        self._shown.pop(conversation, None)


_REFUSED = "\0"
