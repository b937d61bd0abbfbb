"""Parcels leave only when the platform of their account has let us in."""

import asyncio
from pathlib import Path

from belino.config import AdapterConfig
from belino.delivery.send import ConnectedAccounts
from belino.domain.errors import Unauthorized
from belino.domain.message import ConversationKey
from belino.domain.ports import Accept, Adapter, AdapterContext
from belino.domain.reply import Parcel, ParcelState
from belino.domain.stored import ParcelRecord
from belino.gateway.gateway import Gateway
from belino.gateway.supervise import CONNECT_SECONDS, UNAUTHORIZED_SECONDS
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
        await house.clock.advance(UNAUTHORIZED_SECONDS)
        await until(lambda: gateway.health()["memory", "default"].restarts == 2)
        assert house.wire.offered == []
        house.open()
        await house.clock.advance(UNAUTHORIZED_SECONDS)
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


def test_a_line_wakes_who_waits_for_it_once_for_all_that_is_new() -> None:
    woken = list[ConversationKey]()
    lines = ConnectedAccounts([("memory", "default"), ("memory", "other")], woken.append)
    assert lines.why_not(HERE) == ""
    lines.down(("memory", "default"))
    assert woken == []
    lines.down(("memory", "default"), "broken")
    lines.down(("memory", "default"), "broken")
    assert woken == [HERE]
    assert lines.why_not(HERE) == "broken"
    lines.down(("memory", "default"))
    assert lines.why_not(HERE) == "broken"
    lines.up(("memory", "default"))
    lines.up(("memory", "default"))
    assert woken == [HERE, HERE]
    assert lines.why_not(HERE) is None
    assert lines.why_not(THERE) == ""


def test_an_account_without_an_adapter_is_no_line_that_could_be_down() -> None:
    assert ConnectedAccounts([], lambda _: None).why_not(HERE) is None
