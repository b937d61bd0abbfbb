"""Marks: when each conversation was last known to be complete, bounded in number and age."""

from collections.abc import Callable

from belino.domain.message import ConversationKey
from belino.domain.ports import Clock


class Marks:
    """When each conversation was last complete; past `most`, the oldest marks are dropped."""

    def __init__(self, clock: Clock, *, seconds: float | None, most: int) -> None:
        self._clock = clock
        self._seconds = seconds
        """How long a mark is fresh; None means until it is dropped."""
        self._most = most
        self._marked: dict[ConversationKey, float] = {}

    def set(self, what: ConversationKey) -> None:
        """Mark as complete now."""
        self._marked.pop(what, None)
        self._marked[what] = self._clock.monotonic()
        if len(self._marked) > self._most:
            del self._marked[next(iter(self._marked))]

    def age(self, what: ConversationKey) -> float | None:
        """Seconds since it was marked, fresh or not; None without a mark."""
        at = self._marked.get(what)
        return None if at is None else self._clock.monotonic() - at

    def fresh(self, what: ConversationKey) -> bool:
        """Whether it still counts as complete."""
        age = self.age(what)
        return age is not None and (self._seconds is None or age < self._seconds)

    def forget(self, which: Callable[[ConversationKey], bool]) -> None:
        """Drop these marks."""
        self._marked = {what: at for what, at in self._marked.items() if not which(what)}

    def __len__(self) -> int:
        return len(self._marked)
