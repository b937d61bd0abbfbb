"""What a person asks to be read is read as at a turn."""

from collections.abc import AsyncIterator
from dataclasses import replace

from belino.domain.media import Blob, DocumentText, DocumentUnit, MediaKind, Part
from belino.domain.message import ConversationKey
from belino.domain.outcome import MediaOutcome
from belino.domain.reading import MediaCapability, ReadingForm, SenderLanguage
from belino.domain.stored import RefRecord
from belino.gateway.readings import RequestedReadings, WantedReading
from belino.understanding.read import Understanding
from belino.understanding.request import ItemReading, Note
from gateway.house import House


class Listener(Understanding):
    """Notes whose voice it is to read."""

    def __init__(self) -> None:
        self.senders: list[SenderLanguage] = []

    async def read_item(
        self,
        record: RefRecord,
        blob: Blob,
        form: ReadingForm,
        *,
        pages: tuple[int, int | None] | None = None,
        times: tuple[float, float | None] | None = None,
        conversation: ConversationKey,
        language: str | None = None,
        recent_texts: tuple[str, ...] = (),
        max_chars: int | None = None,
        note: Note | None = None,
    ) -> ItemReading:
        self.senders.append(SenderLanguage(reported=language, recent_texts=recent_texts))
        text = DocumentText(unit=DocumentUnit.SECOND, total=1, parts=(Part(number=1, text="hallo"),))
        return ItemReading(
            form=form, capability=MediaCapability.AUDIO, text="hallo", document=text, provider="p", model="m"
        )


async def _chunks(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def test_a_reader_is_told_the_language_of_the_sender(house: House) -> None:
    async with house.gateway() as gateway:
        await gateway.accept(house.say("guten Morgen", addressed=False, language="de"))
        message = house.say("", language="de")
        ref = replace(house.picture(message), kind=MediaKind.VOICE, mime="audio/ogg", file_name=None)
        taken = await gateway.accept(replace(message, media=(ref,)))
        blob = await gateway.store.keep(_chunks(b"OggS"), mime="audio/ogg", limit=1 << 20)
        await gateway.store.end_media(taken.refs[0].id, MediaOutcome.HELD, blob=blob)
        record = await gateway.store.find_ref(taken.refs[0].id)
        assert record is not None

        async def held(record: RefRecord) -> Blob:
            return blob

        listener = Listener()
        readings = RequestedReadings(gateway.store, listener, gateway.notices)
        await readings.read(record, WantedReading(form=ReadingForm.TRANSCRIPT), held)
    assert listener.senders == [SenderLanguage(reported="de", recent_texts=("guten Morgen",))]
