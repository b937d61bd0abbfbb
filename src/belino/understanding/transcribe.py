"""Transcribe a sound window by window, with the first entry that can; a failure keeps what was heard before it."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from belino.domain.errors import MediaRefused
from belino.domain.ports import Clock
from belino.domain.reading import NOT_UNDERSTOOD, Material, Read, ReadingForm, ReadSegment, TranscriptWindow
from belino.domain.transcript import (
    WindowPlan,
    between,
    in_seconds,
    own_segments,
    plan_window,
    stitched,
    stretches,
    window_at,
)
from belino.understanding.calls import model_of
from belino.understanding.decisions import skipped
from belino.understanding.pieces import NotRead, PieceReader, Source, Wanted, keep_piece, reader_key
from belino.understanding.policy import EntryChoice

NOT_ITS_LANGUAGE = "knows no language that the entry before does not know"
OVERLAP = 5.0
LOCAL_STRIDE, REMOTE_STRIDE = 120.0, 600.0
"""Seconds of one window: a local recogniser takes half a minute for two minutes on a slow machine."""
SHORTEST_STRIDE = 15.0
BYTES_A_SECOND = 32_000

Tell = Callable[[str, float, float | None], None]
"""(provider, seconds heard so far, seconds in all)."""


@dataclass(slots=True, kw_only=True)
class Heard:
    """What was heard so far."""

    choice: EntryChoice | None = None
    model: str = ""
    windows: list[TranscriptWindow] = field(default_factory=list)
    seconds: float | None = None
    next: float | None = None
    """Where to read on; None at the end."""
    reason: str = ""
    """Why it ends before the end."""

    def segments(self, start: float = 0.0, end: float | None = None) -> tuple[ReadSegment, ...]:
        """What was said between two times, in stretches."""
        # The last window has heard a little beyond its end, where a later one reads on.
        ends = [each for each in (end, self.next) if each is not None]
        return stretches(between(stitched(self.windows), start, min(ends, default=None)))

    @property
    def language(self) -> str | None:
        return next((window.language for window in self.windows if window.language), None)

    @property
    def uncertain(self) -> bool:
        return any(window.uncertain for window in self.windows)


class Transcriber:
    """Reads the windows of sounds."""

    def __init__(self, pieces: PieceReader, clock: Clock) -> None:
        self._pieces = pieces
        self._clock = clock

    async def read(
        self,
        source: Source,
        choices: Sequence[EntryChoice],
        *,
        times: tuple[float, float | None] = (0.0, None),
        until: float | None = None,
        heard: Heard,
        tell: Tell,
    ) -> None:
        """Fill `heard` with the windows of a time range, until a time on the clock; NotRead if no entry can."""
        sound = await source.materials.renderer.sound(source.blob)
        heard.seconds = sound.seconds
        if heard.seconds is not None and times[0] >= heard.seconds:
            raise MediaRefused(f"the sound ends at {heard.seconds:.0f} s")
        failed = NotRead("no provider can transcribe it")
        strange: list[EntryChoice] = []
        for choice in await self._ranked(source, choices, times[0], heard.seconds):
            if any(_speaks_no_more(choice, than) for than in strange):
                source.attempts.append(skipped(replace(choice, skip=NOT_ITS_LANGUAGE)))
                continue
            try:
                await self._windows(source, choice, times, until, heard, tell)
                return
            except NotRead as error:
                heard.reason, failed = str(error), error
                strange += [choice] if str(error) == NOT_UNDERSTOOD else []
                if heard.windows:
                    return
        raise failed

    async def _ranked(
        self, source: Source, choices: Sequence[EntryChoice], start: float, seconds: float | None
    ) -> Sequence[EntryChoice]:
        """The choices in order; one whose text is stored comes first."""
        if source.store is None:
            return choices
        for choice in choices:
            stride = stride_of(choice)
            number = window_at(start, stride=stride, overlap=OVERLAP, seconds=seconds)
            key = reader_key(
                ReadingForm.TRANSCRIPT, choice, model_of(choice.candidate.readers[0], choice), _window(stride, number)
            )
            if await source.store.transcript(source.blob.sha256, key) is not None:
                return [choice, *(other for other in choices if other is not choice)]
        return choices

    async def _windows(
        self,
        source: Source,
        choice: EntryChoice,
        times: tuple[float, float | None],
        until: float | None,
        heard: Heard,
        tell: Tell,
    ) -> None:
        stride = stride_of(choice)
        number = window_at(times[0], stride=stride, overlap=OVERLAP, seconds=heard.seconds)
        heard.choice, heard.model = choice, model_of(choice.candidate.readers[0], choice)
        while (plan := plan_window(number, stride=stride, overlap=OVERLAP, seconds=heard.seconds)) is not None:
            heard.next = plan.start
            if times[1] is not None and plan.start >= times[1]:
                return
            if heard.windows and until is not None and self._clock.monotonic() >= until:
                heard.reason = "the time for one request was up"
                return
            tell(choice.candidate.entry.provider, plan.start, heard.seconds)
            window = await self._window(source, choice, plan, stride, heard)
            if window is None:
                break
            heard.windows.append(window)
            number += 1
            if plan.last or (heard.seconds is None and plan.end is not None and window.end < plan.end - 0.001):
                break
        heard.next = None

    async def _window(
        self, source: Source, choice: EntryChoice, plan: WindowPlan, stride: float, heard: Heard
    ) -> TranscriptWindow | None:
        """One window; None beyond the end of a sound that does not tell its length."""
        ended: list[float] = []

        @asynccontextmanager
        async def material() -> AsyncIterator[Sequence[Material]]:
            opened = source.materials.sound(
                source.blob, start=plan.decoded_from, end=plan.decoded_to, local=choice.candidate.local
            )
            async with opened as sound:
                if sound.ended:
                    ended.append(plan.decoded_from + (sound.material.seconds or 0.0))
                yield (sound.material,)

        async def find(key: str) -> TranscriptWindow | None:
            return None if source.store is None else await source.store.transcript(source.blob.sha256, key)

        async def keep(key: str, read: Read) -> TranscriptWindow:
            window = _placed(read, plan, ended[0] if ended else None)
            text = in_seconds(own_segments(window, last=plan.last or bool(ended)), heard.seconds or window.end)
            if source.store is not None:
                await keep_piece(source, partial(source.store.keep_transcript, source.blob.sha256, key, window, text))
            return window

        wanted = Wanted(
            form=ReadingForm.TRANSCRIPT,
            window=_window(stride, plan.number),
            find=find,
            material=material,
            keep=keep,
            start=plan.decoded_from,
            seconds=plan.decoded_to - plan.decoded_from,
        )
        try:
            return await self._pieces.read(source, choice, wanted)
        except NotRead as error:
            if heard.windows and heard.seconds is None and isinstance(error.__cause__, MediaRefused):
                return None
            raise


def _speaks_no_more(choice: EntryChoice, than: EntryChoice) -> bool:
    """Whether an entry knows no language that another does not know as well."""
    known, others = choice.candidate.languages, than.candidate.languages
    return known is not None and others is not None and known <= others


def stride_of(choice: EntryChoice) -> float:
    """The length of a window: what a provider reads in its time, within its limit of bytes."""
    most = choice.limits.max_bytes / BYTES_A_SECOND - 2 * OVERLAP
    return max(SHORTEST_STRIDE, min(LOCAL_STRIDE if choice.candidate.local else REMOTE_STRIDE, float(int(most))))


def _window(stride: float, number: int) -> str:
    return f"{stride:g}s-{number}"


def _placed(read: Read, plan: WindowPlan, ended: float | None) -> TranscriptWindow:
    """What was heard in a window, with times from the beginning of the sound."""
    length = (plan.decoded_to if ended is None else ended) - plan.decoded_from
    segments = read.segments or ((ReadSegment(text=read.text, start=0.0, end=length),) if read.text else ())
    end = plan.end if plan.end is not None and ended is None else max(ended or 0.0, plan.start + 0.001)
    return TranscriptWindow(
        start=plan.start,
        end=end if plan.end is None or plan.last else min(end, plan.end),
        segments=tuple(
            replace(each, start=each.start + plan.decoded_from, end=each.end + plan.decoded_from, box=None)
            for each in segments
            if each.text.strip()
        ),
        language=read.language,
        uncertain=read.uncertain,
    )
