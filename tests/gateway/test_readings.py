"""What a person asks to be read is read as at a turn; and what nobody asks for, in the background."""

from collections.abc import AsyncIterator
from dataclasses import replace

from belino.config import ToolsConfig
from belino.domain.media import Blob, MediaKind
from belino.domain.message import Author, Message
from belino.domain.outcome import MediaOutcome, Stage, Step
from belino.domain.reading import ReadingForm, SenderLanguage
from belino.domain.search import SearchQuery
from belino.domain.stored import RefRecord
from belino.gateway.explain import explain
from belino.gateway.gateway import Gateway
from belino.gateway.readings import RequestedReadings, WantedReading
from belino.search.query import parse_intent
from belino.understanding.ahead import QUIET_SECONDS
from belino.understanding.config import MediaTools
from gateway.house import ANN, EVE, House, HungAgent, until
from understanding.scripted_reader import ScriptedReader, spoken


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

        listener = ScriptedReader()
        listener.answer = spoken((0, "hallo"))
        readings = RequestedReadings(gateway.store, listener, gateway.notices)
        await readings.read(record, WantedReading(form=ReadingForm.TRANSCRIPT), held)
    assert listener.senders == [SenderLanguage(reported="de", recent_texts=("guten Morgen",))]


NOTE = b"The spare key is under the blue pot."


def reads_ahead(house: House, *, fetch: bool = True) -> None:
    house.tools = ToolsConfig(media=MediaTools(read_ahead="local", read_ahead_fetch=fetch))


async def sent(house: House, gateway: Gateway, author: Author = ANN, item: str = "f1") -> Message:
    """A file that is sent in the team's channel, without a word to the agent."""
    message = house.say("", author=author, channel="team", addressed=False)
    ref = replace(house.picture(message, item=item, name="n.txt"), kind=MediaKind.DOCUMENT, mime="text/plain")
    message = replace(message, media=(ref,))
    house.wire._far_side.files[item] = NOTE
    await gateway.accept(message)
    return message


async def found(gateway: Gateway, message: Message) -> bool:
    intent = parse_intent("where is the spare key", now=gateway.clock.now())
    hits = await gateway.store.search(message.conversation, SearchQuery(intents=(intent,)))
    return any(hit.passage is not None for hit in hits.hits)


async def test_nothing_is_read_ahead_unless_that_is_configured(house: House) -> None:
    async with house.at_work() as gateway:
        message = await sent(house, gateway)
        assert gateway._readers._ahead is None and not house.clock.sleeps_for(QUIET_SECONDS)
        assert not await found(gateway, message)


async def test_a_file_of_a_sender_who_may_command_is_read_in_the_background_and_explained(house: House) -> None:
    reads_ahead(house)
    async with house.at_work() as gateway:
        told: list[Step] = []
        note = gateway.store.note

        async def noted(trace: str, *steps: Step) -> None:
            await note(trace, *steps)
            told.extend(step for step in steps if step.stage is Stage.READING)

        gateway.store.note = noted  # type: ignore[method-assign]
        message = await sent(house, gateway)
        await house.clock.wake(QUIET_SECONDS)
        await until(lambda: told)
        assert await found(gateway, message)
        story = await explain(gateway.store, f"{message.conversation}/{message.id}")
        assert ("read", "ahead: text by belino") in [(step.outcome, step.reason) for step in story.steps]
        ((_, attempt),) = await gateway.store.attempts()
        assert attempt.ahead


async def test_a_file_of_another_sender_is_not_read_and_not_fetched(house: House) -> None:
    reads_ahead(house)
    async with house.at_work() as gateway:
        message = await sent(house, gateway, EVE)
        assert await gateway.read_ahead.catch_up() and not await found(gateway, message)
        (record,) = await gateway.store.refs(message.conversation)
        assert record.outcome is MediaOutcome.REFERENCED


async def test_bytes_stay_with_the_platform_unless_they_may_be_fetched_for_it(house: House) -> None:
    reads_ahead(house, fetch=False)
    async with house.at_work() as gateway:
        message = await sent(house, gateway)
        assert await gateway.read_ahead.catch_up() and not await found(gateway, message)
        (record,) = await gateway.store.refs(message.conversation)
        assert record.outcome is MediaOutcome.REFERENCED
        await gateway.fetch(record)
        assert await gateway.read_ahead.catch_up() and await found(gateway, message)


async def test_it_waits_until_no_turn_waits_or_runs(house: House) -> None:
    reads_ahead(house)
    house.agent = agent = HungAgent()
    async with house.at_work() as gateway:
        await gateway.accept(house.say("hello"))
        await until(lambda: agent.running)
        message = await sent(house, gateway)
        assert not await gateway.read_ahead.catch_up() and not await found(gateway, message)


async def test_after_a_restart_it_goes_on_and_reads_nothing_twice(house: House) -> None:
    reads_ahead(house)
    async with house.gateway() as gateway:
        first = await sent(house, gateway)
        assert await gateway.read_ahead.catch_up()
    async with house.gateway() as gateway:
        second = await sent(house, gateway, item="f2")
        assert await gateway.read_ahead.catch_up()
        assert await found(gateway, first) and await found(gateway, second)
        refs = [attempt.ref for _, attempt in await gateway.store.attempts()]
        assert len(refs) == len(set(refs))
