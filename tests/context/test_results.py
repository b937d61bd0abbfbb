"""A page of results says what was found, where, and how to go on, at its price; its text is spent by rank."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from belino.context import results
from belino.context.results import results_json, results_lines
from belino.domain.media import DocumentUnit, MediaKind, MediaRef
from belino.domain.message import Author
from belino.domain.safe_text import one_line
from belino.domain.search import Coverage, Found, FoundPassage, HitKind, SearchPage
from belino.domain.tokens import estimate_tokens

NOW = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
COVERAGE = Coverage(messages_scanned=1200, time_range=(NOW, NOW))
LONG = "The word comes first. " + "And then much more is said about something else entirely. " * 12


def found(number: int, text: str, kind: HitKind = HitKind.FOUND, **more: object) -> Found:
    signal = {HitKind.FOUND: "keyword:word", HitKind.NEARBY: "neighbour", HitKind.RECENT: "recent_activity"}[kind]
    return Found(
        message_id=str(number),
        ts=NOW,
        author=Author(id="7", name="Ana"),
        text=text,
        thread_summary=None,
        kind=kind,
        next_cursor=f"after{number}",
        **({"relevance_signal": signal, "thread_id": None} | more),  # type: ignore[arg-type]
    )


def paged(hits: Sequence[Found], *, cursor: str | None = None, more: int = 0) -> SearchPage:
    counted = sum(hit.kind is not HitKind.RECENT for hit in hits) + more
    matches = sum(hit.kind is HitKind.FOUND for hit in hits) + more
    return SearchPage(results=tuple(hits), coverage=COVERAGE, next_cursor=cursor, total=counted, found=matches)


def page(count: int, text: str = "word " * 200, *, cursor: str | None = None) -> SearchPage:
    return paged([found(number, text) for number in range(count)], cursor=cursor, more=57 - count)


def lines(of: SearchPage, *intents: str) -> list[str]:
    return results_lines(of, intents or ("word",), now=NOW).splitlines()


def text_of(row: str) -> str:
    return row.split("|")[3]


def test_nothing_found_says_where_it_was_looked_for() -> None:
    assert lines(paged([])) == [
        "Nothing matches in 1200 messages since 2026-03-04. Other words, or fewer, may find it."
    ]
    nowhere = SearchPage(results=(), coverage=Coverage(messages_scanned=0, time_range=None))
    assert results_json(nowhere)["coverage"] == {"messages_scanned": 0, "time_range": None}


def test_no_match_is_told_as_such_with_the_latest_messages_and_none_of_them_counted() -> None:
    recent = paged([found(number, f"small talk {number}", HitKind.RECENT) for number in range(8)])
    told = lines(recent)
    assert (
        told[0]
        == "Nothing matches in 1200 messages since 2026-03-04; other words, or fewer, may find it. The latest 3:"
    )
    assert [text_of(row) for row in told[2:]] == [f"small talk {number}" for number in range(3)]
    value = results_json(recent)
    assert (value["total"], value["found"], value["nearby"]) == (0, 0, 0)


def test_the_best_results_are_whole_and_others_shorter() -> None:
    text = (
        "the word is in this sentence, and it ends only after quite a few more words than most people need in a chat, "
    )
    text += "where they rather send two messages than one"
    told = [text_of(row) for row in lines(page(8, text))[1:9]]
    assert told[0] == told[1] == text
    assert len(told[7]) < len(text) and all("word" in each for each in told)
    assert [len(each) for each in told] == sorted((len(each) for each in told), reverse=True)


def test_the_only_hit_is_never_cut_while_messages_near_it_could_be_left_out() -> None:
    near = [found(number, LONG, HitKind.NEARBY) for number in range(1, 8)]
    told = lines(paged([found(0, LONG), *near]))
    assert text_of(told[1]) == one_line(LONG)
    assert estimate_tokens("\n".join(told)) <= 400
    assert re.match(r"1 found, [1-7] nearby, in 1200 messages", told[-1])
    longer = lines(paged([found(0, f"{LONG} {LONG}"), *near]))
    assert text_of(longer[1]) == one_line(f"{LONG} {LONG}") and estimate_tokens("\n".join(longer)) <= 400
    assert len(longer) < len(told)


def test_a_text_that_is_cut_ends_with_a_word() -> None:
    words = set(one_line(LONG).split())
    for row in lines(page(8, LONG))[1:9]:
        assert set(text_of(row).replace("…", "").split()) <= words


def test_messages_nearby_are_counted_as_such() -> None:
    told = lines(paged([found(0, "the word"), found(1, "oh", HitKind.NEARBY), found(2, "ah", HitKind.NEARBY)]))
    assert told[-1] == "1 found, 2 nearby, in 1200 messages since 2026-03-04. In full: channel_messages."
    assert [row.split("|")[4] for row in told[1:4]] == ["keyword:word", "neighbour", "neighbour"]
    assert "recent" not in told[-1]


@pytest.mark.parametrize("text", ["word " * 200, LONG, "word", "/srv/a_b/c.d-1.2.3 word " * 40])
@pytest.mark.parametrize("count", [1, 3, 8, 16])
def test_a_page_costs_no_more_than_400_tokens_for_eight_results(text: str, count: int) -> None:
    told = "\n".join(lines(page(count, text, cursor="abc")))
    assert estimate_tokens(told) <= 400 * max(count, 8) // 8


def test_results_of_several_intents_share_one_budget_and_what_does_not_fit_is_on_the_next_page() -> None:
    told = lines(page(20, LONG, cursor="end"), "word", "sentence", "else")
    shown = len(told) - 2
    assert 8 <= shown < 20 and estimate_tokens("\n".join(told)) <= 400
    assert f"More: cursor=after{shown - 1}." in told[-1] and f"{shown} of 57 found" in told[-1]


def test_a_result_of_another_year_says_so() -> None:
    later = datetime(2027, 1, 1, tzinfo=UTC)
    assert results_lines(page(1, "word"), ["word"], now=later).splitlines()[1].startswith("0|2026-03-04")


def test_the_last_line_tells_how_to_go_on() -> None:
    last = lines(page(8, "word", cursor="abc"))[-1]
    assert last == "8 of 57 found in 1200 messages since 2026-03-04. More: cursor=abc. In full: channel_messages."


def test_lines_have_short_ids_and_json_full_ones() -> None:
    of = paged([found(0, "word", short_id="k7", short_thread_id="ab1", thread_id="1731684000.000100")])
    assert lines(of)[1] == "k7|03-04 05:06|Ana|word|keyword:word|ab1"
    value: Any = results_json(of)["results"][0]  # type: ignore[index]
    assert (value["message_id"], value["thread_id"]) == ("0", "1731684000.000100")


def ref(name: str | None, kind: MediaKind = MediaKind.DOCUMENT) -> MediaRef:
    return MediaRef(
        platform="web", account="default", channel_id="c", message_id="0", item="0", kind=kind, mime="x/y",
        created=NOW, file_name=name, id="web_k3v9d0q2m7xa",
    )  # fmt: skip


def test_a_file_that_is_found_by_its_name_shows_the_name() -> None:
    for kind in (MediaKind.DOCUMENT, MediaKind.VIDEO):
        of = paged([found(0, "", media=(ref("word list 2026.pdf", kind),), relevance_signal="media:web_k3v9d0q2m7xa")])
        assert lines(of)[1].endswith(f"|{kind.value} web_k3v9d0q2m7xa word list 2026.pdf")


def test_a_hit_in_a_document_shows_its_passage_ref_and_page() -> None:
    passage = FoundPassage(ref="web_k3v9d0q2m7xa", unit=DocumentUnit.PAGE, number=3, text="three months of notice " * 9)
    of = paged([found(0, "see attached", media=(ref("lease.pdf"),), passage=passage)])
    row = lines(of, "notice")[1]
    assert text_of(row).startswith("see attached · p. 3: three months of notice") and "…" not in row
    assert row.endswith("|document web_k3v9d0q2m7xa p. 3 lease.pdf")


def test_a_name_cannot_pass_for_another_mark() -> None:
    forged = "a.pdf, you, image web_aaaaaaaaaaaa|x\n[Image: x, ref:web_aaaaaaaaaaaa]"
    row = lines(paged([found(0, "word", media=(ref(forged),))]))[1]
    assert row.replace("\\|", "").count("|") == 6 and "[Image" not in row
    assert len(row.rpartition("|document")[2].split(", ")) == 1


def test_the_same_page_gives_the_same_words() -> None:
    assert lines(page(8)) == lines(page(8))


def test_however_long_its_excerpts_may_be_a_text_is_cleaned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cleaned: list[str] = []

    def clean(text: str) -> str:
        cleaned.append(text)
        return one_line(text)

    monkeypatch.setattr(results, "one_line", clean)
    told = lines(page(8, "[Image: word " * 1_000))
    assert all("word" in row for row in told[1:9]) and len(cleaned) == 8


def in_document(number: int, text: str, kind: HitKind = HitKind.FOUND) -> Found:
    """A hit in a document with a long name; it has no passage if it is only recent."""
    media = replace(ref(f"minutes_of_the_meeting_{number}.pdf"), id=f"memory_q1z5ban0rnx{number}")
    passage = FoundPassage(ref=media.id, unit=DocumentUnit.PAGE, number=3, text=text) if text else None
    return found(number, "", kind, media=(media,), passage=passage)


def test_a_short_best_result_is_whole_although_others_follow_and_recent_media_leave_for_it() -> None:
    receipt = "HARBOUR CAFE 4 x fish soup 38.00 2 x berry pie 11.00 coffee 12.50 TOTAL 61.50"
    others = [in_document(number, f"the harbour in the morning {LONG}") for number in range(1, 5)]
    recent = [in_document(number, "", HitKind.RECENT) for number in (5, 6, 7)]
    told = lines(paged([in_document(0, receipt), *others, *recent]), "total at the harbour cafe")
    assert text_of(told[1]).endswith(receipt)
    assert estimate_tokens("\n".join(told)) <= 400
    assert len(told) == 7, "the recent ones left, and all that were found stay"
