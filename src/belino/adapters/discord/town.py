"""What the bot knows of its servers: the kinds of channels, which threads belong where, and its own roles."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from belino.adapters.discord.people import DIRECT, Me, Place, place_of
from belino.adapters.discord.raw import identity
from belino.net.raw import Raw, count, line, table, tables, words, yes

MOST_PLACES = 20_000
MOST_YOUNG = 100
EPHEMERAL = 1 << 6
"""What only one person sees is told without its server, wherever it stands."""


class Town:
    """Kept up to date by the gateway's events; what it does not tell is asked for once."""

    def __init__(self, me: Me, places: dict[str, Place]) -> None:
        self.me = me
        self.places = dict(places)

    def learn(self, event: Raw) -> None:
        """Take in what an event tells of channels, threads and roles."""
        told, name = table(event, "d"), words(event, "t")
        if name.startswith("GUILD_ROLE_"):
            self._add_roles([table(told, "role")])
        elif name == "GUILD_CREATE":
            self._add_roles(list(tables(told, "roles")))
            for channel in places_in(told):
                self.add(channel)
        elif name == "THREAD_LIST_SYNC":
            for channel in tables(told, "threads"):
                self.add(channel)
        elif name in ("CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE"):
            self.add(told)
        elif name in ("CHANNEL_DELETE", "THREAD_DELETE"):
            self.places.pop(identity(told, "id"), None)

    def add(self, channel: Raw) -> Place | None:
        own, place = identity(channel, "id"), place_of(channel)
        if not own or place is None:
            return None
        self.places.pop(own, None)
        self.places[own] = place
        while len(self.places) > MOST_PLACES:
            del self.places[next(iter(self.places))]
        return place

    def unknown(self, event: Raw) -> str:
        """The channel of an event that has to be asked for; none for one between two people, which is no thread."""
        told = table(event, "d")
        channel = identity(told, "channel_id")
        if not channel or channel in self.places:
            return ""
        if not identity(told, "guild_id") and not (count(told, "flags") or 0) & EPHEMERAL:
            self.places[channel] = Place(kind=DIRECT)
            return ""
        return channel

    def to_ask(self, event: Raw, newest: Mapping[str, str]) -> dict[str, str]:
        """When a session or server begins: where more may have been said than we heard, each with the last we heard.

        Nobody says so of private channels, nor of threads that are archived by now: these are not listed.
        """
        if words(event, "t") == "READY":
            return {own: newest[own] for own in newest if own in self.places and self.places[own].kind == DIRECT}
        here = {identity(each, "id"): identity(each, "last_message_id") for each in places_in(table(event, "d"))}
        grown = {own: heard for own, heard in newest.items() if int(here.get(own) or 0) > int(heard)}
        archived = {own: heard for own, heard in newest.items() if own not in here and self._parent(own) in here}
        return grown | archived | self._begun(here, newest)

    def _begun(self, here: Mapping[str, str], newest: Mapping[str, str]) -> dict[str, str]:
        """Threads that we never heard, in channels where we heard something, and that has been said since."""
        beside: dict[str, str] = {}
        for own, heard in newest.items():
            channel = self._parent(own) or own
            beside[channel] = max(beside.get(channel, "0"), heard, key=int)
        unheard = {own: beside.get(self._parent(own) or "") for own in here if own not in newest}
        young = {own: heard for own, heard in unheard.items() if heard and int(here[own] or 0) > int(heard)}
        return dict(list(young.items())[-MOST_YOUNG:])

    def _parent(self, channel: str) -> str | None:
        place = self.places.get(channel)
        return place.parent if place is not None and place.is_thread else None

    def _add_roles(self, roles: list[Raw]) -> None:
        own = {identity(role, "id") for role in roles if self._is_mine(role)}
        titles = {identity(role, "id"): line(role, "name", most=100) for role in roles}
        known = list({**self.me.titles, **titles}.items())[-MOST_PLACES:]
        self.me = replace(self.me, roles=self.me.roles | (own - {""}), titles=dict(known))

    def _is_mine(self, role: Raw) -> bool:
        """Every bot has a role that Discord made for it alone."""
        return yes(role, "managed") and identity(table(role, "tags"), "bot_id") == self.me.id


def places_in(guild: Raw) -> Iterator[Raw]:
    """The channels and active threads of a server."""
    yield from tables(guild, "channels")
    yield from tables(guild, "threads")
