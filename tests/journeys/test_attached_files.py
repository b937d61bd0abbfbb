"""Documents and sounds go to an agent that takes them as they are, once, and come back after a compaction."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from belino.context.budget import ContextConfig
from belino.domain.media import (
    AcceptedMedia,
    AudioBlock,
    AudioFormats,
    Block,
    DocumentBlock,
    DocumentFormats,
    MediaKind,
    TextBlock,
)
from belino.domain.message import ConversationKey, Message
from belino.domain.turn import Accepted, Compacted, Final, Refused, ReplyPart, Turn
from belino.gateway.explain import explain
from belino.gateway.gateway import Gateway
from belino.testing.fakes import ScriptedAgent, ToolCall
from belino.testing.files import make_pdf, make_wav
from belino.turns.prompt import RECOVERY
from gateway.house import House, until
from tools.papers import line, make_pages

pytestmark = pytest.mark.slow

DM = ConversationKey(platform="memory", account="default", channel="dm")
ACCEPTS = AcceptedMedia(
    documents=DocumentFormats(
        mimes=frozenset({"application/pdf"}), max_bytes=20_000_000, max_pages=100, page_tokens=1_600, charges_text=True
    ),
    audio=AudioFormats(
        mimes=frozenset({"audio/wav", "audio/flac"}), max_bytes=20_000_000, max_seconds=600.0, second_tokens=32
    ),
)
TIMETABLE, TALK = make_pdf("The ferry leaves at nine"), make_wav(2.0)
LONG = make_pages(*(line(f"page {number}") for number in range(1, 131)))


class Voyage:
    """A direct conversation about files."""

    def __init__(self, house: House, accepts: AcceptedMedia = ACCEPTS) -> None:
        self.house = house
        self.agent = house.agent = ScriptedAgent(accepts=accepts)
        house.context = ContextConfig(attach_media="message")
        house.prepare()

    def message(self, text: str, content: bytes, name: str, mime: str, kind: MediaKind) -> Message:
        message = self.house.say(text)
        item = f"file of {message.id}"
        self.house.wire._far_side.files[item] = content
        ref = replace(self.house.picture(message, item=item, name=name), mime=mime, kind=kind)
        return replace(message, media=(ref,))

    async def send(self, gateway: Gateway, content: bytes, text: str = "see", name: str = "timetable.pdf") -> Message:
        message = self.message(text, content, name, "application/pdf", MediaKind.DOCUMENT)
        await self.house.ask(gateway, message)
        return message

    def files(self, number: int = -1) -> list[DocumentBlock | AudioBlock]:
        blocks = self.agent.turns[number].blocks
        return [block for block in blocks if isinstance(block, DocumentBlock | AudioBlock)]


@pytest.fixture
def voyage(tmp_path: Path) -> Voyage:
    return Voyage(House(tmp_path / "home"))


async def steps(gateway: Gateway, message: Message) -> dict[str, str]:
    story = await explain(gateway.store, f"{message.conversation}/{message.id}")
    return {step.outcome: step.reason for step in story.steps}


async def test_a_document_goes_with_its_message_once_and_its_text_is_not_sent_too(voyage: Voyage) -> None:
    async with voyage.house.at_work() as gateway:
        first = await voyage.send(gateway, TIMETABLE)
        (document,) = voyage.files()
        assert isinstance(document, DocumentBlock) and document.data == TIMETABLE
        assert "document 1 below" in voyage.agent.told() and "leaves at nine" not in voyage.agent.told()
        told = await steps(gateway, first)
        assert told["media attached"] == "1 attached" and told["skipped"] == "document: the agent gets it as it is"
        second = await voyage.send(gateway, TIMETABLE, name="again.pdf")
        assert not voyage.files() and re.search(r"again.pdf, .*, shown at turn 1\]", voyage.agent.told())
        assert (await steps(gateway, second))["media attached"] == "1 shown before"
        (entry,) = (await gateway.store.session(DM)).manifest
    assert (entry.media_type, entry.display_name, entry.included_at_turn) == ("application/pdf", "timetable.pdf", 1)


async def test_a_document_that_the_model_would_not_take_is_attached_as_text_with_the_reason(voyage: Voyage) -> None:
    async with voyage.house.at_work() as gateway:
        message = await voyage.send(gateway, LONG)
        assert not voyage.files()
        assert "Given as text, because it has 130 pages, and your model takes 100." in voyage.agent.told()
        assert "page 3" in voyage.agent.told()
        assert (await steps(gateway, message))["media attached"] == "1 given as text"
        assert (await gateway.store.session(DM)).manifest == ()


async def test_a_document_that_leaves_no_room_is_named_with_its_price(tmp_path: Path) -> None:
    voyage = Voyage(House(tmp_path / "home"), replace(ACCEPTS, tokens=1_000))
    async with voyage.house.at_work() as gateway:
        await voyage.send(gateway, TIMETABLE)
    assert not voyage.files()
    assert re.search(r"timetable.pdf, .*: not attached: .* costs about 16\d\d tokens as it is", voyage.agent.told())


async def test_a_sound_goes_with_its_message_without_its_metadata(voyage: Voyage) -> None:
    async with voyage.house.at_work() as gateway:
        message = voyage.message("listen", TALK, "talk.wav", "audio/wav", MediaKind.AUDIO)
        await voyage.house.ask(gateway, message)
        (sound,) = voyage.files()
        (entry,) = (await gateway.store.session(DM)).manifest
    assert isinstance(sound, AudioBlock) and (sound.mime, sound.tokens) == ("audio/flac", 64)
    assert entry.media_type == "audio/flac"


async def test_a_document_comes_back_after_a_compaction(voyage: Voyage) -> None:
    async with voyage.house.at_work() as gateway:
        await voyage.send(gateway, TIMETABLE)
        voyage.agent.script.append([Compacted(), "later"])
        await voyage.house.ask(gateway, voyage.house.say("later"))
        await voyage.house.ask(gateway, voyage.house.say("and?"))
        assert voyage.agent.turns[-1].blocks[0] == TextBlock(text=RECOVERY.format(1))
        assert [block.data for block in voyage.files()] == [TIMETABLE]
        assert (await gateway.store.session(DM)).lost == ()


async def test_a_document_the_model_refuses_is_not_remembered_as_shown(voyage: Voyage) -> None:
    async with voyage.house.at_work() as gateway:
        message = voyage.message("see", TIMETABLE, "timetable.pdf", "application/pdf", MediaKind.DOCUMENT)
        taken = await gateway.accept(replace(message, album="held back"))
        ref = taken.refs[0].id
        voyage.agent.script.append([Refused(ref=ref, why="too many pages"), "no"])
        await voyage.house.pass_album()
        await until(lambda: gateway.counters.turns)
        assert (await steps(gateway, message))["refused by the model"] == "too many pages"
        assert (await gateway.store.session(DM)).manifest == ()


async def test_an_agent_that_takes_files_only_in_its_prompt_finds_no_such_form_in_its_tools(tmp_path: Path) -> None:
    voyage = Voyage(House(tmp_path / "home"), replace(ACCEPTS, in_results=False))
    async with voyage.house.at_work() as gateway:
        await voyage.send(gateway, TIMETABLE)
        ref = voyage.files()[0].ref
        voyage.agent.script.append([ToolCall(name="fetch_media", arguments={"ref": ref, "as": "text"}), "done"])
        await voyage.house.ask(gateway, voyage.house.say("read it"))
    (fetch,) = (spec for spec in voyage.agent.turns[-1].toolbox.specs if spec.name == "fetch_media")
    assert "document" not in fetch.schema["properties"]["as"]["enum"]  # type: ignore[index]
    assert "leaves at nine" in _words(voyage.agent.answers[-1])


async def test_by_default_a_document_waits_and_is_fetched_as_it_is(voyage: Voyage) -> None:
    voyage.house.context = ContextConfig()
    async with voyage.house.at_work() as gateway:
        await voyage.send(gateway, TIMETABLE)
        assert not voyage.files()
        (record,) = await gateway.store.refs(None)
        fetch = ToolCall(name="fetch_media", arguments={"ref": record.ref.id})
        voyage.agent.script.append([fetch, Accepted(), "done"])
        await voyage.house.ask(gateway, voyage.house.say("read it"))
        assert [type(block) for block in voyage.agent.answers[-1]] == [TextBlock, DocumentBlock]
        (entry,) = (await gateway.store.session(DM)).manifest
    assert entry.included_at_turn == 2


def _words(blocks: tuple[Block, ...]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))


class Forgetful:
    """An agent of the released interface: it declares nothing beside its eyes and its memory."""

    remembers = True
    sees_images = False

    def __init__(self) -> None:
        self.turns: list[Turn] = []

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        self.turns.append(turn)
        yield Accepted()
        yield Final(text="done")


async def test_an_agent_that_declares_nothing_gets_text_as_before(voyage: Voyage) -> None:
    agent = voyage.house.agent = Forgetful()
    async with voyage.house.at_work() as gateway:
        await voyage.send(gateway, TIMETABLE)
    assert all(isinstance(block, TextBlock) for block in agent.turns[0].blocks)
    assert "leaves at nine" in _words(agent.turns[0].blocks)
