"""Savings: media that was offered and never fetched, in bytes and in tokens."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from operator import itemgetter
from typing import Any

from belino.domain.stored import MediaTally, Unfetched
from belino.media.price import Facts, is_text, prices

# A long text would be cut somewhere; other designs show a model about this much of one file.
_TEXT_TOKENS_AT_MOST = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Savings:
    """Attachments seen and fetched, and what the unfetched ones would have cost."""

    messages: int
    media: int
    fetched: int
    bytes_fetched: int
    bytes_not_spent: int
    tokens_not_spent: int
    """Pictures and texts only: the types a model reads directly."""


_NUMBERS = tuple(field.name for field in fields(Savings))
_NOTHING = Savings(messages=0, media=0, fetched=0, bytes_fetched=0, bytes_not_spent=0, tokens_not_spent=0)


def savings(tally: MediaTally) -> Savings:
    """The savings of a channel, from the store's counts."""
    return Savings(
        messages=tally.messages,
        media=tally.seen,
        fetched=tally.fetched,
        bytes_fetched=tally.fetched_bytes,
        bytes_not_spent=sum(group.size for group in tally.unfetched),
        tokens_not_spent=sum(_tokens(group) for group in tally.unfetched),
    )


def in_all(each: Iterable[Savings]) -> Savings:
    """The savings of several channels together."""
    counted = [astuple(one) for one in each]
    return Savings(**dict(zip(_NUMBERS, map(sum, zip(*counted, strict=True)), strict=True))) if counted else _NOTHING


def as_json(tallies: Sequence[MediaTally]) -> dict[str, object]:
    """The savings as values and as a sentence: in total, and by channel, the largest first."""
    known = [(tally, savings(tally)) for tally in tallies]
    channels = [
        {"channel": str(tally.channel), "name": tally.name, **_told(saved)} for tally, saved in known if saved.media
    ]
    channels.sort(key=itemgetter("tokens_not_spent", "bytes_not_spent"), reverse=True)
    return {**_told(in_all(saved for _, saved in known)), "channels": channels}


def _told(saved: Savings) -> dict[str, Any]:
    return {**asdict(saved), "says": says(saved)}


def says(saved: Savings) -> str:
    """`214 messages, 61 media, 1 fetched, 48 MB and ~90 000 tokens not spent`."""
    messages = f"{_number(saved.messages)} message{'' if saved.messages == 1 else 's'}"
    tokens = round(saved.tokens_not_spent, -3 if saved.tokens_not_spent >= 10_000 else -2)
    return (
        f"{messages}, {_number(saved.media)} media, {_number(saved.fetched)} fetched, "
        f"{_size(saved.bytes_not_spent)} and ~{_number(tokens)} tokens not spent"
    )


def _tokens(group: Unfetched) -> int:
    """The cost of these items by the estimate of `list_media`, as a picture or as text."""
    size = group.size // group.items
    each = prices(Facts(mime=group.mime, kind=group.kind, size=size, width=group.width, height=group.height))
    if "image" in each:
        return group.items * each["image"].tokens
    # A text without a size has no price; stickers drawn from JSON are reported that way.
    if not is_text(group.mime) or "text" not in each:
        return 0
    return group.items * min(each["text"].tokens, _TEXT_TOKENS_AT_MOST)


def _number(value: int) -> str:
    """Digits in groups of three, separated by no-break spaces."""
    return f"{value:,}".replace(",", "\N{NO-BREAK SPACE}")


def _size(size: int) -> str:
    for unit, scale in (("GB", 10**9), ("MB", 10**6)):
        if size >= scale:
            return f"{size / scale:.{0 if size >= 10 * scale else 1}f}\N{NO-BREAK SPACE}{unit}"
    return f"{-(-size // 1000)}\N{NO-BREAK SPACE}kB"
