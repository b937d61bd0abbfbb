"""Deepgram: speech becomes text, with speakers, times and the language."""

import json

import pytest

from belino.domain.errors import ProviderError, Unauthorized
from belino.domain.reading import Skill
from belino.testing.models import ModelFailure, ModelRaw, ModelSpeech
from belino.testing.models.speech import heard
from understanding.providers.remote import FLAC, KEY, SPEECH, Room, quick


async def test_deepgram_keeps_the_contract(deepgram: Room) -> None:
    checked = await deepgram.keeps_the_contract({Skill.TRANSCRIBE: SPEECH}, {Skill.TRANSCRIBE: [deepgram.sound]})
    assert len(checked) == 9


async def test_a_recording_is_the_body_and_its_settings_are_in_the_query(deepgram: Room) -> None:
    deepgram.server.script = [ModelSpeech(parts=SPEECH.parts, language="de")]
    read = await deepgram.provider().read(Skill.TRANSCRIBE, [deepgram.sound], quick())
    (asked,) = deepgram.server.asked
    assert asked.headers["authorization"] == f"Token {KEY}"
    assert (asked.raw, asked.mime, asked.headers["content-length"]) == (FLAC, "audio/flac", str(len(FLAC)))
    flags = ("punctuate", "utterances", "smart_format", "diarize", "detect_language")
    assert asked.body == {"model": "nova-3", **dict.fromkeys(flags, "true")}
    assert (read.text, read.language, read.uncertain) == (SPEECH.text, "de", False)
    assert [(s.start, s.end, s.speaker) for s in read.segments] == [(0.5, 2.0, "Speaker 1"), (2.4, 5.0, "Speaker 2")]


async def test_a_configured_language_is_passed_on_instead_of_detected(deepgram: Room) -> None:
    deepgram.server.script = [SPEECH]
    provider = deepgram.provider(model="nova-2", diarize=False, smart_format=False)
    read = await provider.read(Skill.TRANSCRIBE, [deepgram.sound], quick(language="pt-BR"))
    asked = deepgram.server.asked[0].body
    assert asked == {"model": "nova-2", "punctuate": "true", "utterances": "true", "language": "pt-BR"}
    assert (read.language, [segment.speaker for segment in read.segments]) == ("pt-BR", ["", ""])


async def test_without_utterances_words_are_grouped_at_pauses_and_speakers(deepgram: Room) -> None:
    answer = heard({"diarize": "true"}, SPEECH)
    deepgram.server.script = [ModelRaw(body=json.dumps(answer).encode())]
    read = await deepgram.provider().read(Skill.TRANSCRIBE, [deepgram.sound], quick())
    assert [(s.text, s.speaker) for s in read.segments] == [
        ("Good morning, Ada.", "Speaker 1"),
        ("The train leaves at nine.", "Speaker 2"),
    ]


async def test_silence_is_an_empty_text_and_low_confidence_is_uncertain(deepgram: Room) -> None:
    deepgram.server.script = [ModelSpeech(), ModelSpeech(parts=SPEECH.parts, confidence=0.4)]
    silent = await deepgram.provider().read(Skill.TRANSCRIBE, [deepgram.sound], quick())
    assert (silent.text, silent.segments, silent.uncertain) == ("", (), False)
    assert (await deepgram.provider().read(Skill.TRANSCRIBE, [deepgram.sound], quick())).uncertain


async def test_an_account_without_credit_needs_another_key(deepgram: Room) -> None:
    deepgram.server.script = [ModelFailure(status=402, kind="ASR_PAYMENT_REQUIRED", message="no credit")]
    with pytest.raises(Unauthorized, match="status 402, ASR_PAYMENT_REQUIRED"):
        await deepgram.provider().read(Skill.TRANSCRIBE, [deepgram.sound], quick())


async def test_several_recordings_are_not_one(deepgram: Room) -> None:
    with pytest.raises(ProviderError, match="one recording at a time"):
        await deepgram.provider().read(Skill.TRANSCRIBE, [deepgram.sound, deepgram.sound], quick())
