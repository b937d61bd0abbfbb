"""The bench of search measures what it says, on a small scale."""

import json
from pathlib import Path

import pytest

from belino.bench import search
from belino.bench._conversations import Asked, long_questions, long_talk, made


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LONG": 400, "CHANNELS": 3, "CHANNEL_MESSAGES": 60, "QUESTIONS": 20}.items():
        monkeypatch.setattr(search, name, value)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_made_conversations_are_found_better_than_by_plain_methods() -> None:
    rows = search.run()
    assert [row.metric for row in rows] == [
        *("recall@8, made", "nDCG@8, made", "MRR, made") * 2,
        "CPU ms per search of 400 messages, p50",
        "CPU ms per search of 400 messages, p95",
        "MB in memory for 400 messages",
        "CPU µs to index a message",
        "CPU ms per search of 60 messages, p95, among 180 in 3 channels",
    ]
    assert [row.beside_name for row in rows[:6]] == ["FTS5"] * 3 + ["Okapi BM25"] * 3
    assert all(row.ok for row in rows[:6]), rows[:6]
    assert rows[0].ours > 0.8


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_a_corpus_is_read_and_its_questions_see_only_what_came_before(tmp_path: Path) -> None:
    messages = [
        {"id": str(number), "ts": 1e9 + 60.0 * number, "author": "Ann", "text": text, "caption": "", "thread_id": None}
        for number, text in enumerate(["the blue kettle", "nothing", "more of nothing", "the blue kettle again"])
    ]
    asked = [
        {"intent": "blue kettle", "gold": ["0"], "cat": "x", "before": 3, "author": None, "window": 3},
        {"intent": "kettle again", "gold": ["3"], "cat": "x", "before": None, "author": None},
    ]
    corpus = {"name": "locomo_like", "channels": [{"id": "c", "messages": messages, "queries": asked}]}
    (tmp_path / "corpus.json").write_text(json.dumps(corpus))
    rows = search.run(corpus=tmp_path)
    assert [(row.metric, row.ours, row.goal) for row in rows[:3]] == [
        ("recall@8, locomo_like", 1.0, "better, ≥ 0.77"),
        ("nDCG@8, locomo_like", 1.0, "better, ≥ 0.62"),
        ("MRR, locomo_like", 1.0, "better"),
    ]


def test_scores_are_those_of_the_books() -> None:
    assert search._score(["a", "b", "c"], ["b"]) == pytest.approx((1.0, 0.63093, 0.5), abs=1e-5)
    assert search._score(["a"], ["b", "a"]) == pytest.approx((0.5, 0.61315, 1.0), abs=1e-5)
    assert search._score([], ["b"]) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("make", [search._full_text, search._okapi], ids=["fts5", "okapi"])
def test_the_plain_methods_find_words_and_keep_to_what_is_visible(make: object) -> None:
    conversation = made(1)[0]
    find = make(conversation)  # type: ignore[operator]
    asked = conversation.asked[0]
    assert asked.gold[0] in find(asked)
    place = int(asked.gold[0])
    assert asked.gold[0] not in find(Asked(intent=asked.intent, gold=asked.gold, before=place))
    assert list(find(Asked(intent='" OR * NEAR(', gold=("0",)))) == []


def test_what_is_made_is_made_the_same_each_time() -> None:
    assert made(2) == made(2)
    talk = list(long_talk(200))
    assert talk == list(long_talk(200))
    assert long_questions(talk, 5) == long_questions(talk, 5)
