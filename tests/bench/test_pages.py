"""The bench of open pages measures what it says, on a small scale."""

import os

import pytest

from belino.bench import pages


@pytest.mark.slow
async def test_pages_on_other_conversations_are_opened_and_both_figures_are_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pages, "ANSWERS", 5)
    monkeypatch.setattr(pages, "WARM_UP_ANSWERS", 2)
    monkeypatch.setattr(pages, "IDLE_SECONDS", 0.5)
    monkeypatch.setattr(pages, "ROUNDS", 2)
    answer, idle = await pages.page_rows(4)
    assert answer.ratio is not None
    assert answer.ok is (answer.ratio <= pages.GOAL_RATIO)
    assert idle.ok is (idle.ours <= pages.GOAL_IDLE_PERCENT)
    assert 0 < answer.ours < 10_000


def test_the_cpu_time_of_a_process_grows_with_its_work() -> None:
    before = pages.cpu_seconds(os.getpid())
    assert sum(range(200_000)) > 0
    assert pages.cpu_seconds(os.getpid()) > before
