"""The turns benchmark measures a real gateway with a scripted model; how fast it is is for the bench to say."""

import pytest

from belino.bench import turns


@pytest.mark.slow
def test_the_turns_benchmark_measures_each_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MESSAGES", 4)
    monkeypatch.setattr(turns, "PEOPLE", 2)
    rows = turns.run()
    assert [row.goal for row in rows] == ["≤ 0.5 s", "≤ 15 MB", "≤ 150 MB", "≥ 45", "≤ 250 MB"]
    assert all(row.ours > 0 and row.ok is not None for row in rows)
