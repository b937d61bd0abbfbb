"""What renditions cost."""

from datetime import UTC, datetime

import pytest

from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Author, ConversationKey
from belino.domain.outcome import MediaOutcome
from belino.domain.record import RefRecord
from belino.media.price import price


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


def test_a_picture_costs_by_its_pixels_and_a_file_nothing() -> None:
    assert price(record(MediaKind.IMAGE, "image/png", width=750, height=500)) == {"image": 500, "thumb": 58, "file": 0}


def test_a_picture_of_unknown_size_is_priced_at_the_most_one_can_cost() -> None:
    assert price(record(MediaKind.IMAGE, "image/png")) == {"image": 1600, "thumb": 87, "file": 0}


def test_text_costs_a_quarter_of_its_bytes() -> None:
    assert price(record(MediaKind.DOCUMENT, "text/csv; charset=utf-8", size=4001)) == {"text": 1001, "file": 0}


def test_any_other_file_is_only_a_file() -> None:
    assert price(record(MediaKind.DOCUMENT, "application/zip", size=4001)) == {"file": 0}


@pytest.mark.parametrize(
    ("mime", "kind", "priced"),
    [
        ("image/heic", MediaKind.IMAGE, True),
        ("image/webp", MediaKind.STICKER, True),
        ("application/x-tgsticker", MediaKind.STICKER, False),
        ("video/webm", MediaKind.STICKER, False),
        ("image/svg+xml", MediaKind.IMAGE, False),
        ("", MediaKind.IMAGE, True),
        ("image/png", MediaKind.DOCUMENT, True),
    ],
)
def test_only_what_can_be_drawn_has_the_price_of_a_picture(mime: str, kind: MediaKind, priced: bool) -> None:
    assert ("image" in price(record(kind, mime))) is priced


def test_a_picture_is_priced_as_it_will_be_shown() -> None:
    large = record(MediaKind.IMAGE, "image/jpeg", width=4000, height=1000)
    assert price(large, side=1568)["image"] == round(1568 * 392 / 750)
    assert price(large, side=400)["image"] == round(400 * 100 / 750)
