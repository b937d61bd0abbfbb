"""What goes wrong while Claude answers is told, so that `explain` shows it."""

from pathlib import Path

import pytest

from agents.claude_room import Box, final, only, settled
from belino.domain.turn import Mishap
from belino.testing.models import ModelAnswer, ModelFailure, ModelReply, ModelToolCall
from belino.testing.models.anthropic import MessagesServer

pytestmark = pytest.mark.slow


async def test_a_retry_a_call_of_no_tool_and_a_call_with_broken_arguments_are_told(tmp_path: Path) -> None:
    down = ModelFailure(status=529, kind="overloaded_error", message="busy", headers={"Retry-After": "0"})
    calls = (
        ModelToolCall(tool="bash", arguments={"command": "ls"}),
        ModelToolCall(tool="mcp__belino__fetch_media", arguments={"ref": {"no": "text"}}),
    )
    script: list[ModelReply] = [down, ModelAnswer(calls=calls), ModelAnswer(text="done")]
    async with MessagesServer(script) as server, settled(tmp_path, server, retries=1) as room:
        parts = await room().say("hi", box=Box())
    assert final(parts) == "done"
    told = [(part.what, part.tool) for part in only(Mishap, parts)]
    assert told[:2] == [("asked again", ""), ("unknown tool", "bash")]
    assert next(part.why for part in only(Mishap, parts)) == "the model's API failed (529)"
