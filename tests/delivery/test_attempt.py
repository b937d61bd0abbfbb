"""One call for one parcel: within its lease and its time, plain if the markup is refused."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from belino.config import AdapterConfig
from belino.delivery.attempt import difference
from belino.domain.errors import AdapterError, MarkupRefused, TogetherRefused, Undeliverable
from belino.domain.limits import Markup, SendAs
from belino.domain.message import ConversationKey
from belino.domain.ports import Adapter, AdapterContext
from belino.domain.reply import (
    CALL_SECONDS,
    LEASE_MARGIN_SECONDS,
    SLOWEST_BYTES_A_SECOND,
    OutgoingFile,
    Parcel,
    ParcelKind,
    ParcelState,
    Receipt,
    StoredFile,
)
from belino.domain.stored import ClaimedParcel
from belino.gateway.gateway import Gateway
from belino.testing import START, MemoryAdapter
from delivery.post import DM, PostHouse, file_parcel, words
from gateway.house import ANN, until

Reaction = Callable[[Parcel], Awaitable[None]]

WHERE = ConversationKey(platform="memory", account="default", channel="dm")
PHOTO = OutgoingFile(name="cat.jpg", mime="image/jpeg", size=100, sha256="a" * 64, send_as=SendAs.PHOTO)
PAPER = OutgoingFile(name="report.pdf", mime="application/pdf", size=200, sha256="b" * 64)


class Moody(MemoryAdapter):
    """Does with a parcel what it is told to before it takes it."""

    reaction: Reaction | None = None
    offered: list[Parcel]

    async def send(self, parcel: Parcel) -> Receipt:
        self.offered.append(parcel)
        if self.reaction is not None:
            await self.reaction(parcel)
        return await super().send(parcel)


class MoodyHouse(PostHouse):
    """A house whose only adapter is at hand."""

    def __init__(self, path: Path, reaction: Reaction) -> None:
        super().__init__(path, Moody)
        self.reaction = reaction
        self.offered: list[Parcel] = []

    def make_adapter(self, config: AdapterConfig, desk: AdapterContext) -> Adapter:
        adapter = super().make_adapter(config, desk)
        assert isinstance(adapter, Moody)
        adapter.reaction, adapter.offered = self.reaction, self.offered
        return adapter


@pytest.fixture
def house(tmp_path: Path) -> Callable[[Reaction], MoodyHouse]:
    return lambda reaction: MoodyHouse(tmp_path / "home", reaction)


Make = Callable[[Reaction], MoodyHouse]


async def take(parcel: Parcel) -> None:
    """Without any mood."""


@asynccontextmanager
async def storing(house: Make, *stored: StoredFile) -> AsyncIterator[tuple[MoodyHouse, Gateway]]:
    """A house whose platform takes all and says that it stored these."""
    one = house(take)
    async with one.at_work() as gateway:
        adapter = gateway.adapters[DM.platform, DM.account]
        send = adapter.send

        async def told(parcel: Parcel) -> Receipt:
            return replace(await send(parcel), stored=stored)

        adapter.send = told  # type: ignore[method-assign]
        yield one, gateway


async def refuse_markup(parcel: Parcel) -> None:
    if parcel.markup is not Markup.PLAIN:
        raise MarkupRefused("the platform cannot read the markup")


async def test_refused_markup_is_sent_plain_at_once_within_the_same_try_and_the_story_says_so(house: Make) -> None:
    one = house(refuse_markup)
    async with one.at_work() as gateway:
        paper = await file_parcel(gateway, "a")
        (file,) = paper.files
        marked = replace(file, caption="<b>x</b>", plain="x")
        parcel = replace(paper, files=(marked,), text="<i>hi</i>", plain="hi", markup=Markup.HTML)
        await one.send(gateway, parcel)
        (record,) = await one.at_rest(gateway)
        assert (record.state, record.attempts) == (ParcelState.SENT, 1)
    (shown,) = one.far_side.sent.values()
    assert (shown.text, shown.markup, shown.files[0].caption, shown.key) == ("hi", Markup.PLAIN, "x", "a")
    assert len(one.offered) == 2


async def test_what_is_refused_without_markup_too_is_given_up(house: Make) -> None:
    async def refuse(parcel: Parcel) -> None:
        raise MarkupRefused("the platform cannot read the markup")

    one = house(refuse)
    async with one.at_work() as gateway:
        await one.send(gateway, replace(words("a"), text="<b>", plain="b", markup=Markup.HTML))
        (record,) = await one.at_rest(gateway)
        assert record.state is ParcelState.DEAD
        assert record.reason == "the platform cannot read the markup, also without markup"
    assert [parcel.text for parcel in one.offered] == ["<b>", "b"]


async def test_a_sender_that_was_stopped_since_it_claimed_does_not_send(house: Make) -> None:
    one = house(take)
    async with one.at_work() as gateway:
        stopped = False

        async def may_still(claimed: ClaimedParcel) -> str:
            nonlocal stopped
            if not stopped:
                stopped = True
                one.clock.shift(LEASE_MARGIN_SECONDS + 1)
            return ""

        gateway._sender._callbacks = replace(gateway._sender._callbacks, may_still=may_still)
        await one.send(gateway, words("a"))
        await until(lambda: gateway.counters.parcels["ready"])
        (record,) = await one.at_rest(gateway)
        assert (record.state, record.attempts, len(one.offered)) == (ParcelState.SENT, 2, 1)


async def test_a_call_has_time_by_the_size_of_its_files(house: Make) -> None:
    async def never(parcel: Parcel) -> None:
        if parcel.files:
            await asyncio.Event().wait()

    one, size = house(never), 10 * SLOWEST_BYTES_A_SECOND
    async with one.at_work() as gateway:
        await one.send(gateway, await file_parcel(gateway, "a", size=size))
        await until(lambda: one.offered)
        await one.clock.advance(CALL_SECONDS + 9.9)
        assert not gateway.counters.parcels["ready"]
        await one.clock.advance(0.2)
        await until(lambda: gateway.counters.parcels["ready"])
        (record,) = await gateway.store.parcels()
        assert record.reason == "the platform did not answer within 70 seconds"


async def no_files(parcel: Parcel) -> None:
    if parcel.files:
        raise Undeliverable("the chat takes no files")


async def test_a_file_that_cannot_be_sent_is_named_behind_the_words_and_keeps_nothing_back(house: Make) -> None:
    one = house(no_files)
    async with one.at_work() as gateway:
        await one.send(gateway, await file_parcel(gateway, "a"), words("b", "the words"))
        paper, *_ = await one.at_rest(gateway)
        assert paper.state is ParcelState.DEAD
        assert one.shown == ["the words", "report.pdf could not be sent: the chat takes no files"]
        said = [message.text for message in await one.history(gateway)]
        assert said == one.shown
        one.reaction = refuse_markup
        gateway.adapters[DM.platform, DM.account].reaction = None  # type: ignore[attr-defined]
        assert await gateway.retry_parcel("a") is not None
        assert [record.state for record in await one.at_rest(gateway)] == [ParcelState.SENT] * 3
    assert one.shown[-1] == "report.pdf"


async def test_the_words_that_came_with_files_that_cannot_be_sent_go_out_on_their_own(house: Make) -> None:
    one = house(no_files)
    async with one.at_work() as gateway:
        both = await file_parcel(gateway, "a")
        files = (replace(both.files[0], caption="<b>Yours</b>", plain="Yours"),)
        told = replace(both, text="<i>Here it is.</i>", plain="Here it is.", markup=Markup.HTML, files=files)
        await one.send(gateway, told)
        paper, *_ = await one.at_rest(gateway)
        assert (paper.state, paper.text) == (ParcelState.DEAD, "")
        said, caption, notice = one.far_side.sent.values()
        assert (said.text, said.plain, said.markup, said.files) == (told.text, told.plain, Markup.HTML, ())
        assert (caption.text, notice.text) == ("Yours", "report.pdf could not be sent: the chat takes no files")
        gateway.adapters[DM.platform, DM.account].reaction = None  # type: ignore[attr-defined]
        assert await gateway.retry_parcel("a") is not None
        await one.at_rest(gateway)
    assert one.shown[-1] == "report.pdf", "its words were said before, without it"


async def test_words_pass_a_file_that_fails_for_more_than_a_minute_and_not_before(house: Make) -> None:
    async def fail(parcel: Parcel) -> None:
        if parcel.files:
            raise AdapterError("the platform answered with status 500")

    one = house(fail)
    async with one.at_work() as gateway:
        gateway._sender._rng.uniform = lambda a, b: b  # type: ignore[method-assign]
        await one.send(gateway, await file_parcel(gateway, "a"), words("b", "the words"))
        for _ in range(590):
            await one.clock.advance(0.1)
            await gateway.store.note("")
        assert one.shown == []
        for _ in range(30):
            await one.clock.advance(0.1)
            await gateway.store.note("")
        await until(lambda: one.shown == ["the words"])
        assert {record.key: record.state for record in await gateway.store.parcels()}["a"] is ParcelState.READY


async def test_one_conversations_slow_upload_delays_no_other(house: Make) -> None:
    async def slow(parcel: Parcel) -> None:
        if parcel.conversation.channel == "slow":
            await asyncio.Event().wait()

    one = house(slow)
    async with one.at_work() as gateway:
        where = replace(DM, channel="slow")
        await gateway.store.put_parcels([replace(await file_parcel(gateway, "up", size=100_000), conversation=where)])
        gateway._sender.wake(where)
        await until(lambda: one.offered)
        for number in range(20):
            await one.send(gateway, words(f"w{number}", f"words {number}"))
            await until(lambda: len(one.shown) == number + 1)  # noqa: B023 - awaited in its round


async def test_what_the_platform_stored_otherwise_than_planned_is_told_in_the_story(house: Make) -> None:
    async with storing(house, StoredFile(size=3)) as (one, gateway):
        await one.ask(gateway, one.say("hello", author=ANN))
        (asked, *_) = await one.history(gateway)
        await one.send(gateway, replace(await file_parcel(gateway, "a"), trace=asked.trace))
        await one.at_rest(gateway)
        story = await gateway.store.story(DM, asked.id)
        assert story is not None
        told = [(step.outcome, step.reason) for step in story.steps if step.outcome == "differs"]
        assert ("differs", "report.pdf: the platform holds 3 of 6 bytes") in told


async def test_one_file_that_the_platform_does_not_take_costs_none_of_the_others(house: Make) -> None:
    async def refuse_two(parcel: Parcel) -> None:
        names = [file.name for file in parcel.files]
        if "2.pdf" in names:
            raise TogetherRefused("the second is bad") if len(names) > 1 else Undeliverable("it is bad")

    one = house(refuse_two)
    async with one.at_work() as gateway:
        album = await file_parcel(gateway, "a")
        files = tuple(replace(album.files[0], name=f"{number}.pdf", caption=f"no. {number}") for number in (1, 2, 3))
        await one.send(gateway, replace(album, files=files, reply_to="7"), words("w", "the words"))
        parcels = await one.at_rest(gateway)
        assert sorted(one.shown) == ["1.pdf", "2.pdf could not be sent: it is bad", "3.pdf", "no. 2", "the words"]
        assert {parcel.key: parcel.state for parcel in parcels if parcel.files} == {
            "a": ParcelState.SENT,
            "a-1": ParcelState.DEAD,
            "a-2": ParcelState.SENT,
        }
        assert [parcel.reply_to for parcel in one.offered if len(parcel.files) == 1] == ["7", None, None]


async def test_of_an_album_only_the_pictures_that_the_platform_names_go_in_another_form(house: Make) -> None:
    async def refuse_pictures(parcel: Parcel) -> None:
        bad = [n for n, file in enumerate(parcel.files) if file.size < 4 and file.send_as is SendAs.PHOTO]
        if bad:
            raise TogetherRefused("that one is bad", culprit=bad[0])

    one = house(refuse_pictures)
    async with one.at_work() as gateway:
        album = await file_parcel(gateway, "a")
        bad = [await file_parcel(gateway, f"b{size}", size=size) for size in (2, 3)]
        files = (*(parcel.files[0] for parcel in bad), album.files[0], replace(album.files[0], name="other.pdf"))
        files = tuple(replace(file, send_as=SendAs.PHOTO) for file in files)
        await one.send(gateway, replace(album, files=files))
        parcels = await one.at_rest(gateway)
        assert [parcel.state for parcel in parcels] == [ParcelState.SENT] * 3
        sent = {parcel.key: [file.send_as for file in parcel.files] for parcel in one.offered}
        assert sent["a"] == [SendAs.PHOTO, SendAs.PHOTO]
        assert [forms for key, forms in sent.items() if key != "a"] == [[SendAs.DOCUMENT], [SendAs.DOCUMENT]]


async def test_files_that_the_platform_left_out_are_told_in_the_outbox(house: Make) -> None:
    async with storing(house, StoredFile()) as (one, gateway):
        album = await file_parcel(gateway, "a")
        await one.send(gateway, replace(album, files=album.files * 2))
        (parcel,) = await one.at_rest(gateway)
        assert (parcel.state, parcel.reason) == (ParcelState.SENT, "the platform stored 1 of 2 files")


async def test_a_parcel_that_takes_the_process_down_again_and_again_is_given_up(house: Make) -> None:
    async def die(parcel: Parcel) -> None:
        await asyncio.Event().wait()

    one = house(die)
    for _ in range(6):
        async with one.at_work() as gateway:
            offered = len(one.offered)
            if not offered:
                await one.send(gateway, words("a"))
            await until(lambda: len(one.offered) > offered)  # noqa: B023 - awaited in its round
    async with one.at_work() as gateway:
        (record,) = await one.at_rest(gateway)
        assert record.state is ParcelState.UNCERTAIN
        assert "stopped 6 times" in record.reason
    assert len(one.offered) == 6


async def _pieces(file: OutgoingFile) -> AsyncIterator[bytes]:
    async for piece in file.chunks():
        yield piece


async def test_a_kind_of_parcel_is_kept_when_it_is_made_plain(house: Make) -> None:
    one = house(refuse_markup)
    async with one.at_work() as gateway:
        paper = await file_parcel(gateway, "a")
        await one.send(gateway, replace(paper, markup=Markup.HTML))
        await one.at_rest(gateway)
        (shown,) = one.far_side.sent.values()
        assert shown.kind is ParcelKind.FILES
        assert b"".join([piece async for piece in _pieces(shown.files[0])]) == b"xxxxxx"


def told(*stored: StoredFile) -> str:
    parcel = Parcel(key="k", conversation=WHERE, kind=ParcelKind.FILES, files=(PHOTO, PAPER))
    return difference(parcel, Receipt(message_id="m", sent=START, stored=stored))


@pytest.mark.parametrize(
    "stored",
    [
        (StoredFile(form=SendAs.PHOTO, size=90), StoredFile(form=SendAs.DOCUMENT, size=200, name="report.pdf")),
        (StoredFile(), StoredFile()),
        (StoredFile(size=5), StoredFile(name="renamed.pdf")),
    ],
    ids=["as planned, the photo encoded anew", "it says nothing", "renamed"],
)
def test_what_is_as_planned_is_not_told(stored: tuple[StoredFile, ...]) -> None:
    assert told(*stored) == ""


def test_a_platform_that_does_not_say_is_believed() -> None:
    parcel = Parcel(key="k", conversation=WHERE, kind=ParcelKind.FILES, files=(PHOTO,))
    assert difference(parcel, Receipt(message_id="m", sent=START)) == ""


def test_a_file_that_is_missing_is_told() -> None:
    assert told(StoredFile()) == "the platform stored 1 of 2 files"


def test_another_form_and_another_size_are_told() -> None:
    assert told(StoredFile(form=SendAs.DOCUMENT, size=1), StoredFile(size=150)) == (
        "cat.jpg: sent as document instead of photo; report.pdf: the platform holds 150 of 200 bytes"
    )
