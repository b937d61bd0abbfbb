"""The bench measures what it says, on a small scale."""

import pytest

from belino.bench import Row, as_json, intake, table


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TOGETHER": 30, "ALONE": 10, "BURST": 30, "ROUNDS": 1}.items():
        monkeypatch.setattr(intake, name, value)


@pytest.mark.usefixtures("small")
def test_three_figures_come_out_each_with_its_goal() -> None:
    rows = intake.run(corpus=None)
    assert [row.metric for row in rows] == [
        "durable arrivals per second, 1 conversation",
        "durable arrivals per second, 1,000 conversations",
        "seconds until 30 arrivals offered at once are durable",
    ]
    assert [row.goal for row in rows] == ["≥ 5×", "≥ 5×", "≤ 15 s"]
    for row in rows[:2]:
        assert row.beside is not None
        assert row.ratio == row.ours / row.beside
        assert row.ok == (row.ratio >= 5)


def test_a_missed_goal_is_shown_and_never_hidden() -> None:
    rows = [
        Row(metric="speed", ours=1234.5, beside_name="plain", beside=1000, ratio=1.2345, goal="≥ 5×", ok=False),
        Row(metric="weight", ours=0.25, goal="≤ 1", ok=True),
    ]
    lines = table(rows).splitlines()
    assert lines[1].split() == ["speed", "1,234", "1,000", "plain", "1.2×", "≥", "5×", "MISSED"]
    assert lines[2].split() == ["weight", "0.25", "≤", "1", "met"]
    assert as_json(rows)[0]["ok"] is False
