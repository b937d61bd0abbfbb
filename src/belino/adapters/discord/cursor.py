"""Where we stopped listening: the session, and the newest message of every channel that matters, as one string."""

import json
from collections.abc import Iterable

from belino.adapters.discord.people import Place
from belino.adapters.discord.raw import as_identity, identity
from belino.adapters.discord.socket import Session
from belino.net.raw import as_table, count, words

MOST_CHANNELS = 100
MOST_ROLES = 100


class Cursor:
    """What is written along with each arrival; a restarted bot goes on from it."""

    def __init__(self, written: str | None) -> None:
        told = as_table(_read(written))
        held = as_table(told.get("session"))
        seq = count(held, "seq")
        complete = words(held, "id") and seq is not None
        self.session = Session(id=words(held, "id"), seq=seq or 0, url=words(held, "url")) if complete else None
        self.newest: dict[str, str] = {}
        """By channel, least lately heard of first: the id of its newest message."""
        self.places: dict[str, Place] = {}
        """The kinds of the same channels, for a resumed session is not told them again."""
        for channel, entry in as_table(told.get("channels")).items():
            newest, own = identity(as_table(entry), "newest"), as_identity(channel)
            if own and newest:
                self.newest[own] = newest
                parent = identity(as_table(entry), "parent")
                self.places[own] = Place(kind=count(as_table(entry), "kind") or 0, parent=parent)
        roles = told.get("roles")
        self.roles = frozenset(filter(None, map(as_identity, roles if isinstance(roles, list) else [])))

    def heard(self, channel: str, message: str, place: Place | None) -> None:
        """A message came, in whatever order."""
        before = self.newest.pop(channel, "0")
        self.newest[channel] = max(before, message, key=int)
        if place is not None:
            self.places[channel] = place
        while len(self.newest) > MOST_CHANNELS:
            oldest = next(iter(self.newest))
            del self.newest[oldest]
            self.places.pop(oldest, None)

    def written(self, session: Session | None, roles: Iterable[str]) -> str:
        channels = {channel: {"newest": newest, **_kept(self.places.get(channel))} for channel, newest in self._all()}
        told: dict[str, object] = {"channels": channels, "roles": sorted(roles)[:MOST_ROLES]}
        if session is not None:
            told["session"] = {"id": session.id, "seq": session.seq, "url": session.url}
        return json.dumps(told, separators=(",", ":"))

    def _all(self) -> Iterable[tuple[str, str]]:
        return self.newest.items()


def _kept(place: Place | None) -> dict[str, object]:
    if place is None:
        return {}
    return {"kind": place.kind} | ({"parent": place.parent} if place.is_thread else {})


def _read(written: str | None) -> object:
    try:
        return json.loads(written or "")
    except (ValueError, RecursionError):
        return None
