"""A configuration that changes while turns run."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from belino import registry
from belino.config import AccessConfig, AdapterConfig, AgentConfig, ChannelAccess, Config, OwnersConfig, from_table
from belino.context.budget import ContextConfig
from belino.delivery.send import DeliveryConfig
from belino.domain.errors import ConfigError
from belino.domain.outcome import MessageOutcome, TurnState
from belino.domain.ports import Accept, Adapter, AdapterContext
from belino.domain.turn import Final, ReplyPart, Turn
from belino.gateway.accounts import STOP_SECONDS
from belino.gateway.gateway import Gateway
from belino.gateway.reload import ConfigSource, applicable, as_text, differences, file_source
from belino.net.redact import Secret
from belino.net.rest import PaceConfig
from belino.storage.home import Home
from belino.testing.memory import Config as MemoryConfig
from gateway.house import ANN, BOB, EVE, House, Wire, until

DEFAULT, OTHER = ("memory", "default"), ("memory", "other")


class CountedWire(Wire):
    """A platform that notes how often it was listened to, and the adapter's end."""

    def __init__(self, config: MemoryConfig, desk: AdapterContext) -> None:
        super().__init__(config, desk)
        self.runs = 0
        self.ended = False
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def run(self, accept: Accept, cursor: str | None) -> None:
        self.runs += 1
        try:
            await super().run(accept, cursor)
        finally:
            await self.may_end.wait()
            self.ended = True


class ChangingHouse(House):
    """A house whose configuration a test changes; each adapter that is made is a new one."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.made: list[tuple[str, CountedWire]] = []
        self.wanted: Callable[[], Config] = self.config

    def make_adapter(self, config: AdapterConfig, desk: AdapterContext) -> Adapter:
        if config.options == "broken":
            raise ConfigError("adapters.memory: this account cannot be made")
        wire = CountedWire(config.options, desk)
        self.wires[config.account] = wire
        self.made.append((config.account, wire))
        return wire

    def gateway(self) -> Gateway:
        gateway = super().gateway()
        gateway.reloader._source = ConfigSource(load=lambda: self.wanted(), file="belino.toml")
        return gateway


@pytest.fixture
def house(tmp_path: Path) -> ChangingHouse:
    return ChangingHouse(tmp_path / "home")


def account(name: str = "default", *, token: str = "", access: AccessConfig | None = None) -> AdapterConfig:
    options = MemoryConfig(token=Secret("TOKEN", token)) if token else MemoryConfig()
    rules = AccessConfig(senders=("ann",)) if access is None else access
    return AdapterConfig(platform="memory", account=name, access=rules, options=options)


def test_the_keys_that_changed_are_named_as_in_the_file() -> None:
    old = from_table({"adapters": {"web": {}}, "agent": {"kind": "demo"}})
    new = from_table(
        {
            "server": {"port": 1234},
            "access": {"owners": ["memory:default:ann"]},
            "agent": {"name": "Ada", "places": {"web": {"name": "Bea"}}},
            "context": {"timezone": "Europe/Berlin", "snapshot_tokens": 99},
            "adapters": {"web": {"access": {"senders": ["x"], "channels": {"c": {"mention": False}}}}},
            "tools": {"media": {"turn_seconds": 7}},
            "retention_days": 3,
        }
    )
    assert set(differences(old, new)) == {
        "server.port",
        "access.owners",
        "agent.name",
        "agent.places.web",
        "context.timezone",
        "context.snapshot_tokens",
        "adapters.web.access.senders",
        "adapters.web.access.channels.c",
        "tools.media.turn_seconds",
        "retention_days",
    }
    applied = applicable(old, new)
    assert set(differences(applied, new)) == {"server.port", "context.timezone", "retention_days"}
    assert list(differences(new, new)) == []


def test_an_account_that_comes_or_goes_is_named_by_its_table() -> None:
    first = account()
    one = Config(adapters=(first, account("work")))
    two = Config(adapters=(replace(first, options=replace(first.options, token=Secret("T", "x"))), account("home")))
    assert list(differences(one, two)) == [
        "adapters.memory.token",
        "adapters.memory.accounts.work",
        "adapters.memory.accounts.home",
    ]


async def test_new_rules_apply_to_the_next_message_and_no_adapter_is_restarted(house: ChangingHouse) -> None:
    async with house.at_work() as gateway:
        assert (await gateway.accept(house.say(author=EVE, channel="dm-eve"))).outcome is MessageOutcome.DENIED
        options = house.config().adapters[0].options
        rules = AccessConfig(senders=("ann", "eve"), channels={"team": ChannelAccess(senders=("*",))})
        adapter = AdapterConfig(platform="memory", access=rules, options=options)
        gateway.config = replace(gateway.config, adapters=(replace(adapter, access=house.access),))
        house.wanted = lambda: replace(gateway.config, adapters=(adapter,))
        done = await gateway.reload()
        assert (done.reconnected, done.removed, done.restart) == ((), (), ())
        assert "adapters.memory.access.senders" in done.applied
        taken = await gateway.accept(house.say(author=EVE, channel="dm-eve"))
        assert taken.outcome is MessageOutcome.WAITING
        assert [wire.runs for _, wire in house.made] == [1]


async def test_only_the_account_whose_settings_changed_is_replaced_and_others_come_and_go(
    house: ChangingHouse,
) -> None:
    kept, gone = account("kept"), account("gone")
    house.config = lambda: replace(House.config(house), adapters=(account(token="old"), kept, gone))  # type: ignore[method-assign]
    async with house.at_work() as gateway:
        await until(lambda: all(wire.runs for _, wire in house.made))
        house.wanted = lambda: replace(gateway.config, adapters=(account(token="new"), kept, account("fresh")))
        done = await gateway.reload()
        assert (done.reconnected, done.removed) == (("memory:default", "memory:fresh"), ("memory:gone",))
        assert set(gateway.adapters) == set(gateway.health()) == {("memory", n) for n in ("default", "kept", "fresh")}
        await until(lambda: all(wire.runs for name, wire in house.made if name != "gone"))
        ended = {(name, wire.ended) for name, wire in house.made}
        assert ended == {("default", True), ("default", False), ("kept", False), ("gone", True), ("fresh", False)}
        await house.ask(gateway, house.say())
        assert house.wires["default"].texts() == ["turn 1"]
        assert house.made[0][1].texts() == []


async def test_a_send_under_way_ends_on_the_old_adapter_and_the_next_goes_through_the_new_one(
    house: ChangingHouse,
) -> None:
    house.config = lambda: replace(House.config(house), adapters=(account(token="old"),))  # type: ignore[method-assign]
    async with house.at_work() as gateway:
        old = house.made[0][1]
        held, go_on = asyncio.Event(), asyncio.Event()
        send = old.send

        async def slow(parcel: object) -> object:
            held.set()
            await go_on.wait()
            return await send(parcel)  # type: ignore[arg-type]

        old.send = slow  # type: ignore[method-assign,assignment]
        await gateway.accept(house.say())
        await held.wait()
        house.wanted = lambda: replace(gateway.config, adapters=(account(token="new"),))
        await gateway.reload()
        await gateway.accept(house.say())
        go_on.set()
        new = house.made[1][1]
        await until(lambda: new.texts())
        assert (old.texts(), new.texts()) == (["turn 1"], ["turn 2"])


class SlowAgent:
    """Answers when a test says so."""

    remembers = sees_images = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        self.begun.set()
        await self.may_end.wait()
        yield Final(text=f"{self.name} answers")


async def test_a_turn_that_runs_keeps_its_agent_and_the_next_turn_has_the_new_one(
    house: ChangingHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = {name: SlowAgent(name) for name in ("old", "new")}

    class Plugin:
        def make(self, options: str) -> SlowAgent:
            return agents[options]

    find = registry.find
    monkeypatch.setattr(registry, "find", lambda kind, name: Plugin() if kind == "agents" else find(kind, name))
    house.agent = None  # type: ignore[assignment]
    config = replace(House.config(house), agent=AgentConfig(name="Ada", options="old"))
    house.config = lambda: config  # type: ignore[method-assign]
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        await agents["old"].begun.wait()
        house.wanted = lambda: replace(gateway.config, agent=AgentConfig(name="Bea", options="new"))
        assert set((await gateway.reload()).applied) == {"agent", "agent.name"}
        agents["new"].may_end.set()
        await gateway.accept(house.say(channel="open", author=BOB))
        await until(lambda: house.wire.texts("open") == ["new answers"])
        agents["old"].may_end.set()
        await until(lambda: house.wire.texts("dm") == ["old answers"])
        assert gateway.agents.usual()[0] == "Bea"
        await until(lambda: gateway.counters.turns[TurnState.ANSWERED] == 2)


async def test_a_rejected_configuration_changes_nothing_and_says_why_until_it_is_corrected(
    house: ChangingHouse,
) -> None:
    def refused() -> Config:
        raise ConfigError("belino.toml: server.port must be a number")

    async with house.at_work() as gateway:
        before, adapters = gateway.config, dict(gateway.adapters)
        house.wanted = refused
        with pytest.raises(ConfigError, match="must be a number"):
            await gateway.reload()
        broken = AdapterConfig(platform="memory", account="other", options="broken")
        house.wanted = lambda: replace(gateway.config, adapters=(account(token="new"), broken))
        with pytest.raises(ConfigError, match="cannot be made"):
            await gateway.reload()
        assert gateway.config is before and dict(gateway.adapters) == adapters
        assert "cannot be made" in gateway.reloader.state.rejected
        (notice,) = await gateway.owners.notices()
        assert notice.kind == "config" and "the running one stays in use" in notice.text
        house.wanted = lambda: before
        assert as_text(await gateway.reload()) == "nothing changed"
        assert gateway.reloader.state.rejected == "" and await gateway.owners.notices() == ()


def test_a_file_that_is_gone_is_rejected_and_does_not_remove_every_account(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    source = file_source(home)
    assert source.load() == Config()
    home.config_file.write_text('[agent]\nname = "Bea"\n', encoding="utf-8")
    assert source.load().agent.name == "Bea"
    home.config_file.unlink()
    with pytest.raises(ConfigError, match="is gone; put it back"):
        source.load()


async def test_every_other_key_is_reported_as_needing_a_restart_and_stays_as_it_was(house: ChangingHouse) -> None:
    async with house.at_work() as gateway:
        sessions = replace(gateway.config.sessions, turn_seconds=7)
        house.wanted = lambda: replace(gateway.config, sessions=sessions, pace=PaceConfig(calls_per_minute=1))
        done = await gateway.reload()
        assert (done.applied, done.restart) == (("pace.calls_per_minute",), ("sessions.turn_seconds",))
        assert gateway.config.sessions.turn_seconds == 600
        assert gateway.reloader.state.restart == ("sessions.turn_seconds",)
        assert gateway.history._config.calls_per_minute == 1


async def test_settings_of_delivery_context_and_media_reach_the_parts_that_use_them(house: ChangingHouse) -> None:
    async with house.at_work() as gateway:
        first = gateway.understanding
        wanted = from_table({"tools": {"media": {"audio_preflight": True, "turn_seconds": 9}}})
        house.wanted = lambda: replace(
            gateway.config,
            tools=wanted.tools,
            delivery=DeliveryConfig(uncertain="resend"),
            context=ContextConfig(attach_media="message"),
            access=OwnersConfig(owners=("memory:default:ann",)),
        )
        await gateway.reload()
        assert gateway.understanding is not first
        assert gateway._intake.hears_first and gateway._sender._config.uncertain == "resend"
        assert (gateway._turns._reader.seconds, gateway._turns._reader.attaches) == (9, True)
        assert gateway.owners.are(ANN, house.say().conversation)


async def test_an_account_is_connected_again_on_request_and_an_unknown_one_is_refused(house: ChangingHouse) -> None:
    async with house.at_work() as gateway:
        await until(lambda: house.made[0][1].runs)
        house.wanted = lambda: gateway.config
        done = await gateway.reload(reconnect=[DEFAULT])
        assert done.reconnected == ("memory:default",)
        await until(lambda: [wire.ended for _, wire in house.made] == [True, False])
        with pytest.raises(ConfigError, match="there is no account memory:other"):
            await gateway.reload(reconnect=[OTHER])


async def test_an_adapter_that_ignores_its_end_does_not_hold_a_reload_up(house: ChangingHouse) -> None:
    async with house.at_work() as gateway:
        await until(lambda: house.made[0][1].runs)
        old = house.made[0][1]
        old.may_end.clear()
        house.wanted = lambda: gateway.config
        async with asyncio.TaskGroup() as group:
            reloading = group.create_task(gateway.reload(reconnect=[DEFAULT]))
            await house.clock.wake(STOP_SECONDS)
            assert (await reloading).reconnected == ("memory:default",)
        assert not old.ended
        old.may_end.set()
        await until(lambda: old.ended)


async def test_a_reload_that_a_signal_asks_for_is_carried_out(house: ChangingHouse) -> None:
    async with house.at_work() as gateway:
        house.wanted = lambda: replace(gateway.config, agent=AgentConfig(name="Bea", options=None))
        gateway.reloader.ask()
        await until(lambda: gateway.agents.usual()[0] == "Bea")


async def test_a_configuration_that_a_program_made_is_changed_by_the_program_alone(tmp_path: Path) -> None:
    house = House(tmp_path / "home")
    async with house.at_work() as gateway:
        with pytest.raises(ConfigError, match="made by a program"):
            await gateway.reload()
        done = await gateway.reload(replace(gateway.config, agent=AgentConfig(name="Bea", options=None)))
        assert done.applied == ("agent.name",) and gateway.agents.usual()[0] == "Bea"


async def test_a_gateway_that_started_with_an_older_copy_tells_the_owner(house: ChangingHouse) -> None:
    gateway = house.gateway()
    gateway.reloader._source = ConfigSource(load=house.config, rejected="belino.toml: it is not valid TOML")
    async with gateway, asyncio.TaskGroup() as group:
        running = group.create_task(gateway.run())
        while not (notices := await gateway.owners.notices()):
            await asyncio.sleep(0.001)
        assert "the copy that worked last is in use: belino.toml: it is not valid TOML" in notices[0].text
        running.cancel()
    async with house.gateway() as gateway, asyncio.TaskGroup() as group:  # with a file that is correct again
        running = group.create_task(gateway.run())
        while await gateway.owners.notices():
            await asyncio.sleep(0.001)
        running.cancel()
