"""Decisions about media, from what was planned and done: attempts, outcomes and markers; pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from belino.domain.media import Unread
from belino.domain.reading import (
    AttachmentRecord,
    Attempt,
    Reading,
    ReadingDecision,
    ReadingOutcome,
)
from belino.understanding.policy import CapabilityPlan, EntryChoice, ItemPlan
from belino.understanding.request import Marker

MARKERS_AT_MOST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOutcome:
    """What came of one attachment."""

    plan: ItemPlan
    attempts: tuple[Attempt, ...] = ()
    readings: tuple[Reading, ...] = ()
    reason: str = ""
    """Why there is no text, or not all of it."""
    unread: Unread | None = None
    """Set if there is no text."""


def decision_of(plan: CapabilityPlan, items: Sequence[ItemOutcome]) -> ReadingDecision:
    """The decision about one kind of media."""
    if plan.outcome is not None:
        return ReadingDecision(
            capability=plan.capability,
            outcome=plan.outcome,
            reason=plan.reason,
            attachments=tuple(
                AttachmentRecord(index=each.item.index, ref=each.item.ref, reason=each.reason) for each in plan.items
            ),
        )
    done = {each.plan.item.index: each for each in items}
    records = tuple(_record(each, done.get(each.item.index)) for each in plan.items)
    tried = [attempt for record in records for attempt in record.attempts]
    if any(each.readings or _is_empty(each) for each in items):
        outcome, reason = ReadingOutcome.SUCCESS, ""
    elif any(attempt.outcome is ReadingOutcome.FAILED for attempt in tried) or not tried:
        outcome, reason = ReadingOutcome.FAILED, next((each.reason for each in items if each.reason), "")
    else:
        outcome, reason = ReadingOutcome.SKIPPED, next((each.reason for each in items if each.reason), "")
    return ReadingDecision(capability=plan.capability, outcome=outcome, reason=reason, attachments=records)


def skipped(choice: EntryChoice) -> Attempt:
    """An entry that the policy leaves out."""
    return Attempt(
        provider=choice.candidate.entry.provider,
        model=str(getattr(choice.candidate.entry.options, "model", None) or ""),
        outcome=ReadingOutcome.SKIPPED,
        reason=choice.skip,
    )


def merged(attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """Attempts with the windows and pages of one entry put together."""
    made: list[Attempt] = []
    for attempt in attempts:
        last = made[-1] if made else None
        if last is not None and _key(last) == _key(attempt):
            known = last.usd is not None and attempt.usd is not None
            made[-1] = replace(
                last,
                milliseconds=last.milliseconds + attempt.milliseconds,
                usd=(last.usd or 0.0) + (attempt.usd or 0.0) if known else None,
            )
        else:
            made.append(attempt)
    return tuple(made)


def markers_of(plans: Sequence[CapabilityPlan], items: Sequence[ItemOutcome]) -> tuple[tuple[Marker, ...], int]:
    """Why attachments have no text, of some of them, and how many there are more."""
    unread = {each.item.index: (each.item, each.unread) for plan in plans for each in plan.items}
    unread |= {each.plan.item.index: (each.plan.item, each.unread) for each in items}
    told = [
        Marker(ref=item.ref, attachment_index=index, says=why)
        for index, (item, why) in sorted(unread.items())
        if why is not None
    ]
    return tuple(told[:MARKERS_AT_MOST]), max(0, len(told) - MARKERS_AT_MOST)


def _record(plan: ItemPlan, done: ItemOutcome | None) -> AttachmentRecord:
    if done is None:
        return AttachmentRecord(index=plan.item.index, ref=plan.item.ref, reason=plan.reason)
    attempts = merged(done.attempts)
    chosen = [number for number, each in enumerate(attempts) if each.outcome is ReadingOutcome.SUCCESS]
    return AttachmentRecord(
        index=plan.item.index,
        ref=plan.item.ref,
        attempts=attempts,
        chosen=chosen[-1] if chosen else None,
        reason=done.reason,
    )


def _is_empty(item: ItemOutcome) -> bool:
    """Whether it was read, and there is nothing in it."""
    return item.unread is Unread.NO_TEXT and any(each.outcome is ReadingOutcome.SUCCESS for each in item.attempts)


def _key(attempt: Attempt) -> tuple[object, ...]:
    return attempt.provider, attempt.model, attempt.outcome, attempt.reason, attempt.cached, attempt.sent_to
