"""Calls of providers: bounded in time and number, with the next key where one fails; every fault is an attempt."""

import asyncio
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from urllib.parse import urlsplit

from belino.aio.deadline import deadline, or_abandon
from belino.domain.errors import BelinoError, ProviderError, RateLimited, Unauthorized, place_of, reason_of
from belino.domain.ports import Clock
from belino.domain.provider import Provider
from belino.domain.reading import Attempt, Material, Read, ReadingOptions, ReadingOutcome, ReadSegment
from belino.domain.safe_text import one_line
from belino.understanding.policy import Candidate, EntryChoice

log = logging.getLogger(__name__)

GRACE_SECONDS = 0.5
"""How long a provider may take to end when it is cancelled."""
REASON_CHARS = 300
TEXT_CHARS = 400_000
"""The most text of one call: an hour of fast speech is a fifth of it."""
SEGMENTS_AT_MOST = 100_000
IMPROPER = "it gave no proper answer"

_NOT_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """What a provider read, or None; and every attempt, one for each key that was tried."""

    read: Read | None
    attempts: tuple[Attempt, ...]


class Calls:
    """Calls providers, so many at the same time."""

    def __init__(self, clock: Clock, concurrency: int) -> None:
        self._clock = clock
        self.room = asyncio.Semaphore(concurrency)
        """Held by a reading while its material is made and read."""
        self._resting: dict[Provider, float] = {}
        """Readers whose key was refused or used up, and until when."""

    async def call(self, choice: EntryChoice, material: Sequence[Material]) -> CallResult:
        """Ask the provider of an entry, with each of its keys until one works; never raises for its faults."""
        attempts: list[Attempt] = []
        for reader in self._readers(choice.candidate):
            begun = self._clock.monotonic()
            reason, again, read = "", False, None
            try:
                read = await self._read(reader, choice, material)
            except RateLimited as error:
                again, reason = True, one_line(reason_of(error))
                self._resting[reader] = self._clock.monotonic() + min(error.retry_after, 3600.0)
            except Unauthorized as error:
                again, reason = True, one_line(reason_of(error))
                self._resting[reader] = self._clock.monotonic() + 3600.0
            except BelinoError as error:
                reason = one_line(reason_of(error))
            attempts.append(
                Attempt(
                    provider=choice.candidate.entry.provider,
                    model=model_of(reader, choice),
                    outcome=ReadingOutcome.FAILED if read is None else ReadingOutcome.SUCCESS,
                    reason=reason[:REASON_CHARS],
                    milliseconds=round((self._clock.monotonic() - begun) * 1000),
                    sent_to=sent_to(choice.candidate),
                )
            )
            if read is not None or not again:
                return CallResult(read=read, attempts=tuple(attempts))
        return CallResult(read=None, attempts=tuple(attempts))

    def _readers(self, candidate: Candidate) -> Sequence[Provider]:
        """Those whose key works first."""
        now = self._clock.monotonic()
        self._resting = {reader: until for reader, until in self._resting.items() if until > now}
        return sorted(candidate.readers, key=lambda reader: self._resting.get(reader, 0.0))

    async def _read(self, reader: Provider, choice: EntryChoice, material: Sequence[Material]) -> Read:
        timeout = choice.limits.timeout
        options = ReadingOptions(
            prompt=choice.prompt, language=choice.language, max_chars=choice.limits.max_chars, timeout=timeout
        )
        own = asyncio.current_task()
        asked = 0 if own is None else own.cancelling()
        try:
            async with deadline(self._clock, timeout) as scope:
                work = reader.read(choice.skill, tuple(material), options)
                return checked(await or_abandon(work, self._clock, grace=GRACE_SECONDS))
        except TimeoutError:
            why = f"it took longer than {timeout:g} s (timeout_seconds)" if scope.expired() else "TimeoutError"
            raise ProviderError(why) from None
        except asyncio.CancelledError:
            if own is not None and own.cancelling() > asked:
                raise
            raise ProviderError("it was cancelled") from None
        except BelinoError:
            raise
        except Exception as error:
            log.error("the provider %s failed: %s", choice.candidate.entry.provider, place_of(error))
            raise ProviderError(f"it failed with {type(error).__name__}") from error


def checked(read: object) -> Read:
    """What a provider returned, if it is of the right form; its text without control characters, and not endless."""
    match read:
        case Read(text=str(text), model=str(model), segments=tuple(segments), language=str() | None, uncertain=bool()):
            if len(segments) > SEGMENTS_AT_MOST or not all(_is_segment(segment) for segment in segments):
                raise ProviderError(IMPROPER)
            room = TEXT_CHARS - sum(len(segment.text) for segment in segments)
            if len(text) > TEXT_CHARS or room < 0:
                raise ProviderError(f"it gave more than {TEXT_CHARS} characters")
            tokens = read.tokens if isinstance(read.tokens, int) and read.tokens >= 0 else None
            clean = tuple(
                replace(segment, text=_clean(segment.text), speaker=_clean(segment.speaker)[:100])
                for segment in segments
            )
            return replace(read, text=_clean(text).strip(), model=model[:200], segments=clean, tokens=tokens)
    raise ProviderError(IMPROPER)


def sent_to(candidate: Candidate) -> str:
    """The host that material is sent to; empty for a local provider."""
    if candidate.local:
        return ""
    return urlsplit(getattr(candidate.entry.options, "base_url", "") or "").hostname or ""


def model_of(reader: Provider, choice: EntryChoice) -> str:
    """The model that a provider uses for a choice."""
    try:
        return str(reader.model(choice.skill))[:200]
    except Exception as error:  # noqa: BLE001 - a package's own code
        log.error("the provider %s names no model: %s", choice.candidate.entry.provider, place_of(error))
        return "?"


def _is_segment(segment: object) -> bool:
    match segment:
        case ReadSegment(text=str(), start=float() | int(), end=float() | int(), speaker=str()):
            times = isfinite(segment.start) and isfinite(segment.end) and segment.start <= segment.end
            return times and _is_box(segment.box)
    return False


def _is_box(box: object) -> bool:
    match box:
        case None:
            return True
        case tuple((left, top, right, bottom)):
            return all(isinstance(edge, float | int) and isfinite(edge) for edge in (left, top, right, bottom))
    return False


def _clean(text: str) -> str:
    return _NOT_TEXT.sub("\ufffd", text)
