"""The scripted Messages API keeps the rules its documentation states."""

import base64
import io
import json
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest

from belino.testing.files import make_png
from belino.testing.models import ModelAnswer, ModelFailure, ModelToolCall
from belino.testing.models.anthropic import MessagesServer, images, texts


def image(data: bytes, mime: str = "image/png") -> dict[str, Any]:
    source = {"type": "base64", "media_type": mime, "data": base64.b64encode(data).decode()}
    return {"type": "image", "source": source}


def user(*content: Mapping[str, Any] | str) -> dict[str, Any]:
    blocks = [{"type": "text", "text": block} if isinstance(block, str) else block for block in content]
    return {"role": "user", "content": blocks}


async def post(server: MessagesServer, *messages: Mapping[str, Any], **more: Any) -> tuple[int, str]:
    body = {"model": "claude-test", "max_tokens": 100, "messages": messages, **more}
    sent = io.BytesIO(json.dumps(body).encode())
    headers = {"x-api-key": "key-one", "anthropic-version": "2023-06-01", "content-type": "application/json"}
    url = f"{server.url}/v1/messages"
    async with aiohttp.ClientSession() as http, http.post(url, data=sent, headers=headers) as answer:
        return answer.status, await answer.text()


async def test_a_stream_has_the_documented_events_in_their_order() -> None:
    script = [
        ModelAnswer(text="Hello there", calls=(ModelToolCall(tool="look", arguments={"ref": "a"}),), input_tokens=7)
    ]
    async with MessagesServer(script) as server:
        status, told = await post(server, user("hi"), stream=True)
    events = [json.loads(line.removeprefix("data: ")) for line in told.splitlines() if line.startswith("data: ")]
    kinds = [event["type"] for event in events]
    assert status == 200 and kinds[:2] == ["message_start", "ping"] and kinds[-2:] == ["message_delta", "message_stop"]
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 2
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(delta.get("text", "") for delta in deltas) == "Hello there"
    assert json.loads("".join(delta.get("partial_json", "") for delta in deltas)) == {"ref": "a"}
    assert events[0]["message"]["usage"]["input_tokens"] == 7 and events[-2]["delta"]["stop_reason"] == "tool_use"


async def test_the_same_answer_comes_whole_without_stream() -> None:
    async with MessagesServer([ModelAnswer(text="Hello")]) as server:
        status, told = await post(server, user("hi", image(make_png(3, 4))))
        assert images(server.asked[0].body) == [make_png(3, 4)] and texts(server.asked[0].body) == "hi"
    message = json.loads(told)
    assert (status, message["content"], message["stop_reason"]) == (
        200,
        [{"type": "text", "text": "Hello"}],
        "end_turn",
    )


CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "seen"}


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "at least one message is required"),
        ([CALL], 'first message must use the "user" role'),
        ([user()], "non-empty content"),
        ([user("hi"), CALL, user("no")], "`tool_use` ids were found without `tool_result` blocks"),
        ([user("hi"), user(RESULT)], "unexpected `tool_use_id` found"),
        ([user(image(make_png(2, 2), "image/bmp"))], "media_type: Input should be"),
        ([user(image(b"not a picture"))], "Could not process image"),
        ([user("hi", image(make_png(8001, 1)))], "messages.0.content.1.image.source.base64.data: At least one of"),
        ([user(*[image(make_png(2001, 1))] * 21)], "for many-image requests: 2000 pixels"),
        ([user(image(make_png(2, 2) + bytes(4_000_000)))], "image exceeds 5 MB maximum"),
    ],
    ids=["none", "first", "empty", "unanswered", "unasked", "mime", "broken", "side", "many", "bytes"],
)
async def test_what_the_api_refuses_is_refused_in_its_words(messages: list[dict[str, Any]], words: str) -> None:
    async with MessagesServer() as server:
        status, told = await post(server, *messages)
        assert len(server.asked) == 1
    error = json.loads(told)["error"]
    assert (status, error["type"]) == (400, "invalid_request_error") and words in error["message"]


async def test_keys_and_scripted_failures_are_answered_in_the_error_format() -> None:
    failing = ModelFailure(status=529, kind="overloaded_error", message="Overloaded", headers={"retry-after": "1"})
    async with MessagesServer([failing], key="key-one") as server:
        assert (await post(server, user("hi"), CALL, user(RESULT)))[0] == 529
        server.key = "another"
        status, told = await post(server, user("hi"))
    assert status == 401 and json.loads(told)["error"]["type"] == "authentication_error"
