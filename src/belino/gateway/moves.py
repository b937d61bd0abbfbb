"""Moves: channels that go on under another id keep their first one, with access, agent, history and session."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from belino.delivery.connections import Account
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, ConversationKey, Edit, Message, Quote, Unsupported
from belino.domain.places import Moved, message_at
from belino.storage.store import Store

log = logging.getLogger(__name__)


class Moves:
    """The moves of all channels. In memory, because every arrival and every sending asks for them."""

    def __init__(
        self,
        store: Callable[[], Store],
        *,
        names: Callable[[Account, str, str], bool],
        people: Callable[[Account], tuple[str, ...]],
        settled: Callable[[Account, Moved], Awaitable[None]],
    ) -> None:
        """`names`: whether an account's rules name a channel or its server. `people`: the senders whom they name.

        `settled` is called with a new move.
        """
        self.people = people
        self._store = store
        self._names = names
        self._settled = settled
        self._firsts: dict[tuple[Account, str], str] = {}
        self._places: dict[tuple[Account, str], str] = {}

    async def load(self) -> None:
        """Read all moves, once at the start."""
        for account, move in await self._store().moved_channels():
            self._add(account, move)

    def of(self, account: Account) -> tuple[Moved, ...]:
        """The moves of an account's channels, oldest first."""
        return tuple(Moved(old=first, new=new) for (own, new), first in self._firsts.items() if own == account)

    async def note(self, account: Account, move: Moved) -> None:
        """Store a move, once; a channel that is neither known nor listed leaves nothing."""
        if (account, move.new) in self._firsts:
            return
        is_listed = any(self._names(account, each, "") for each in (move.old, move.new))
        stored = await self._store().move_channel(account, move, is_listed=is_listed)
        if stored is not None:
            self._add(account, stored)
            log.info("%s:%s goes on as %s", ":".join(account), stored.old, stored.new)
            await self._settled(account, stored)

    async def follow(self, arrival: Arrival) -> Arrival:
        """The arrival under the first id of its channel; one that reports a move is noted first."""
        account = (arrival.conversation.platform, arrival.conversation.account)
        if isinstance(arrival, Unsupported) and arrival.moved is not None:
            await self.note(account, arrival.moved)
        first = self._firsts.get((account, arrival.conversation.channel))
        return arrival if first is None else at_home(arrival, first)

    def now(self, account: Account, channel: str) -> str:
        """The id by which the platform knows a channel now."""
        return self._places.get((account, channel), channel)

    def places(self, account: Account) -> "AccountPlaces":
        """What the adapter of an account may know of its channels."""
        return AccountPlaces(self, account)

    def names(self, account: Account, channel: str, server: str) -> bool:
        """Whether the account's rules name a channel, or its server."""
        return self._names(account, self._firsts.get((account, channel), channel), server)

    def _add(self, account: Account, move: Moved) -> None:
        self._firsts[account, move.new] = move.old
        self._places[account, move.old] = move.new


class AccountPlaces:
    """The places of one account's channels."""

    def __init__(self, moves: Moves, account: Account) -> None:
        self._moves = moves
        self._account = account

    async def moved(self, move: Moved) -> None:
        """Note a move."""
        await self._moves.note(self._account, move)

    def now(self, channel: str) -> str:
        return self._moves.now(self._account, channel)

    def names(self, channel: str, server: str = "") -> bool:
        return self._moves.names(self._account, channel, server)

    def people(self) -> tuple[str, ...]:
        return self._moves.people(self._account)


def at_home(arrival: Arrival, first: str) -> Arrival:
    """An arrival of the place that a channel moved to, as one of the channel: its ids name the place."""
    where, place = arrival.conversation, arrival.conversation.channel
    thread = None if where.thread is None else message_at(where.thread, place)
    home = ConversationKey(platform=where.platform, account=where.account, channel=first, thread=thread)
    moved = replace(arrival, conversation=home, id=message_at(arrival.id, place))
    if isinstance(moved, Unsupported):
        return moved
    if not isinstance(moved, Message):
        about = replace(moved, message_id=message_at(moved.message_id, place))
        return replace(about, media=_media(about, first, place)) if isinstance(about, Edit) else about
    reply_to = None if moved.reply_to is None else message_at(moved.reply_to, place)
    return replace(moved, media=_media(moved, first, place), reply_to=reply_to, quote=_quote(moved, first, place))


def _media(said: Message | Edit | Quote, first: str, place: str) -> tuple[MediaRef, ...]:
    return tuple(replace(ref, channel_id=first, message_id=message_at(ref.message_id, place)) for ref in said.media)


def _quote(message: Message, first: str, place: str) -> Quote | None:
    """The quote of a message of the same place; one of another channel keeps its id."""
    quote = message.quote
    if quote is None or quote.message_id is None or quote.message_id != message.reply_to:
        return quote
    return replace(quote, message_id=message_at(quote.message_id, place), media=_media(quote, first, place))
