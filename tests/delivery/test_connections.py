"""Parcels leave only when the platform of their account has let us in."""

import asyncio
from pathlib import Path

from belino.config import AdapterConfig
from belino.delivery.connections import ConnectedAccounts, SendingBlocked
from belino.domain.errors import Unauthorized
from belino.domain.message import ConversationKey
from belino.domain.ports import Accept, Adapter, AdapterContext
from belino.domain.reply import Parcel, ParcelState
from belino.domain.stored import ParcelRecord
from belino.gateway.gateway import Gateway
from belino.gateway.supervise import CONNECT_SECONDS
from belino.testing import FakeClock
from belino.testing.memory import Config as MemoryConfig
from gateway.house import House, Wire, until

HERE = ConversationKey(platform="memory", account="default", channel="dm")
THERE = ConversationKey(platform="memory", account="other", channel="dm")


class SlowWire(Wire):
    """A platform that lets us in when a test says so."""

    def __init__(self, config: MemoryConfig, desk: AdapterContext) -> None:
        super().__init__(config, desk)
        self.opens = asyncio.Event()
        self.let_in = asyncio.Event()

    async def run(self, accept: Accept, cursor: str | None) -> None:
        self.let_in.clear()
        if self.deaths:
            raise self.deaths.popleft()
        await self.opens.wait()
        self.let_in.set()
        await super().run(accept, cursor)

    async def connected(self) -> None:
        await self.let_in.wait()


class SlowHouse(House):
    def make_adapter(self, config: AdapterConfig, desk: AdapterContext) -> Adapter:
        wire = self.wires.get(config.account)
        if wire is None:
            wire = self.wires[config.account] = SlowWire(config.options, desk)
        return wire

    def open(self, account: str = "default") -> None:
        wire = self.wires[account]
        assert isinstance(wire, SlowWire)
        wire.opens.set()


def words(key: str, where: ConversationKey = HERE) -> Parcel:
    return Parcel(key=key, conversation=where, text=key, trace="t")


async def left_behind(house: House, *parcels: Parcel) -> None:
    """What an earlier run did not come to send."""
    async with house.gateway() as gateway:
        await gateway.store.put_parcels(parcels)


async def reasons(gateway: Gateway) -> list[str]:
    return [record.reason for record in await gateway.store.parcels()]


async def told(gateway: Gateway, word: str) -> ParcelRecord:
    """The parcel whose reason has this word in it, once there is one."""
    while True:
        for record in await gateway.store.parcels():
            if word in record.reason:
                return record
        await asyncio.sleep(0.001)


async def test_after_a_restart_nothing_leaves_before_the_platform_has_let_us_in(tmp_path: Path) -> None:
    house = SlowHouse(tmp_path / "home")
    await left_behind(house, words("one"), words("two"))
    async with house.at_work() as gateway:
        await until(lambda: HERE in gateway._sender.lines._waiting.get(("memory", "default"), ()))
        assert gateway.health()["memory", "default"].state == "starting"
        assert [(one.state, one.attempts) for one in await gateway.store.parcels()] == [(ParcelState.READY, 0)] * 2
        house.open()
        await until(lambda: house.wire.texts() == ["one", "two"])
        assert gateway.health()["memory", "default"].state == "running"
    assert len(house.wire.offered) == 2


async def test_a_platform_that_does_not_answer_is_the_reason_that_parcels_are_shown_with(tmp_path: Path) -> None:
    house = SlowHouse(tmp_path / "home")
    await left_behind(house, words("one"))
    async with house.at_work() as gateway:
        await until(lambda: gateway._sender.lines._waiting)
        assert await reasons(gateway) == [""]
        await house.clock.advance(CONNECT_SECONDS)
        record = await told(gateway, "did not accept the connection")
        assert (record.state, record.attempts) == (ParcelState.READY, 0)
        assert record.reason.startswith("memory:default is not connected: ")
        await until(lambda: gateway.counters.parcels["ready"] == 1)
        house.open()
        await until(lambda: gateway.counters.parcels["sent"] == 1)
        assert await reasons(gateway) == [""]


async def test_an_account_that_is_refused_keeps_its_answers_and_spends_no_try_on_them(tmp_path: Path) -> None:
    house = SlowHouse(tmp_path / "home")
    refused = Unauthorized("the token was revoked")
    async with house.at_work() as gateway:
        house.wire.deaths.extend([refused, refused])
        await until(lambda: gateway.health()["memory", "default"].state == "unauthorized")
        await gateway.accept(house.say())
        record = await told(gateway, "the token was revoked")
        assert (record.state, record.attempts) == (ParcelState.READY, 0)
        assert await gateway.retry_parcel(record.key) is not None
        assert (await told(gateway, "the token was revoked")).attempts == 0
        await house.clock.advance(5)
        await until(lambda: gateway.health()["memory", "default"].restarts == 2)
        assert house.wire.offered == []
        house.open()
        await house.clock.advance(15)
        await until(lambda: house.wire.texts() == ["turn 1"])
        (record,) = await gateway.store.parcels()
        assert record.attempts == 1


async def test_an_adapter_that_dies_later_keeps_what_is_said_meanwhile_until_it_is_back(house: House) -> None:
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        lines = gateway._sender.lines
        lines.down(("memory", "default"), "memory:default is not connected: the socket broke")
        await gateway.accept(house.say())
        await until(lambda: gateway.counters.parcels["ready"])
        assert "the socket broke" in (await reasons(gateway))[0]
        assert house.wire.texts() == ["turn 1"]
        lines.up(("memory", "default"))
        await until(lambda: house.wire.texts() == ["turn 1", "turn 2"])


async def test_an_account_that_is_down_holds_up_no_other(tmp_path: Path) -> None:
    house = SlowHouse(tmp_path / "home")
    house.accounts = ("default", "other")
    await left_behind(house, words("one"), words("two", THERE))
    async with house.at_work() as gateway:
        await until(lambda: gateway._sender.lines._waiting)
        house.open("other")
        await until(lambda: house.wires["other"].texts() == ["two"])
        assert house.wire.offered == []


MEMORY = ("memory", "default")


def at(channel: str) -> ConversationKey:
    return ConversationKey(platform="memory", account="default", channel=channel)


class Lines:
    """The connections of two accounts, one of them up, and who was woken."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.woken: list[ConversationKey] = []
        self.accounts = ConnectedAccounts([MEMORY, ("memory", "other")], self.woken.append, self.clock)
        self.accounts.up(MEMORY)

    def may(self, where: ConversationKey) -> bool:
        return self.accounts.why_not(where) is None


def test_a_line_wakes_who_waits_for_it_once_for_all_that_is_new() -> None:
    woken = list[ConversationKey]()
    lines = ConnectedAccounts([MEMORY, ("memory", "other")], woken.append, FakeClock())
    assert lines.why_not(HERE) == SendingBlocked(reason="")
    lines.down(MEMORY)
    assert woken == []
    lines.down(MEMORY, "broken")
    lines.down(MEMORY, "broken")
    assert woken == [HERE]
    assert lines.why_not(HERE) == SendingBlocked(reason="broken")
    lines.down(MEMORY)
    assert lines.why_not(HERE) == SendingBlocked(reason="broken")
    lines.up(MEMORY)
    lines.up(MEMORY)
    assert woken == [HERE, HERE]
    assert lines.why_not(HERE) is None
    assert lines.why_not(THERE) == SendingBlocked(reason="")


def test_an_account_without_an_adapter_is_no_line_that_could_be_down() -> None:
    assert ConnectedAccounts([], lambda _: None, FakeClock()).why_not(HERE) is None


async def test_after_a_refusal_one_conversation_tries_again_and_the_others_wait_for_it() -> None:
    lines = Lines()
    assert lines.accounts.refused(at("a"), "who are you?") == 5
    assert lines.accounts.why_not(at("a")) == SendingBlocked(reason="who are you?", seconds=5)
    assert lines.accounts.why_not(at("b")) == SendingBlocked(reason="who are you?")
    await lines.clock.advance(5)
    assert [lines.may(at(name)) for name in "ab"] == [True, False]
    assert lines.accounts.refused(at("a"), "who are you?") == 15
    assert lines.woken == []
    await lines.clock.advance(15)
    lines.accounts.accepted(MEMORY)
    assert lines.woken == [at("a"), at("b")]
    assert [lines.may(at(name)) for name in "ab"] == [True, True]


async def test_a_send_that_was_under_way_when_another_was_refused_does_not_count_as_a_second_refusal() -> None:
    lines = Lines()
    lines.accounts.refused(at("a"), "who are you?")
    await lines.clock.advance(1)
    assert lines.accounts.refused(at("b"), "who are you?") == 4
    assert lines.accounts.why_not(at("a")) == SendingBlocked(reason="who are you?", seconds=4)


async def test_a_success_elsewhere_frees_a_line_at_once_and_a_line_that_is_refused_again_a_step_earlier() -> None:
    lines = Lines()
    lines.accounts.refused(at("a"), "who are you?")
    lines.accounts.succeeded(MEMORY)
    lines.accounts.succeeded(MEMORY)
    assert lines.woken == [at("a")]
    assert lines.may(at("a"))
    for wait in (5.0, 15.0, 60.0, 60.0):
        lines.accounts.refused(at("a"), "who are you?")
        lines.accounts.succeeded(MEMORY)
        assert lines.accounts.why_not(at("a")) == SendingBlocked(reason="who are you?", seconds=wait)
        await lines.clock.advance(wait)


async def test_a_conversation_with_nothing_to_send_leaves_the_attempt_to_another_one() -> None:
    lines = Lines()
    lines.accounts.refused(at("a"), "who are you?")
    assert not lines.may(at("b"))
    await lines.clock.advance(5)
    lines.accounts.passed(at("b"))
    assert lines.woken == []
    lines.accounts.passed(at("a"))
    assert lines.woken == [at("b")]
    assert lines.may(at("b"))
    lines.accounts.passed(at("b"))
    assert [lines.may(at(name)) for name in "abc"] == [True, True, True]


def test_an_account_that_connects_again_has_its_refusals_forgotten() -> None:
    lines = Lines()
    lines.accounts.refused(at("a"), "who are you?")
    lines.accounts.down(MEMORY, "broken")
    lines.accounts.up(MEMORY)
    assert lines.may(at("b"))


def test_who_waits_for_an_account_that_is_removed_is_woken() -> None:
    lines = Lines()
    assert not lines.may(THERE)
    lines.accounts.forget(("memory", "other"))
    assert lines.woken == [THERE]
    assert lines.may(THERE)


async def test_an_answer_refused_once_goes_out_after_five_seconds_and_at_once_if_an_arrival_proves_the_token(
    house: House,
) -> None:
    house.prepare().refusals.append(Unauthorized("who are you?"))
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        await told(gateway, "who are you?")
        assert gateway.health()[MEMORY].state == "unauthorized"
        await house.clock.wake(5)
        await until(lambda: house.wire.texts() == ["turn 1"])
        await until(lambda: gateway.health()[MEMORY].works)
        house.wire.refusals.append(Unauthorized("who are you?"))
        await gateway.accept(house.say())
        await until(lambda: not house.wire.refusals)
        await told(gateway, "who are you?")
        await gateway._intake.for_account(*MEMORY)(house.say("proof", channel="open", addressed=False))
        await until(lambda: "turn 2" in house.wire.texts("dm"))


async def test_a_revoked_token_is_tried_by_one_conversation_and_loses_no_answer_of_any(house: House) -> None:
    wire = house.prepare()
    wire.refusals.extend(Unauthorized("the token was revoked") for _ in range(4))
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        await told(gateway, "the token was revoked")
        for channel in ("team", "open"):
            await gateway.accept(house.say(channel=channel))
        while await reasons(gateway) != ["the token was revoked"] * 3:
            await asyncio.sleep(0.001)
        assert len(wire.offered) == 1
        for wait in (5, 15, 60):
            await house.clock.wake(wait)
        await until(lambda: len(wire.offered) == 4)
        assert {parcel.conversation.channel for parcel in wire.offered} == {"dm"}
        assert gateway.health()[MEMORY].reason == "sending: the token was revoked"
        await house.clock.wake(300)
        await until(lambda: len(wire.seen) == 3)
        await until(lambda: gateway.health()[MEMORY].works)
