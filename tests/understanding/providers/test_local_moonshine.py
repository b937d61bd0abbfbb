"""Moonshine, for real where its wheel fits."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from belino.domain.reading import ReadingOptions, Skill
from belino.understanding.providers.local_moonshine import Config, Provider, missing
from understanding.local_context import local_context, silence, sound

FITS = sys.platform == "linux" and find_spec("moonshine_voice") is not None


@pytest.mark.slow
@pytest.mark.skipif(not FITS, reason="the wheel of moonshine-voice does not fit this machine")
async def test_speech_becomes_words_with_times_and_silence_none(tmp_path: Path) -> None:
    spoken = sound(tmp_path, "I will call you back after lunch.")
    async with local_context(tmp_path) as context:
        provider = Provider(Config(), context)
        read = await provider.read(Skill.TRANSCRIBE, [spoken], ReadingOptions())
        assert "call you back after lunch" in read.text.lower()
        assert all(0 <= one.start < one.end for one in read.segments)
        assert (read.language, read.model, provider.languages) == ("en", "moonshine tiny-en", frozenset({"en"}))
        for loudness in (0, 20, 3_000):
            quiet = await provider.read(
                Skill.TRANSCRIBE, [silence(tmp_path, loudness=loudness)], ReadingOptions()
            )  # fmt: skip
            assert (quiet.text, quiet.segments) == ("", ())


def test_what_is_missing_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belino.understanding.local.packages.find_spec", lambda name: None)
    assert "pip install 'belino[moonshine]'" in missing(Config())
