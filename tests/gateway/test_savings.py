"""What laziness saved, in numbers and in words."""

from belino.domain.media import MediaKind
from belino.domain.record import MediaTally, Unfetched
from belino.gateway.savings import as_json, savings, says


def group(kind: MediaKind, mime: str, items: int, size: int, side: int | None = None) -> Unfetched:
    return Unfetched(kind=kind, mime=mime, width=side, height=side, items=items, size=size)


def test_pictures_and_texts_cost_tokens_and_everything_costs_bytes() -> None:
    tally = MediaTally(
        messages=3,
        seen=9,
        fetched=1,
        fetched_bytes=5,
        unfetched=(
            group(MediaKind.IMAGE, "image/jpeg", 2, 1000, side=750),
            group(MediaKind.DOCUMENT, "text/csv", 1, 4000),
            group(MediaKind.VIDEO, "video/mp4", 5, 90_000),
        ),
    )
    saved = savings(tally)
    assert (saved.messages, saved.media, saved.fetched, saved.bytes_fetched) == (3, 9, 1, 5)
    assert saved.bytes_not_spent == 95_000
    assert saved.tokens_not_spent == 2 * 750 + 1000


def test_a_text_without_end_does_not_count_without_end() -> None:
    tally = MediaTally(
        messages=1,
        seen=1,
        fetched=0,
        fetched_bytes=0,
        unfetched=(group(MediaKind.DOCUMENT, "text/plain", 1, 10**9),),
    )
    assert savings(tally).tokens_not_spent == 10_000


def test_the_sentence_reads_like_a_bill() -> None:
    tally = MediaTally(
        messages=1214,
        seen=61,
        fetched=1,
        fetched_bytes=1,
        unfetched=(group(MediaKind.IMAGE, "image/jpeg", 60, 48_100_000, side=1061),),
    )
    told = as_json(savings(tally))
    expected = "1 214 messages, 61 media, 1 fetched, 48 MB and ~90 000 tokens not spent"
    assert str(told["says"]).replace("\N{NO-BREAK SPACE}", " ") == expected
    empty = MediaTally(messages=1, seen=0, fetched=0, fetched_bytes=0, unfetched=())
    assert says(savings(empty)).startswith("1 message, 0 media, 0 fetched, 0")
