"""Renditions are made once, and what cannot be kept or believed is made again."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from belino.domain.errors import MediaNotFound, StoreError
from belino.domain.media import Blob, DocumentText, DocumentUnit, Part, Unread
from belino.domain.message import Deletion
from belino.domain.outcome import Standing
from belino.domain.stored import Verdict
from belino.media.image.images import Fitted, ImageFacts
from belino.media.price import Facts
from belino.media.render import PARTS_AT_ONCE, Makers, Renderer
from belino.testing.files import make_jpeg
from blob_files import content_of, path_of
from media.local_files import local_blob
from tools.town import HERE, File, Town, settled


@dataclass
class Hand:
    """Makes everything, counts it, and takes its time."""

    total: int = 10
    stops_after: int = 1_000
    unread: Unread | None = None
    made: list[object] = field(default_factory=list)
    gate: asyncio.Event | None = None

    async def probe(self, blob: Blob) -> ImageFacts:
        raise AssertionError("nobody asked")

    async def fit(self, blob: Blob, *, max_bytes: int, max_side: int | None = None) -> Fitted:
        self.made.append(("fit", max_side))
        if self.gate:
            await self.gate.wait()
        side = max_side or 8
        return Fitted(data=make_jpeg(side, side), mime="image/jpeg", width=side, height=side)

    async def read(
        self, blob: Blob, *, mime: str, name: str = "", parts: tuple[int, int] | None = None
    ) -> DocumentText:
        first, last = parts or (1, PARTS_AT_ONCE)
        self.made.append(("read", first))
        if self.unread:
            return DocumentText(unit=DocumentUnit.PART, total=0, unread=self.unread, reason="it is so")
        numbers = range(first, min(last, self.total, first + self.stops_after - 1) + 1)
        found = tuple(Part(number=number, text=f"part {number}") for number in numbers)
        return DocumentText(unit=DocumentUnit.PAGE, total=self.total, parts=found)


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with settled(tmp_path / "home") as found:
        yield found


def renderer(hand: Hand, town: Town | None) -> Renderer:
    maker: Any = hand
    makers = Makers(images=maker, documents=maker, videos=maker, sounds=maker, windows=maker, sheets=maker)
    return Renderer(makers, town.store if town else None)


async def held(town: Town) -> Blob:
    """A file that was sent and fetched."""
    _, (ref,) = await town.say("", File(content=b"bytes", mime="application/pdf"))
    await town.toolbox().call("fetch_media", {"ref": ref, "as": "file"})
    record = await town.store.ref(HERE, ref)
    assert record is not None and record.ref.sha256 is not None
    blob = await town.store.blob(record.ref.sha256)
    assert blob is not None
    return blob


async def text(made: Renderer, blob: Blob, first: int = 1, last: int = 10**6) -> list[int]:
    found = await made.reading(blob, mime="application/pdf", first=first, last=last)
    return [part.number for part in found.parts]


async def test_who_asks_while_it_is_made_waits_for_it(town: Town) -> None:
    hand = Hand(gate=asyncio.Event())
    made, blob = renderer(hand, town), await held(town)
    asked = asyncio.gather(*(made.fit(blob, max_bytes=99, max_side=16) for _ in range(5)))
    assert hand.gate is not None
    hand.gate.set()
    assert len({fitted.data for fitted in await asked}) == 1 and hand.made == [("fit", 16)]
    await made.fit(blob, max_bytes=99, max_side=8)
    assert hand.made == [("fit", 16), ("fit", 8)]


async def test_one_that_fails_or_is_cancelled_leaves_the_way_free(town: Town) -> None:
    hand = Hand(gate=asyncio.Event())
    made, blob = renderer(hand, town), await held(town)
    first = asyncio.ensure_future(made.fit(blob, max_bytes=99, max_side=16))
    while not hand.made:
        await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    hand.gate = None
    assert (await made.fit(blob, max_bytes=99, max_side=16)).width == 16


async def test_a_damaged_rendition_is_made_again(town: Town) -> None:
    hand = Hand()
    made, blob = renderer(hand, town), await held(town)
    first = await made.fit(blob, max_bytes=99, max_side=16)
    kept = await town.store.rendition(blob.sha256, "image-99-16")
    assert kept is not None
    content = bytearray(await content_of(town.store, kept))
    content[40] ^= 1
    path_of(town.store, kept).chmod(0o600)
    path_of(town.store, kept).write_bytes(content)
    assert (await made.fit(blob, max_bytes=99, max_side=16)).data == first.data and len(hand.made) == 2


async def test_a_store_that_keeps_nothing_now_costs_only_time(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: object, **__: object) -> None:
        raise StoreError("the disk is full")

    hand = Hand()
    made, blob = renderer(hand, town), await held(town)
    for verb in ("keep_rendition", "keep_reading"):
        monkeypatch.setattr(town.store, verb, full)
    assert (await made.fit(blob, max_bytes=99, max_side=16)).width == 16
    assert await text(made, blob, 1, 3) == [1, 2, 3]


async def test_what_is_deleted_while_it_is_made_is_given_to_nobody(town: Town) -> None:
    hand = Hand(gate=asyncio.Event())
    made, blob = renderer(hand, town), await held(town)
    asked = asyncio.ensure_future(made.fit(blob, max_bytes=99, max_side=16))
    while not hand.made:
        await asyncio.sleep(0)
    gone = Deletion(conversation=HERE, id="gone-1", message_id="1", author=None, sent=town.clock.now())
    await town.store.take_in(gone, Verdict(standing=Standing.MAY_COMMAND, reason="test"))
    assert hand.gate is not None
    hand.gate.set()
    with pytest.raises(MediaNotFound):
        await asked


async def test_a_long_document_is_read_on_from_a_round_number(town: Town) -> None:
    hand = Hand(total=1_000)
    made, blob = renderer(hand, town), await held(town)
    assert await text(made, blob, 5, 7) == [5, 6, 7]
    assert await text(made, blob, 450, 451) == [450, 451]
    assert await text(made, blob, 420, 421) == [420, 421]
    assert hand.made == [("read", 1), ("read", 401)]


async def test_reading_that_stopped_early_goes_on_where_it_is_wanted(town: Town) -> None:
    hand = Hand(total=100, stops_after=30)
    made, blob = renderer(hand, town), await held(town)
    assert await text(made, blob, 40, 41) == [40, 41]
    assert await text(made, blob, 80, 80) == [80]
    assert hand.made == [("read", 1), ("read", 40), ("read", 80)]


@pytest.mark.parametrize(("unread", "times"), [(Unread.UNSUPPORTED, 1), (Unread.TOO_LARGE, 1), (Unread.UNREADABLE, 2)])
async def test_what_failed_is_tried_again_and_what_is_so_is_not(town: Town, unread: Unread, times: int) -> None:
    hand = Hand(unread=unread)
    made, blob = renderer(hand, town), await held(town)
    for _ in range(2):
        assert (await made.reading(blob, mime="application/pdf")).unread is unread
    assert len(hand.made) == times


async def test_without_a_store_everything_is_made_and_nothing_kept(tmp_path: Path) -> None:
    hand = Hand()
    path = tmp_path / "x"
    path.write_bytes(b"bytes")
    blob = local_blob(path, mime="application/pdf")
    made = renderer(hand, None)
    assert await text(made, blob, 2, 3) == [2, 3] and await text(made, blob, 2, 3) == [2, 3]
    assert len(hand.made) == 2


async def test_the_price_of_a_document_is_known_once_it_was_read_also_by_others(town: Town) -> None:
    blob, facts = await held(town), Facts(mime="application/pdf", size=5)
    assert await renderer(Hand(), town).known(facts, blob.sha256) == facts
    await text(renderer(Hand(), town), blob)
    known = await renderer(Hand(), town).known(facts, blob.sha256)
    assert (known.parts, known.unit) == (10, DocumentUnit.PAGE) and known.text_tokens
