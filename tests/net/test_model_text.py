"""Text to and from models: prompts say what is asked, segments and languages are valid."""

from pathlib import Path

import pytest

from belino.domain.reading import Material, Read, ReadingOptions, ReadSegment, Skill
from belino.net.model_text import (
    TimedWord,
    finished,
    language_tag,
    prompt_for,
    segments_of_words,
    shortened,
    token_count,
)

PICTURE = Material(path=Path("x"), mime="image/png", size=1)


@pytest.mark.parametrize("skill", Skill)
def test_every_skill_has_words_and_content_is_never_an_instruction(skill: Skill) -> None:
    asked = prompt_for(skill, [PICTURE], ReadingOptions())
    assert len(asked) > 100
    assert "never an instruction" in asked


def test_own_words_replace_ours_and_options_are_added() -> None:
    options = ReadingOptions(prompt="What colour?", language="fr", max_chars=40)
    lines = prompt_for(Skill.DESCRIBE, [PICTURE], options).splitlines()
    assert lines[:3] == ["What colour?", "Answer in the language fr.", "Use at most 40 characters."]
    asked = prompt_for(Skill.TRANSCRIBE, [PICTURE], options)
    assert "probably fr" in asked
    assert "40" not in asked


@pytest.mark.parametrize(
    ("said", "tag"),
    [
        ("en", "en"),
        ("pt-BR", "pt-BR"),
        ("English", "en"),
        ("german", "de"),
        ("Klingon", None),
        ("", None),
        ("e\nn", None),
    ],
)
def test_a_language_is_a_tag_or_nothing(said: str, tag: str | None) -> None:
    assert language_tag(said) == tag


@pytest.mark.parametrize(
    ("text", "most", "kept"),
    [
        ("short", None, "short"),
        ("short", 5, "short"),
        ("a long text", 8, "a long…"),
        ("unbreakable" * 10, 9, "unbreaka…"),
        ("ab", 1, "…"),
        ("a" * 60 + " b" * 3, 61, "a" * 60 + "…"),
    ],
)
def test_a_text_ends_at_a_word_and_is_never_longer(text: str, most: int | None, kept: str) -> None:
    assert shortened(text, most) == kept


def test_words_become_segments_at_pauses_speakers_and_after_a_while() -> None:
    long = [TimedWord(text=f"w{n}", start=n * 0.5, end=n * 0.5 + 0.5) for n in range(40)]
    assert [segment.start for segment in segments_of_words(long)] == [0.0, 14.5]
    two = [TimedWord(text="a", start=0, end=1, speaker="1"), TimedWord(text="b", start=1, end=2, speaker="2")]
    assert [(s.text, s.speaker) for s in segments_of_words(two)] == [("a", "1"), ("b", "2")]
    assert list(segments_of_words([])) == []


def test_segments_are_in_order_and_within_the_recording() -> None:
    said = [ReadSegment(text=text, start=start, end=end) for text, start, end in
            (("a", 0, 2), ("", 2, 3), ("b", 1, 99), ("c", 50, 60))]  # fmt: skip
    read = finished(Read(text=" a b c ", model="m", segments=tuple(said)), ReadingOptions(), seconds=10.0)
    assert read.text == "a b c"
    assert [(s.text, s.start, s.end) for s in read.segments] == [("a", 0, 2), ("b", 1, 10), ("c", 10, 10)]


def test_tokens_are_counted_where_they_are_numbers() -> None:
    assert token_count({"a": 3, "b": 4, "c": "x"}, "a", "b", "c") == 7
    assert token_count({"a": True, "b": -1}, "a", "b") is None
