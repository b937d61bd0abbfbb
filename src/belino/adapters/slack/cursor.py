"""How far we have heard: the newest message of each channel and thread, and what is still to be caught up with."""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from belino.adapters.slack.raw import moment, parsed, stamp
from belino.domain.message import ConversationKey
from belino.net.raw import Raw, table

MOST_CHANNELS = 128
MOST_THREADS = 32
OLDEST = timedelta(hours=24)
"""What was missed longer ago is context, not something to be answered."""


@dataclass(slots=True, kw_only=True)
class Reached:
    """Bounded: of too many channels those are kept that spoke last."""

    channels: dict[str, str] = field(default_factory=dict)
    threads: dict[str, str] = field(default_factory=dict)
    """By channel and first message, with a space between them."""
    missed: dict[str, str] = field(default_factory=dict)
    """Channels and threads with a gap, and from where on it is; written down, so that a restart goes on with it."""

    @classmethod
    def read(cls, cursor: str | None) -> "Reached":
        raw = parsed(cursor or "")
        return cls(channels=_stamps(raw, "channels"), threads=_stamps(raw, "threads"), missed=_stamps(raw, "missed"))

    def write(self) -> str:
        told = {"channels": self.channels, "threads": self.threads}
        return json.dumps(told | ({"missed": self.missed} if self.missed else {}), separators=(",", ":"))

    def note(self, conversation: ConversationKey, ts: str) -> None:
        """A message was heard."""
        if moment(ts) is None:
            return
        thread = conversation.thread
        if thread is None or thread == ts:
            _move(self.channels, conversation.channel, ts, MOST_CHANNELS)
        else:
            _move(self.threads, f"{conversation.channel} {thread}", ts, MOST_THREADS)

    def miss(self, now: datetime, *, within: timedelta = OLDEST, most: int = MOST_CHANNELS + MOST_THREADS) -> None:
        """Nobody knows what was said since: where somebody spoke lately, it is to be caught up with.

        A channel that was silent for longer than a day may have begun to speak in a long gap, so that `within` a day
        means every channel.
        """
        places = sorted((*self.channels.items(), *self.threads.items()), key=lambda heard: float(heard[1]))
        for place, ts in places[-most:]:
            heard = moment(ts)
            if heard is not None and (now - heard < within or (within >= OLDEST and place in self.channels)):
                self.missed.setdefault(place, ts)

    def caught_up(self, place: str) -> None:
        self.missed.pop(place, None)


def since(ts: str, now: datetime) -> str:
    """From where on to ask: not from further back than is worth answering."""
    earliest = f"{(now - OLDEST).timestamp():.6f}"
    return max(ts, earliest, key=float)


def _stamps(raw: Raw, key: str) -> dict[str, str]:
    kept = table(raw, key)
    return {place: ts for place in kept if (ts := stamp(kept, place))}


def _move(kept: dict[str, str], place: str, ts: str, most: int) -> None:
    newest = max(kept.pop(place, ts), ts, key=float)
    while len(kept) >= most:
        kept.pop(next(iter(kept)))
    kept[place] = newest
