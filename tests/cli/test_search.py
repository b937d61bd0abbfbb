"""What a search found, as a person reads it."""

import time
from typing import Any

import pytest

from belino.cli.search import _show, moment


def result(number: int, text: str, match: str = "found", **more: Any) -> dict[str, Any]:
    return {
        "message_id": str(number),
        "author": {"display_name": "Ana"},
        "ts": "2026-01-01T12:00:00Z",
        "text": text,
        "thread_summary": None,
        "relevance_signal": "keyword:notice",
        "match": match,
        "media": [],
    } | more


def shown(capsys: pytest.CaptureFixture[str], *results: dict[str, Any]) -> list[str]:
    """What is printed of these results."""
    matches = sum(each["match"] == "found" for each in results)
    coverage = {"messages_scanned": 1, "time_range": None}
    answer = {"results": results, "total": len(results), "found": matches, "next_cursor": None, "coverage": coverage}
    _show(answer, ["three months notice"])
    return capsys.readouterr().out.splitlines()


def test_a_page_of_a_document_is_shown_with_its_ref_and_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    plain = {"artifact_id": "tg_bbbbbbbbbbbb", "media_type": None, "filename": None, "byte_length": None}
    page = plain | {"artifact_id": "tg_aaaaaaaaaaaa", "page": 3, "unit": "page", "excerpt": "three months' \x1bnotice"}
    lines = shown(capsys, result(13, "see attached", media=[plain, page], author={"display_name": ""}))
    assert lines[0].startswith("unknown · 2026-01-01")
    assert "· tg_bbbbbbbbbbbb · tg_aaaaaaaaaaaa" in lines[0]
    assert lines[1] == "  see attached"
    assert lines[2].startswith("  tg_aaaaaaaaaaaa, page 3: three months' ")
    assert "\x1b" not in lines[2]
    assert lines[-1] == "1 of 1 found in 1 message"


def test_the_only_match_is_whole_and_of_several_the_part_with_the_words_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "Much is said before. " * 30 + "The notice is three months. " + "And much after. " * 30
    alone = shown(capsys, result(1, text), result(2, "oh", "nearby"))
    assert alone[1] == f"  {text}"
    assert alone[5] == "  nearby: keyword:notice"
    several = shown(capsys, result(1, text), result(2, "notice"))
    assert "The notice is three months." in several[1] and len(several[1]) < 310


def test_no_match_is_said_before_the_latest_messages(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, result(1, "small talk", "recent"))
    assert lines[0] == "nothing matches in 1 message; the latest:"
    assert lines[2] == "  small talk"
    assert shown(capsys) == ["nothing matches in 1 message"]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("2026-01-02 08:00", "2026-01-02T08:00:00+09:00"),
        ("2026-01-02", "2026-01-02T00:00:00+09:00"),
        ("2026-01-02T08:00:00Z", "2026-01-02T08:00:00+00:00"),
        ("2026-01-02T08:00:00-05:00", "2026-01-02T08:00:00-05:00"),
        ("3d", "3d"),
        ("soon", "soon"),
    ],
)
def test_a_time_without_a_zone_is_the_readers_own(monkeypatch: pytest.MonkeyPatch, given: str, meant: str) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert moment(given) == meant
    finally:
        monkeypatch.undo()
        time.tzset()
