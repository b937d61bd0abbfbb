"""The three ways a file gets into a reply, and that there is no fourth."""

import hashlib
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from belino.delivery.collect import FILES_AT_MOST, IN_CODE, INCOMING, OLD, RECEIVED, Collected, collect
from belino.delivery.folders import Folders, mark_of
from belino.delivery.outgoing_files import Keeper
from belino.domain.limits import SendAs
from belino.domain.message import ConversationKey
from belino.domain.reply import Offer
from belino.domain.stored import EarlierFiles
from belino.media.jail import Jail
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing.clock import FakeClock
from belino.testing.files import make_gif, make_pdf, make_png
from blob_files import content_of
from tools.town import Pencil

HERE, THERE = (ConversationKey(platform="web", account="default", channel=name) for name in ("here", "there"))
LONG_AGO = 1_000_000_000


@dataclass
class Desk:
    """A conversation's folders and a store to keep bytes in."""

    home: Home
    store: Store
    clock: FakeClock
    max_bytes: int = 100_000
    earlier: EarlierFiles = field(default_factory=EarlierFiles)

    @property
    def outgoing(self) -> Path:
        return self.home.outgoing(HERE)

    def put(self, path: str, content: bytes) -> Path:
        place = self.outgoing / path
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(content)
        os.utime(place, (LONG_AGO, LONG_AGO))
        return place

    async def keep(self, content: bytes, name: str) -> Offer:
        return await self.keeper().keep(_pieces(content), name=name)

    def keeper(self) -> Keeper:
        return Keeper(self.store, Pencil(), max_bytes=self.max_bytes)

    async def collect(self, text: str, *handed: Offer, busy: frozenset[str] = frozenset()) -> Collected:
        self.home.outgoing(HERE)
        folders = Folders(self.home.folder(HERE), self.clock)
        return await collect(text, handed, folders, self.keeper(), earlier=self.known, busy=busy)

    async def known(self) -> EarlierFiles:
        return self.earlier

    async def bytes_of(self, offer: Offer) -> bytes:
        blob = await self.store.blob(offer.sha256)
        assert blob is not None
        return await content_of(self.store, blob)


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    yield content


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    home, clock = Home.at(tmp_path / "home"), FakeClock()
    store = await open_store(home, clock=clock)
    yield Desk(home=home, store=store, clock=clock)
    await store.close()


async def test_the_three_ways_come_in_this_order_and_paths_become_names(desk: Desk) -> None:
    handed = await desk.keep(b"handed", "handed.txt")
    pdf, png = desk.put("report.pdf", make_pdf()), make_png(40, 30)
    desk.put("pending/chart.png", png)
    found = await desk.collect(f"Here: {pdf} and that is it.", handed)
    assert found.text == "Here: report.pdf and that is it."
    assert [offer.name for offer in found.offers] == ["handed.txt", "report.pdf", "chart.png"]
    chart = found.offers[2]
    assert (chart.mime, chart.size, chart.width, chart.height) == ("image/png", len(png), 40, 30)
    assert await desk.bytes_of(chart) == png
    assert [bool(offer.pending) for offer in found.offers] == [False, False, True]
    assert not found.refused
    assert not found.waiting


async def test_the_same_bytes_by_all_three_ways_are_one_file(desk: Desk) -> None:
    handed = await desk.keep(b"same", "tool.txt")
    path = desk.put("named.txt", b"same")
    desk.put("pending/a.txt", b"same")
    desk.put("pending/b.txt", b"same")
    found = await desk.collect(f"{path}, again {path}", handed)
    (offer,) = found.offers
    assert offer.name == "tool.txt"
    assert found.text == "named.txt, again named.txt"
    with Jail(desk.home.folder(HERE)) as beneath:
        marks = [mark_of(seen) for seen in beneath.files("outgoing/pending", most=9)]
    assert offer.pending == "/".join(marks)


async def test_what_is_said_of_a_file_that_is_offered_twice_is_said_all_the_same(desk: Desk) -> None:
    chart = await desk.keep(make_png(4, 3), "chart.png")
    said = [replace(chart, caption=words) for words in ("", "Rain in May", "Rain in May", "and in June")]
    (offer,) = (await desk.collect("", *said, replace(chart, wanted=SendAs.DOCUMENT))).offers
    assert (offer.caption, offer.wanted) == ("Rain in May\nand in June", SendAs.DOCUMENT)


async def test_a_pending_file_that_is_named_goes_once_and_moves(desk: Desk) -> None:
    desk.put("pending/chart.png", make_png(4, 4))
    found = await desk.collect("I drew chart.png.")
    assert len(found.offers) == 1
    assert found.offers[0].pending
    assert found.text == "I drew chart.png."


async def test_what_an_earlier_reply_brought_is_left_alone(desk: Desk) -> None:
    desk.put("pending/chart.png", make_png(4, 4))
    first = await desk.collect("")
    (offer,) = first.offers
    again = await desk.collect("", busy=frozenset({offer.pending or ""}))
    assert not again.offers
    desk.put("pending/chart.png", make_png(5, 5))
    newer = await desk.collect("", busy=frozenset({offer.pending or ""}))
    assert newer.offers[0].width == 5


async def test_files_of_other_conversations_are_text(desk: Desk) -> None:
    other = desk.home.outgoing(THERE) / "theirs.png"
    other.write_bytes(make_png(3, 3))
    (desk.home.incoming(HERE) / "ours.png").write_bytes(make_png(3, 3))
    text = f"{other} {desk.home.incoming(HERE) / 'ours.png'} theirs.png ours.png {desk.home.key_file}"
    found = await desk.collect(text)
    assert found == Collected(text=text)


async def test_a_link_in_the_text_is_text_and_a_link_in_pending_is_told(desk: Desk) -> None:
    (desk.outgoing / "key.txt").symlink_to(desk.home.key_file)
    (desk.outgoing / "pending" / "key.txt").symlink_to(desk.home.key_file)
    os.link(desk.home.key_file, desk.outgoing / "hard.txt")
    os.mkfifo(desk.outgoing / "pending" / "pipe")
    for name in ("key.txt", "pipe"):
        os.utime(desk.outgoing / "pending" / name, (1, 1), follow_symlinks=False)
    found = await desk.collect("key.txt hard.txt `pipe`")
    assert found.text == "key.txt hard.txt `pipe`"
    assert not found.offers
    assert [(one.offer.name, one.reason) for one in found.refused] == [
        ("key.txt", "it is a link"),
        ("pipe", "it is not a regular file"),
    ]


async def test_too_large_is_told_with_the_limit_and_stays_text(desk: Desk) -> None:
    path = desk.put("big.bin", b"x" * 100_001)
    desk.put("pending/also.bin", b"y" * 100_001)
    found = await desk.collect(f"{path} also.bin")
    assert found.text == f"{path} also.bin"
    assert [(one.offer.name, one.reason) for one in found.refused] == [
        ("big.bin", "it is over 98KB"),
        ("also.bin", "it is over 98KB"),
    ]


async def test_a_file_that_is_written_to_while_it_is_read_waits_for_the_next_reply(desk: Desk) -> None:
    growing = desk.put("pending/film.bin", b"x" * 1000)

    class Slow(Keeper):
        async def keep(self, chunks: AsyncIterator[bytes], *, name: str, declared: str = "") -> Offer:
            with growing.open("ab") as file:
                file.write(b"more")
            return await super().keep(chunks, name=name, declared=declared)

    keeper = Slow(desk.store, Pencil(), max_bytes=desk.max_bytes)
    found = await collect("", (), Folders(desk.home.folder(HERE), desk.clock), keeper, earlier=desk.known)
    assert (found.offers, found.refused, found.waiting) == ((), (), 1)


async def test_more_than_a_reply_brings_along_wait_or_are_told(desk: Desk) -> None:
    for number in range(FILES_AT_MOST - 1):
        desk.put(f"{number}.txt", str(number).encode())
    desk.put("pending/first.txt", b"first")
    desk.put("pending/second.txt", b"second")
    text = " ".join(f"{number}.txt" for number in range(FILES_AT_MOST - 1))
    found = await desk.collect(text)
    assert len(found.offers) == FILES_AT_MOST
    assert found.waiting == 1
    desk.put("many.txt", b"many")
    desk.put("more.txt", b"more")
    found = await desk.collect(f"{text} many.txt more.txt")
    assert [(one.offer.name, one.reason) for one in found.refused] == [
        ("more.txt", f"a reply brings along {FILES_AT_MOST} files at most")
    ]


async def test_the_type_is_told_from_the_bytes_and_frames_are_counted(desk: Desk) -> None:
    desk.put("pending/song.mp3", make_pdf())
    desk.put("pending/still.gif", make_gif(6, 4))
    found = await desk.collect("")
    assert [(offer.mime, offer.width, offer.frames) for offer in found.offers] == [
        ("application/pdf", None, 1),
        ("image/gif", 4000, 1),
    ]


async def test_a_file_that_was_named_or_handed_over_is_not_waited_for(desk: Desk) -> None:
    """The clock stands still: waiting for two quiet seconds would never end."""
    fresh = desk.outgoing / "pending" / "fresh.txt"
    fresh.write_bytes(b"just written")
    found = await desk.collect("see fresh.txt")
    assert [offer.name for offer in found.offers] == ["fresh.txt"]
    again = await desk.collect("", *found.offers)
    assert again.offers == found.offers


REPORT = make_pdf()
AFTER_ALL = datetime.now(UTC) + timedelta(days=1)
"""Later than any file of these tests: none is new."""


def sent(found: Collected) -> list[str]:
    return [offer.name for offer in found.offers]


@pytest.mark.parametrize("text", ["I already sent you report.pdf yesterday.", "See `report.pdf`.", "[it](report.pdf)"])
async def test_a_bare_name_does_not_send_a_file_from_before_the_last_turn(desk: Desk, text: str) -> None:
    desk.put("report.pdf", REPORT)
    desk.earlier = EarlierFiles(since=AFTER_ALL)
    assert await desk.collect(text) == Collected(text=text, only_named=(("outgoing/report.pdf", OLD),))


async def test_a_bare_name_sends_a_file_that_is_new_since_the_last_turn_whatever_date_it_bears(desk: Desk) -> None:
    desk.earlier = EarlierFiles(since=datetime.now(UTC) - timedelta(minutes=1))
    desk.put("report.pdf", REPORT)
    assert (desk.outgoing / "report.pdf").stat().st_mtime == LONG_AGO
    assert sent(await desk.collect("Here is report.pdf.")) == ["report.pdf"]


async def test_a_bare_name_does_not_send_bytes_that_the_conversation_has(desk: Desk) -> None:
    desk.put("again.pdf", REPORT)
    desk.earlier = EarlierFiles(hashes=frozenset({hashlib.sha256(REPORT).hexdigest()}))
    found = await desk.collect("As said in again.pdf")
    assert (sent(found), found.only_named) == ([], (("outgoing/again.pdf", RECEIVED),))


async def test_the_name_of_a_file_that_people_sent_does_not_send_one_of_ours(desk: Desk) -> None:
    desk.put("report.pdf", REPORT)
    desk.earlier = EarlierFiles(names=frozenset({"report.pdf"}))
    found = await desk.collect("Your report.pdf has one page.")
    assert (sent(found), found.only_named) == ([], (("outgoing/report.pdf", INCOMING),))


@pytest.mark.parametrize("spelling", ["outgoing/report.pdf", "./outgoing/report.pdf", "{here}/report.pdf"])
async def test_a_path_with_its_folder_sends_a_file_again(desk: Desk, spelling: str) -> None:
    desk.put("report.pdf", REPORT)
    desk.earlier = EarlierFiles(
        since=AFTER_ALL, hashes=frozenset({hashlib.sha256(REPORT).hexdigest()}), names=frozenset({"report.pdf"})
    )
    found = await desk.collect(f"report.pdf is {spelling.format(here=desk.outgoing)}, once more.")
    assert (sent(found), found.text) == (["report.pdf"], "report.pdf is report.pdf, once more.")
    assert not found.only_named


async def test_send_media_sends_a_file_again_and_its_name_in_the_text_changes_nothing(desk: Desk) -> None:
    desk.put("report.pdf", REPORT)
    handed = await desk.keep(REPORT, "report.pdf")
    desk.earlier = EarlierFiles(since=AFTER_ALL, hashes=frozenset({handed.sha256}))
    found = await desk.collect("Here is report.pdf again.", handed)
    assert (sent(found), found.only_named) == (["report.pdf"], ())


async def test_a_pending_file_goes_out_whatever_the_conversation_has(desk: Desk) -> None:
    desk.put("pending/report.pdf", REPORT)
    desk.earlier = EarlierFiles(
        since=AFTER_ALL, hashes=frozenset({hashlib.sha256(REPORT).hexdigest()}), names=frozenset({"report.pdf"})
    )
    assert sent(await desk.collect("Here is report.pdf again.")) == ["report.pdf"]
    desk.put("pending/report.pdf", REPORT)
    assert sent(await desk.collect("")) == ["report.pdf"]


@pytest.mark.parametrize(
    "text",
    [
        "You have:\n```\nchart.png\noutgoing/report.pdf\n```\nThat is all.",
        "You have:\n\n~~~ text\nchart.png  4 kB\noutgoing/report.pdf\n~~~",
        "You have:\n\n    chart.png\n    outgoing/report.pdf\n",
        "- files:\n\n  ```\n  chart.png\n  outgoing/report.pdf\n  ```\n- none else",
        "```\r\nchart.png\r\noutgoing/report.pdf\r\n",
        "word " * 20_000 + "\n\n```\nchart.png outgoing/report.pdf\n```",
    ],
)
async def test_a_listing_in_a_code_block_sends_nothing(desk: Desk, text: str) -> None:
    desk.put("report.pdf", REPORT)
    desk.put("chart.png", make_png(4, 3))
    found = await desk.collect(text)
    assert found == Collected(text=text, only_named=(("outgoing/chart.png", IN_CODE), ("outgoing/report.pdf", IN_CODE)))


async def test_a_file_named_in_a_code_block_and_beside_it_is_sent_once_under_its_name(desk: Desk) -> None:
    path = desk.put("chart.png", make_png(4, 3))
    found = await desk.collect(f"I ran\n```\nplot --to {path}\n```\nand here is `chart.png`.")
    assert sent(found) == ["chart.png"]
    assert found.text == "I ran\n```\nplot --to chart.png\n```\nand here is `chart.png`."
    assert not found.only_named


async def test_what_was_moved_aside_is_meant_only_by_its_path(desk: Desk) -> None:
    desk.put("sent/report.pdf", REPORT)
    desk.put("error/chart.png", make_png(4, 3))
    found = await desk.collect("sent/report.pdf is there, error/chart.png is not")
    assert (sent(found), dict(found.only_named)) == (
        [], {"outgoing/sent/report.pdf": OLD, "outgoing/error/chart.png": OLD}
    )  # fmt: skip
    assert sent(await desk.collect("again: outgoing/error/chart.png")) == ["chart.png"]


async def test_files_that_are_only_named_do_not_use_up_the_room_for_others(desk: Desk) -> None:
    for number in range(FILES_AT_MOST):
        desk.put(f"{number}.txt", str(number).encode())
    desk.put("old.txt", b"old")
    desk.earlier = EarlierFiles(hashes=frozenset({hashlib.sha256(b"old").hexdigest()}), names=frozenset({"old.txt"}))
    found = await desk.collect(" ".join(["old.txt", *(f"{number}.txt" for number in range(FILES_AT_MOST)), "old.txt"]))
    assert (len(found.offers), found.refused) == (FILES_AT_MOST, ())
