"""The adapter contract catches what it promises to catch, and tells the author what to do."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar

import pytest

from belino.domain.errors import AdapterError, Unauthorized, Undeliverable
from belino.domain.limits import Limits, Once
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, Author, ConversationKey, Message, Unsupported
from belino.domain.outcome import Finding
from belino.domain.ports import Accept, Adapter
from belino.domain.reply import Parcel, Receipt
from belino.net.redact import Secret
from belino.testing import FakeContext, MemoryAdapter, MemoryPlatform, Trial, check_adapter, contract, memory

CANARY = "canary-of-the-contract"
SAMPLE: dict[str, Any] = {
    "id": 7,
    "channel": "c:1",
    "from": {"id": 5, "name": "Ada"},
    "date": 1_767_268_800,
    "text": "look",
    "files": [
        {"file": "f1", "name": "a.png", "mime": "image/png", "size": 200_000},
        {"file": "f2", "name": "a.png", "mime": "image/png"},
    ],
}
PARCELS = ConversationKey(platform="memory", account="default", channel="c:1")


def parse(raw: Any) -> tuple[Arrival, ...]:
    return memory.parse(raw, account="default")


def trial(*, adapter: type[MemoryAdapter] = MemoryAdapter, parse: Callable[[Any], Any] = parse) -> Trial:
    far_side = MemoryPlatform()
    far_side.files = {"f1": b"x" * 200_000, "f2": b""}
    config = memory.Config(far_side=far_side, token=Secret("TOKEN", CANARY))

    async def deliver(_adapter: Adapter, raw: Any) -> None:
        far_side.offer(raw)
        await far_side.until_acknowledged(len(far_side.updates))

    def refuse(status: int, headers: Mapping[str, str]) -> None:
        far_side.refusals.append((status, headers))

    return Trial(
        make=lambda: adapter(config, FakeContext()),
        parse=parse,
        samples=[SAMPLE, {**{k: v for k, v in SAMPLE.items() if k not in ("text", "files")}, "poll": {}}],
        conversation=PARCELS,
        secrets=[CANARY],
        deliver=deliver,
        media=far_side.files,
        refuse=refuse,
    )


async def fails(tried: Trial, says: str) -> None:
    async with asyncio.timeout(60):
        with pytest.raises((AssertionError, BaseExceptionGroup)) as caught:
            await check_adapter(tried)
    error: BaseException = caught.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, AssertionError)
    assert says in str(error)


def changed(**changes: Any) -> Callable[[Any], Any]:
    """A parse that returns the message with its first ref changed."""

    def parse_wrongly(raw: Any) -> Any:
        return [
            replace(arrival, media=(replace(arrival.media[0], **changes), *arrival.media[1:]))
            if isinstance(arrival, Message)
            else arrival
            for arrival in parse(raw)
        ]

    return parse_wrongly


async def test_the_example_adapter_keeps_the_whole_contract() -> None:
    assert len(await check_adapter(trial())) == 11


async def test_what_the_trial_does_not_bring_is_not_claimed_to_be_checked() -> None:
    checked = await check_adapter(replace(trial(), deliver=None, media={}, refuse=None))
    assert len(checked) == 7


async def test_the_example_says_what_it_cannot_read() -> None:
    (arrival,) = parse(trial().samples[1])
    assert isinstance(arrival, Unsupported)
    assert arrival.what == "poll"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"locator": {"file": "https://cdn.test/f1"}}, "holds a URL"),
        ({"locator": {"file": CANARY}}, "secret number 1 of the trial stands in what parse returns"),
        ({"caption": f"see {CANARY}"}, "secret number 1 of the trial stands in what parse returns"),
        ({"locator": {"file": 7}}, "must hold strings"),
        ({"id": "mem_1"}, "ids are given at intake"),
        ({"item": "f2"}, "share one item id"),
        ({"channel_id": "elsewhere"}, "does not name the message it came with"),
    ],
)
async def test_a_ref_that_breaks_its_promise_is_caught(changes: dict[str, Any], says: str) -> None:
    await fails(trial(parse=changed(**changes)), says)


async def test_a_parse_that_changes_its_input_is_caught() -> None:
    def greedy(raw: Any) -> Any:
        found = parse(raw)
        raw["seen"] = True
        return found

    await fails(trial(parse=greedy), "parse changed the update")


async def test_a_parse_that_drops_what_it_cannot_read_is_caught() -> None:
    await fails(trial(parse=lambda raw: parse(raw) if "text" in raw else ()), "say Unsupported instead")


async def test_a_parse_that_looks_at_the_clock_is_caught() -> None:
    moments = iter(range(1000))

    def restless(raw: Any) -> Any:
        return [replace(arrival, id=str(next(moments))) for arrival in parse(raw)]

    await fails(trial(parse=restless), "two different answers")


async def test_a_time_without_a_zone_is_caught() -> None:
    def local(raw: Any) -> Any:
        return [replace(arrival, sent=datetime(2026, 1, 1)) for arrival in parse(raw)]

    await fails(trial(parse=local), "times must be aware and in UTC")


class Hasty(MemoryAdapter):
    """Acknowledges first."""

    async def run(self, accept: Accept, cursor: str | None) -> None:
        update = await self._far_side.next_update(0)
        self._far_side.acknowledge(1)
        for arrival in parse(update):
            await accept(arrival, cursor="1")
        await asyncio.Event().wait()


class Stubborn(MemoryAdapter):
    """Does not let itself be cancelled."""

    async def run(self, accept: Accept, cursor: str | None) -> None:
        try:
            await super().run(accept, cursor)
        except asyncio.CancelledError:
            return


class Eager(MemoryAdapter):
    """Is connected before it begins."""

    async def connected(self) -> None:
        await asyncio.sleep(0)


class Silent(MemoryAdapter):
    """Never says that it is connected."""

    async def connected(self) -> None:
        await asyncio.Event().wait()


class Twice(MemoryAdapter):
    """Promises to know keys, and does not."""

    numbers = iter(range(100))

    async def send(self, parcel: Parcel) -> Receipt:
        receipt = await super().send(parcel)
        return replace(receipt, message_id=f"{next(self.numbers)}")


class Gulp(MemoryAdapter):
    """Reads whole files."""

    @asynccontextmanager
    async def open_media(self, ref: MediaRef) -> AsyncIterator[AsyncIterator[bytes]]:
        async def whole() -> AsyncIterator[bytes]:
            yield b"x" * (contract.LARGEST_CHUNK + 1)

        yield whole()


class Other(MemoryAdapter):
    """Sends other bytes."""

    @asynccontextmanager
    async def open_media(self, ref: MediaRef) -> AsyncIterator[AsyncIterator[bytes]]:
        async def other() -> AsyncIterator[bytes]:
            yield b"y"

        yield other()


class Deaf(MemoryAdapter):
    """Does not understand 429."""

    async def send(self, parcel: Parcel) -> Receipt:
        try:
            return await super().send(parcel)
        except AdapterError as error:
            return Receipt(message_id=str(error), sent=self._context.clock.now())


class Trusting(MemoryAdapter):
    """Takes refused credentials for any other failure."""

    async def send(self, parcel: Parcel) -> Receipt:
        try:
            return await super().send(parcel)
        except Unauthorized as error:
            raise AdapterError(str(error)) from error


class Blind(MemoryAdapter):
    """Says it can read back, and cannot."""

    limits = Limits(text_chars=10, once=Once.READ_BACK)


class Loud(MemoryAdapter):
    """Calls itself what no table of belino.toml can be called."""

    platform: ClassVar[str] = "Loud Platform"


@pytest.mark.parametrize(
    ("adapter", "says"),
    [
        (Hasty, "before accept() returned"),
        (Stubborn, "swallowed its cancellation"),
        (Eager, "before run() was called"),
        (Twice, "sending the same parcel twice made two"),
        (Gulp, "stream them"),
        (Other, "gave other bytes than the platform"),
        (Deaf, "must raise RateLimited"),
        (Trusting, "must raise Unauthorized"),
        (Blind, "needs find_sent"),
        (Loud, "must be a lower-case word"),
    ],
)
async def test_an_adapter_that_breaks_its_promise_is_caught(adapter: type[MemoryAdapter], says: str) -> None:
    await fails(trial(adapter=adapter), says)


async def test_an_adapter_that_never_says_that_it_is_connected_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "WAIT_SECONDS", 0.1)
    await fails(trial(adapter=Silent), "no parcel would ever leave")


class Able(MemoryAdapter):
    """An adapter with buttons, reactions, drafts and checks."""

    limits = Limits(text_chars=4096, once=Once.KEY, buttons=True)

    async def send(self, parcel: Parcel) -> Receipt:
        receipt = await super().send(parcel)
        return replace(receipt, message_id=parcel.edits or receipt.message_id)

    async def edit(self, message_id: str, parcel: Parcel) -> Receipt:
        return await self.send(replace(parcel, edits=message_id))

    def draft_pause(self, conversation: ConversationKey) -> float | None:
        return 1.0

    async def check(self) -> tuple[Finding, ...]:
        status, _ = self._far_side.answer()
        return (Finding(name="token", ok=status != 401, says="the platform was asked"),)


class Buttonless(Able):
    """Refuses what its limits promise."""

    async def send(self, parcel: Parcel) -> Receipt:
        if parcel.buttons:
            raise Undeliverable("no buttons here")
        return await super().send(parcel)


class Doubling(Able):
    """Shows a choice in a new message."""

    async def send(self, parcel: Parcel) -> Receipt:
        if parcel.key == "contract-chosen":
            return await MemoryAdapter.send(self, parcel)
        return await super().send(parcel)


class Redrafting(Able):
    """Sends a draft's next state as a new message."""

    async def edit(self, message_id: str, parcel: Parcel) -> Receipt:
        return await self.send(replace(parcel, key=f"{parcel.key}-2"))


class ReactingOnce(Able):
    """Takes a reaction that is there already for an error."""

    async def react(self, conversation: ConversationKey, message_id: str, emoji: str, *, added: bool = True) -> None:
        if (message_id, emoji, added) in self._far_side.reactions:
            raise Undeliverable("already reacted")
        await super().react(conversation, message_id, emoji, added=added)


class ReactingLoudly(Able):
    """Raises the platform's own words about an emoji that it does not have."""

    async def react(self, conversation: ConversationKey, message_id: str, emoji: str, *, added: bool = True) -> None:
        if emoji.isascii():
            raise AdapterError("invalid_name")


class Unchecked(Able):
    """Finds nothing out."""

    async def check(self) -> tuple[Finding, ...]:
        return ()


class Optimistic(Able):
    """Is always fine."""

    async def check(self) -> tuple[Finding, ...]:
        return (Finding(name="token", ok=True, says="all is well"),)


class Panicking(Able):
    """Raises instead of reporting."""

    async def check(self) -> tuple[Finding, ...]:
        if (await super().check())[0].ok:
            return (Finding(name="token", ok=True, says="all is well"),)
        raise Unauthorized("the token is refused")


class Unnoticing(Able):
    """Takes a refusal for success."""

    async def send(self, parcel: Parcel) -> Receipt:
        try:
            return await super().send(parcel)
        except Unauthorized:
            if parcel.key != "contract-revoked":
                raise
            return Receipt(message_id="1", sent=self._context.clock.now())


def with_press(**changes: Any) -> Callable[[Any], Any]:
    """A parse function that reads presses, wrong in some way."""

    def read(raw: Any) -> tuple[Arrival, ...]:
        if "press" not in raw:
            return parse(raw)
        (message,) = parse({**SAMPLE, "files": [], "text": ""} | {"id": 8, "text": "x"})
        assert isinstance(message, Message)
        return (replace(message, text="", press=raw["press"], **changes),)

    return read


def able(adapter: type[Able] = Able, parse: Callable[[Any], Any] | None = None) -> Trial:
    tried = trial(adapter=adapter, parse=parse or with_press())
    refuse = tried.refuse
    assert refuse is not None

    def revoke() -> None:
        for _ in range(9):
            refuse(401, {})

    return replace(tried, press=lambda key: {"press": key}, revoke=revoke)


async def test_an_adapter_with_buttons_reactions_drafts_and_health_keeps_the_whole_contract() -> None:
    checked = await check_adapter(able())
    assert {
        "a draft becomes the answer",
        "a press is a message",
        "a reaction is added and removed once",
        "buttons are shown, and removed by an edit",
        "findings can be read",
        "health reports revoked credentials",
    } <= set(checked)


@pytest.mark.parametrize(
    ("adapter", "says"),
    [
        (Buttonless, "limits.buttons promises up to 10 buttons"),
        (Doubling, "made another message"),
        (Redrafting, "an edit made another message than the draft"),
        (ReactingOnce, "a reaction that is there or gone already is no error"),
        (ReactingLoudly, "must raise Undeliverable, not AdapterError"),
        (Unchecked, "at least whether the credentials work"),
        (Optimistic, "the first finding must say that the credentials are refused"),
        (Panicking, "as a finding, not raise it"),
        (Unnoticing, "returned as if it had worked"),
    ],
)
async def test_an_able_adapter_that_breaks_its_promise_is_caught(adapter: type[Able], says: str) -> None:
    await fails(able(adapter), says)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"addressed": False}, "Message.addressed must be set"),
        ({"author": Author(id="bot", name="Bot", is_agent=True)}, "the person who pressed"),
    ],
)
async def test_a_press_that_is_read_wrongly_is_caught(changes: dict[str, Any], says: str) -> None:
    await fails(able(parse=with_press(**changes)), says)


async def test_a_press_that_is_no_message_is_caught() -> None:
    def read(raw: Any) -> tuple[Arrival, ...]:
        return parse(raw) if "press" not in raw else ()

    await fails(able(parse=read), "one Message")
