"""Prices of readings, before a provider is asked: tokens of the text, and money where the entry tells it; pure."""

from belino.domain.reading import MediaCapability, ReadingForm
from belino.media.price import Facts
from belino.understanding.config import DEFAULTS
from belino.understanding.pages import key_of_pages
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
    pages, known = _pages(choice, facts)
    heard = form is ReadingForm.TRANSCRIPT
    if not heard and not pages:
        return ReadingPrice(tokens=WORDS_AROUND + known, exact=True, usd=0.0, stored=True)
    cost = cost_of(choice.candidate.entry, local=local, seconds=seconds if heard else 0.0, pages=0 if heard else pages)
    if heard:
        takes = seconds * (_LOCAL_SPEED if local else _REMOTE_SPEED)
    else:
        takes = pages * (_LOCAL_PICTURE if local else _REMOTE_PICTURE)
    return ReadingPrice(
        tokens=WORDS_AROUND + (known if form is ReadingForm.TEXT else 0) + _tokens(choice, form, seconds, pages),
        usd=cost.usd,
        seconds=takes,
        provider=choice.candidate.entry.provider,
        local=local,
    )


def _tokens(choice: EntryChoice, form: ReadingForm, seconds: float, pages: int) -> int:
    match form:
        case ReadingForm.TRANSCRIPT:
            return round(seconds * TOKENS_A_SECOND)
        case ReadingForm.DESCRIPTION:
            return (choice.limits.max_chars or DEFAULTS[MediaCapability.IMAGE].max_chars or 500) // CHARS_A_TOKEN
        case ReadingForm.TEXT:
            return pages * TOKENS_A_PAGE


def _pages(choice: EntryChoice, facts: Facts) -> tuple[int, int]:
    """The pages that a provider would be given, and the tokens of those that it need not be given."""
    if capability_of(facts.mime, None, facts.kind) is not MediaCapability.DOCUMENT and not facts.scans:
        return 1, facts.text_tokens or 0
    if facts.text_tokens is None:
        return facts.parts or 1, 0
    if facts.recogniser != key_of_pages(choice):
        return facts.scans, facts.text_tokens
    return max(0, facts.scans - facts.recognised), facts.text_tokens + facts.recognised_tokens
