"""Anthropic: pictures become text by the Messages API."""

import json

import pytest

from belino.domain.errors import ProviderError, RateLimited
from belino.domain.reading import Skill
from belino.testing.models import ModelAnswer, ModelFailure, ModelRaw
from belino.testing.models.anthropic import images
from belino.understanding.providers.anthropic import IMAGE_BYTES, OFFICIAL_URL
from understanding.providers.remote import KEY, SEEN, Room, quick


async def test_anthropic_keeps_the_contract(anthropic: Room) -> None:
    checked = await anthropic.keeps_the_contract(
        {Skill.DESCRIBE: ModelAnswer(text=SEEN), Skill.READ_TEXT: ModelAnswer(text=SEEN)},
        {Skill.DESCRIBE: anthropic.frames, Skill.READ_TEXT: [anthropic.picture]},
    )
    assert len(checked) == 9


async def test_pictures_are_sent_as_the_messages_api_documents_it(anthropic: Room) -> None:
    anthropic.server.script = [ModelAnswer(text=SEEN, input_tokens=80, output_tokens=12)]
    read = await anthropic.provider().read(Skill.DESCRIBE, anthropic.frames, quick(max_chars=200))
    (asked,) = anthropic.server.asked
    assert (asked.headers["x-api-key"], asked.headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert (asked.path, asked.body["model"]) == ("/v1/messages", "claude-haiku-5-5")
    assert images(asked.body) == [frame.path.read_bytes() for frame in anthropic.frames]
    kinds = [block["type"] for block in asked.body["messages"][0]["content"]]
    assert kinds == ["text", "image"] * 3 + ["text"]
    assert (read.text, read.model, read.tokens) == (SEEN, "claude-haiku-5-5", 92)


async def test_an_overloaded_server_asks_to_wait(anthropic: Room) -> None:
    anthropic.server.script = [ModelFailure(status=529, kind="overloaded_error")]
    with pytest.raises(RateLimited, match="status 529, overloaded_error"):
        await anthropic.provider().read(Skill.DESCRIBE, [anthropic.picture], quick())


async def test_thinking_is_not_part_of_the_text_and_a_refusal_is_an_error(anthropic: Room) -> None:
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": SEEN}]
    said = [
        {"content": blocks, "stop_reason": "end_turn"},
        {"content": [], "stop_reason": "refusal"},
        {"content": blocks[:1], "stop_reason": "max_tokens"},
    ]
    anthropic.server.script = [ModelRaw(body=json.dumps(each).encode()) for each in said]
    provider = anthropic.provider()
    assert (await provider.read(Skill.DESCRIBE, [anthropic.picture], quick())).text == SEEN
    with pytest.raises(ProviderError, match="declined"):
        await provider.read(Skill.DESCRIBE, [anthropic.picture], quick())
    with pytest.raises(ProviderError, match="used up its tokens"):
        await provider.read(Skill.DESCRIBE, [anthropic.picture], quick())


async def test_a_picture_over_its_limit_is_not_sent_to_anthropic(anthropic: Room) -> None:
    picture = anthropic.file("large.png", bytes(IMAGE_BYTES + 1), "image/png")
    with pytest.raises(ProviderError, match="send a smaller part"):
        await anthropic.provider(base_url=OFFICIAL_URL).read(Skill.DESCRIBE, [picture], quick())


async def test_what_the_server_refuses_is_told_by_its_type(anthropic: Room) -> None:
    broken = anthropic.file("broken.png", b"not a picture at all", "image/png")
    with pytest.raises(ProviderError, match="status 400, invalid_request_error"):
        await anthropic.provider().read(Skill.DESCRIBE, [broken], quick())
