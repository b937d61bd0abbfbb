"""Decide for each file of a reply: sent as it is, fitted, re-encoded or refused, and why."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from belino.delivery.forms import clash, is_expected, misfits, natural_forms
from belino.domain.limits import FileLimit, Limits, SendAs
from belino.domain.reply import Offer
from belino.media.audio import VOICE_MIME
from belino.media.image.header import DRAWN_MIMES
from belino.media.image.images import FORMATS

SMALLEST_FIT = 2_048
"""The smallest size in bytes to shrink a picture to; a smaller one is not recognizable."""


class Action(StrEnum):
    """What must be done with a file before it is sent."""

    SEND = "send"
    FIT = "fit"
    TRANSCODE = "transcode"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The limits that a picture must be made to fit."""

    max_bytes: int
    formats: tuple[str, ...]
    max_side: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One file, the form it is sent in, and what must be done first."""

    offer: Offer
    action: Action
    send_as: SendAs = SendAs.DOCUMENT
    fit: Fit | None = None
    reason: str = ""
    """Why it is not sent unchanged or as requested; empty if it is."""


def decide(offers: Sequence[Offer], limits: Limits) -> tuple[Decision, ...]:
    """A decision for each offer, in the same order."""
    return tuple(decide_one(offer, limits) for offer in offers)


def decide_one(offer: Offer, limits: Limits, *, barred: Mapping[SendAs, str] | None = None) -> Decision:
    """The best form the platform accepts. Forms that were tried and failed are `barred`, each with its reason."""
    if offer.size == 0:
        return Decision(offer=offer, action=Action.REFUSE, reason="it is empty")
    reasons: list[str] = []
    for form in _candidates(offer):
        limit = limits.files.get(form)
        why = (barred or {}).get(form) or clash(offer, form, limit)
        if why or limit is None:
            reasons.append(why if is_expected(offer, form) else "")
            continue
        limit = limit.of(offer.mime)
        wrong = misfits(offer, form, limit)
        if not wrong:
            return Decision(offer=offer, action=Action.SEND, send_as=form, reason=_told(reasons))
        reasons.append(wrong[0] if is_expected(offer, form) else "")
        action, fit = _mended(offer, form, limit)
        if action is not None:
            return Decision(offer=offer, action=action, send_as=form, fit=fit, reason=_told(reasons))
    return Decision(offer=offer, action=Action.REFUSE, reason=_told(reasons))


def _candidates(offer: Offer) -> Iterator[SendAs]:
    """The requested form, then those that suit the file, best first."""
    if offer.wanted is not None:
        yield offer.wanted
    yield from (form for form in natural_forms(offer) if form is not offer.wanted)


def _told(reasons: list[str]) -> str:
    return "; ".join(dict.fromkeys(reason for reason in reasons if reason))


def _mended(offer: Offer, form: SendAs, limit: FileLimit) -> tuple[Action | None, Fit | None]:
    """What can be done to make a file fit a form."""
    if form is SendAs.VOICE:
        takes = not limit.mimes or VOICE_MIME in limit.mimes
        fits_time = limit.max_seconds is None or (offer.seconds or 0) <= limit.max_seconds
        return (Action.TRANSCODE if takes and fits_time else None), None
    fit = fit_for(offer, limit) if _is_still_picture(offer) else None
    return (Action.FIT if fit else None), fit


def fit_for(offer: Offer, limit: FileLimit) -> Fit | None:
    """What a still picture must be converted to; None if shrinking and converting cannot help."""
    formats = tuple(mime for mime in FORMATS if not limit.mimes or mime in limit.mimes)
    if not formats or limit.max_bytes < SMALLEST_FIT or _too_narrow(offer, limit):
        return None
    return Fit(max_bytes=limit.max_bytes, formats=formats, max_side=_longest_side(offer, limit))


def _is_still_picture(offer: Offer) -> bool:
    return offer.mime in DRAWN_MIMES and offer.frames == 1


def _too_narrow(offer: Offer, limit: FileLimit) -> bool:
    """Whether its aspect ratio exceeds the limit; shrinking does not change that."""
    if limit.max_ratio is None or not offer.width or not offer.height:
        return False
    return max(offer.width, offer.height) > limit.max_ratio * min(offer.width, offer.height)


def _longest_side(offer: Offer, limit: FileLimit) -> int | None:
    """The longer side under all size limits; a picture of unknown size is treated as a square."""
    width, height = (offer.width, offer.height) if offer.width and offer.height else (1, 1)
    longer, shorter = max(width, height), min(width, height)
    sides = [limit.max_side] if limit.max_side else []
    if limit.max_sides:
        sides.append(limit.max_sides * longer // (longer + shorter))
    if limit.max_pixels:
        sides.append(int((limit.max_pixels * longer / shorter) ** 0.5))
    return max(1, min(sides)) if sides else None
