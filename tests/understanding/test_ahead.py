"""Media is read before it is asked for: on this machine only, of senders who may command, last of all, and once."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from belino.config import from_table
from belino.context.search import search
from belino.domain.errors import MediaExpired
from belino.domain.media import MediaKind
from belino.domain.message import Author
from belino.domain.outcome import MediaOutcome, Standing, Step
from belino.domain.reading import Read, ReadingForm, ReadingOutcome, Skill
from belino.domain.search import Found
from belino.domain.stored import RefRecord, Verdict
from belino.storage.read_ahead import DONE, SKIPPED
from belino.testing.files import make_png
from belino.understanding import ahead
from belino.understanding.ahead import AheadCallbacks, ReadAhead
from belino.understanding.read import Understanding
from tools.papers import line, make_pages
from understanding.reading_house import ANNA, MAIN, OBSERVE, SIDE, ReadingHouse, sound
from understanding.scripted import Call, Script, Shelf

COMMAND = Verdict(standing=Standing.MAY_COMMAND, reason="on the list")
OVERHEARD = Verdict(standing=Standing.OBSERVED, reason="the agent was not addressed", sender_may_command=True)


@dataclass(kw_only=True)
class Background:
    """Reading ahead in a house, and what it was told."""

    house: ReadingHouse
    understanding: Understanding
    busy: bool = False
    refused: set[str] = field(default_factory=set)
    steps: list[Step] = field(default_factory=list)
    held: Callable[[RefRecord], Any] | None = None

    def reader(self, **media: Any) -> ReadAhead:
        async def may(record: RefRecord) -> bool:
            return record.author.id not in self.refused

        async def is_busy() -> bool:
            return self.busy

        async def told(record: RefRecord, step: Step) -> None:
            self.steps.append(step)

        tools = from_table({"tools": {"media": {"read_ahead": "local", **media}}}).tools.media
        return ReadAhead(
            self.house.store,
            lambda: self.understanding,
            self.held or self.house.hold,
            AheadCallbacks(may_command=may, is_busy=is_busy, told=told),
            config=tools,
            clock=self.house.clock,
        )


@pytest.fixture
def ears(shelf: Shelf) -> Script:
    return shelf.add("local_ears", Skill.TRANSCRIBE, local=True, answer=says("The tide turns at nine."))


@pytest.fixture
def background(house: ReadingHouse) -> Background:
    return Background(house=house, understanding=house.understanding())


def says(text: str) -> Any:
    return lambda call: Read(text=text, model="m")


async def found(house: ReadingHouse, intent: str) -> Found | None:
    page = await search(house.store, MAIN, intent, now=house.clock.now())
    return next((result for result in page.results if result.passage is not None), None)


async def places(house: ReadingHouse, *records: RefRecord) -> list[str | None]:
    known = [await house.store.place_ahead(record.ref.id) for record in records]
    return [None if place is None else place.place for place in known]


async def test_a_voice_message_that_nobody_asked_about_is_found_by_its_words(
    house: ReadingHouse, background: Background, ears: Script
) -> None:
    voice = await house.send(sound(3.0), kind=MediaKind.VOICE, verdict=OVERHEARD)
    assert await found(house, "when does the tide turn?") is None
    assert await background.reader().catch_up()
    hit = await found(house, "when does the tide turn?")
    assert hit is not None and hit.passage is not None and hit.passage.ref == voice.ref.id
    ((_, attempt),) = await house.store.attempts(ref=voice.ref.id)
    assert attempt.ahead and attempt.attempt.outcome is ReadingOutcome.SUCCESS and attempt.seconds > 0
    assert [(step.outcome, step.reason, step.subject) for step in background.steps] == [
        ("read", "ahead: transcript by local_ears", voice.ref.id)
    ]


async def test_text_in_a_picture_and_in_a_document_is_read_too(
    house: ReadingHouse, background: Background, shelf: Shelf
) -> None:
    eyes = shelf.add("local_eyes", Skill.READ_TEXT, local=True, answer=says("TOTAL 48.50"))
    picture = await house.send(make_png(40, 30), "image/png", kind=MediaKind.IMAGE, verdict=COMMAND)
    paper = await house.send(make_pages(line("The notice is three months")), "application/pdf", verdict=COMMAND)
    assert await background.reader().catch_up()
    assert await places(house, picture, paper) == [DONE, DONE] and len(eyes.calls) == 1
    for intent, record in (("total", picture), ("notice", paper)):
        hit = await found(house, intent)
        assert hit is not None and hit.passage is not None and hit.passage.ref == record.ref.id
    ((_, own),) = await house.store.attempts(ref=paper.ref.id)
    assert own.ahead and (own.attempt.provider, own.form) == ("belino", ReadingForm.TEXT)


async def test_a_remote_provider_never_reads_ahead(house: ReadingHouse, shelf: Shelf) -> None:
    remote = shelf.add("deepgram", Skill.TRANSCRIBE, answer=says("sent away"))
    local = shelf.add("local_ears", Skill.TRANSCRIBE, local=True, answer=says("stays here"))
    profile = {"audio": {"models": [{"provider": "deepgram"}, {"provider": "local_ears"}]}}
    background = Background(house=house, understanding=house.understanding(**profile))
    await house.send(sound(3.0), verdict=COMMAND)
    assert await background.reader().catch_up()
    assert (len(remote.calls), len(local.calls)) == (0, 1)
    only_remote = Background(
        house=house, understanding=house.understanding(audio={"models": [{"provider": "deepgram"}]})
    )
    record = await house.send(sound(4.0), verdict=COMMAND)
    assert await only_remote.reader().catch_up()
    assert not remote.calls and await places(house, record) == [SKIPPED]


async def test_a_command_does_not_read_ahead_because_what_it_does_is_not_known(
    house: ReadingHouse, shelf: Shelf
) -> None:
    command = shelf.add("cli", Skill.TRANSCRIBE, local=True, needs_key=False)
    entry = {"type": "cli", "provider": "mine", "command": "listen"}
    background = Background(house=house, understanding=house.understanding(audio={"models": [entry]}))
    record = await house.send(sound(3.0), verdict=COMMAND)
    assert await background.reader().catch_up()
    assert not command.calls and await places(house, record) == [SKIPPED]
    await house.item(background.understanding, record)
    assert len(command.calls) == 1


async def test_only_media_of_senders_who_may_command_is_read(
    house: ReadingHouse, background: Background, ears: Script
) -> None:
    stranger = await house.send(sound(3.0), verdict=OBSERVE)
    withdrawn = await house.send(sound(4.0), verdict=COMMAND, author=Author(id="u-bo", name="Bo"))
    own = await house.send(sound(5.0), verdict=COMMAND, author=replace(ANNA, id="agent", is_agent=True))
    background.refused.add("u-bo")
    assert await background.reader().catch_up()
    assert not ears.calls and house.holds == 0
    assert await places(house, stranger, withdrawn, own) == [None, SKIPPED, None]


async def test_bytes_are_fetched_for_it_only_where_that_is_allowed(
    house: ReadingHouse, background: Background, ears: Script
) -> None:
    record = await house.send(sound(3.0), verdict=COMMAND)
    await house.store.end_media(record.ref.id, MediaOutcome.REFERENCED)
    assert await background.reader().catch_up()
    assert not ears.calls and house.holds == 0
    assert await background.reader(read_ahead_fetch=True).catch_up()
    assert len(ears.calls) == 1 and house.holds == 1


async def test_media_that_cannot_be_had_does_not_keep_back_the_rest(
    house: ReadingHouse, background: Background, ears: Script
) -> None:
    good, lost = [await house.send(sound(seconds), verdict=COMMAND) for seconds in (3.0, 4.0)]
    hold = house.hold

    def held(record: RefRecord) -> Any:
        if record.ref.id == lost.ref.id:
            raise MediaExpired("gone")
        return hold(record)

    background.held = held
    assert await background.reader().catch_up()
    assert await places(house, good, lost) == [DONE, SKIPPED] and len(ears.calls) == 1


async def test_what_was_read_is_not_read_again_whoever_asks_and_after_a_restart(
    house: ReadingHouse, background: Background, ears: Script
) -> None:
    voice = await house.send(sound(3.0), verdict=COMMAND)
    for _ in range(2):
        assert await background.reader().catch_up()
    fresh = Background(house=house, understanding=house.understanding())
    assert await fresh.reader().catch_up()
    await house.item(fresh.understanding, voice)
    copy = await house.send(sound(3.0), where=SIDE, verdict=COMMAND)
    assert await fresh.reader().catch_up()
    assert len(ears.calls) == 1 and await places(house, copy) == [DONE]


async def test_a_long_recording_is_read_piece_by_piece_and_goes_on_where_it_ended(
    house: ReadingHouse, background: Background, ears: Script
) -> None:
    record = await house.send(sound(290.0, rate=8_000), verdict=COMMAND)

    def answer(call: Call) -> Read:
        background.busy = len(ears.calls) == 2
        return Read(text=f"part {len(ears.calls)}", model="m")

    ears.answer = answer
    assert not await background.reader().catch_up()
    assert await places(house, record) == ["transcript@240"] and len(ears.calls) == 2
    background.busy = False
    assert await Background(house=house, understanding=house.understanding()).reader().catch_up()
    assert await places(house, record) == [DONE] and len(ears.calls) == 3


async def test_a_reading_that_is_waited_for_comes_first_and_the_other_is_done_later(
    house: ReadingHouse, background: Background, ears: Script
) -> None:
    slow = await house.send(sound(3.0), verdict=COMMAND)
    begun = asyncio.Event()

    async def answer(call: Call) -> Read:
        if not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        return Read(text="at last", model="m")

    ears.answer = answer
    reading = asyncio.create_task(background.reader().catch_up())
    await begun.wait()
    asked = await house.send(sound(4.0), verdict=OBSERVE)
    assert (await house.item(background.understanding, asked)).text == "at last"
    assert not await reading
    ((_, attempt),) = await house.store.attempts(ref=slow.ref.id)
    assert attempt.attempt.outcome is ReadingOutcome.SKIPPED and attempt.attempt.reason.startswith("it gave way")
    assert attempt.seconds == 0
    assert await background.reader().catch_up()
    assert await places(house, slow) == [DONE] and len(ears.calls) == 3


async def test_a_request_for_what_is_being_read_waits_for_it(
    house: ReadingHouse, background: Background, ears: Script
) -> None:
    voice = await house.send(sound(3.0), verdict=COMMAND)
    begun, go = asyncio.Event(), asyncio.Event()

    async def answer(call: Call) -> Read:
        begun.set()
        await go.wait()
        return Read(text="once", model="m")

    ears.answer = answer
    reading = asyncio.create_task(background.reader().catch_up())
    await begun.wait()
    asked = asyncio.create_task(house.item(background.understanding, voice))
    await asyncio.sleep(0)
    go.set()
    assert (await asked).text == "once" and await reading and len(ears.calls) == 1


async def test_nothing_is_begun_while_a_turn_waits_or_runs(
    house: ReadingHouse, background: Background, ears: Script
) -> None:
    await house.send(sound(3.0), verdict=COMMAND)
    background.busy = True
    assert not await background.reader().catch_up() and not ears.calls


async def test_a_channel_has_a_daily_limit(
    house: ReadingHouse, background: Background, ears: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "PIECES_A_DAY", 2)
    records = [await house.send(sound(3.0 + number), verdict=COMMAND) for number in range(4)]
    other = await house.send(sound(9.0), where=SIDE, verdict=COMMAND)
    assert await background.reader().catch_up()
    assert await places(house, *records) == [SKIPPED, SKIPPED, DONE, DONE] and await places(house, other) == [DONE]
    house.clock.shift(90_000)
    await house.store.unskip_ahead()
    assert await background.reader().catch_up()
    assert await places(house, *records) == [DONE] * 4 and len(ears.calls) == 5


async def test_the_limits_of_the_configuration_hold_too(house: ReadingHouse, ears: Script) -> None:
    background = Background(house=house, understanding=house.understanding(limits={"seconds_per_day": 5}))
    records = [await house.send(sound(seconds), verdict=COMMAND) for seconds in (4.0, 4.5)]
    assert await background.reader().catch_up()
    assert len(ears.calls) == 1 and await places(house, *records) == [SKIPPED, DONE]


async def test_an_item_that_never_ends_is_left_out(house: ReadingHouse, background: Background, ears: Script) -> None:
    """As if the process died whenever it reads it."""
    record = await house.send(sound(3.0), verdict=COMMAND)

    class Dies(BaseException):
        pass

    def answer(call: Call) -> Read:
        raise Dies

    ears.answer = answer
    for _ in range(3):
        with pytest.raises(Dies):
            await background.reader().catch_up()
    assert await background.reader().catch_up()
    assert await places(house, record) == [DONE] and len(ears.calls) == 3


async def test_a_deleted_item_leaves_nothing_of_it(house: ReadingHouse, background: Background, ears: Script) -> None:
    record = await house.send(sound(3.0), verdict=COMMAND)
    assert await background.reader().catch_up()
    await house.delete(record)
    assert await places(house, record) == [None] and await found(house, "tide") is None
