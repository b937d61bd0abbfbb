"""OpenAI's API, and servers that have the same: speech and pictures become text."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from belino.domain.errors import ConfigError, ProviderError, Unauthorized
from belino.domain.reading import Skill
from belino.testing import make_jpeg
from belino.testing.models import ModelAnswer, ModelFailure, ModelRaw, ModelSpeech, SpokenPart
from belino.testing.models.openai import images
from belino.understanding.providers.openai import OFFICIAL_URL, SPEECH_BYTES, Config
from understanding.providers.remote import FLAC, KEY, SEEN, SPEECH, Room, quick


async def test_openai_keeps_the_contract(openai: Room) -> None:
    checked = await openai.keeps_the_contract(
        {Skill.TRANSCRIBE: SPEECH, Skill.DESCRIBE: ModelAnswer(text=SEEN), Skill.READ_TEXT: ModelAnswer(text=SEEN)},
        {
            Skill.TRANSCRIBE: [openai.sound],
            Skill.DESCRIBE: openai.frames,
            Skill.READ_TEXT: [openai.picture],
        },
    )
    assert len(checked) == 9


async def test_a_recording_is_sent_as_a_form_with_its_language_and_prompt(openai: Room) -> None:
    openai.server.script = [SPEECH]
    options = quick(prompt="Names: Ada", language="de-AT")
    read = await openai.provider().read(Skill.TRANSCRIBE, [openai.sound], options)
    (asked,) = openai.server.asked
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert (asked.raw, asked.file_name, asked.mime) == (FLAC, "audio.flac", "audio/flac")
    fields = {"model": "gpt-transcribe", "response_format": "json", "prompt": "Names: Ada", "languages[]": "de"}
    assert asked.body == fields
    assert (read.text, read.model, read.tokens) == (SPEECH.text, "gpt-transcribe", 59)
    assert (read.language, read.segments) == ("en", ())


async def test_whisper_gives_times_and_names_the_language(openai: Room) -> None:
    openai.server.script = [ModelSpeech(parts=SPEECH.parts, language="de")]
    read = await openai.provider(model="whisper-1").read(Skill.TRANSCRIBE, [openai.sound], quick(language="de"))
    assert openai.server.asked[0].body["timestamp_granularities[]"] == "segment"
    assert openai.server.asked[0].body["language"] == "de"
    assert [(s.text, s.start, s.end) for s in read.segments] == [(p.text, p.start, p.end) for p in SPEECH.parts]
    assert (read.language, read.uncertain, read.tokens) == ("de", False, None)


async def test_words_that_whisper_invents_for_silence_are_dropped(openai: Room) -> None:
    openai.server.script = [ModelSpeech(parts=SPEECH.parts[:1], confidence=0.2, no_speech=0.9)]
    read = await openai.provider(model="whisper-1").read(Skill.TRANSCRIBE, [openai.sound], quick())
    assert (read.text, read.segments, read.uncertain) == ("", (), False)


async def test_a_transcript_that_whisper_does_not_trust_is_uncertain(openai: Room) -> None:
    openai.server.script = [ModelSpeech(parts=SPEECH.parts, confidence=0.3)]
    read = await openai.provider(model="whisper-1").read(Skill.TRANSCRIBE, [openai.sound], quick())
    assert (read.text, read.uncertain) == (SPEECH.text, True)


async def test_speakers_are_kept_where_the_model_tells_them_apart(openai: Room) -> None:
    openai.server.script = [SPEECH, ModelSpeech(parts=SPEECH.parts[:1])]
    provider = openai.provider(model="gpt-4o-transcribe-diarize")
    read = await provider.read(Skill.TRANSCRIBE, [openai.sound], quick(prompt="Names: Ada"))
    assert [segment.speaker for segment in read.segments] == ["A", "B"]
    assert "prompt" not in openai.server.asked[0].body
    alone = await provider.read(Skill.TRANSCRIBE, [openai.sound], quick())
    assert [segment.speaker for segment in alone.segments] == [""]


async def test_times_of_another_world_are_brought_back_into_the_recording(openai: Room) -> None:
    parts = [
        {"text": "one", "start": -3, "end": 1e300},
        {"text": "two", "start": 1.0, "end": "late"},
        {"text": "three", "start": 0.5, "end": 0.2},
        {"text": 4, "start": 2, "end": 3},
        "five",
    ]
    body = json.dumps({"text": "one two three", "segments": parts, "language": "k" * 5000}).encode()
    openai.server.script = [ModelRaw(body=body)]
    read = await openai.provider(model="whisper-1").read(Skill.TRANSCRIBE, [openai.sound], quick())
    assert [(s.text, s.start, s.end) for s in read.segments] == [("one", 0, 6), ("two", 1, 1), ("three", 1, 1)]
    assert read.language is None


async def test_a_server_that_only_has_words_gives_segments_at_their_pauses(openai: Room) -> None:
    spoken = [("Good", 0.0, 0.4), ("morning", 0.5, 0.9), ("Ada", 2.5, 2.9)]
    listed = [{"word": word, "start": start, "end": end} for word, start, end in spoken]
    openai.server.script = [ModelRaw(body=json.dumps({"text": "Good morning Ada", "words": listed}).encode())]
    read = await openai.provider(model="my-model").read(Skill.TRANSCRIBE, [openai.sound], quick())
    assert [(s.text, s.start, s.end) for s in read.segments] == [("Good morning", 0.0, 0.9), ("Ada", 2.5, 2.9)]


async def test_pictures_of_a_server_of_ones_own_go_to_chat_completions(openai: Room) -> None:
    openai.server.script = [ModelAnswer(text=f"<think>hm</think>{SEEN}", input_tokens=70, output_tokens=9)]
    options = quick(max_chars=500, language="de")
    read = await openai.provider(model="llava").read(Skill.DESCRIBE, [openai.picture], options)
    (asked,) = openai.server.asked
    assert asked.path == "/v1/chat/completions"
    assert images(asked.body) == [openai.picture.path.read_bytes()]
    (message,) = asked.body["messages"]
    assert "at most 500 characters" in message["content"][-1]["text"]
    assert "in the language de" in message["content"][-1]["text"]
    assert "max_tokens" in asked.body
    assert (read.text, read.tokens) == (SEEN, 79)


async def test_the_frames_of_a_video_come_with_their_times(openai: Room) -> None:
    openai.server.script = [ModelAnswer(text=SEEN)]
    await openai.provider().read(Skill.DESCRIBE, openai.frames, quick(prompt="What happens?"))
    (message,) = openai.server.asked[0].body["messages"]
    labels = [part["text"] for part in message["content"][:-1] if part["type"] == "text"]
    assert labels == ["0:00", "1:05", "2:10"]
    assert message["content"][-1]["text"].startswith("What happens?\n")


async def test_responses_are_asked_not_to_be_stored(openai: Room) -> None:
    openai.server.script = [ModelAnswer(text=SEEN)]
    read = await openai.provider(api="responses").read(Skill.READ_TEXT, [openai.picture], quick())
    (asked,) = openai.server.asked
    assert (asked.path, asked.body["store"], asked.body["model"]) == ("/v1/responses", False, "gpt-6-luna")
    assert asked.body["reasoning"] == {"effort": "none"}
    assert images(asked.body) == [openai.picture.path.read_bytes()]
    assert (read.text, read.tokens) == (SEEN, 120)


async def test_a_response_that_failed_is_an_error(openai: Room) -> None:
    openai.server.script = [ModelFailure(status=200, kind="server_error")]
    with pytest.raises(ProviderError, match="the model failed"):
        await openai.provider(api="responses").read(Skill.DESCRIBE, [openai.picture], quick())


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"content": None, "refusal": "I cannot look at this."}, "declined"),
        ({"role": "assistant"}, "no message"),
    ],
)
async def test_a_refusal_is_not_taken_for_an_empty_picture(
    openai: Room, message: Mapping[str, Any], reason: str
) -> None:
    body = {"choices": [{"message": message, "finish_reason": "stop"}]}
    openai.server.script = [ModelRaw(body=json.dumps(body).encode())]
    with pytest.raises(ProviderError, match=reason):
        await openai.provider().read(Skill.DESCRIBE, [openai.picture], quick())


async def test_a_model_that_only_thinks_is_an_error_and_a_blank_page_is_not(openai: Room) -> None:
    said = [{"message": {"content": ""}, "finish_reason": reason} for reason in ("length", "stop")]
    openai.server.script = [ModelRaw(body=json.dumps({"choices": [choice]}).encode()) for choice in said]
    with pytest.raises(ProviderError, match="used up its tokens"):
        await openai.provider().read(Skill.READ_TEXT, [openai.picture], quick())
    assert (await openai.provider().read(Skill.READ_TEXT, [openai.picture], quick())).text == ""


async def test_an_error_names_the_code_and_what_to_check(openai: Room) -> None:
    openai.server.script = [
        ModelFailure(status=404, kind="model_not_found", message=f"The model {KEY} does not exist"),
        ModelFailure(status=400, kind=KEY, message="x"),
    ]
    with pytest.raises(ProviderError) as caught:
        await openai.provider().read(Skill.DESCRIBE, [openai.picture], quick())
    assert str(caught.value).endswith("refused the request (status 404, model_not_found); check `model` and `base_url`")
    with pytest.raises(ProviderError) as echoed:
        await openai.provider().read(Skill.DESCRIBE, [openai.picture], quick())
    assert KEY not in str(echoed.value)


async def test_a_large_file_is_streamed_and_arrives_whole(openai: Room) -> None:
    content = b"fLaC" + bytes(range(251)) * 30_000
    openai.server.script = [SPEECH, ModelAnswer(text=SEEN)]
    await openai.provider().read(Skill.TRANSCRIBE, [openai.file("long.flac", content, "audio/flac")], quick())
    assert openai.server.asked[0].raw == content
    picture = make_jpeg(64, 48) + bytes(range(251)) * 8_000
    await openai.provider().read(Skill.DESCRIBE, [openai.file("large.jpg", picture, "image/jpeg")], quick())
    assert images(openai.server.asked[1].body) == [picture]


async def test_a_file_that_changed_its_size_is_not_sent(openai: Room) -> None:
    sound = openai.sound
    sound.path.write_bytes(FLAC[:100])
    with pytest.raises(ProviderError, match="no longer the file"):
        await openai.provider().read(Skill.TRANSCRIBE, [sound], quick())


async def test_without_a_key_openai_itself_is_not_called(openai: Room) -> None:
    with pytest.raises(Unauthorized, match="needs a key"):
        await openai.provider(base_url=OFFICIAL_URL, key=None).read(Skill.DESCRIBE, [openai.picture], quick())
    openai.server.key = ""
    await openai.provider(key=None).read(Skill.DESCRIBE, [openai.picture], quick())
    assert "authorization" not in openai.server.asked[-1].headers


async def test_what_openai_refuses_as_too_large_is_not_sent(openai: Room) -> None:
    sound = openai.file("long.flac", b"", "audio/flac")
    large = type(sound)(path=sound.path, mime=sound.mime, size=SPEECH_BYTES + 1)
    with pytest.raises(ProviderError, match="at most 26214400"):
        await openai.provider(base_url=OFFICIAL_URL).read(Skill.TRANSCRIBE, [large], quick())


@pytest.mark.parametrize("url", ["http://api.example.com/v1", "https://user@host/v1", "ftp://host", "https://host?x=1"])
def test_a_base_url_that_would_leak_the_key_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        Config(base_url=url)


async def test_a_private_address_is_reached_only_where_it_is_named_with_its_port(openai: Room) -> None:
    provider = openai.provider(base_url="https://127.0.0.1/v1")
    with pytest.raises(ProviderError, match="address was refused"):
        await provider.read(Skill.DESCRIBE, [openai.picture], quick())


async def test_the_limit_of_characters_ends_at_a_word(openai: Room) -> None:
    openai.server.script = [ModelAnswer(text=SEEN)]
    read = await openai.provider().read(Skill.DESCRIBE, [openai.picture], quick(max_chars=16))
    assert read.text == "A blue square…"


async def test_text_of_a_segment_counts_toward_the_limit(openai: Room) -> None:
    openai.server.script = [ModelSpeech(parts=(*SPEECH.parts, SpokenPart(text="Bye.", start=5.1, end=5.4)))]
    provider = openai.provider(model="whisper-1")
    read = await provider.read(Skill.TRANSCRIBE, [openai.sound], quick(max_chars=30))
    assert [segment.text for segment in read.segments] == ["Good morning, Ada.", "The train…"]
