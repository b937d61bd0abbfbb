"""The bench measures what it says, on a small scale."""

from pathlib import Path

import orjson
import pytest

from belino.bench import context
from belino.bench.context import talks


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"BEFORE": 5, "THREAD": 10, "TURNS": 3, "SEARCHES": 1}
    for name, value in (sizes | {"CHANNEL_MESSAGES": 100, "REPLIES": 10, "ASSEMBLIES": 3}).items():
        monkeypatch.setattr(context, name, value)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_every_figure_comes_out_and_nothing_is_lost_in_a_small_thread() -> None:
    rows = {row.metric: row for row in context.run()}
    told = rows["tokens of a 3-turn session in a thread of 10, nothing lost"]
    quiet = rows["tokens of a 3-turn session in a thread of 10, with tools only"]
    assert told.beside is not None and told.beside == quiet.beside
    assert told.ratio == told.ours / told.beside and quiet.ours < told.ours
    assert rows["messages of these threads that the agent was not told"].ours == 0
    assert rows["adjacent messages per 1,000 tokens"].ours > 10
    assert 0 < rows["tokens of eight search results, the dearest page"].ours <= 450
    assert rows["platform calls per message, steady state"].ours == 0
    assert rows["platform calls per channel after a cold start"].ours == 1
    assert rows["ms to assemble a thread of 10 in a channel of 100, p99"].ours > 0


def test_talks_of_a_corpus_are_read_and_short_ones_left_out(tmp_path: Path) -> None:
    said = [{"author": "Bo", "text": f"m{number}", "caption": ""} for number in range(3)]
    mute = [{"author": "Bo", "text": "", "caption": "a cat"}, {"author": "Bo", "text": "", "caption": ""}]
    channels = [{"messages": [*said, *mute], "queries": [{"intent": "why"}]}, {"messages": said, "queries": []}]
    (tmp_path / "some.json").write_bytes(orjson.dumps({"channels": channels}))
    (talk,) = talks(tmp_path, least=4)
    assert talk.said == (("Bo", "m0"), ("Bo", "m1"), ("Bo", "m2"), ("Bo", "a cat")) and talk.intents == ("why",)
    with pytest.raises(ValueError, match="no conversation of 9 messages"):
        talks(tmp_path, least=9)


def test_made_talks_are_the_same_each_time() -> None:
    assert talks(None, least=5) == talks(None, least=5)
