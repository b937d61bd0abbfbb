"""Draft events: an answer as it streams, in pieces that a page can keep up with."""

from belino.domain.message import ConversationKey
from belino.domain.ports import Clock
from belino.gateway.notices import Notices

# A model writes a hundred pieces a second; nobody reads faster than this.
EVERY_SECONDS = 0.05


class Draft:
    """The answer of one turn so far."""

    def __init__(self, conversation: ConversationKey, turn: int, notices: Notices, clock: Clock) -> None:
        self._conversation = conversation
        self._turn = turn
        self._notices = notices
        self._clock = clock
        self._told = 0
        self._untold = ""
        self._last: float | None = None

    def write(self, piece: str) -> None:
        """Tell the next piece, or keep it for the one after it."""
        self._untold += piece
        now = self._clock.monotonic()
        if self._untold and (self._last is None or now - self._last >= EVERY_SECONDS):
            self._last = now
            self._tell()

    def flush(self) -> None:
        """Tell what was kept: what comes next is not words, and may take long."""
        if self._untold:
            self._tell()

    def _tell(self) -> None:
        self._notices.turn(self._conversation, self._turn, "writing", self._untold, at=self._told)
        self._told += len(self._untold.encode("utf-16-le", "surrogatepass")) // 2
        self._untold = ""
