"""What laziness saved, in numbers and in words."""

from belino.domain.media import MediaKind
from belino.domain.message import ConversationKey
from belino.domain.stored import MediaTally, Unfetched
from belino.gateway.savings import as_json, savings, says


def group(kind: MediaKind, mime: str, items: int, size: int, side: int | None = None) -> Unfetched:
    return Unfetched(kind=kind, mime=mime, width=side, height=side, items=items, size=size)


def tallied(
    *, messages: int, seen: int, fetched: int, fetched_bytes: int, unfetched: tuple[Unfetched, ...], channel: str = "1"
) -> MediaTally:
    return MediaTally(
        channel=ConversationKey(platform="web", account="default", channel=channel),
        name=channel,
        messages=messages,
        seen=seen,
        fetched=fetched,
        fetched_bytes=fetched_bytes,
        unfetched=unfetched,
    )


def test_pictures_and_texts_cost_tokens_and_everything_costs_bytes() -> None:
    tally = tallied(
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
    tally = tallied(
        messages=1,
        seen=1,
        fetched=0,
        fetched_bytes=0,
        unfetched=(group(MediaKind.DOCUMENT, "text/plain", 1, 10**9),),
    )
    assert savings(tally).tokens_not_spent == 10_000


def test_the_sentence_reads_like_a_bill() -> None:
    tally = tallied(
        messages=1214,
        seen=61,
        fetched=1,
        fetched_bytes=1,
        unfetched=(group(MediaKind.IMAGE, "image/jpeg", 60, 48_100_000, side=1061),),
    )
    told = as_json([tally])
    expected = "1 214 messages, 61 media, 1 fetched, 48 MB and ~90 000 tokens not spent"
    assert str(told["says"]).replace("\N{NO-BREAK SPACE}", " ") == expected
    empty = tallied(messages=1, seen=0, fetched=0, fetched_bytes=0, unfetched=())
    assert says(savings(empty)).startswith("1 message, 0 media, 0 fetched, 0")


def test_every_channel_is_told_and_all_of_them_add_up() -> None:
    small = tallied(
        messages=2, seen=1, fetched=0, fetched_bytes=0, unfetched=(group(MediaKind.VIDEO, "video/mp4", 1, 70),)
    )
    large = tallied(
        messages=5,
        seen=3,
        fetched=1,
        fetched_bytes=9,
        unfetched=(group(MediaKind.IMAGE, "image/png", 2, 30, side=750),),
        channel="2",
    )
    silent = tallied(messages=4, seen=0, fetched=0, fetched_bytes=0, unfetched=(), channel="3")
    told = as_json([small, large, silent])
    assert (told["messages"], told["media"], told["fetched"], told["bytes_not_spent"]) == (11, 4, 1, 100)
    channels = told["channels"]
    assert isinstance(channels, list)
    assert [each["channel"] for each in channels] == ["web:default:2", "web:default:1"]
    assert sum(each["tokens_not_spent"] for each in channels) == told["tokens_not_spent"]


def test_nothing_at_all_is_a_bill_too() -> None:
    assert str(as_json([])["says"]).startswith("0 messages")


def test_a_text_of_no_size_saves_nothing_and_breaks_nothing() -> None:
    nothing = (group(MediaKind.STICKER, "application/json", 2, 0), group(MediaKind.DOCUMENT, "text/plain", 3, 2))
    tally = tallied(messages=5, seen=5, fetched=0, fetched_bytes=0, unfetched=nothing)
    assert savings(tally).tokens_not_spent == 0
