"""Documents and sounds reach a model in its provider's own format, and a refused one ends no conversation."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from agents.llm_room import KEY, OTHER_REF, PNG, REF, SEEN, WIRES, Memory, Shelf, Wire, picture, played, turn
from belino.agents.llm import Agent, Config
from belino.domain.errors import ConfigError
from belino.domain.media import AudioBlock, Block, DocumentBlock, TextBlock
from belino.domain.turn import Compacted, Final, Refused
from belino.testing.files import make_pdf, make_wav
from belino.testing.models import ModelAnswer, ModelServer, ModelToolCall, anthropic, gemini, openai

# Google's SDK holds a docstring that a new Python warns of while it compiles it.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*invalid escape sequence:DeprecationWarning"),
]

PDF, WAV = make_pdf("The ferry leaves at nine"), make_wav(1.0)
LOOKS = ModelAnswer(calls=(ModelToolCall(tool="fetch_media", arguments={"ref": REF}),))
NAMED = f"[Document: timetable.pdf, 1KB, application/pdf, ref:{REF}] when does it leave?"

Found = Callable[[Mapping[str, Any]], list[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """A wire format that takes files."""

    wire: Wire
    documents: Found
    sounds: Found | None = None


READING = {
    "anthropic": Files(wire=WIRES["anthropic"], documents=anthropic.documents),
    "chat": Files(wire=WIRES["chat"], documents=openai.documents),
    "responses": Files(wire=WIRES["responses"], documents=openai.documents),
    "gemini": Files(wire=WIRES["gemini"], documents=gemini.documents, sounds=gemini.sounds),
}
HEARING = {
    "chat": Files(
        wire=replace(WIRES["chat"], model="openai:gpt-audio"), documents=openai.documents, sounds=openai.sounds
    ),
    "gemini": READING["gemini"],
}


def document(data: bytes = PDF, ref: str = REF, *, pages: int = 1) -> DocumentBlock:
    return DocumentBlock(
        mime="application/pdf", data=data, ref=ref, sha256=f"sha of {ref}", tokens=1_700 * pages, pages=pages
    )


def sound(data: bytes = WAV, mime: str = "audio/wav") -> AudioBlock:
    return AudioBlock(mime=mime, data=data, ref=REF, sha256="s", tokens=10, seconds=1.0)


class Given(Shelf):
    """A toolbox that gives these blocks."""

    def __init__(self, *blocks: Block) -> None:
        super().__init__()
        self.blocks = blocks

    async def call(self, name: str, arguments: Mapping[str, object]) -> tuple[Block, ...]:
        self.calls.append(arguments)
        return TextBlock(text="timetable.pdf, as asked."), *self.blocks


@pytest.fixture(params=READING, ids=str)
def reading(request: pytest.FixtureRequest) -> Files:
    return READING[request.param]


@pytest.fixture
async def library(reading: Files) -> AsyncIterator[ModelServer]:
    async with reading.wire.server(key=KEY) as server:
        yield server


@pytest.fixture(params=HEARING, ids=str)
def hearing(request: pytest.FixtureRequest) -> Files:
    return HEARING[request.param]


async def test_a_document_of_a_message_and_of_a_tool_arrives_as_its_bytes(reading: Files, library: ModelServer) -> None:
    other = make_pdf("and returns at six")
    library.script = [LOOKS, SEEN]
    async with reading.wire.agent(library) as agent:
        assert agent.accepts.documents is not None and agent.accepts.in_results
        parts = await played(agent, turn(NAMED, document(other, OTHER_REF), toolbox=Given(document())))
    assert reading.documents(library.asked[0].body) == [other]
    assert reading.documents(library.asked[1].body) == [other, PDF]
    assert not [part for part in parts if isinstance(part, Refused)] and parts[-1] == Final(text="I see a cat.")


async def test_a_document_stays_in_memory_and_the_next_request_begins_with_it(
    reading: Files, library: ModelServer
) -> None:
    memory = Memory()
    async with reading.wire.agent(library) as agent:
        await played(agent, turn(NAMED, document(), memory=memory))
        await played(agent, turn("and back?", memory=memory, number=2))
    assert reading.documents(library.asked[1].body) == [PDF]


async def test_a_document_the_provider_refuses_is_left_out_with_a_note_and_never_sent_again(
    reading: Files, library: ModelServer
) -> None:
    memory, broken = Memory(), b"%PDF-1.4 with no page in it"
    async with reading.wire.agent(library) as agent:
        parts = await played(agent, turn(NAMED, document(broken), memory=memory))
        await played(agent, turn("and?", memory=memory, number=2))
    (refused,) = (part for part in parts if isinstance(part, Refused))
    assert (refused.ref, refused.why) == (REF, "it cannot be read")
    assert [reading.documents(asked.body) for asked in library.asked] == [[broken], [], []]
    assert "[Document: timetable.pdf, left out: it cannot be read]" in json.dumps(library.asked[1].body)


async def test_a_refused_document_takes_the_picture_of_the_same_message_along_only_if_need_be(
    reading: Files, library: ModelServer
) -> None:
    async with reading.wire.agent(library) as agent:
        parts = await played(agent, turn(NAMED, picture(OTHER_REF, PNG)))
        assert not [part for part in parts if isinstance(part, Refused)]
        await played(agent, turn(NAMED, picture(OTHER_REF, PNG), document(b"%PDF-1.4 without a page")))
    assert len(library.asked) == 3


async def test_more_pages_than_a_request_may_have_leave_out_the_older_document(
    reading: Files, library: ModelServer
) -> None:
    memory = Memory()
    async with reading.wire.agent(library, history_tokens=10_000_000) as agent:
        formats = agent.accepts.documents
        assert formats is not None
        await played(agent, turn(NAMED, document(pages=formats.max_pages), memory=memory))
        parts = await played(agent, turn("another", document(ref=OTHER_REF, pages=1), memory=memory, number=2))
    assert Compacted(only=(REF,)) in parts
    assert len(reading.documents(library.asked[1].body)) == 1
    assert "[Document: timetable.pdf, shown at turn 1;" in json.dumps(library.asked[1].body)


async def test_a_sound_of_a_message_and_of_a_tool_arrives_as_its_bytes(hearing: Files) -> None:
    assert hearing.sounds is not None
    async with hearing.wire.server([LOOKS, SEEN], key=KEY) as server, hearing.wire.agent(server) as agent:
        await played(agent, turn("listen", sound(), toolbox=Given(sound())))
    assert [hearing.sounds(asked.body) for asked in server.asked] == [[WAV], [WAV, WAV]]


async def test_a_sound_the_model_does_not_take_is_never_sent() -> None:
    wire = HEARING["chat"].wire
    async with wire.server(key=KEY) as server, wire.agent(server) as agent:
        parts = await played(agent, turn("listen", sound(b"OggS", "audio/ogg")))
    assert Refused(ref=REF, why="its type, audio/ogg") in parts
    assert openai.sounds(server.asked[0].body) == []


async def test_a_broken_sound_is_left_out_and_the_turn_goes_on() -> None:
    wire = HEARING["chat"].wire
    async with wire.server(key=KEY) as server, wire.agent(server) as agent:
        parts = await played(agent, turn("listen", sound(b"no sound at all")))
    assert Refused(ref=REF, why="it cannot be read") in parts and parts[-1] == Final(text="ok")


async def test_another_model_is_sent_none_of_the_files_it_does_not_take() -> None:
    memory = Memory()
    rich, plain = READING["gemini"], WIRES["groq"]
    async with rich.wire.server(key=KEY) as server, rich.wire.agent(server) as agent:
        await played(agent, turn(NAMED, document(), memory=memory))
    async with plain.server(key=KEY) as server, plain.agent(server) as agent:
        parts = await played(agent, turn("and?", memory=memory, number=2))
    assert Compacted(only=(REF,)) in parts
    assert openai.documents(server.asked[0].body) == []
    assert f"fetch_media({REF}) shows it again" in json.dumps(server.asked[0].body)


@pytest.mark.parametrize(
    ("model", "reads", "hears", "sees"),
    [
        ("anthropic:claude-haiku-5-5", True, False, True),
        ("openai:gpt-5-mini", True, False, True),
        ("openai:o3-mini", False, False, False),
        ("openai:gpt-4o-audio-preview", False, True, False),
        ("openai:gpt-audio-mini", False, True, False),
        ("google:gemini-2.5-flash", True, True, True),
        ("google:gemma-3-27b-it", False, False, True),
        ("groq:meta-llama/llama-4-scout-17b-16e-instruct", False, False, True),
        ("ollama:llava", False, False, True),
    ],
)
def test_names_tell_who_reads_and_hears(model: str, reads: bool, hears: bool, sees: bool) -> None:
    from belino.net.redact import Secret

    agent = Agent(Config(model=model, api_key=Secret("KEY", KEY)))
    found = (agent.accepts.documents is not None, agent.accepts.audio is not None, agent.sees_images)
    assert found == (reads, hears, sees)


def test_a_server_of_ones_own_takes_what_the_configuration_says() -> None:
    there: dict[str, Any] = {"model": "openai:qwen-omni", "base_url": "http://127.0.0.1:8000/v1"}
    plain, told = Agent(Config(**there)), Agent(Config(**there, reads_documents=True, hears_audio=True))
    assert plain.accepts.documents is None and plain.accepts.audio is None
    assert told.accepts.documents is not None and told.accepts.audio is not None
    with pytest.raises(ConfigError, match="models of groq take no documents"):
        Config(model="groq:some", base_url="http://127.0.0.1:8000/v1", reads_documents=True)
    with pytest.raises(ConfigError, match='set api = "chat"'):
        Config(**there, api="responses", hears_audio=True)
