"""What is read aloud of an answer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belino.delivery.speakable import speakable

ROOM = 1_000


def said(text: str, *, room: int = ROOM, language: str | None = None) -> str:
    return speakable(text, max_chars=room, language=language).text


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("Hello **Ann**, it is _done_.", "Hello Ann, it is done."),
        ("See [the report](https://example.org/a/b?c=1) now.", "See the report now."),
        ("It is at https://www.example.org/a/b?c=1, I think", "It is at example.org I think."),
        ("Use `ls`.", "Use ls."),
        ("First:\n\n```python\nprint(1)\n```\n\nThen run it.", "First:\n(see the text)\nThen run it."),
        ("# News\n\nAll is well", "News.\nAll is well."),
        ("- milk\n- eggs\n- bread!", "milk.\neggs.\nbread!"),
        ("1. sit\n2. stand", "1. sit.\n2. stand."),
        ("one line\nand its other half", "one line and its other half."),
        ("~~Monday~~ Tuesday works", "Tuesday works."),
        ("above\n\n---\n\nbelow", "above.\nbelow."),
        ("![a cat](https://example.org/cat.png)", "a cat."),
        ("> quoted\n\nanswered", "quoted.\nanswered."),
        ("die Antwort ist 42", "die Antwort ist 42."),
        ("zero\u200bwidth \x07bell", "zero width bell."),
    ],
)
def test_markup_and_addresses_are_said_as_a_person_would(written: str, spoken: str) -> None:
    assert said(written) == spoken


def test_a_table_is_left_to_the_text() -> None:
    assert said("Prices:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThat is all.") == "Prices:\n(see the text)\nThat is all."


def test_what_is_left_out_is_said_in_the_language_that_is_spoken() -> None:
    assert said("Vorher\n\n```\nx\n```", language="de-AT") == "Vorher.\n(siehe Text)"
    assert said("Ein Satz. " * 300, language="de").endswith("Der Rest steht im Text.")
    assert said("A. " * 900, language="xx").endswith("The rest is in the text.")


@pytest.mark.parametrize("nothing", ["", " \n ", "---", "🎉🎉", "***", "…"])
def test_a_text_without_words_is_not_spoken(nothing: str) -> None:
    assert said(nothing) == ""


def test_a_long_answer_ends_at_a_sentence_and_says_so() -> None:
    made = speakable("This is the first one. This is the second one. This is the third.", max_chars=50)
    assert made.cut
    assert made.text == "This is the first one. The rest is in the text."


def test_a_sentence_without_an_end_is_cut_at_a_word() -> None:
    made = speakable("word " * 100, max_chars=60)
    assert made.text == "word word word word word word … The rest is in the text."


def test_a_text_longer_than_is_parsed_is_cut_too() -> None:
    made = speakable("*a* b. " * 20_000, max_chars=100)
    assert made.cut
    assert len(made.text) <= 100


@settings(max_examples=50)
@given(st.text(max_size=500), st.integers(min_value=50, max_value=400))
def test_any_text_stays_within_the_limit_and_holds_no_control_characters(text: str, most: int) -> None:
    made = speakable(text, max_chars=most)
    assert len(made.text) <= most
    assert not [letter for letter in made.text if letter < " " and letter != "\n"]
    made.text.encode()
