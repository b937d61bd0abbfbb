"""Compaction of Claude's memory: the question that it happens at, and those after it, have their pictures."""

from pathlib import Path

import pytest

from agents.claude_room import Memory, final, only, picture, settled
from belino.domain.media import TextBlock
from belino.domain.turn import Compacted, ReplyPart, TextDelta
from belino.testing.files import make_png
from belino.testing.models import ModelAnswer, ModelReply, ModelRequest
from belino.testing.models.anthropic import MessagesServer, images, texts

pytestmark = pytest.mark.slow


def last_words(asked: ModelRequest) -> str:
    return texts({"messages": asked.body["messages"][-1:]})


async def test_after_compaction_a_picture_that_is_shown_again_is_in_the_next_request(tmp_path: Path) -> None:
    shown, memory = make_png(60, 50), Memory()

    def script(asked: ModelRequest) -> ModelReply:
        if "TEXT ONLY" in last_words(asked):
            return ModelAnswer(text="<summary>They spoke of a picture.</summary>")
        return ModelAnswer(text="fine", input_tokens=150_000)

    async with MessagesServer(script) as server:
        async with settled(tmp_path, server, compact_tokens=100_000) as room:
            here = room(memory=memory)
            await here.say("look", picture(shown))
            compacted: list[ReplyPart] = []
            for number in range(6):
                compacted = await here.say(f"go on {number}")
                if only(Compacted, compacted):
                    break
            assert only(Compacted, compacted) and final(compacted) == "fine"
            assert images(server.asked[-1].body) == []
            again = "[Post-compaction context recovery: re-attaching 1 media items from this thread]"
            await here.say(again, picture(shown), "what was it?")
            assert images(server.asked[-1].body) == [shown] and again in last_words(server.asked[-1])
        async with settled(tmp_path, server, compact_tokens=0) as room:
            await room(memory=memory).say("after a restart")
    assert images(server.asked[-1].body) == [shown]
    assert "They spoke of a picture" in texts(server.asked[-1].body)


async def test_the_question_that_is_compacted_at_its_start_is_asked_with_the_pictures(tmp_path: Path) -> None:
    shown, memory = make_png(60, 50), Memory()

    def script(asked: ModelRequest) -> ModelReply:
        if "TEXT ONLY" in last_words(asked):
            return ModelAnswer(text="<summary>They spoke of a picture.</summary>")
        words = "red" if images(asked.body) == [shown] else "I do not see it"
        is_short = "They spoke of a picture." in texts(asked.body)
        return ModelAnswer(text=words, input_tokens=20_000 if is_short else 150_000)

    async with MessagesServer(script) as server:
        async with settled(tmp_path, server, compact_tokens=100_000) as room:
            here = room(memory=memory)
            await here.say("look", picture(shown))
            here.lost = (TextBlock(text="[Recovery]"), picture(shown))
            parts: list[ReplyPart] = []
            for number in range(6):
                parts = await here.say(f"what colour was it? {number}")
                if only(Compacted, parts):
                    break
            asked = server.asked[-1]
        here.lost = ()
        async with settled(tmp_path, server, compact_tokens=0) as room:
            assert final(await room(memory=memory).say("after a restart")) == "red"
    assert len(only(Compacted, parts)) == 1 and final(parts) == "red"
    assert not [part for part in only(TextDelta, parts) if "see" in part.text]
    assert images(asked.body) == [shown] and texts(asked.body).count("what colour was it? 1") == 1
