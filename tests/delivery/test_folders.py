"""What waits in `pending`, and where it ends up."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path

import pytest

from belino.delivery.folders import ERROR, PENDING, REASON, SENT, Fate, Folders, Waiting, mark_of
from belino.domain.message import ConversationKey
from belino.domain.reply import ParcelState
from belino.media.jail import Jail
from belino.storage.home import Home
from belino.testing.clock import FakeClock

HERE = ConversationKey(platform="web", account="default", channel="here")
LONG_AGO = 1_000_000_000


class Desk:
    """One conversation's folders."""

    def __init__(self, path: Path) -> None:
        home = Home.at(path)
        self.outgoing = home.outgoing(HERE)
        self.path = home.folder(HERE)
        self.clock = FakeClock()
        self.folders = Folders(self.path, self.clock)

    def put(self, name: str, content: bytes = b"x", *, fresh: bool = False) -> str:
        """Drop a file into `pending` and return its mark."""
        place = self.outgoing / "pending" / name
        place.write_bytes(content)
        if not fresh:
            os.utime(place, (LONG_AGO, LONG_AGO))
        with Jail(self.path) as beneath:
            return next(mark_of(seen) for seen in beneath.files(PENDING, most=99) if seen.name == name)

    def names(self, folder: str) -> list[str]:
        return sorted(path.name for path in (self.outgoing / folder).iterdir())

    async def settle(self, mark: str, state: ParcelState, reason: str = "") -> frozenset[str]:
        return await self.folders.settle({mark: Fate(state=state, reason=reason, since=self.clock.now())})


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home")


async def waiting_names(desk: Desk) -> list[str]:
    return [seen.name for seen in (await desk.folders.waiting(())).files]


async def test_files_at_rest_can_go_at_once_and_unfinished_names_never(desk: Desk) -> None:
    for name in ("b.txt", "a.txt", ".hidden", "c.part", "d.TMP", "e.crdownload", "f~"):
        desk.put(name)
    (desk.outgoing / "pending" / "folder").mkdir()
    assert await waiting_names(desk) == ["a.txt", "b.txt"]


async def test_a_file_written_just_now_goes_after_two_quiet_seconds(desk: Desk) -> None:
    desk.put("new.txt", fresh=True)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        looking = group.create_task(waiting_names(desk))
        while not desk.clock.sleeping:
            await asyncio.sleep(0)
        await desk.clock.advance(1.9)
        assert not looking.done()
        await desk.clock.advance(0.1)
    assert looking.result() == ["new.txt"]


async def test_a_file_that_grows_meanwhile_waits_for_the_next_time(desk: Desk) -> None:
    desk.put("whole.txt")
    desk.put("growing.txt", fresh=True)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        looking = group.create_task(desk.folders.waiting(()))
        while not desk.clock.sleeping:
            await asyncio.sleep(0)
        desk.put("growing.txt", b"more", fresh=True)
        desk.put("late.txt", fresh=True)
        await desk.clock.advance(2)
    found = looking.result()
    assert [seen.name for seen in found.files] == ["whole.txt"]
    assert found.unfinished == 2


async def test_an_empty_folder_costs_no_waiting(desk: Desk) -> None:
    assert await desk.folders.waiting(()) == Waiting()


async def test_a_sent_file_is_in_sent_under_a_name_of_its_own(desk: Desk) -> None:
    for content in (b"one", b"two"):
        assert await desk.settle(desk.put("chart.png", content), ParcelState.SENT) == frozenset()
    assert desk.names("pending") == []
    assert desk.names("sent") == ["chart-2.png", "chart.png"]
    assert (desk.outgoing / "sent" / "chart.png").read_bytes() == b"one"


@pytest.mark.parametrize("state", [ParcelState.DEAD, ParcelState.UNCERTAIN])
async def test_a_file_that_did_not_go_out_lies_in_error_with_the_reason(desk: Desk, state: ParcelState) -> None:
    await desk.settle(desk.put("chart.png"), state, "the platform takes no charts")
    assert desk.names("pending") == []
    assert desk.names("error") == ["chart.png", "chart.png.error.txt"]
    assert (desk.outgoing / "error" / "chart.png.error.txt").read_text() == "the platform takes no charts\n"


@pytest.mark.parametrize("state", [ParcelState.READY, ParcelState.SENDING, ParcelState.HELD])
async def test_a_file_on_its_way_stays_and_is_busy(desk: Desk, state: ParcelState) -> None:
    mark = desk.put("chart.png")
    assert await desk.settle(mark, state) == {mark}
    assert desk.names("pending") == ["chart.png"]


async def test_a_newer_file_of_the_same_name_is_not_taken_for_the_one_that_was_sent(desk: Desk) -> None:
    mark = desk.put("chart.png", b"old")
    desk.put("chart.png", b"newer")
    await desk.settle(mark, ParcelState.SENT)
    assert desk.names("pending") == ["chart.png"]


async def test_a_file_put_back_by_hand_is_a_new_file(desk: Desk) -> None:
    mark = desk.put("chart.png")
    await desk.settle(mark, ParcelState.DEAD, "no")
    (desk.outgoing / "error" / "chart.png").rename(desk.outgoing / "pending" / "chart.png")
    await desk.settle(mark, ParcelState.DEAD, "no")
    assert desk.names("pending") == ["chart.png"]


async def test_what_was_given_up_and_arrived_after_all_is_no_error(desk: Desk) -> None:
    mark = desk.put("chart.png")
    await desk.settle(mark, ParcelState.UNCERTAIN, "no answer")
    await desk.settle(mark, ParcelState.SENT)
    assert desk.names("error") == []
    assert desk.names("sent") == ["chart.png"]


async def test_the_reason_of_a_file_that_was_put_back_and_sent_does_not_stay(desk: Desk) -> None:
    await desk.settle(desk.put("chart.png"), ParcelState.DEAD, "it is no picture")
    (desk.outgoing / "error" / "chart.png").unlink()
    await desk.settle(desk.put("chart.png", b"another"), ParcelState.SENT)
    assert (desk.names("error"), desk.names("sent")) == ([], ["chart.png"])


async def test_a_file_that_failed_is_not_taken_for_an_older_one_that_arrived(desk: Desk) -> None:
    older = Fate(state=ParcelState.SENT, since=desk.clock.now())
    desk.clock.shift(60)
    mark = desk.put("chart.png")
    await desk.settle(mark, ParcelState.DEAD, "it is no picture")
    inode, mtime, size = mark.split("-")
    assert inode and size, "a file system gives the number of a deleted file to the next one"
    await desk.folders.settle({f"{inode}-{int(mtime, 16) - 1:x}-{size}": older})
    assert desk.names("error") == ["chart.png", "chart.png.error.txt"]


async def test_however_many_files_of_one_name_were_sent_the_next_one_is_filed_too(desk: Desk) -> None:
    (desk.outgoing / "sent" / "chart.png").write_bytes(b"x")
    for number in range(2, 1_100):
        (desk.outgoing / "sent" / f"chart-{number}.png").write_bytes(b"x")
    for _ in range(2):
        await desk.settle(desk.put("chart.png"), ParcelState.SENT)
    assert desk.names("pending") == []
    assert len(desk.names("sent")) == 1_101


async def test_a_link_in_pending_is_moved_itself_and_what_it_points_at_stays(desk: Desk) -> None:
    target = desk.outgoing / "kept.txt"
    target.write_text("kept")
    (desk.outgoing / "pending" / "link").symlink_to(target)
    with Jail(desk.path) as beneath:
        (seen,) = beneath.files(PENDING, most=9)
    await desk.folders.refuse({mark_of(seen): "it is a link"})
    assert desk.names("error") == ["link", "link.error.txt"]
    assert target.read_text() == "kept"
    assert target.stat().st_mtime != LONG_AGO


async def test_what_was_moved_is_swept_when_its_time_has_come_and_pending_never(desk: Desk) -> None:
    desk.put("waits.txt")
    await desk.settle(desk.put("sent.txt"), ParcelState.SENT)
    await desk.settle(desk.put("dead.txt"), ParcelState.DEAD, "no")
    os.utime(desk.outgoing / "error" / "dead.txt.error.txt", (desk.clock.now().timestamp(),) * 2)
    assert await desk.folders.sweep(desk.clock.now()) == 0
    desk.clock.shift(3600)
    assert await desk.folders.sweep(desk.clock.now() - timedelta(minutes=1)) == 3
    assert (desk.names("sent"), desk.names("error"), desk.names("pending")) == ([], [], ["waits.txt"])
    assert (SENT, ERROR) == ("outgoing/sent", "outgoing/error")


@pytest.mark.parametrize("name", ["n" * 251 + ".txt", "日" * 84, "a." + "x" * 253], ids=["ascii", "wide", "ending"])
async def test_the_longest_name_a_file_may_have_gets_its_reason_and_its_number_too(desk: Desk, name: str) -> None:
    for _ in range(2):
        await desk.settle(desk.put(name), ParcelState.DEAD, "it is empty")
    assert name in desk.names("error")
    reasons = [(desk.outgoing / "error" / told).read_text() for told in desk.names("error") if told.endswith(REASON)]
    assert reasons == ["it is empty\n", "it is empty\n"]
    assert len(desk.names("error")) == 4 and desk.names("pending") == []


async def test_a_long_name_that_arrives_after_all_takes_its_reason_away(desk: Desk) -> None:
    mark = desk.put("n" * 251 + ".txt")
    await desk.settle(mark, ParcelState.DEAD, "no rights")
    await desk.settle(mark, ParcelState.SENT)
    assert (desk.names("error"), desk.names("sent")) == ([], ["n" * 251 + ".txt"])
