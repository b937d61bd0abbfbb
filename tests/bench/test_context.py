"""The bench measures what it says, on a small scale."""

from pathlib import Path

import orjson
import pytest

from belino.bench import _group_session, context
from belino.bench._group import lengthened, talks


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"BEFORE": 5, "THREAD": 10, "TURNS": 3, "SEARCHES": 1}
    for name, value in (sizes | {"CHANNEL_MESSAGES": 100, "REPLIES": 10, "ASSEMBLIES": 3}).items():
        monkeypatch.setattr(context, name, value)
    for name, number in {"TURNS": 3, "OVERHEARD": 4, "MESSAGES": 20, "SHOWN": (2,)}.items():
        monkeypatch.setattr(_group_session, name, number)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_every_figure_comes_out_and_nothing_is_lost_in_a_small_thread() -> None:
    rows = {row.metric: row for row in context.run()}
    told = rows["tokens of a 3-turn session in a thread of 10, all told or counted"]
    quiet = rows["tokens of a 3-turn session in a thread of 10, with tools only"]
    assert told.beside is not None and told.beside == quiet.beside
    assert told.ratio == told.ours / told.beside and quiet.ours < told.ours
    for what in ("messages", "long messages"):
        (whole,) = [row for name, row in rows.items() if name.startswith(f"{what} of these threads: ")]
        assert whole.ok and whole.ours == whole.beside == 2 * (5 + 1 + 10 + 2 * 3)
        assert rows[f"adjacent {what} per 1,000 tokens"].ours > 10
    line = rows["tokens per overheard line of a busy group"]
    assert line.beside is not None and 10 < line.ours < line.beside - 8
    assert 0 < rows["tokens of eight search results, the dearest page"].ours <= 450
    assert rows["requests of a group session of 3 turns, 4 messages overheard before each, 1 with a picture"].ours == 3
    text = rows["text tokens of a group session of 3 turns, 4 messages overheard before each"]
    fresh = rows["of these, not in the provider's prompt cache"]
    # The first request is new as a whole, and every later one only at its end.
    assert text.ours / 3 < fresh.ours < text.ours / 2 and fresh.beside == text.ours
    assert rows["picture tokens of the same session, cached after the first request"].ours == 2 * 1_443
    assert rows["platform calls per message, steady state"].ours == 0
    assert rows["platform calls per channel after a cold start"].ours == 1
    for part in ("p50", "p99"):
        spent = rows[f"CPU ms to assemble a thread of 10 in a channel of 100, {part}"]
        assert spent.ours > 0 and spent.beside is not None and spent.beside > 0


def test_talks_of_a_corpus_are_read_and_short_ones_left_out(tmp_path: Path) -> None:
    said = [{"author": "Bo", "text": f"m{number}", "caption": ""} for number in range(3)]
    mute = [{"author": "Bo", "text": "", "caption": words} for words in ("a cat", "")]
    channels = [{"messages": [*said, *mute], "queries": [{"intent": "why"}]}, {"messages": said, "queries": []}]
    (tmp_path / "some.json").write_bytes(orjson.dumps({"channels": channels}))
    (talk,) = talks(tmp_path, least=4)
    assert talk.said == (("Bo", "m0"), ("Bo", "m1"), ("Bo", "m2"), ("Bo", "a cat")) and talk.intents == ("why",)
    with pytest.raises(ValueError, match="no conversation of 9 messages"):
        talks(tmp_path, least=9)


def test_made_talks_are_the_same_each_time() -> None:
    assert talks(None, least=5) == talks(None, least=5)


def test_a_lengthened_talk_has_as_many_messages_by_the_same_people() -> None:
    (talk, _) = talks(None, least=5)
    long = lengthened(talk)
    assert [name for name, _ in long.said] == [name for name, _ in talk.said]
    assert all(
        more.startswith(text) and len(more) > 250 for (_, more), (_, text) in zip(long.said, talk.said, strict=True)
    )
