"""Forms a file can take by its content, and what prevents one on a platform."""

from belino.domain.limits import FileLimit, SendAs
from belino.domain.reply import Offer
from belino.domain.units import format_duration, format_size
from belino.media.image.header import DRAWN_MIMES

TGS, WEBM = "application/x-tgsticker", "video/webm"
NAMES = {
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


def natural_forms(offer: Offer) -> tuple[SendAs, ...]:
    """The forms that suit the file, best first; any file can be a document."""
    if is_moving(offer):
        return SendAs.ANIMATION, SendAs.DOCUMENT
    if offer.mime in DRAWN_MIMES:
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


def is_moving(offer: Offer) -> bool:
    """Whether a picture is animated; as a photo, only its first frame would be left."""
    return offer.mime.startswith("image/") and offer.frames > 1


def is_expected(offer: Offer, form: SendAs) -> bool:
    """Whether to give a reason why a file does not take a form; a video that was not meant as a sticker needs none."""
    return form is not SendAs.STICKER or offer.mime != WEBM or offer.wanted is SendAs.STICKER


def clash(offer: Offer, form: SendAs, limit: FileLimit | None) -> str:
    """Why a file can never take a form here, even when converted; empty if it might."""
    if not _suits(offer, form):
        if form is SendAs.PHOTO and is_moving(offer):
            return "it moves, and a photo stands still"
        return f"{offer.mime} is not {NAMES[form]}"
    return f"{NAMES[form]} cannot be sent here" if limit is None else ""


def _suits(offer: Offer, form: SendAs) -> bool:
    match form:
        case SendAs.PHOTO:
            return offer.mime in DRAWN_MIMES and not is_moving(offer)
        case SendAs.VIDEO:
            return offer.mime.startswith("video/")
        case SendAs.AUDIO | SendAs.VOICE:
            return offer.mime.startswith("audio/")
        case SendAs.ANIMATION:
            return is_moving(offer) or offer.mime in ("video/mp4", "image/gif")
        case SendAs.STICKER:
            return offer.mime in (TGS, WEBM, "image/webp") or (offer.mime in DRAWN_MIMES and not is_moving(offer))
        case SendAs.DOCUMENT:
            return True


def misfits(offer: Offer, form: SendAs, limit: FileLimit) -> tuple[str, ...]:
    """Every reason why a file does not fit a form, in words for people; empty if it can be sent unchanged."""
    name = NAMES[form]
    found = []
    if limit.mimes and offer.mime not in limit.mimes:
        found.append(f"{offer.mime} is not taken as {name} here")
    if limit.codecs and offer.codec not in limit.codecs:
        found.append(f"{name} here is encoded as {' or '.join(sorted(limit.codecs))}")
    if offer.size > limit.max_bytes:
        here = f"here as {name}" if form in _TIGHT else "here"
        most = format_size(limit.max_bytes)
        found.append(f"it has {format_size(offer.size)}, and at most {most} are taken {here}")
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
        return offer.mime not in DRAWN_MIMES
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
