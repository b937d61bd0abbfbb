"""The soak measures a real gateway on all platforms; a short one is not judged by its memory."""

import pytest

from belino.bench import Row, soak


@pytest.mark.slow
def test_a_short_soak_answers_everything_and_is_not_judged_by_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "SAMPLE_SECONDS", 1.0)
    rows = {row.metric: row for row in soak.run(minutes=0.1, rate=4)}
    slope = rows["memory slope, MB/h over the last half"]
    assert (slope.ok, slope.goal) == (None, "judged from 30 minutes on")
    assert rows["unhandled task exceptions"].ok is True
    assert rows["descriptors at the end"].ok is True
    (answered,) = [row for metric, row in rows.items() if metric.endswith("messages not answered")]
    assert (answered.ours, answered.ok) == (0, True)


def test_a_long_soak_is_judged_by_the_slope_of_all_its_memory_in_the_last_half() -> None:
    def slope(leak: float, *, full_at: float) -> Row:
        """Of a process whose caches fill until then, and which leaks so many MB in an hour."""
        samples = [
            soak.SoakSample(
                at=at, megabytes=100 + cached + min(at, 900) + leak * at / 3600, cached=cached, descriptors=40
            )
            for at, cached in ((float(second), min(second, full_at) / 100) for second in range(0, 1860, 5))
        ]
        return soak._rows(samples, minutes=31, sent=1, unanswered=0, unhandled=0)[0]

    assert (slope(0.5, full_at=900).ok, slope(2.0, full_at=900).ok) == (True, False)
    assert slope(0.5, full_at=900).ours == pytest.approx(0.5)
    filling = slope(0.5, full_at=3600)
    assert filling.ours == pytest.approx(36.5)
    assert filling.beside == pytest.approx(36)
    assert filling.ok is False


def test_a_slope_needs_two_points() -> None:
    assert soak.slope([(1.0, 5.0)]) == 0.0
    assert soak.slope([(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]) == pytest.approx(2.0)
