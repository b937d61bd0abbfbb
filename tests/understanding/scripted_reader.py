"""A reader of media that answers as a test says."""

from collections.abc import Mapping
from dataclasses import replace

from belino.domain.errors import MediaRefused
from belino.domain.media import Blob, DocumentText, DocumentUnit, Part
from belino.domain.message import ConversationKey
from belino.domain.reading import Attempt, MediaCapability, ReadingForm, ReadingOutcome, SenderLanguage
from belino.domain.stored import RefRecord
from belino.media.price import Facts
from belino.understanding.read import Understanding
from belino.understanding.request import ItemReading, Note, ReadingPrice

TRIED = Attempt(
    provider="deepgram",
    model="nova-3",
    outcome=ReadingOutcome.SUCCESS,
    milliseconds=840,
    sent_to="api.deepgram.com",
    usd=0.0043,
)
FORMS: Mapping[str, Mapping[ReadingForm, ReadingPrice]] = {
    "audio": {ReadingForm.TRANSCRIPT: ReadingPrice(tokens=120, usd=0.0043, provider="deepgram", local=False)},
    "image": {
        ReadingForm.DESCRIPTION: ReadingPrice(tokens=130, usd=None, provider="openai", local=False),
        ReadingForm.TEXT: ReadingPrice(tokens=200, usd=0.0, provider="local_tesseract"),
    },
}


class ScriptedReader(Understanding):
    """Gives one answer to every request, and notes what was asked of it and whose voice it was."""

    def __init__(self, *, forms: Mapping[str, Mapping[ReadingForm, ReadingPrice]] = FORMS) -> None:
        self.asked: list[tuple[str, ReadingForm, object, object, ConversationKey]] = []
        self.senders: list[SenderLanguage] = []
        self.answer: ItemReading | Exception = MediaRefused("nothing is written")
        self.priced: list[str] = []
        """The types whose prices were asked for."""
        self._forms = forms

    def prices(self, facts: Facts, conversation: ConversationKey) -> Mapping[ReadingForm, ReadingPrice]:
        self.priced.append(facts.mime)
        return self._forms.get(facts.mime.partition("/")[0], {})

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
        self.asked.append((record.ref.id, form, pages, times, conversation))
        self.senders.append(SenderLanguage(reported=language, recent_texts=recent_texts))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def spoken(*parts: tuple[int, str], **more: object) -> ItemReading:
    told = ItemReading(
        form=ReadingForm.TRANSCRIPT,
        capability=MediaCapability.AUDIO,
        text=" ".join(text for _, text in parts),
        document=DocumentText(
            unit=DocumentUnit.SECOND,
            total=3,
            parts=tuple(Part(number=second + 1, text=text) for second, text in parts),
        ),
        provider="deepgram",
        model="nova-3",
        attempts=(TRIED,),
        seconds=3.0,
        read_to=3.0,
    )
    return replace(told, **more)  # type: ignore[arg-type]


def shown(form: ReadingForm, text: str, **more: object) -> ItemReading:
    told = ItemReading(
        form=form,
        capability=MediaCapability.IMAGE,
        text=text,
        document=DocumentText(unit=DocumentUnit.PART, total=1, parts=(Part(number=1, text=text),)),
        provider="openai",
        model="m",
    )
    return replace(told, **more)  # type: ignore[arg-type]
