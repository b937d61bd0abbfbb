"""The Telegram bench measures what it says, on a small scale."""

import pytest

from belino.bench import Row, table, telegram


@pytest.mark.slow
def test_a_busy_group_costs_the_bytes_that_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telegram, "MESSAGES", 120)
    monkeypatch.setattr(telegram, "MEDIA", 40)
    monkeypatch.setattr(telegram, "QUESTIONS", 3)
    fetched, calls, memory, answers = telegram.run()
    assert (answers.ours, answers.beside, answers.ok) == (3, 3, True)
    assert fetched.beside is not None
    assert 0 < fetched.ours < fetched.beside
    assert calls.beside is not None
    assert calls.ours < calls.beside
    assert memory.ours > 0
    assert "40 media" in table([fetched, calls, memory, answers])


def test_a_small_part_is_written_as_one() -> None:
    assert "1/25" in table([Row(metric="m", ours=4, beside=100, ratio=0.04)])
    assert "1.5×" in table([Row(metric="m", ours=3, beside=2, ratio=1.5)])
