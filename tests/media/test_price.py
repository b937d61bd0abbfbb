"""What renditions cost."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Author, ConversationKey
from belino.domain.outcome import MediaOutcome
from belino.domain.stored import RefRecord
from belino.media.price import BLOCK_SIDE, Facts, facts_of, picture_tokens, price, prices, side_within


def record(kind: MediaKind, mime: str, **changes: int) -> RefRecord:
    sent = datetime(2026, 1, 1, tzinfo=UTC)
    ref = MediaRef(
        platform="web", account="default", channel_id="main", message_id="1", item="0", kind=kind, mime=mime,
        created=sent, id="web_k3v9d0q2m7xa", size=changes.get("size"), width=changes.get("width"),
        height=changes.get("height"),
    )  # fmt: skip
    where = ConversationKey(platform="web", account="default", channel="main")
    author = Author(id="1", name="Ana")
    return RefRecord(
        ref=ref,
        conversation=where,
        author=author,
        sent=sent,
        outcome=MediaOutcome.HELD,
        reason="",
        public_name="x",
        seq=1,
    )


def tokens(priced: RefRecord, *, side: int = BLOCK_SIDE) -> dict[str, int]:
    return {form: each.tokens for form, each in price(priced, side=side).items()}


def test_a_picture_costs_by_its_pixels_and_a_file_nothing() -> None:
    assert tokens(record(MediaKind.IMAGE, "image/png", width=750, height=500)) == {"image": 500, "thumb": 58, "file": 0}


def test_a_picture_of_unknown_size_is_priced_at_the_most_one_can_cost() -> None:
    assert tokens(record(MediaKind.IMAGE, "image/png")) == {"image": 1600, "thumb": 87, "file": 0}


def test_text_costs_a_quarter_of_its_bytes_until_it_was_read() -> None:
    csv = record(MediaKind.DOCUMENT, "text/csv; charset=utf-8", size=4001)
    assert tokens(csv) == {"text": 1001, "file": 0} and str(price(csv)["text"]) == "~1001"
    known = prices(replace(facts_of(csv), text_tokens=1200))["text"]
    assert (known.tokens, known.exact, str(known)) == (1200, True, "1200")


def test_documents_cost_less_than_their_bytes_say() -> None:
    assert tokens(record(MediaKind.DOCUMENT, "application/pdf", size=40_000))["text"] == 1000
    assert tokens(record(MediaKind.DOCUMENT, "application/zip", size=1_000_000))["text"] == 1000


def test_a_type_that_says_nothing_is_told_by_the_name() -> None:
    named = record(MediaKind.DOCUMENT, "application/octet-stream", size=60_000)
    named = replace(named, ref=replace(named.ref, file_name="a.PDF"))
    assert "text" in tokens(named) and "text" not in tokens(record(MediaKind.DOCUMENT, "", size=9))


def test_a_video_costs_by_its_frames() -> None:
    film = record(MediaKind.VIDEO, "video/mp4", width=1920, height=1080)
    assert tokens(film) == {"frames": 6 * round(768 * 432 / 750), "sheet": 1600, "file": 0}


def test_any_other_file_is_only_a_file() -> None:
    assert tokens(record(MediaKind.DOCUMENT, "application/x-whatever", size=4001)) == {"file": 0}
    assert tokens(record(MediaKind.VOICE, "audio/ogg", size=4001)) == {"file": 0}


def test_bytes_are_what_must_be_fetched_and_take_their_time() -> None:
    away = replace(record(MediaKind.IMAGE, "image/png", size=8_000_000), outcome=MediaOutcome.REFERENCED)
    assert (price(away)["image"].bytes, price(away)["image"].seconds) == (8_000_000, 2.2)
    assert price(replace(away, outcome=MediaOutcome.HELD))["image"].bytes == 0


@pytest.mark.parametrize("room", [1, 50, 333, 1599, 1600])
@pytest.mark.parametrize("size", [(4000, 3000), (100, 9000), (9, 9), None], ids=["photo", "tall", "tiny", "unknown"])
def test_the_longest_side_within_a_price_is_within_it_and_no_shorter_than_need_be(
    room: int, size: tuple[int, int] | None
) -> None:
    side = side_within(room, size, 1568)
    assert picture_tokens(size, side) <= room or side == 1
    assert side == 1568 or picture_tokens(size, side + 1) > room


@pytest.mark.parametrize(
    ("mime", "kind", "priced"),
    [
        ("image/heic", MediaKind.IMAGE, True),
        ("image/webp", MediaKind.STICKER, True),
        ("application/x-tgsticker", MediaKind.STICKER, False),
        ("video/webm", MediaKind.STICKER, False),
        ("image/svg+xml", MediaKind.IMAGE, True),
        ("image/x-xcf", MediaKind.IMAGE, False),
        ("", MediaKind.IMAGE, True),
        ("image/png", MediaKind.DOCUMENT, True),
    ],
)
def test_only_what_can_be_drawn_has_the_price_of_a_picture(mime: str, kind: MediaKind, priced: bool) -> None:
    assert ("image" in price(record(kind, mime))) is priced


def test_a_picture_is_priced_as_it_will_be_shown() -> None:
    large = record(MediaKind.IMAGE, "image/jpeg", width=4000, height=1000)
    assert tokens(large)["image"] == round(1568 * 392 / 750)
    assert tokens(large, side=400)["image"] == round(400 * 100 / 750)


def test_what_was_refused_is_not_offered() -> None:
    photo = Facts(mime="image/jpeg", size=9, width=40, height=30)
    assert "image" in prices(photo) and set(prices(replace(photo, unseen="it is damaged"))) == {"file"}
    clip = Facts(mime="image/gif", size=9, width=40, height=30)
    assert "frames" in prices(clip) and set(prices(replace(clip, still=True))) == {"image", "thumb", "file"}
