"""Marks: what was found out when, for so many things and so long."""

from collections.abc import Callable

from belino.domain.message import ConversationKey
from belino.domain.ports import Clock


class Marks:
    """When each of these conversations was last found whole; past `most`, those marked longest ago are forgotten."""

    def __init__(self, clock: Clock, *, seconds: float | None, most: int) -> None:
        self._clock = clock
        self._seconds = seconds
        """How long a mark is fresh; None means until it is forgotten."""
        self._most = most
        self._marked: dict[ConversationKey, float] = {}

    def set(self, what: ConversationKey) -> None:
        """It is whole now."""
        self._marked.pop(what, None)
        self._marked[what] = self._clock.monotonic()
        if len(self._marked) > self._most:
            del self._marked[next(iter(self._marked))]

    def age(self, what: ConversationKey) -> float | None:
        """Seconds since it was marked, fresh or not; None if it is not known."""
        at = self._marked.get(what)
        return None if at is None else self._clock.monotonic() - at

    def fresh(self, what: ConversationKey) -> bool:
        """Whether it still counts as whole."""
        age = self.age(what)
        return age is not None and (self._seconds is None or age < self._seconds)

    def forget(self, which: Callable[[ConversationKey], bool]) -> None:
        """Nothing is known of these any more."""
        self._marked = {what: at for what, at in self._marked.items() if not which(what)}

    def __len__(self) -> int:
        return len(self._marked)
