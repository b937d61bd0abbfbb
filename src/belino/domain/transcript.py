"""Transcript of a sound, from windows that overlap: every word once, in stretches with time and speaker; pure."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from belino.domain.media import DocumentText, DocumentUnit, Part, Unread
from belino.domain.reading import ReadSegment, TranscriptWindow

NO_SPEECH = "no speech"
NEAR = 1.5
"""Seconds by which two windows may disagree about the time of a word."""
FAR = 6.0
"""The same for words of a text without times: those follow from the lengths of all words of the window."""
PAUSE = 1.0
STRETCH = 15.0
"""A stretch of words ends at a pause, at the end of a sentence, with its speaker, or after so many seconds."""

_IDEOGRAPH = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_IDEOGRAPH}][^\w\s]*\s*|[^\s{_IDEOGRAPH}]+\s*")
_SENTENCE_END = re.compile(r"[.!?…。！？]['\")»”’]*$")
_STARTS_UNSPACED = re.compile(rf"[{_IDEOGRAPH}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPlan:
    """One window: the stretch that it reads, and the stretch that is decoded for it, in seconds."""

    number: int
    start: float
    end: float | None
    """None: to the end of a sound of unknown length."""
    decoded_from: float
    decoded_to: float
    last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Word:
    start: float
    end: float
    text: str
    """With the space after it."""
    speaker: str
    origin: tuple[int, int]
    """Window and segment."""
    near: float = NEAR
    """By how many seconds its time may be wrong."""

    @property
    def middle(self) -> float:
        return (self.start + self.end) / 2

    @property
    def plain(self) -> str:
        return "".join(char for char in self.text.casefold() if char.isalnum()) or self.text.strip()


def plan_window(number: int, *, stride: float, overlap: float, seconds: float | None) -> WindowPlan | None:
    """The window of this number from 0; None beyond the end. A short rest belongs to the last window."""
    start = number * stride
    if seconds is not None and (start >= seconds or (number and seconds - start <= overlap)):
        return None
    end = (number + 1) * stride
    last = seconds is not None and seconds - end <= overlap
    if last and seconds is not None:
        end = seconds
    return WindowPlan(
        number=number,
        start=start,
        end=end,
        decoded_from=max(0.0, start - overlap),
        decoded_to=end if last else end + overlap,
        last=last,
    )


def window_at(second: float, *, stride: float, overlap: float, seconds: float | None) -> int:
    """The number of the window that reads a time."""
    number = int(second // stride)
    while number and plan_window(number, stride=stride, overlap=overlap, seconds=seconds) is None:
        number -= 1
    return number


def stitched(windows: Sequence[TranscriptWindow]) -> tuple[ReadSegment, ...]:
    """What was said in windows that follow one another: each word once, although neighbours both heard it."""
    whole: list[_Word] = []
    for number, window in enumerate(windows):
        words = list(_words(window, number))
        before = windows[number - 1] if number else None
        if before is not None and abs(before.end - window.start) < 0.001:
            whole, words = _joined(whole, words, window.start)
        elif before is not None:
            whole = [word for word in whole if word.start < before.end]
            words = [word for word in words if word.middle >= window.start]
        whole += words
    return _as_segments(whole)


def stretches(segments: Sequence[ReadSegment]) -> tuple[ReadSegment, ...]:
    """Words or short segments as stretches of speech."""
    made: list[ReadSegment] = []
    for segment in segments:
        if not segment.text.strip():
            continue
        last = made[-1] if made else None
        if last is not None and _goes_on(last, segment):
            made[-1] = replace(last, text=_spaced(last.text, segment.text), end=max(last.end, segment.end))
        else:
            made.append(replace(segment, text=segment.text.strip()))
    return tuple(made)


def in_seconds(segments: Sequence[ReadSegment], seconds: float | None) -> DocumentText:
    """A transcript as a text whose parts are the seconds in which a stretch begins."""
    joined: dict[int, Part] = {}
    for segment in stretches(segments):
        number = int(max(0.0, segment.start)) + 1
        before = joined.get(number)
        named = (before.title if before is not None else "", segment.speaker)
        joined[number] = Part(
            number=number,
            text=segment.text if before is None else _spaced(before.text, segment.text),
            title=", ".join(dict.fromkeys(name for name in named if name)),
        )
    parts = tuple(joined[number] for number in sorted(joined))
    return DocumentText(
        unit=DocumentUnit.SECOND,
        total=max(math.ceil(seconds or 0), parts[-1].number if parts else 1),
        parts=parts,
        unread=None if parts else Unread.NO_TEXT,
        reason="" if parts else NO_SPEECH,
    )


def own_segments(window: TranscriptWindow, *, last: bool) -> tuple[ReadSegment, ...]:
    """The words that begin in the stretch of a window."""
    return between(window.segments, window.start, None if last else window.end)


def between(segments: Sequence[ReadSegment], start: float, end: float | None) -> tuple[ReadSegment, ...]:
    """The words that begin between two times: neighbouring ranges share none."""
    window = TranscriptWindow(start=start, end=start, segments=tuple(segments))
    words = (word for word in _words(window, 0) if word.start >= start and (end is None or word.start < end))
    return _as_segments(list(words))


def whole_text(segments: Sequence[ReadSegment]) -> str:
    """All words in one text; a line for each stretch of a speaker, if there are several."""
    if len({segment.speaker for segment in segments}) < 2:
        text = ""
        for segment in segments:
            text = _spaced(text, segment.text)
        return text
    lines: list[list[str]] = []
    for segment in segments:
        if lines and lines[-1][0] == segment.speaker:
            lines[-1][1] = _spaced(lines[-1][1], segment.text)
        else:
            lines.append([segment.speaker, segment.text.strip()])
    return "\n".join(f"{speaker}: {text}" if speaker else text for speaker, text in lines)


def _joined(left: list[_Word], right: list[_Word], at: float) -> tuple[list[_Word], list[_Word]]:
    """The words of two neighbours up to and from the place near `at` where they agree."""
    first = next((n for n, word in enumerate(left) if right and word.end >= right[0].start - word.near), len(left))
    pairs = _aligned(left[first:], right)
    if pairs:
        here, there = min(pairs, key=lambda pair: abs(left[first + pair[0]].middle - at))
        return left[: first + here + 1], right[there + 1 :]
    return [word for word in left if word.middle < at], [word for word in right if word.middle >= at]


def _aligned(left: Sequence[_Word], right: Sequence[_Word]) -> list[tuple[int, int]]:
    """Pairs of equal words in order, as many as possible and as close in time as possible."""
    end = left[-1].end + left[-1].near if left else 0.0
    right = [word for word in right if word.start <= end]
    best = [[0.0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in range(len(left) - 1, -1, -1):
        for j in range(len(right) - 1, -1, -1):
            paired = best[i + 1][j + 1] + _likeness(left[i], right[j]) if _likeness(left[i], right[j]) else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], paired)
    pairs, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        likeness = _likeness(left[i], right[j])
        if likeness and best[i][j] == best[i + 1][j + 1] + likeness:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _likeness(one: _Word, other: _Word) -> float:
    """From 1 to 2 for the same word at about the same time, else 0."""
    apart, near = abs(one.start - other.start), max(one.near, other.near)
    return 2.0 - apart / near if apart <= near and one.plain == other.plain else 0.0


def _words(window: TranscriptWindow, number: int) -> Iterator[_Word]:
    """The words of a window; within a segment their times follow from their lengths."""
    for index, segment in enumerate(window.segments):
        tokens = _TOKEN.findall(segment.text)
        letters = sum(len(token) for token in tokens)
        at, length = segment.start, max(0.0, segment.end - segment.start)
        near = FAR if length > 2 * STRETCH else NEAR
        for token in tokens:
            end = at + length * len(token) / letters
            yield _Word(start=at, end=end, text=token, speaker=segment.speaker, origin=(number, index), near=near)
            at = end


def _as_segments(words: Sequence[_Word]) -> tuple[ReadSegment, ...]:
    made: list[ReadSegment] = []
    origin = None
    for word in words:
        if word.origin == origin:
            made[-1] = replace(made[-1], text=made[-1].text + word.text, end=word.end)
        else:
            made.append(ReadSegment(text=word.text, start=word.start, end=word.end, speaker=word.speaker))
        origin = word.origin
    return tuple(replace(each, text=each.text.strip()) for each in made)


def _goes_on(last: ReadSegment, segment: ReadSegment) -> bool:
    return (
        last.speaker == segment.speaker
        and segment.start - last.end <= PAUSE
        and segment.end - last.start <= STRETCH
        and not _SENTENCE_END.search(last.text)
    )


def _spaced(before: str, after: str) -> str:
    after = after.strip()
    if not before or not after:
        return before or after
    unspaced = _STARTS_UNSPACED.match(after) and _STARTS_UNSPACED.match(before[-1])
    return f"{before}{after}" if unspaced else f"{before} {after}"
