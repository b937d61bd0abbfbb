"""Readings besides those of turns: one item that a person asks for, with its progress; and media in the background."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from belino.domain.errors import BelinoError, StoreError
from belino.domain.outcome import Standing, Step
from belino.domain.reading import ReadingForm
from belino.domain.stored import RefRecord, Requester
from belino.gateway.access import AccountAccess, still_may
from belino.gateway.events import EventBus, Notice, NoticeKind
from belino.gateway.rendering import Held, seen_blob
from belino.gateway.sessions import Sessions
from belino.media.renditions import reason_of
from belino.storage.store import Store
from belino.understanding.ahead import AheadCallbacks, ReadAhead
from belino.understanding.read import Hold, Understanding
from belino.understanding.request import ItemReading, Note, ReadingNews, ReadingState
from belino.understanding.stored import CAPABILITIES

if TYPE_CHECKING:
    from belino.gateway.gateway import Gateway


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedReading:
    """A reading that a person asks for."""

    form: ReadingForm
    pages: tuple[int, int | None] | None = None
    times: tuple[float, float | None] | None = None


class RequestedReadings:
    """Reads single items for people, and publishes the progress."""

    def __init__(self, store: Store, understanding: Understanding, notices: EventBus) -> None:
        self._store = store
        self._understanding = understanding
        self._notices = notices

    async def read(self, record: RefRecord, wanted: WantedReading, held: Held) -> ItemReading:
        """The text of a ref, stored or read now. Raises MediaError or ProviderError with the reason."""
        if wanted == WantedReading(form=ReadingForm.TRANSCRIPT):
            told = await self._understanding.told(record, record.conversation)
            if told is not None:
                return told
        sender = await self._store.sender_of(record.conversation.whole_channel, record.ref.id)
        tell = await self._teller(record, wanted.form)
        news = ReadingNews(ref=record.ref.id, capability=CAPABILITIES[record.ref.kind], state=ReadingState.READING)
        tell(news)
        try:
            read = await self._understanding.read_item(
                record,
                await seen_blob(record, held, self._store),
                wanted.form,
                pages=wanted.pages,
                times=wanted.times,
                conversation=record.conversation,
                language=sender.reported,
                recent_texts=sender.recent_texts,
                note=tell,
            )
        except BelinoError as error:
            tell(replace(news, state=ReadingState.UNREAD, provider="?", reason=reason_of(error)))
            raise
        tell(replace(news, state=ReadingState.READ, provider=read.provider))
        await self._tell_message(record)
        return read

    async def _teller(self, record: RefRecord, form: ReadingForm) -> Note:
        """Publishes the progress of a reading to those who follow the conversation of its message."""
        found = await self._store.messages(record.conversation.whole_channel, [record.ref.message_id])
        for message in found:
            ids = [ref.id for ref in message.media]
            if record.ref.id in ids:
                return partial(self._notices.read, message.conversation, message.id, ids.index(record.ref.id), form)
        return lambda news: None

    async def _tell_message(self, record: RefRecord) -> None:
        try:
            for message in await self._store.messages(record.conversation.whole_channel, [record.ref.message_id]):
                self._notices.message(message)
        except StoreError:
            self._notices.lost()


class BackgroundReadings:
    """Reads media ahead: woken by arrivals and the ends of turns, for senders who may command the agent now."""

    def __init__(
        self,
        gateway: "Gateway",
        hold: Hold,
        accounts: Mapping[tuple[str, str], AccountAccess],
        sessions: Sessions,
    ) -> None:
        self._store = gateway.store
        self._notices = gateway.notices
        self._accounts = accounts
        self._sessions = sessions
        self._ahead = ReadAhead(
            gateway.store,
            lambda: gateway.understanding,
            hold,
            AheadCallbacks(may_command=self._may_command, is_busy=self._is_busy, told=self._told),
            config=gateway.config.tools.media,
            clock=gateway.clock,
        )

    async def run(self) -> None:
        """Read ahead for as long as the gateway runs."""
        with self._notices.listening(self._heard):
            await self._ahead.run()

    async def catch_up(self) -> bool:
        """Read everything that is unread now; False if that gave way to something else."""
        return await self._ahead.catch_up()

    def _heard(self, notice: Notice) -> None:
        if notice.kind in (NoticeKind.MESSAGE, NoticeKind.CHANGED, NoticeKind.TURN):
            self._ahead.wake()

    async def _is_busy(self) -> bool:
        # The count of waiting turns may be too high; the store knows.
        is_waiting = self._sessions.waiting > 0 and await self._store.waiting_turns() > 0
        return is_waiting or self._sessions.running > 0

    async def _may_command(self, record: RefRecord) -> bool:
        where = record.conversation
        account = self._accounts.get((where.platform, where.account))
        chat_type = await self._store.chat_type(where.whole_channel)
        if account is None or chat_type is None:
            return False
        facts = await self._store.channel_facts(where)
        paired = await self._store.is_paired(where.platform, where.account, record.author.id)
        asker = Requester(author=record.author, chat_type=chat_type, server=facts.server)
        verdict = still_may(asker, where, account.access, trusts_senders=account.trusts_senders, paired=paired)
        return verdict.standing is Standing.MAY_COMMAND

    async def _told(self, record: RefRecord, step: Step) -> None:
        """Record a reading for `explain`, and show it where its message is open."""
        for message in await self._store.messages(record.conversation.whole_channel, [record.ref.message_id]):
            await self._store.note(message.trace, step)
            if self._notices.watched(message.conversation):
                self._notices.message(message)
