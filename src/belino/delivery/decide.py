"""Decide for each file of a reply: the form it takes, sent as it is, fitted, re-encoded or refused, and why."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from belino.domain.limits import FileLimit, Limits, SendAs
from belino.domain.reply import Offer
from belino.domain.units import format_duration, format_size
from belino.media.audio import VOICES
from belino.media.image.header import PHOTO_MIMES
from belino.media.image.images import FORMATS

SMALLEST_FIT = 2_048
"""The smallest size in bytes to shrink a picture to; a smaller one is not recognizable."""

TGS, WEBM = "application/x-tgsticker", "video/webm"
FORM_NAMES = {
    SendAs.PHOTO: "a photo",
    SendAs.VIDEO: "a video",
    SendAs.AUDIO: "an audio file",
    SendAs.VOICE: "a voice message",
    SendAs.ANIMATION: "an animation",
    SendAs.STICKER: "a sticker",
    SendAs.DOCUMENT: "a document",
}
_TIGHT = frozenset({SendAs.PHOTO, SendAs.VOICE, SendAs.STICKER})
"""Forms with their own limits; the others share the platform's."""


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
        why = (barred or {}).get(form) or _clash(offer, form, limit)
        if why or limit is None:
            reasons.append(why if _is_expected(offer, form) else "")
            continue
        limit = limit.of(offer.mime)
        wrong = misfits(offer, form, limit)
        if not wrong:
            reasons.append(_shown(limit))
            return Decision(offer=offer, action=Action.SEND, send_as=form, reason=_told(reasons))
        reasons.append(wrong[0] if _is_expected(offer, form) else "")
        action, fit = _mended(offer, form, limit)
        if action is not None:
            return Decision(offer=offer, action=action, send_as=form, fit=fit, reason=_told(reasons))
    return Decision(offer=offer, action=Action.REFUSE, reason=_told(reasons))


def _shown(limit: FileLimit) -> str:
    return f"people see {FORM_NAMES[limit.shown_as]} here" if limit.shown_as is not None else ""


def _candidates(offer: Offer) -> Iterator[SendAs]:
    """The requested form, then those that suit the file, best first."""
    if offer.wanted is not None:
        yield offer.wanted
    yield from (form for form in _natural_forms(offer) if form is not offer.wanted)


def _told(reasons: list[str]) -> str:
    return "; ".join(dict.fromkeys(reason for reason in reasons if reason))


def _mended(offer: Offer, form: SendAs, limit: FileLimit) -> tuple[Action | None, Fit | None]:
    """What can be done to make a file fit a form."""
    if form is SendAs.VOICE:
        fits_time = limit.max_seconds is None or (offer.seconds or 0) <= limit.max_seconds
        return (Action.TRANSCODE if voice_type(limit) and fits_time else None), None
    fit = fit_for(offer, limit) if _is_still_picture(offer) else None
    return (Action.FIT if fit else None), fit


def voice_type(limit: FileLimit) -> str | None:
    """The type of sound that a voice message is encoded as; None if the platform takes none that we write."""
    return next((mime for mime in VOICES if not limit.mimes or mime in limit.mimes), None)


def fit_for(offer: Offer, limit: FileLimit) -> Fit | None:
    """What a still picture must be converted to; None if shrinking and converting cannot help."""
    formats = tuple(mime for mime in FORMATS if not limit.mimes or mime in limit.mimes)
    if not formats or limit.max_bytes < SMALLEST_FIT or _too_narrow(offer, limit):
        return None
    return Fit(max_bytes=limit.max_bytes, formats=formats, max_side=_longest_side(offer, limit))


def _is_still_picture(offer: Offer) -> bool:
    return offer.mime in PHOTO_MIMES and offer.frames == 1


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


def _natural_forms(offer: Offer) -> tuple[SendAs, ...]:
    """The forms that suit the file, best first; any file can be a document."""
    if _is_moving(offer):
        return SendAs.ANIMATION, SendAs.DOCUMENT
    if offer.mime in PHOTO_MIMES:
        return SendAs.PHOTO, SendAs.DOCUMENT
    match offer.mime.partition("/")[0]:
        case "video" if offer.mime == WEBM:
            return SendAs.VIDEO, SendAs.STICKER, SendAs.DOCUMENT
        case "video":
            return SendAs.VIDEO, SendAs.DOCUMENT
        case "application" if offer.mime == TGS:
            return SendAs.STICKER, SendAs.DOCUMENT
        case "audio":
            return SendAs.AUDIO, SendAs.DOCUMENT
        case _:
            return (SendAs.DOCUMENT,)


def _is_moving(offer: Offer) -> bool:
    """Whether a picture is animated; as a photo, only its first frame would be left."""
    return offer.mime.startswith("image/") and offer.frames > 1


def _is_expected(offer: Offer, form: SendAs) -> bool:
    """Whether to give a reason why a file does not take a form; a video that was not meant as a sticker needs none."""
    return form is not SendAs.STICKER or offer.mime != WEBM or offer.wanted is SendAs.STICKER


def _clash(offer: Offer, form: SendAs, limit: FileLimit | None) -> str:
    """Why a file can never take a form here, even when converted; empty if it might."""
    if not _suits(offer, form):
        if form is SendAs.PHOTO and _is_moving(offer):
            return "it moves, and a photo stands still"
        return f"{offer.mime} is not {FORM_NAMES[form]}"
    if limit is None:
        return f"{FORM_NAMES[form]} cannot be sent here"
    if limit.names and not re.fullmatch(limit.names, offer.name):
        return f"{FORM_NAMES[form]} here is one of the platform's own, by its name: send one that came with a message"
    return ""


def _suits(offer: Offer, form: SendAs) -> bool:
    match form:
        case SendAs.PHOTO:
            return offer.mime in PHOTO_MIMES and not _is_moving(offer)
        case SendAs.VIDEO:
            return offer.mime.startswith("video/")
        case SendAs.AUDIO | SendAs.VOICE:
            return offer.mime.startswith("audio/")
        case SendAs.ANIMATION:
            return _is_moving(offer) or offer.mime in ("video/mp4", "image/gif")
        case SendAs.STICKER:
            return offer.mime in (TGS, WEBM, "image/webp") or (offer.mime in PHOTO_MIMES and not _is_moving(offer))
        case SendAs.DOCUMENT:
            return True


def misfits(offer: Offer, form: SendAs, limit: FileLimit) -> tuple[str, ...]:
    """Every reason why a file does not fit a form, in words for people; empty if it can be sent unchanged."""
    name = FORM_NAMES[form]
    found = []
    if limit.mimes and offer.mime not in limit.mimes:
        found.append(f"{offer.mime} is not taken as {name} here")
    if limit.codecs and offer.codec not in limit.codecs:
        found.append(f"{name} here is encoded as {' or '.join(sorted(limit.codecs))}")
    most_bytes = limit.moving_bytes if limit.moving_bytes is not None and _is_moving(offer) else limit.max_bytes
    if offer.size > most_bytes:
        here = f"here as {name}" if form in _TIGHT else "here"
        size, most = format_size(offer.size), format_size(most_bytes)
        if size == most:
            size, most = f"{offer.size:,} bytes", f"{most_bytes:,}"
        found.append(f"it has {size}, and at most {most} are taken {here}")
    if not _size_fits(offer, limit):
        found.append(_size_told(offer, limit, name))
    if limit.max_seconds is not None and (offer.seconds or 0) > limit.max_seconds:
        lasts = format_duration(offer.seconds or 0)
        found.append(f"{name} lasts at most {format_duration(limit.max_seconds)} here and this one {lasts}")
    return tuple(found)


def _size_fits(offer: Offer, limit: FileLimit) -> bool:
    bounds = (limit.max_side, limit.side, limit.max_pixels, limit.max_sides, limit.max_ratio)
    if all(bound is None for bound in bounds):
        return True
    if not offer.width or not offer.height:
        # Videos are not measured; a picture of unknown size must be decoded first.
        return offer.mime not in PHOTO_MIMES
    longer, shorter = max(offer.width, offer.height), min(offer.width, offer.height)
    return (
        longer <= (limit.max_side or longer)
        and longer == (limit.side or longer)
        and longer * shorter <= (limit.max_pixels or longer * shorter)
        and longer + shorter <= (limit.max_sides or longer + shorter)
        and longer <= (limit.max_ratio or longer) * shorter
    )


def _size_told(offer: Offer, limit: FileLimit, name: str) -> str:
    if not offer.width or not offer.height:
        return f"how many pixels it has cannot be told, and {name} has bounds here"
    if limit.max_ratio and max(offer.width, offer.height) > limit.max_ratio * min(offer.width, offer.height):
        return f"{offer.width}×{offer.height} pixels are too long and narrow for {name} here"
    if limit.side:
        return f"the longer side of {name} has {limit.side} pixels here, and this one is {offer.width}×{offer.height}"
    return f"{offer.width}×{offer.height} pixels are more than {name} may have here"
