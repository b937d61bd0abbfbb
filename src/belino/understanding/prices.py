"""Prices of readings, before a provider is asked: tokens of the text, and money where the entry tells it; pure."""

from belino.domain.reading import MediaCapability, ReadingForm
from belino.media.price import Facts
from belino.understanding.config import DEFAULTS
from belino.understanding.policy import EntryChoice, capability_of
from belino.understanding.request import ReadingPrice
from belino.understanding.spending import cost_of

TOKENS_A_SECOND = 3.4
"""Of fast speech, in English."""
TOKENS_A_PAGE = 700
WORDS_AROUND = 70
"""Approximate cost of our words and the markers around a text."""
BYTES_A_SECOND = 4_000
"""Of a voice message that does not tell its length."""
CHARS_A_TOKEN = 4
_LOCAL_SPEED, _REMOTE_SPEED = 0.15, 0.03
_LOCAL_PICTURE, _REMOTE_PICTURE = 2.0, 4.0


def price_of(choice: EntryChoice, form: ReadingForm, facts: Facts) -> ReadingPrice:
    """What it costs to have a file read by an entry."""
    local = choice.candidate.local
    seconds = facts.seconds if facts.seconds is not None else (facts.size or 0) / BYTES_A_SECOND
    pages = _pages(facts)
    heard = form is ReadingForm.TRANSCRIPT
    cost = cost_of(
        choice.candidate.entry, local=local, seconds=seconds if heard else 0.0, pages=0 if heard else max(1, pages)
    )
    if heard:
        takes = seconds * (_LOCAL_SPEED if local else _REMOTE_SPEED)
    else:
        takes = max(1, pages) * (_LOCAL_PICTURE if local else _REMOTE_PICTURE)
    return ReadingPrice(
        tokens=WORDS_AROUND + _tokens(choice, form, facts, seconds, pages),
        usd=cost.usd,
        seconds=takes,
        provider=choice.candidate.entry.provider,
        local=local,
    )


def _tokens(choice: EntryChoice, form: ReadingForm, facts: Facts, seconds: float, pages: int) -> int:
    match form:
        case ReadingForm.TRANSCRIPT:
            return round(seconds * TOKENS_A_SECOND)
        case ReadingForm.DESCRIPTION:
            return (choice.limits.max_chars or DEFAULTS[MediaCapability.IMAGE].max_chars or 500) // CHARS_A_TOKEN
        case ReadingForm.TEXT:
            return (facts.text_tokens or 0) + max(1, pages) * TOKENS_A_PAGE


def _pages(facts: Facts) -> int:
    """The pages that a provider would be given."""
    if capability_of(facts.mime, None, facts.kind) is not MediaCapability.DOCUMENT:
        return 1
    return facts.scans if facts.text_tokens is not None else facts.parts or 1
