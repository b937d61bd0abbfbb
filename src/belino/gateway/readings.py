"""Readings that people ask for: one item as text, with its progress."""

from dataclasses import dataclass, replace
from functools import partial

from belino.domain.errors import BelinoError, StoreError
from belino.domain.reading import ReadingForm
from belino.domain.stored import RefRecord
from belino.gateway.events import EventBus
from belino.gateway.rendering import Held, seen_blob
from belino.media.renditions import reason_of
from belino.storage.store import Store
from belino.understanding.read import Understanding
from belino.understanding.request import ItemReading, Note, ReadingNews, ReadingState
from belino.understanding.stored import CAPABILITIES


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
