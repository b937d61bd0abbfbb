"""A long sound is read in windows that overlap; its transcript has every word once, with time and speaker."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belino.domain.media import DocumentUnit, Unread
from belino.domain.reading import ReadSegment, TranscriptWindow
from belino.domain.transcript import (
    WindowPlan,
    between,
    in_seconds,
    own_segments,
    plan_window,
    stitched,
    stretches,
    whole_text,
    window_at,
)

OVERLAP = 5.0


def said(text: str, start: float, end: float, speaker: str = "") -> ReadSegment:
    return ReadSegment(text=text, start=start, end=end, speaker=speaker)


def all_windows(seconds: float, stride: float, overlap: float = OVERLAP) -> list[WindowPlan]:
    plans: list[WindowPlan] = []
    while (plan := plan_window(len(plans), stride=stride, overlap=overlap, seconds=seconds)) is not None:
        plans.append(plan)
    return plans


def heard(timeline: Sequence[ReadSegment], plan: WindowPlan, *, shift: float = 0.0) -> TranscriptWindow:
    """What a recogniser with exact words hears of a timeline: every word that is not cut off."""
    assert plan.end is not None
    words = [word for word in timeline if word.start >= plan.decoded_from and word.end <= plan.decoded_to]
    moved = [said(word.text, word.start + shift, word.end + shift, word.speaker) for word in words]
    return TranscriptWindow(start=plan.start, end=plan.end, segments=tuple(moved))


WORDS = st.lists(
    st.tuples(st.sampled_from(["la", "no", "yes", "well", "tide", "Tide."]), st.floats(0.05, 2.0), st.floats(0.0, 3.0)),
    min_size=1,
    max_size=60,
)


def timeline_of(words: Sequence[tuple[str, float, float]]) -> list[ReadSegment]:
    at, timeline = 0.0, []
    for text, length, pause in words:
        at += pause
        timeline.append(said(text, at, at + length))
        at += length
    return timeline


@settings(max_examples=150)
@given(words=WORDS, stride=st.floats(10.0, 80.0))
def test_no_word_is_lost_or_doubled_whatever_the_size_of_the_windows(
    words: list[tuple[str, float, float]], stride: float
) -> None:
    timeline = timeline_of(words)
    plans = all_windows(timeline[-1].end, stride)
    whole = stitched([heard(timeline, plan) for plan in plans])
    assert [each.text for each in whole] == [word.text for word in timeline]
    assert [each.start for each in whole] == [word.start for word in timeline]


@settings(max_examples=60)
@given(
    lengths=st.lists(st.floats(0.1, 0.9), min_size=20, max_size=80),
    stride=st.floats(10.0, 30.0),
    shifts=st.lists(st.floats(-0.6, 0.6), min_size=20, max_size=20),
)
def test_windows_that_disagree_about_times_still_join_where_their_words_agree(
    lengths: list[float], stride: float, shifts: list[float]
) -> None:
    timeline = timeline_of([(f"word{number}", length, 0.1) for number, length in enumerate(lengths)])
    plans = all_windows(timeline[-1].end, stride)
    windows = [heard(timeline, plan, shift=shifts[plan.number % len(shifts)]) for plan in plans]
    assert [each.text for each in stitched(windows)] == [word.text for word in timeline]


def test_sentences_that_cross_a_boundary_are_joined_by_their_words() -> None:
    left = TranscriptWindow(start=0.0, end=60.0, segments=(said("we set out at dawn and the tide was", 56.0, 64.9),))
    right = TranscriptWindow(
        start=60.0, end=120.0, segments=(said("at dawn, and the tide was already high", 57.4, 66.0),)
    )
    assert whole_text(stitched([left, right])) == "we set out at dawn and the tide was already high"


def test_text_without_times_is_joined_where_its_words_agree() -> None:
    timeline = timeline_of(
        [(f"w{number}", 0.3 + number % 3 * 0.1, 1.5 if number % 7 == 0 else 0.1) for number in range(300)]
    )
    plans = all_windows(timeline[-1].end, 60.0)
    windows = []
    for plan in plans:
        exact = heard(timeline, plan)
        text = " ".join(word.text for word in exact.segments)
        whole = said(text, plan.decoded_from, plan.decoded_to)
        windows.append(TranscriptWindow(start=exact.start, end=exact.end, segments=(whole,)))
    assert whole_text(stitched(windows)).split() == [word.text for word in timeline]


def test_windows_with_a_gap_between_them_are_not_joined() -> None:
    left = TranscriptWindow(start=0.0, end=60.0, segments=(said("one", 1.0, 2.0), said("margin", 61.0, 62.0)))
    right = TranscriptWindow(start=120.0, end=180.0, segments=(said("margin", 118.0, 119.0), said("two", 121.0, 122.0)))
    assert [each.text for each in stitched([left, right])] == ["one", "two"]


def test_text_without_spaces_is_joined_without_spaces() -> None:
    left = TranscriptWindow(start=0.0, end=10.0, segments=(said("我们明天见", 7.0, 12.0),))
    right = TranscriptWindow(start=10.0, end=20.0, segments=(said("明天见面吧", 9.0, 14.0),))
    assert whole_text(stitched([left, right])) == "我们明天见面吧"


def test_speakers_stay_with_their_words() -> None:
    left = TranscriptWindow(
        start=0.0, end=10.0, segments=(said("are you there", 7.0, 9.0, "A"), said("yes I am", 11.0, 12.0, "B"))
    )
    right = TranscriptWindow(start=10.0, end=20.0, segments=(said("yes I am here", 11.0, 13.0, "B"),))
    whole = stitched([left, right])
    assert {(each.speaker, each.text.split()[0]) for each in whole} >= {("A", "are"), ("B", "yes")}
    assert whole_text(whole) == "A: are you there\nB: yes I am here"


@pytest.mark.parametrize(
    ("seconds", "stride", "expected"),
    [
        (10.0, 60.0, [(0.0, 10.0, 0.0, 10.0)]),
        (64.0, 60.0, [(0.0, 64.0, 0.0, 64.0)]),
        (66.0, 60.0, [(0.0, 60.0, 0.0, 65.0), (60.0, 66.0, 55.0, 66.0)]),
        (
            130.0,
            60.0,
            [(0.0, 60.0, 0.0, 65.0), (60.0, 120.0, 55.0, 125.0), (120.0, 130.0, 115.0, 130.0)],
        ),
    ],
)
def test_windows_overlap_and_a_short_rest_belongs_to_the_last(
    seconds: float, stride: float, expected: list[tuple[float, float, float, float]]
) -> None:
    plans = all_windows(seconds, stride)
    assert [(plan.start, plan.end, plan.decoded_from, plan.decoded_to) for plan in plans] == expected
    assert [plan.last for plan in plans] == [False] * (len(plans) - 1) + [True]
    assert window_at(seconds - 0.5, stride=stride, overlap=OVERLAP, seconds=seconds) == len(plans) - 1


@given(seconds=st.floats(0.1, 5_000.0), stride=st.floats(15.0, 900.0))
def test_windows_cover_a_sound_without_gap(seconds: float, stride: float) -> None:
    plans = all_windows(seconds, stride)
    assert plans[0].start == 0.0
    assert plans[-1].end == seconds
    assert all(one.end == other.start for one, other in pairwise(plans))


def test_words_become_stretches_that_end_with_a_sentence_a_pause_or_a_speaker() -> None:
    words = [
        said("The", 0.0, 0.2), said("tide", 0.3, 0.6), said("turns.", 0.7, 1.0), said("We", 1.1, 1.2),
        said("go", 1.3, 1.5), said("home", 4.0, 4.3), said("now", 4.4, 4.6, "B"), said(" ", 5.0, 5.1),
    ]  # fmt: skip
    assert [(each.text, each.start) for each in stretches(words)] == [
        ("The tide turns.", 0.0),
        ("We go", 1.1),
        ("home", 4.0),
        ("now", 4.4),
    ]


def test_a_transcript_is_a_text_in_seconds() -> None:
    text = in_seconds([said("One.", 0.2, 0.5, "A"), said("Two.", 0.6, 0.9, "B"), said("Three.", 61.5, 62.0)], 70.2)
    assert (text.unit, text.total, text.unread) == (DocumentUnit.SECOND, 71, None)
    assert [(part.number, part.title, part.text) for part in text.parts] == [
        (1, "A, B", "One. Two."),
        (62, "", "Three."),
    ]


def test_silence_is_no_speech() -> None:
    text = in_seconds([said("  ", 0.0, 1.0)], 30.0)
    assert (text.unread, text.reason, text.parts) == (Unread.NO_TEXT, "no speech", ())


def test_a_window_owns_the_words_that_begin_in_it() -> None:
    window = TranscriptWindow(
        start=10.0, end=20.0, segments=(said("a", 9.5, 10.5), said("b", 10.0, 11.0), said("c", 20.0, 21.0))
    )
    assert [each.text for each in own_segments(window, last=False)] == ["b"]
    assert [each.text for each in own_segments(window, last=True)] == ["b", "c"]


@given(cut=st.floats(0.0, 16.0))
def test_ranges_that_meet_share_no_word_and_lose_none(cut: float) -> None:
    segments = [said("a b c", 0.0, 5.0), said("d", 5.0, 10.0), said("e f", 10.0, 15.0)]
    parts = (*between(segments, 0.0, cut), *between(segments, cut, None))
    assert " ".join(each.text for each in parts) == "a b c d e f"
