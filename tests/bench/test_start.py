"""The start benchmark measures real processes beside bare ones; how fast they are is for the bench to say."""

import pytest

from belino.bench import as_json, start, table


@pytest.mark.slow
def test_the_start_benchmark_measures_each_goal_beside_a_bare_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "ROUNDS", 1)
    monkeypatch.setattr(start, "TURNS", 2)
    monkeypatch.setattr(start, "ANSWERS", 2)
    rows = start.run()
    assert [row.goal for row in rows] == ["≤ 0.15 s", "≤ 0.8 s", "≤ 80 MB", "≤ 2 ×"]
    for row in rows:
        assert row.beside is not None
        assert row.ours > 0
        assert row.beside > 0
        assert row.ok is not None
    assert len(as_json(rows)) == 4
    assert "after 2 turns" in table(rows)
