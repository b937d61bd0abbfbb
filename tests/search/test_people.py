"""People that a question names: their messages are found, whatever they are called and whatever they say."""

import zlib
from array import array
from pathlib import Path

import pytest

from belino.domain.message import Author
from belino.search.marks import author_mark
from belino.search.people import newest_of
from belino.search.segment import SegmentEntry
from search.segments import HeldIndex
from search.told import CHATTER, told


def number(term: str) -> int:
    return zlib.crc32(term.encode())


LINES = [*CHATTER[:4], ("Jean-Pierre", "the boat leaves at six"), ("李娜", "好的，明天见"), *CHATTER]


@pytest.mark.parametrize(
    ("intent", "found"),
    [
        ("Jean-Pierre", "5"),
        ("what did Jean-Pierre say", "5"),
        ("messages by 李娜", "6"),
        ("what did Jean-Piere say", "5"),
        ("anything from jean-pierer?", "5"),
    ],
)
async def test_a_name_alone_finds_what_the_person_said(tmp_path: Path, intent: str, found: str) -> None:
    async with told(tmp_path, LINES) as here:
        first = (await here.find(intent)).results[0]
        assert (first.message_id, first.relevance_signal.partition(":")[0]) == (found, "author")


@pytest.mark.parametrize("author", ["Jean-Pierre", "@jean", "u-jean-pierre", "Jean-Piere"])
async def test_an_author_that_the_caller_requests_is_found_by_a_vague_intent(tmp_path: Path, author: str) -> None:
    async with told(tmp_path, LINES) as here:
        page = await here.find("what did he say", authors=[author])
        assert page.results[0].message_id == "5"
        assert page.found == 1


async def test_the_newest_messages_of_a_person_come_first(tmp_path: Path) -> None:
    lines = [("Anna", f"line {number}") for number in range(40)] + CHATTER
    async with told(tmp_path, lines) as here:
        assert await here.ids("what did Anna say", limit=3) == ["40", "39", "38"]


async def test_what_a_person_said_about_something_comes_before_the_rest_of_what_they_said(tmp_path: Path) -> None:
    lines = [("Anna", "the invoice is paid"), *CHATTER, ("Anna", "good night")]
    async with told(tmp_path, lines) as here:
        assert (await here.ids("what did Anna say about the invoice"))[0] == "1"


def test_the_messages_of_a_person_before_a_place_are_found_without_reading_all_later_ones() -> None:
    index = HeldIndex(number)
    terms = array("Q", [number(author_mark("ann"))])
    index.add(*(SegmentEntry(seq, seq, "ann", "Ann", 0, 0, terms, 0, "english") for seq in range(1, 9_001)))
    index.end_tail()
    index.held[0].loaded.clear()
    assert newest_of(index.postings, 0, 0, 100, 3) == [97, 98, 99]
    assert len(index.held[0].loaded) < 40


ADDRESSED = [
    ("Tom", "Hi Kate, did the cat eat?"),
    ("Emily R.", "All of it."),
    ("Omar", "the printer is broken again"),
    ("Tom", "Thanks Kate!"),
    ("Emily R.", "She slept on the sofa."),
]


async def test_a_person_is_known_by_the_name_that_others_address_them_by(tmp_path: Path) -> None:
    async with told(tmp_path, [*ADDRESSED, *CHATTER]) as here:
        assert set((await here.ids("what did Kate say"))[:2]) == {"2", "5"}
        page = await here.find("what did she say", authors=["Kate"])
        assert {one.message_id for one in page.results[:2]} == {"2", "5"}
        assert page.results[0].relevance_signal == "author:Emily R."


async def test_one_answer_to_a_name_does_not_make_it_anybodys(tmp_path: Path) -> None:
    lines = [("Tom", "Hi Kate, are you there?"), ("Emily R.", "She is on holiday."), *CHATTER]
    async with told(tmp_path, lines) as here:
        assert "author:Emily R." not in [one.relevance_signal for one in (await here.find("what did Kate say")).results]


@pytest.mark.parametrize("intent", ["what did Katherine say", "what did Ngata write?", "messages of k_ngata"])
async def test_a_person_is_known_by_the_names_in_the_platforms_list_of_users(tmp_path: Path, intent: str) -> None:
    kit = Author(id="u-7", name="Kit", other_names=("Katherine Ngata", "k_ngata"))
    async with told(tmp_path, [*CHATTER[:9], (kit, "the boat leaves at six"), *CHATTER]) as here:
        first = (await here.find(intent)).results[0]
        assert (first.message_id, first.relevance_signal) == ("10", "author:Kit")
        assert (await here.ids("what did she say", authors=["Katherine"]))[0] == "10"


@pytest.mark.parametrize("word", ["mill", "woman", "dull"])
async def test_a_word_that_is_not_written_as_a_name_is_no_misspelt_one(tmp_path: Path, word: str) -> None:
    lines = [*CHATTER[:4], ("Will", "the boat"), ("Roman", "leaves"), ("Doll", "at six"), *CHATTER]
    async with told(tmp_path, lines) as here:
        assert (await here.find(word)).found == 0
        assert (await here.find("What did Romam say?")).results[0].message_id == "6"


async def test_a_short_name_is_not_taken_for_another(tmp_path: Path) -> None:
    async with told(tmp_path, [("Bob", "the anchor is up"), *CHATTER]) as here:
        page = await here.find("what did Rob say")
        assert page.found == 0
