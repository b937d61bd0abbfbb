"""While a file is being sent, people see that it is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from belino.delivery.attempt import call
from belino.delivery.typing import EVERY_SECONDS, UPLOAD_SECONDS
from belino.domain.limits import SendAs
from belino.domain.message import ConversationKey
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind, Receipt
from belino.domain.stored import ClaimedParcel
from belino.testing import FakeClock, FakeContext, MemoryAdapter, settle
from belino.testing.memory import Config
from delivery.post import DM, words


class Slow(MemoryAdapter):
    """Takes a parcel when a test lets it, and keeps which signs were shown meanwhile."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(Config(), FakeContext(clock=clock))
        self.shown: list[SendAs] = []
        self.broken = False
        self.hangs = False
        self.go = asyncio.Event()

    async def send(self, parcel: Parcel) -> Receipt:
        await self.go.wait()
        return await super().send(parcel)

    async def show_upload(self, conversation: ConversationKey, form: SendAs) -> None:
        self.shown.append(form)
        if self.broken:
            raise ValueError("bot123:secret")
        if self.hangs:
            await asyncio.Event().wait()


async def frames() -> AsyncIterator[bytes]:
    yield b"frames"


def film() -> Parcel:
    one = OutgoingFile(name="film.mp4", mime="video/mp4", size=6, sha256="0" * 64, send_as=SendAs.VIDEO, chunks=frames)
    return Parcel(key="film", conversation=DM, kind=ParcelKind.FILES, files=(one,), trace="t")


@asynccontextmanager
async def sending(adapter: Slow, clock: FakeClock, parcel: Parcel) -> AsyncIterator[asyncio.Task[Receipt]]:
    claimed = ClaimedParcel(parcel=parcel, attempt=1, created=clock.now())

    async def plainly() -> None:
        raise AssertionError("the markup was refused")

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        task = group.create_task(call(adapter, claimed, until=1e9, resend=False, clock=clock, plainly=plainly))
        await settle()
        yield task


async def test_an_upload_is_shown_in_the_form_of_its_file_again_and_again_until_it_is_there() -> None:
    adapter = Slow(clock := FakeClock())
    async with sending(adapter, clock, film()):
        await clock.advance(UPLOAD_SECONDS)
        assert adapter.shown == [SendAs.VIDEO]
        await clock.advance(2 * EVERY_SECONDS)
        assert adapter.shown == [SendAs.VIDEO] * 3
        adapter.go.set()
    assert clock.sleeping == 0
    assert len(adapter.shown) == 3


async def test_a_file_that_is_there_within_a_second_and_a_text_show_no_sign() -> None:
    for parcel, seconds in ((film(), UPLOAD_SECONDS / 2), (words("text"), 30.0)):
        adapter = Slow(clock := FakeClock())
        async with sending(adapter, clock, parcel):
            await clock.advance(seconds)
            adapter.go.set()
        assert adapter.shown == []


async def test_a_sign_that_fails_is_given_up_and_the_file_arrives() -> None:
    adapter = Slow(clock := FakeClock())
    adapter.broken = True
    async with sending(adapter, clock, film()) as task:
        await clock.advance(UPLOAD_SECONDS + 3 * EVERY_SECONDS)
        assert not task.done()
        adapter.go.set()
    assert task.result().message_id == "sent-film"
    assert len(adapter.shown) == 1


async def test_a_sign_that_hangs_delays_the_file_by_nothing() -> None:
    adapter = Slow(clock := FakeClock())
    adapter.hangs = True
    async with sending(adapter, clock, film()) as task:
        await clock.advance(UPLOAD_SECONDS)
        adapter.go.set()
        await settle()
        assert task.done()
    assert clock.sleeping == 0
