"""Groq: Whisper for speech, and a vision model with small requests."""

import json

import pytest

from belino.domain.errors import ProviderError
from belino.domain.reading import Skill
from belino.testing import make_jpeg
from belino.testing.models import ModelAnswer, ModelRaw
from belino.testing.models.openai import images
from belino.understanding.providers.groq import IMAGE_BYTES, OFFICIAL_URL
from understanding.providers.remote import KEY, SEEN, SPEECH, Room, quick


async def test_groq_keeps_the_contract(groq: Room) -> None:
    checked = await groq.keeps_the_contract(
        {Skill.TRANSCRIBE: SPEECH, Skill.DESCRIBE: ModelAnswer(text=SEEN), Skill.READ_TEXT: ModelAnswer(text=SEEN)},
        {Skill.TRANSCRIBE: [groq.sound], Skill.DESCRIBE: groq.frames, Skill.READ_TEXT: [groq.picture]},
    )
    assert len(checked) == 9


async def test_speech_is_read_by_whisper_with_times(groq: Room) -> None:
    groq.server.script = [SPEECH]
    read = await groq.provider().read(Skill.TRANSCRIBE, [groq.sound], quick(language="en"))
    (asked,) = groq.server.asked
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert (asked.body["model"], asked.body["response_format"]) == ("whisper-large-v3-turbo", "verbose_json")
    assert [segment.start for segment in read.segments] == [0.5, 2.4]


async def test_only_the_default_model_is_told_not_to_think(groq: Room) -> None:
    groq.server.script = [ModelAnswer(text=SEEN)] * 2
    await groq.provider().read(Skill.DESCRIBE, [groq.picture], quick())
    await groq.provider(model="other/model").read(Skill.DESCRIBE, [groq.picture], quick())
    assert [asked.body.get("reasoning_effort") for asked in groq.server.asked] == ["none", None]
    assert groq.server.asked[0].body["model"] == "qwen/qwen3.8-27b"


async def test_of_many_frames_five_are_sent_from_beginning_to_end(groq: Room) -> None:
    groq.server.script = [ModelAnswer(text=SEEN)]
    frames = [groq.file(f"f{n}.jpg", make_jpeg(16 + n, 16), "image/jpeg", at=float(n)) for n in range(12)]
    await groq.provider().read(Skill.DESCRIBE, frames, quick())
    (asked,) = groq.server.asked
    assert images(asked.body) == [frames[number].path.read_bytes() for number in (0, 2, 4, 7, 9)]


async def test_a_picture_over_its_limit_is_not_sent(groq: Room) -> None:
    picture = groq.file("large.jpg", bytes(IMAGE_BYTES + 1), "image/jpeg")
    with pytest.raises(ProviderError, match="at most 3000000"):
        await groq.provider(base_url=OFFICIAL_URL).read(Skill.DESCRIBE, [picture], quick())


async def test_a_model_that_is_gone_is_told_by_its_code(groq: Room) -> None:
    told = {"error": {"message": "gone", "type": "invalid_request_error", "code": "model_decommissioned"}}
    groq.server.script = [ModelRaw(body=json.dumps(told).encode(), status=400)]
    with pytest.raises(ProviderError, match="status 400, model_decommissioned"):
        await groq.provider().read(Skill.DESCRIBE, [groq.picture], quick())
