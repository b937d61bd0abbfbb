"""What is read from the media of a message before its turn, and what becomes of it."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest

from belino.config import ChannelAccess, ToolsConfig
from belino.domain.media import DocumentText, DocumentUnit, MediaKind, Part, TextBlock
from belino.domain.message import Deletion, Message
from belino.domain.outcome import MediaOutcome, MessageOutcome, Stage, Standing
from belino.domain.reading import (
    AttachmentRecord,
    Attempt,
    MediaCapability,
    Reading,
    ReadingDecision,
    ReadingOutcome,
    ReadSegment,
    TranscriptWindow,
)
from belino.domain.reply import ParcelState
from belino.domain.stored import StoredMessage
from belino.gateway.events import ReadingNotice
from belino.gateway.gateway import Gateway
from belino.testing import ScriptedAgent
from belino.turns.reading import names
from belino.understanding.config import MediaTools
from belino.understanding.read import Understanding
from belino.understanding.request import MessageMedia, MessageReadings, Note, ReadingNews, ReadingState
from gateway.house import BOB, EVE, House, until

Answer = Callable[[MessageMedia, Note], Awaitable[MessageReadings]]


class ScriptedUnderstanding(Understanding):
    """Reads messages as a test says."""

    def __init__(self, answer: Answer | None = None, words: str = "good morning") -> None:
        self.asked: list[MessageMedia] = []
        self._answer = answer
        self._words = words

    async def read_message(self, message: MessageMedia, note: Note) -> MessageReadings:
        self.asked.append(message)
        if self._answer is not None:
            return await self._answer(message, note)
        return heard(message, self._words)

    async def close(self) -> None:
        """There is nothing to release."""

    def prices(self, facts: object, conversation: object) -> dict[object, object]:  # type: ignore[override]
        return {}


def heard(message: MessageMedia, words: str) -> MessageReadings:
    tried = Attempt(
        provider="deepgram",
        model="nova-3",
        outcome=ReadingOutcome.SUCCESS,
        milliseconds=840,
        sent_to="api.deepgram.com",
        usd=0.0043,
    )
    failed = Attempt(
        provider="groq", model="whisper", outcome=ReadingOutcome.FAILED, reason="HTTP 503", milliseconds=20
    )
    records = tuple(
        AttachmentRecord(index=at, ref=record.ref.id, attempts=(failed, tried), chosen=1)
        for at, record in enumerate(message.media)
    )
    return MessageReadings(
        decisions=(
            ReadingDecision(capability=MediaCapability.IMAGE, outcome=ReadingOutcome.NO_ATTACHMENT),
            ReadingDecision(capability=MediaCapability.AUDIO, outcome=ReadingOutcome.SUCCESS, attachments=records),
        ),
        readings=tuple(
            Reading(kind="audio.transcription", text=words, provider="deepgram", model="nova-3", attachment_index=at)
            for at in range(len(message.media))
        ),
    )


def voice(house: House, text: str = "", **more: object) -> Message:
    message = house.say(text, **more)  # type: ignore[arg-type]
    ref = replace(house.picture(message, name=""), kind=MediaKind.VOICE, mime="audio/ogg", file_name=None)
    return replace(message, media=(ref,))


def given(agent: ScriptedAgent, turn: int = -1) -> str:
    return "\n".join(block.text for block in agent.turns[turn].blocks if isinstance(block, TextBlock))


@pytest.fixture
def agent(house: House) -> ScriptedAgent:
    house.agent = agent = ScriptedAgent()
    house.understanding = ScriptedUnderstanding()
    return agent


async def steps(gateway: Gateway, house: House, channel: str = "dm") -> list[tuple[str, str]]:
    message = (await house.history(gateway, channel))[0]
    story = await gateway.store.story(message.conversation, message.id)
    assert story is not None
    return [(step.outcome, step.reason) for step in story.steps if step.stage is Stage.READING]


async def test_a_voice_message_is_read_before_the_agent_starts_and_told_in_its_fence(
    house: House, agent: ScriptedAgent
) -> None:
    async with house.at_work() as gateway:
        await house.ask(gateway, voice(house, "for you"))
        told = given(agent)
        assert "read from media:\n[Audio]\nUser text:\nfor you\nTranscript:\ngood morning\n" in told
        assert await steps(gateway, house) == [
            ("failed", "audio by groq whisper: HTTP 503, 20 ms"),
            ("read", "audio by deepgram nova-3: 840 ms, 0.0043 USD, sent to api.deepgram.com"),
        ]


async def test_a_spoken_command_works_like_a_written_one(house: House, agent: ScriptedAgent) -> None:
    house.understanding = ScriptedUnderstanding(words="Slash new.")
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say("the word is heliotrope"))
        await house.ask(gateway, voice(house))
        session = await gateway.store.session(voice(house).conversation)
        message = (await house.history(gateway))[2]
        audit = await gateway.audit()
    assert len(agent.turns) == 1
    assert "new session" in house.wire.texts()[-1]
    assert (session.memory, session.turns) == (None, 0)
    assert message.outcome is MessageOutcome.ANSWERED
    assert audit.is_balanced


async def test_what_a_spoken_command_stops_waits_no_longer_and_pages_are_told(
    house: House, agent: ScriptedAgent
) -> None:
    read = asyncio.Event()

    async def once_allowed(message: MessageMedia, note: Note) -> MessageReadings:
        await read.wait()
        return heard(message, "Slash stop.")

    understanding = house.understanding = ScriptedUnderstanding(once_allowed)
    async with house.at_work() as gateway, gateway.notices.subscribe() as notices:
        await gateway.accept(voice(house))
        await until(lambda: understanding.asked)
        await gateway.accept(house.say("and this"))
        assert (gateway._sessions.waiting, await gateway.store.waiting_turns()) == (1, 1)
        read.set()
        async for notice in notices:
            said = notice.payload
            if isinstance(said, StoredMessage) and (said.text, said.outcome) == ("and this", MessageOutcome.ABORTED):
                break
        assert (gateway._sessions.waiting, await gateway.store.waiting_turns()) == (0, 0)
    assert agent.turns == []


async def test_the_reader_learns_who_asks_and_what_they_wrote_before(house: House, agent: ScriptedAgent) -> None:
    understanding = house.understanding = ScriptedUnderstanding()
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say("guten Morgen"))
        await house.ask(gateway, house.say("wie geht es"))
        await house.ask(gateway, voice(house, language="de-AT"))
    (asked,) = understanding.asked
    assert asked.recent_texts == ("wie geht es", "guten Morgen") and asked.text == "" and asked.sees_images is True
    assert asked.language == "de-AT"
    assert [record.ref.kind for record in asked.media] == [MediaKind.VOICE]


async def test_a_message_without_media_asks_nobody(house: House, agent: ScriptedAgent) -> None:
    understanding = house.understanding = ScriptedUnderstanding()
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say("hello"))
        assert not understanding.asked and not await steps(gateway, house)


async def test_readings_that_do_not_end_in_time_do_not_keep_the_text_from_its_answer(
    house: House, agent: ScriptedAgent
) -> None:
    let_go = asyncio.Event()

    async def never(message: MessageMedia, note: Note) -> MessageReadings:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await let_go.wait()  # it ignores its cancellation
            raise
        raise AssertionError

    house.understanding = understanding = ScriptedUnderstanding(never)
    house.tools = ToolsConfig(media=MediaTools(turn_seconds=30))
    async with house.at_work() as gateway:
        await gateway.accept(voice(house, "look"))
        await until(lambda: understanding.asked)
        await house.clock.advance(30)
        assert not agent.turns
        await house.clock.advance(0.5)
        await house.clock.advance(0.5)
        await until(lambda: house.wire.seen)
        assert "look" in given(agent) and "Transcript" not in given(agent)
        assert await steps(gateway, house) == [("failed", "not read in time")]
        let_go.set()


async def test_a_fault_in_reading_costs_the_reading_only(house: House, agent: ScriptedAgent) -> None:
    async def broken(message: MessageMedia, note: Note) -> MessageReadings:
        raise ZeroDivisionError

    house.understanding = ScriptedUnderstanding(broken)
    async with house.at_work() as gateway:
        await house.ask(gateway, voice(house, "look"))
        assert agent.turns and await steps(gateway, house) == [("failed", "ZeroDivisionError")]


async def test_a_person_can_stop_a_turn_while_it_reads(house: House, agent: ScriptedAgent) -> None:
    async def never(message: MessageMedia, note: Note) -> MessageReadings:
        await asyncio.Event().wait()
        raise AssertionError

    house.understanding = understanding = ScriptedUnderstanding(never)
    async with house.at_work() as gateway:
        message = voice(house)
        await gateway.accept(message)
        await until(lambda: understanding.asked)
        assert await gateway.abort(message.conversation)
        await until(lambda: gateway.counters.turns)
        assert (await house.history(gateway))[0].outcome is MessageOutcome.ABORTED and not agent.turns


async def test_progress_reaches_the_followers_of_the_conversation(house: House, agent: ScriptedAgent) -> None:
    async def slowly(message: MessageMedia, note: Note) -> MessageReadings:
        ref = message.media[0].ref.id
        note(ReadingNews(ref=ref, capability=MediaCapability.AUDIO, state=ReadingState.READING, done=30.0, total=60.0))
        return heard(message, "hi")

    house.understanding = ScriptedUnderstanding(slowly)
    async with house.at_work() as gateway, gateway.notices.subscribe() as notices:
        message = voice(house)
        await gateway.accept(message)
        async for notice in notices:
            if isinstance(told := notice.payload, ReadingNotice):
                assert (told.message_id, told.attachment_index) == (message.id, 0)
                assert (told.form, told.news.done) == ("transcript", 30.0)
                break


async def test_the_transcript_is_posted_before_the_answer_and_once(house: House, agent: ScriptedAgent) -> None:
    house.tools = ToolsConfig(media=MediaTools(echo_transcript=True, echo_format="heard: {transcript}"))
    async with house.at_work() as gateway:
        await house.ask(gateway, voice(house))
        assert house.wire.texts() == ["heard: good morning", "turn 1"]


async def test_a_transcript_that_was_posted_before_a_crash_is_not_posted_again(
    house: House, agent: ScriptedAgent
) -> None:
    house.tools = ToolsConfig(media=MediaTools(echo_transcript=True))
    stuck = asyncio.Event()

    async def once_stuck(message: MessageMedia, note: Note) -> MessageReadings:
        return heard(message, "good morning")

    house.understanding = ScriptedUnderstanding(once_stuck)
    house.agent = stuck_agent = ScriptedAgent()
    async with house.until_killed() as gateway:
        posted = gateway._turns._replies.post_transcript

        async def then_die(*args: object) -> None:
            await posted(*args)  # type: ignore[arg-type]
            stuck.set()
            await asyncio.Event().wait()

        gateway._turns._replies.post_transcript = then_die  # type: ignore[method-assign,assignment]
        await gateway.accept(voice(house))
        await asyncio.wait_for(stuck.wait(), 30)
        await until(lambda: house.wire.seen)
    assert not stuck_agent.turns
    async with house.at_work() as gateway:
        await until(lambda: len(house.wire.seen) == 2)
        assert house.wire.texts() == ["good morning", "turn 1"]


async def test_a_transcript_that_the_platform_refuses_does_not_hold_up_the_answer(
    house: House, agent: ScriptedAgent
) -> None:
    from belino.domain.errors import Undeliverable

    house.tools = ToolsConfig(media=MediaTools(echo_transcript=True))
    house.prepare().refusals.append(Undeliverable("no"))
    async with house.at_work() as gateway:
        await house.ask(gateway, voice(house))
        assert house.wire.texts() == ["turn 1"]
        assert (await house.history(gateway))[0].outcome is MessageOutcome.ANSWERED
        assert ParcelState.DEAD in {parcel.state for parcel in await gateway.store.parcels()}


@pytest.fixture
def gated(house: House, agent: ScriptedAgent) -> House:
    team = ChannelAccess(senders=("ann", "bob"), mention=True)
    house.access = replace(house.access, channels={"team": team, "open": ChannelAccess(senders=("*",))})
    house.tools = ToolsConfig(media=MediaTools(audio_preflight=True))
    return house


async def test_a_voice_message_that_names_the_agent_is_a_command_and_is_answered(
    gated: House, agent: ScriptedAgent
) -> None:
    gated.understanding = ScriptedUnderstanding(words="Hey Bellino, what time is it?")
    async with gated.at_work() as gateway:
        await gated.ask(gateway, voice(gated, channel="team", author=BOB, addressed=False))
        message = (await gated.history(gateway, "team"))[0]
        assert (message.outcome, message.standing) == (MessageOutcome.ANSWERED, Standing.MAY_COMMAND)
        assert "what time is it?" in given(agent)


async def test_one_that_does_not_is_observed_and_its_turn_is_silent(gated: House, agent: ScriptedAgent) -> None:
    gated.understanding = understanding = ScriptedUnderstanding(words="see you later")
    async with gated.at_work() as gateway:
        await gateway.accept(voice(gated, channel="team", author=BOB, addressed=False))
        await until(lambda: understanding.asked)
        await gated.ask(gateway, gated.say("now you", channel="team", author=BOB, addressed=True))
        first = (await gated.history(gateway, "team"))[0]
        assert (first.outcome, first.standing) == (MessageOutcome.OBSERVED, Standing.OBSERVED)
        assert len(agent.turns) == 1 and len(gated.wire.seen) == 1


@pytest.mark.parametrize(
    "more",
    [
        {"author": EVE, "channel": "team"},
        {"author": EVE, "channel": "unlisted"},
        {"author": EVE, "channel": "dm"},
        {"author": BOB, "channel": "team", "text": "has words"},
    ],
)
async def test_nobody_elses_voice_is_read_before_the_gate(
    gated: House, agent: ScriptedAgent, more: dict[str, object]
) -> None:
    gated.understanding = understanding = ScriptedUnderstanding(words="belino, obey")
    async with gated.at_work() as gateway:
        text = str(more.pop("text", ""))
        await gateway.accept(voice(gated, text, addressed=False, **more))
        await gated.ask(gateway, gated.say("hello"))
        assert not understanding.asked and len(agent.turns) == 1


async def test_without_the_setting_no_voice_is_read_before_the_gate(gated: House, agent: ScriptedAgent) -> None:
    gated.tools = ToolsConfig()
    gated.understanding = understanding = ScriptedUnderstanding(words="belino, obey")
    async with gated.at_work() as gateway:
        await gateway.accept(voice(gated, channel="team", author=BOB, addressed=False))
        await gated.ask(gateway, gated.say("hello"))
        assert not understanding.asked


@pytest.mark.parametrize(
    ("said", "name", "is_named"),
    [
        ("Belino, are you there?", "belino", True),
        ("hey BELLINO!", "belino", True),
        ("the bellini is cold", "belino", False),
        ("ask max about it", "Max", True),
        ("ask mix about it", "Max", False),
        ("hello claude code today", "Claude Code", True),
        ("hello claude", "Claude Code", False),
        ("", "belino", False),
        ("anything", "", False),
    ],
)
def test_a_name_is_heard_also_if_its_spelling_is_off_by_a_letter(said: str, name: str, is_named: bool) -> None:
    assert names(said, name) is is_named


async def _chunks(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def kept(gateway: Gateway, ref: str, words: str) -> None:
    """Store the bytes of a voice message and what is said in them, as a reading does."""
    blob = await gateway.store.keep(_chunks(words.encode()), mime="audio/ogg", limit=1 << 20)
    await gateway.store.end_media(ref, MediaOutcome.HELD, blob=blob)
    window = TranscriptWindow(start=0.0, end=2.0, segments=(ReadSegment(text=words, start=0.0, end=2.0),))
    text = DocumentText(unit=DocumentUnit.SECOND, total=2, parts=(Part(number=1, text=words),))
    assert await gateway.store.keep_transcript(blob.sha256, "transcript.1:p:m:d:2s-0", window, text)


@pytest.fixture
def reading(house: House) -> dict[str, Gateway]:
    """Whoever reads a message keeps what is said in it in the store of this gateway."""
    running: dict[str, Gateway] = {}

    async def answer(message: MessageMedia, note: Note) -> MessageReadings:
        for record in message.media:
            await kept(running["gateway"], record.ref.id, "we meet on Thursday")
        return heard(message, "we meet on Thursday")

    house.understanding = ScriptedUnderstanding(answer)
    return running


async def test_a_voice_message_that_was_answered_is_told_by_its_words_from_then_on(
    house: House, reading: dict[str, Gateway]
) -> None:
    house.agent = agent = ScriptedAgent(remembers=False)
    spoken = voice(house)
    async with house.at_work() as gateway:
        reading["gateway"] = gateway
        await house.ask(gateway, spoken)
        await house.ask(gateway, house.say("when?"))
        await house.ask(gateway, house.say("and this?", reply_to=spoken.id))
    assert re.search(r"\|we meet on Thursday\|\(voice [^,)]*, spoken\)", given(agent, 1))
    assert "\nquoted transcript: we meet on Thursday\ntext:\nand this?" in given(agent, 2)


async def test_a_voice_message_that_is_deleted_is_told_by_no_word(house: House, reading: dict[str, Gateway]) -> None:
    house.agent = agent = ScriptedAgent(remembers=False)
    spoken = voice(house)
    async with house.at_work() as gateway:
        reading["gateway"] = gateway
        await house.ask(gateway, spoken)
        gone = Deletion(
            conversation=spoken.conversation, id="d", message_id=spoken.id, author=spoken.author, sent=spoken.sent
        )
        await gateway.accept(gone)
        await house.ask(gateway, house.say("when?"))
    assert "Thursday" in given(agent, 0) and "Thursday" not in given(agent, 1)


async def test_a_voice_message_that_was_read_meanwhile_is_caught_up_on_by_its_words(
    house: House, agent: ScriptedAgent
) -> None:
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say("hello", channel="team"))
        taken = await gateway.accept(voice(house, author=BOB, channel="team", addressed=False))
        await kept(gateway, taken.refs[0].id, "we meet on Friday")
        await house.ask(gateway, house.say("when?", channel="team"))
    told = given(agent, 1)
    assert "<<<meanwhile" in told and "we meet on Friday|(spoken)" in told
