"""Rerank: similar messages move up where that is configured, by vectors that go with their text."""

import subprocess
import sys
from pathlib import Path

import pytest

from belino.config import from_table
from belino.domain.errors import ConfigError
from belino.domain.message import Author, Deletion, Edit
from belino.domain.outcome import Standing
from belino.domain.stored import Verdict
from belino.storage import static_vectors
from belino.storage.static_vectors import DIMENSIONS, StaticVectors
from search.told import CHANNEL, START, Conversation, told

OBSERVE = Verdict(standing=Standing.OBSERVED, reason="test")
ANNA = Author(id="u-anna", name="Anna")
QUESTION = "problems with the car"
LINES = [
    ("Anna", "The car is parked next to the bakery."),
    ("Omar", "Fine by me."),
    ("Anna", "We washed the car and had ice cream on Sunday."),
    ("Omar", "Lovely."),
    ("Anna", "My car broke down, the engine is damaged and the mechanic cannot repair it."),
    ("Omar", "Oh no."),
    ("Anna", "The car has a nice colour, like the sea in summer."),
    ("Omar", "True."),
]
DAMAGED = "5"


async def vectors(here: Conversation) -> dict[int, bytes]:
    rows = await here.store._database.read(lambda tx: tx.execute("SELECT * FROM search_vectors").fetchall())
    return {row["message"] & 0xFF: row["vector"] for row in rows}


async def test_a_message_that_says_it_in_other_words_moves_up_and_says_why(tmp_path: Path) -> None:
    async with told(tmp_path / "off", LINES) as here:
        before = await here.find(QUESTION)
    async with told(tmp_path / "static", LINES, rerank="static") as here:
        after = await here.find(QUESTION)
    was, now = ([one.message_id for one in page.results] for page in (before, after))
    assert now.index(DAMAGED) < was.index(DAMAGED)
    reasons = {one.message_id: one.relevance_signal for one in after.results}
    assert reasons[DAMAGED] == "keyword:car+similar"
    assert sorted(was) == sorted(now) and (before.total, before.found) == (after.total, after.found)
    assert not any("similar" in one.relevance_signal for one in before.results)


async def test_the_order_does_not_depend_on_what_was_made_in_the_background(tmp_path: Path) -> None:
    async with told(tmp_path, LINES, rerank="static") as here:
        fresh = await here.find(QUESTION)
        assert await vectors(here) == {}
        await here.store.index_ahead()
        assert len(await vectors(here)) == len(LINES)
        assert await here.find(QUESTION) == fresh
    async with told(tmp_path / "again", LINES, rerank="static") as here:
        pages = [await here.find(QUESTION, limit=50) for _ in range(3)]
    assert pages[0] == pages[1] == pages[2]
    assert [one.message_id for one in pages[0].results][:8] == [one.message_id for one in fresh.results]


async def test_an_edited_message_is_ranked_by_what_it_says_now(tmp_path: Path) -> None:
    async with told(tmp_path, LINES, rerank="static") as here:
        await here.store.index_ahead()
        new = "The car is new and shines."
        edit = Edit(conversation=CHANNEL, id="e1", message_id=DAMAGED, author=ANNA, sent=START, text=new)
        await here.store.take_in(edit, OBSERVE)
        assert int(DAMAGED) not in await vectors(here)
        found = {one.message_id: one.relevance_signal for one in (await here.find(QUESTION)).results}
    said = [(author, new if number == int(DAMAGED) else text) for number, (author, text) in enumerate(LINES, 1)]
    async with told(tmp_path / "new", said, rerank="static") as here:
        assert list(found) == await here.ids(QUESTION)


async def test_the_vector_of_a_deleted_message_is_deleted_with_it(tmp_path: Path) -> None:
    async with told(tmp_path, LINES, rerank="static") as here:
        await here.store.index_ahead()
        deletion = Deletion(conversation=CHANNEL, id="d1", message_id=DAMAGED, author=ANNA, sent=START)
        await here.store.take_in(deletion, OBSERVE)
        assert int(DAMAGED) not in await vectors(here)
        assert DAMAGED not in await here.ids(QUESTION)
        await here.store.index_ahead()
        assert int(DAMAGED) not in await vectors(here)


async def test_near_a_message_the_order_stays(tmp_path: Path) -> None:
    async with told(tmp_path / "off", LINES) as here:
        plain = await here.find(QUESTION, near="8")
    async with told(tmp_path / "static", LINES, rerank="static") as here:
        assert [one.message_id for one in (await here.find(QUESTION, near="8")).results] == [
            one.message_id for one in plain.results
        ]


def test_a_text_has_one_vector_and_no_text_is_similar_to_nothing() -> None:
    static = StaticVectors()
    ship, nothing = static.of("the ship sails"), static.of("")
    assert len(ship) == DIMENSIONS and nothing == bytes(DIMENSIONS)
    assert StaticVectors().of("the ship sails") == ship
    assert len(static.of("\udc80 lone")) == DIMENSIONS
    same, other, none = static.similarities(ship, [ship, static.of("a boat on the water"), nothing])
    assert same == pytest.approx(1.0) and same > other > none == 0.0


def test_without_the_extra_the_setting_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert from_table({"search": {"rerank": "static"}}).search.rerank == "static"
    monkeypatch.setattr(static_vectors, "find_spec", lambda name: None)
    assert from_table({}).search.rerank == "off"
    with pytest.raises(ConfigError, match=r"pip install 'belino\[rerank\]'"):
        from_table({"search": {"rerank": "static"}})


def test_off_imports_nothing_of_the_extra() -> None:
    code = (
        "import sys, belino.storage.store, belino.config; from belino.storage.static_vectors import SearchConfig; "
        "assert SearchConfig().vectors is None; "
        "sys.exit(bool({'numpy', 'tokenizers', 'safetensors', 'wordllama'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
