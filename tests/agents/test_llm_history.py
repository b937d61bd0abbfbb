"""What a model remembers of a conversation, turn by turn, and what it is sent of it."""

import json
from itertools import pairwise

import pytest

from agents.llm_room import (
    LOOKS,
    OTHER_PNG,
    OTHER_REF,
    PHOTO,
    PNG,
    REF,
    SEEN,
    WIRES,
    Memory,
    Wire,
    messages_in,
    picture,
    played,
    turn,
)
from belino.domain.errors import AgentError, MemoryLost
from belino.domain.turn import Compacted, Final, ReplyPart
from belino.testing.models import ModelAnswer, ModelFailure, ModelServer

# Google's SDK holds a docstring that a new Python warns of while it compiles it.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*invalid escape sequence:DeprecationWarning"),
]


async def test_another_agent_remembers_the_conversation_with_a_byte_equal_beginning(
    wire: Wire, server: ModelServer
) -> None:
    memory = Memory()
    server.script = [LOOKS, SEEN, ModelAnswer(text="As I said, a cat.")]
    async with wire.agent(server) as agent:
        await played(agent, turn(PHOTO, memory=memory))
    async with wire.agent(server) as agent:
        parts = await played(agent, turn("really?", memory=memory, number=2))
    assert parts[-1] == Final(text="As I said, a cat.")
    before, after = (messages_in(asked) for asked in server.asked[1:])
    assert after[: len(before)] == before
    assert wire.images(server.asked[2].body) == [PNG]


async def test_every_request_begins_with_the_one_before_and_an_old_picture_stays_in_it(
    wire: Wire, server: ModelServer
) -> None:
    memory = Memory()
    server.script = [LOOKS, *(ModelAnswer(text=f"answer {number}") for number in range(9))]
    parts: list[ReplyPart] = []
    async with wire.agent(server) as agent:
        for number in range(1, 9):
            parts += await played(agent, turn(PHOTO if number == 1 else "go on", memory=memory, number=number))
    asked = [messages_in(request) for request in server.asked]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(asked))
    assert [len(wire.images(request.body)) for request in server.asked] == [0, *[1] * 8]
    assert not [part for part in parts if isinstance(part, Compacted)]


async def test_in_a_full_memory_older_pictures_become_lines_that_tell_how_to_see_them_again(
    wire: Wire, server: ModelServer
) -> None:
    memory = Memory()
    gone: list[tuple[int, Compacted]] = []
    async with wire.agent(server, history_tokens=2000) as agent:
        for number in range(1, 7):
            blocks = (PHOTO, picture()) if number == 1 else ("go on " + "word " * 120,)
            parts = await played(agent, turn(*blocks, memory=memory, number=number))
            gone += [(number, part) for part in parts if isinstance(part, Compacted)]
    # Told with the turn after which it is gone: the next turn's toolbox shows it again.
    assert gone == [(4, Compacted(only=(REF,)))]
    assert [len(wire.images(asked.body)) for asked in server.asked] == [1, 1, 1, 1, 0, 0]
    marker = f"[Image: photo.jpg, shown at turn 1; fetch_media({REF}) shows it again]"
    assert marker in json.dumps(server.asked[4].body)
    assert json.dumps(server.asked[5].body).count(marker) == 1


async def test_the_oldest_turns_leave_a_full_memory_and_their_pictures_are_told(chat: ModelServer) -> None:
    memory = Memory()
    told: list[Compacted] = []
    async with WIRES["chat"].agent(chat, history_tokens=2500, image_turns=100) as agent:
        for number in range(1, 12):
            blocks = (PHOTO, picture()) if number == 1 else (f"turn {number} " + "word " * 200,)
            parts = await played(agent, turn(*blocks, memory=memory, number=number))
            told += [part for part in parts if isinstance(part, Compacted)]
    assert len(told) >= 1 and all(part.only == part.kept == () for part in told)
    assert sorted(part.first or 0 for part in told) == [part.first for part in told] and told[0].first != 1
    lengths = [len(messages_in(asked)) for asked in chat.asked]
    assert max(lengths) < 22
    # Cut deep and seldom: between two cuts every request begins with the one before.
    cuts = sum(later <= earlier for earlier, later in pairwise(lengths))
    assert 1 <= cuts <= 4


TOO_LONG = ModelFailure(
    status=400, kind="context_length_exceeded", message="This model's maximum context length is 8192 tokens."
)


async def test_a_conversation_too_long_for_the_model_is_begun_anew(chat: ModelServer) -> None:
    memory = Memory()
    chat.script = [SEEN, TOO_LONG, TOO_LONG]
    async with WIRES["chat"].agent(chat) as agent:
        await played(agent, turn(PHOTO, picture(), memory=memory))
        with pytest.raises(MemoryLost, match="lower history_tokens"):
            await played(agent, turn("and?", memory=memory, number=2))
        with pytest.raises(AgentError, match="longer than the model takes") as caught:
            await played(agent, turn("and?", number=2))
    assert not isinstance(caught.value, MemoryLost)


async def test_a_turn_that_grows_too_long_on_the_way_goes_on_without_the_past(chat: ModelServer) -> None:
    memory = Memory()
    chat.script = [SEEN, LOOKS, TOO_LONG, SEEN]
    async with WIRES["chat"].agent(chat) as agent:
        await played(agent, turn("old", picture(OTHER_REF, OTHER_PNG), memory=memory))
        parts = await played(agent, turn(PHOTO, memory=memory, number=2))
    assert Compacted(first=2, kept=(REF,)) in parts
    assert parts[-1] == Final(text="I see a cat.")
    assert WIRES["chat"].images(chat.asked[3].body) == [PNG]
    assert "Earlier turns of this conversation were left out" in json.dumps(chat.asked[3].body)


async def test_a_memory_that_cannot_be_read_is_told_before_anything_is_asked(chat: ModelServer) -> None:
    memory = Memory()
    async with WIRES["chat"].agent(chat) as agent:
        for held in (
            b"\xff",
            b"[]",
            b'{"version":99,"turns":[]}',
            b'{"version":1,"turns":[{"number":1,"messages":[{}]}]}',
        ):
            memory.held = held
            with pytest.raises(MemoryLost):
                await played(agent, turn("hi", memory=memory))
    assert not chat.asked


async def test_a_model_that_no_longer_sees_is_sent_no_old_picture(chat: ModelServer) -> None:
    memory = Memory()
    async with WIRES["chat"].agent(chat) as agent:
        await played(agent, turn(PHOTO, picture(), memory=memory))
    async with WIRES["chat"].agent(chat, sees_images=False) as agent:
        parts = await played(agent, turn("and?", memory=memory, number=2))
    assert parts[0] == Compacted(only=(REF,))
    assert WIRES["chat"].images(chat.asked[1].body) == []
