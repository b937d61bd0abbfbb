"""Google: speech, pictures and videos become text; what was uploaded is deleted."""

import asyncio
import base64
import json
from typing import Any, cast

import pytest

from belino.domain.errors import ProviderError, RateLimited, Unauthorized
from belino.domain.reading import Material, Skill
from belino.testing import FakeClock
from belino.testing.models import ModelAnswer, ModelFailure, ModelHang, ModelRaw
from belino.testing.models.gemini import GeminiServer
from understanding.providers.remote import FLAC, KEY, MP4, SEEN, Room, quick

LINES = [
    {"start": "00:00", "speaker": "Speaker 1", "text": "Good morning, Ada."},
    {"start": "00:02", "speaker": "Speaker 2", "text": "The train leaves at nine."},
]
HEARD = ModelAnswer(text=json.dumps({"language": "en", "segments": LINES}))


def server(google: Room) -> GeminiServer:
    return cast("GeminiServer", google.server)


def video(google: Room) -> Material:
    return google.file("clip.mp4", MP4, "video/mp4", seconds=30.0)


def parts(google: Room, number: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = google.server.asked[number].body["contents"][0]["parts"]
    return found


async def test_google_keeps_the_contract(google: Room) -> None:
    seen = ModelAnswer(text=SEEN)
    checked = await google.keeps_the_contract(
        {Skill.TRANSCRIBE: HEARD, Skill.DESCRIBE: seen, Skill.DESCRIBE_VIDEO: seen, Skill.READ_TEXT: seen},
        {
            Skill.TRANSCRIBE: [google.sound],
            Skill.DESCRIBE: google.frames,
            Skill.DESCRIBE_VIDEO: [video(google)],
            Skill.READ_TEXT: [google.picture],
        },
        expects={Skill.TRANSCRIBE: "Good morning, Ada. The train"},
    )
    assert len(checked) == 9


async def test_speech_comes_back_in_segments_with_times_and_speakers(google: Room) -> None:
    google.server.script = [HEARD]
    read = await google.provider().read(Skill.TRANSCRIBE, [google.sound], quick(language="en"))
    (asked,) = google.server.asked
    assert asked.headers["x-goog-api-key"] == KEY
    assert asked.path == "/v1beta/models/gemini-3.5-flash-lite:generateContent"
    assert base64.b64decode(parts(google)[0]["inlineData"]["data"]) == FLAC
    assert parts(google)[0]["inlineData"]["mimeType"] == "audio/flac"
    assert asked.body["generationConfig"]["responseMimeType"] == "application/json"
    assert [(s.start, s.end, s.speaker) for s in read.segments] == [(0, 2, "Speaker 1"), (2, 2, "Speaker 2")]
    assert (read.text, read.language, read.tokens) == ("Good morning, Ada. The train leaves at nine.", "en", 120)


async def test_a_transcript_that_breaks_off_is_an_error(google: Room) -> None:
    google.server.script = [ModelAnswer(text=HEARD.text[:40])]
    with pytest.raises(ProviderError, match="not in the requested form"):
        await google.provider().read(Skill.TRANSCRIBE, [google.sound], quick())


async def test_a_small_video_is_sent_as_one_file(google: Room) -> None:
    google.server.script = [ModelAnswer(text=SEEN)]
    read = await google.provider().read(Skill.DESCRIBE_VIDEO, [video(google)], quick(prompt="What is said?"))
    assert base64.b64decode(parts(google)[0]["inlineData"]["data"]) == MP4
    assert parts(google)[-1]["text"].startswith("What is said?")
    assert (read.text, server(google).uploads) == (SEEN, [])


async def test_a_large_video_is_uploaded_awaited_and_deleted(google: Room) -> None:
    clock = FakeClock()
    server(google).polls = 2
    google.server.script = [ModelAnswer(text=SEEN)]
    provider = google.provider(clock=clock, inline_bytes=1000)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(provider.read(Skill.DESCRIBE_VIDEO, [video(google)], quick()))
        await clock.wake(2.0)
        await clock.wake(2.0)
    assert reading.result().text == SEEN
    (uploaded,) = server(google).uploads
    assert (uploaded.content, uploaded.mime) == (MP4, "video/mp4")
    assert parts(google)[0]["fileData"] == {
        "mimeType": "video/mp4",
        "fileUri": f"{google.server.url}/v1beta/{uploaded.name}",
    }
    assert (server(google).files, server(google).deleted) == ({}, [uploaded.name])


@pytest.mark.parametrize(
    "reply", [ModelFailure(status=500), ModelFailure(status=429), ModelRaw(body=b"{"), ModelRaw(body=b"{}")]
)
async def test_an_upload_is_deleted_after_a_failure(google: Room, reply: Any) -> None:
    google.server.script = [reply]
    with pytest.raises((ProviderError, RateLimited)):
        await google.provider(inline_bytes=0).read(Skill.DESCRIBE_VIDEO, [video(google)], quick())
    assert (len(server(google).uploads), server(google).files) == (1, {})


async def test_an_upload_is_deleted_when_the_reading_is_cancelled(google: Room) -> None:
    google.server.script = [ModelHang()]
    async with asyncio.TaskGroup() as group:
        provider = google.provider(inline_bytes=0)
        reading = group.create_task(provider.read(Skill.DESCRIBE_VIDEO, [video(google)], quick()))
        await google.server.arrived.wait()
        reading.cancel()
    assert (len(server(google).uploads), server(google).files) == (1, {})


async def test_a_deletion_that_hangs_does_not_cost_the_reading(google: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belino.understanding.providers.google.DELETE_SECONDS", 0.05)
    clock = FakeClock()
    server(google).deletion_hangs = True
    google.server.script = [ModelAnswer(text=SEEN)]
    provider = google.provider(clock=clock, inline_bytes=0)
    assert (await provider.read(Skill.DESCRIBE_VIDEO, [video(google)], quick())).text == SEEN
    assert len(server(google).files) == 1


async def test_a_deletion_that_failed_is_repeated_before_the_next_reading_and_on_closing(google: Room) -> None:
    google.server.script = [ModelAnswer(text=SEEN)] * 3
    provider: Any = google.provider(inline_bytes=0)
    server(google).deletion_fails = True
    await provider.read(Skill.DESCRIBE_VIDEO, [video(google)], quick())
    await provider.read(Skill.DESCRIBE_VIDEO, [video(google)], quick())
    assert len(server(google).files) == 2
    server(google).deletion_fails = False
    await provider.read(Skill.DESCRIBE_VIDEO, [video(google)], quick())
    assert server(google).files == {}
    server(google).deletion_fails = True
    await provider.read(Skill.DESCRIBE_VIDEO, [video(google)], quick())
    server(google).deletion_fails = False
    await provider.close()
    assert server(google).files == {}


async def test_a_video_is_not_uploaded_to_a_place_that_is_not_googles(google: Room) -> None:
    server(google).upload_host = "http://127.0.0.1:9"
    with pytest.raises(ProviderError, match="no place of its own"):
        await google.provider(inline_bytes=0).read(Skill.DESCRIBE_VIDEO, [video(google)], quick())
    assert server(google).files == {}


async def test_googles_way_of_refusing_a_key_and_of_asking_to_wait(google: Room) -> None:
    wait = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
    told = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [wait]}}
    google.server.script = [
        ModelFailure(status=400, kind="API_KEY_INVALID", message=f"API key not valid: {KEY}"),
        ModelRaw(body=json.dumps(told).encode(), status=429),
    ]
    with pytest.raises(Unauthorized, match="API_KEY_INVALID"):
        await google.provider().read(Skill.DESCRIBE, [google.picture], quick())
    with pytest.raises(RateLimited) as limited:
        await google.provider().read(Skill.DESCRIBE, [google.picture], quick())
    assert limited.value.retry_after == 34.5


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "blocked"),
        ({"candidates": [{"finishReason": "PROHIBITED_CONTENT"}]}, "declined"),
        ({"candidates": [{"finishReason": "MAX_TOKENS"}]}, "used up its tokens"),
    ],
)
async def test_a_blocked_answer_is_not_taken_for_an_empty_picture(
    google: Room, answer: dict[str, Any], reason: str
) -> None:
    google.server.script = [ModelRaw(body=json.dumps(answer).encode())]
    with pytest.raises(ProviderError, match=reason):
        await google.provider().read(Skill.DESCRIBE, [google.picture], quick())


async def test_thoughts_are_not_part_of_googles_text(google: Room) -> None:
    said = [{"text": "hm", "thought": True}, {"text": SEEN}]
    body = {"candidates": [{"content": {"parts": said}, "finishReason": "STOP"}]}
    google.server.script = [ModelRaw(body=json.dumps(body).encode())]
    assert (await google.provider().read(Skill.DESCRIBE, [google.picture], quick())).text == SEEN
