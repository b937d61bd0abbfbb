"""What a search found, as a person reads it."""

import time

import pytest

from belino.cli.search import _show, moment


def test_a_page_of_a_document_is_shown_with_its_ref_and_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    plain = {"artifact_id": "tg_bbbbbbbbbbbb", "media_type": None, "filename": None, "byte_length": None}
    page = plain | {"artifact_id": "tg_aaaaaaaaaaaa", "page": 3, "unit": "page", "excerpt": "three months' \x1bnotice"}
    found = {
        "message_id": "13",
        "author": {"display_name": ""},
        "ts": "2026-01-01T12:00:00Z",
        "text": "see attached",
        "thread_summary": None,
        "relevance_signal": "media:tg_aaaaaaaaaaaa",
        "media": [plain, page],
    }
    coverage = {"messages_scanned": 1, "time_range": None}
    _show({"results": [found], "total": 1, "next_cursor": None, "coverage": coverage})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("unknown · 2026-01-01")
    assert "· tg_bbbbbbbbbbbb · tg_aaaaaaaaaaaa" in lines[0]
    assert lines[1] == "  see attached"
    assert lines[2].startswith("  tg_aaaaaaaaaaaa, page 3: three months' ")
    assert "\x1b" not in lines[2]


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
