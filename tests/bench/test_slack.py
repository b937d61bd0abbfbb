"""The Slack bench measures what it says, on a small scale."""

import pytest

from belino.bench import slack, table


@pytest.mark.slow
def test_a_workspace_costs_one_call_a_channel_and_none_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slack, "CHANNELS", 4)
    monkeypatch.setattr(slack, "REPLIES", 3)
    rows = slack.run()
    cold, steady, minutes, names, answers, memory = rows
    assert (cold.ours, cold.ok) == (4, True)
    assert (steady.ours, steady.beside, steady.ok) == (0, 12, True)
    assert minutes.beside is not None
    assert minutes.ours < minutes.beside
    assert names.ours <= 2
    assert (answers.ours, answers.beside) == (8, 8)
    assert memory.ours > 0
    assert "4 active channels" in table(rows)
