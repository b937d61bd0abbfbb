"""Answers that are spoken: when, what goes out, what the agent and the operator are told."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from belino.config import Config
from belino.domain.limits import FileLimit, Limits, Markup, Once, SendAs
from belino.domain.media import MediaKind
from belino.domain.message import ConversationKey, Deletion, Message
from belino.domain.outcome import Stage, Step
from belino.domain.reply import Parcel
from belino.gateway.gateway import Gateway
from belino.testing import ScriptedAgent, ToolCall
from belino.understanding.speaker import FILE_NAME, Spoken
from belino.understanding.speech import SpeechConfig
from gateway.house import ANN, House, Wire
from journeys.busy_place import text_of
from understanding.voices import program

pytestmark = pytest.mark.slow

ANY = FileLimit(max_bytes=1_000_000)
LIMITS = Limits(
    text_chars=4_000,
    once=Once.KEY,
    markup=Markup.MARKDOWN,
    files={
        **dict.fromkeys(SendAs, ANY),
        SendAs.VOICE: replace(ANY, mimes=frozenset({"audio/ogg"}), codecs=frozenset({"opus"}), waveform=True),
    },
)
ANSWER = "At **ten past eight**, see [the plan](https://example.org/plan)."
SPOKEN = "spoken: they said it in a voice message"


class SpeakingHouse(House):
    """A house with a voice."""

    speech = SpeechConfig()

    def config(self) -> Config:
        config = super().config()
        media = replace(config.tools.media, speech=self.speech)
        return replace(config, tools=replace(config.tools, media=media))

    def ask_aloud(self, **more: object) -> Message:
        message = self.say("")
        voice = replace(self.picture(message, name=""), kind=MediaKind.VOICE, mime="audio/ogg", file_name=None, **more)  # type: ignore[arg-type]
        return replace(message, media=(voice,))

    async def steps(self, gateway: Gateway, message: Message) -> list[Step]:
        story = await gateway.store.story(message.conversation, message.id)
        assert story is not None
        return [step for step in story.steps if step.stage is Stage.REPLY and step.subject == FILE_NAME]


@pytest.fixture
def house(tmp_path: Path) -> SpeakingHouse:
    house = SpeakingHouse(tmp_path / "home")
    house.prepare().limits = LIMITS
    return house


@pytest.fixture
def hums(tmp_path: Path) -> Callable[..., SpeechConfig]:
    command, args = program(tmp_path)
    return lambda **more: SpeechConfig(command=command, args=args, **more)


def shapes(wire: Wire) -> list[str]:
    return [_shape(parcel) for parcel in wire.seen]


def _shape(parcel: Parcel) -> str:
    return " ".join([*(f"{file.send_as}" for file in parcel.files), parcel.text]).strip()


async def test_a_spoken_question_is_answered_aloud_and_in_writing_once(
    house: SpeakingHouse, hums: Callable[..., SpeechConfig]
) -> None:
    house.speech = hums(auto="inbound")
    house.agent = agent = ScriptedAgent(ANSWER, "in writing", "again in writing", ANSWER)
    async with house.at_work() as gateway:
        question = house.ask_aloud()
        await house.ask(gateway, question)
        steps = await house.steps(gateway, question)
        await house.ask(gateway, house.say("when?"))
        await house.ask(gateway, house.ask_aloud(caption="and this?"))
        last = house.ask_aloud()
        await house.ask(gateway, last)
        again = await house.steps(gateway, last)
    assert shapes(house.wire) == ["voice", ANSWER, "in writing", "again in writing", "voice", ANSWER]
    (voice,) = house.wire.seen[0].files
    assert (voice.mime, len(voice.waveform), voice.caption) == ("audio/ogg", 256, "")
    assert any(voice.waveform)
    assert voice.seconds == pytest.approx(len("At ten past eight, see the plan.") / 16, abs=0.2)
    assert steps[0].outcome == "spoken"
    assert steps[0].reason.startswith("command, 32 characters, 2s, ")
    assert steps[0].reason.endswith(" ms, no charge")
    assert again[0].reason == "command, 32 characters, 2s, spoken before"
    assert [SPOKEN in agent.told(number) for number in range(4)] == [True, False, False, True]


async def test_where_no_voice_is_configured_nothing_is_spoken_or_offered(house: SpeakingHouse) -> None:
    house.agent = agent = ScriptedAgent([ToolCall(name="send_media", arguments={"text": "hi", "as": "voice"}), "x"])
    async with house.at_work() as gateway:
        await house.ask(gateway, house.ask_aloud())
    (spec,) = [spec for spec in agent.turns[0].toolbox.specs if spec.name == "send_media"]
    assert "text" not in spec.schema["properties"]  # type: ignore[operator]
    assert "spoken" not in spec.description
    (told,) = house.wire.texts()
    assert told.startswith("Sorry")


async def test_a_voice_that_fails_costs_the_answer_nothing_and_says_why(house: SpeakingHouse) -> None:
    house.speech = SpeechConfig(command="no-such-voice", auto="always")
    house.agent = ScriptedAgent(ANSWER, "🎉")
    async with house.at_work() as gateway:
        first, second = house.say("when?"), house.say("hooray")
        await house.ask(gateway, first)
        await house.ask(gateway, second)
        (failed,) = await house.steps(gateway, first)
        (wordless,) = await house.steps(gateway, second)
    assert shapes(house.wire) == [ANSWER, "🎉"]
    assert (failed.outcome, failed.subject) == ("not spoken", "voice.ogg")
    assert failed.reason == "no-such-voice is not installed; install it, or write its whole path"
    assert wordless.reason == "there are no words in it to speak"


async def test_a_fault_of_our_own_in_speaking_costs_the_answer_nothing(house: SpeakingHouse) -> None:
    async def broken(text: str, channel: ConversationKey) -> Spoken:
        raise RuntimeError("a secret")

    house.speech = SpeechConfig(command="any", auto="always")
    house.agent = ScriptedAgent(ANSWER)
    async with house.at_work() as gateway:
        assert gateway.speaker is not None
        gateway.speaker.speak = broken  # type: ignore[method-assign]
        question = house.say("when?")
        await house.ask(gateway, question)
        (failed,) = await house.steps(gateway, question)
    assert shapes(house.wire) == [ANSWER]
    assert (failed.outcome, failed.reason) == ("not spoken", "RuntimeError")


async def test_an_agent_speaks_when_it_likes_knows_the_price_and_is_not_heard_twice(
    house: SpeakingHouse, hums: Callable[..., SpeechConfig]
) -> None:
    house.speech = hums(auto="always", max_chars=60, usd_per_mchar=15.0)
    words = "All trains run on time today. Except for the one at ten. And the one at noon."
    house.agent = agent = ScriptedAgent(
        [ToolCall(name="send_media", arguments={"text": words, "as": "voice"}), "I said it."]
    )
    async with house.at_work() as gateway:
        question = house.say("aloud, please")
        await house.ask(gateway, question)
        steps = await house.steps(gateway, question)
    assert shapes(house.wire) == ["voice", "I said it."]
    (spec,) = [spec for spec in agent.turns[0].toolbox.specs if spec.name == "send_media"]
    assert "at most 60 characters, $0.0150 for 1000 characters" in spec.description
    told = text_of(agent.answers[0])
    assert "It goes out with your answer as a voice message. Spoken by command, 54 characters, 3s, " in told
    assert told.endswith(" ms, $0.0008. Only the beginning is spoken: at most 60 characters are.")
    assert [step.reason for step in steps if step.outcome == "not spoken"] == ["the agent sends a voice message itself"]


async def test_text_is_spoken_as_a_voice_message_only(house: SpeakingHouse, hums: Callable[..., SpeechConfig]) -> None:
    house.speech = hums()
    async with house.at_work() as gateway:
        tools = gateway.toolbox(house.say().conversation)
        for given, why in (
            ({"text": "hi", "as": "photo"}, "text can only be sent as=voice"),
            ({"text": "🎉"}, "nothing in this text that can be spoken"),
            ({"text": "hi", "path": "a"}, "give exactly one of path, ref, url or text"),
        ):
            with pytest.raises(Exception, match=why):
                await tools.call("send_media", given)


async def test_a_voice_message_is_gone_with_the_answer_that_it_was_part_of(
    house: SpeakingHouse, hums: Callable[..., SpeechConfig]
) -> None:
    house.speech = hums(auto="always")
    house.agent = ScriptedAgent(ANSWER, ANSWER)
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say("when?"))
        (voice,) = house.wire.seen[0].files
        (said,) = [message for message in await house.history(gateway) if message.media]
        deletion = Deletion(
            conversation=said.conversation, id="d1", message_id=said.id, author=ANN, sent=house.clock.now()
        )
        await gateway.accept(deletion)
        await gateway.store.purge()
        assert await gateway.store.blob(voice.sha256) is None
        last = house.say("when?")
        await house.ask(gateway, last)
        assert "spoken before" not in (await house.steps(gateway, last))[0].reason
