"""Who answers where, and under which name."""

import asyncio
from collections.abc import AsyncIterator
from contextvars import Context

import pytest

from belino.agents.command import Agent as CommandAgent
from belino.agents.http import Agent as HttpAgent
from belino.config import AgentConfig, from_table
from belino.domain.errors import AgentError, ConfigError
from belino.domain.message import ConversationKey
from belino.domain.ports import Prepares
from belino.domain.turn import ReplyPart, Turn
from belino.testing import FakeClock, ScriptedAgent
from belino.turns.agents import PREPARE_SECONDS, Agents, agent_at

MAIN = ConversationKey(platform="web", account="default", channel="main")
GROUP = ConversationKey(platform="telegram", account="main", channel="-100")


def test_another_agent_may_answer_on_a_platform_in_a_channel_or_in_one_conversation() -> None:
    table = {
        "agent": {
            "name": "Ada",
            "places": {
                "telegram": {"name": "Tel"},
                "telegram:main:-100": {"name": "Group"},
                "telegram:main:-100:7": {"name": "Topic"},
            },
        }
    }
    config = from_table(table).agent

    def name(conversation: str) -> str:
        return agent_at(config, ConversationKey.parse(conversation)).name

    assert name("web:default:main") == "Ada"
    assert name("telegram:main:5") == "Tel"
    assert name("telegram:main:-100") == "Group"
    assert name("telegram:main:-100:8") == "Group"
    assert name("telegram:main:-100:7") == "Topic"
    assert name("telegrams:main:5") == "Ada"


def test_places_described_alike_share_one_agent_and_another_description_makes_another() -> None:
    same = AgentConfig(name="Tel")
    agents = Agents(AgentConfig(name="Ada", places={"telegram": same}))
    assert agents.at(MAIN) is agents.at(GROUP)
    assert (agents.author(MAIN).name, agents.author(GROUP).name) == ("Ada", "Tel")
    other = AgentConfig(options="something else")
    agents = Agents(AgentConfig(places={"telegram": other}), everywhere=None)
    assert agents.at(MAIN) is not agents.at(GROUP)


def test_an_agent_that_is_handed_in_answers_everywhere() -> None:
    scripted = ScriptedAgent("hi")
    agents = Agents(AgentConfig(places={"telegram": AgentConfig(name="Tel")}), everywhere=scripted)
    assert agents.at(MAIN) is agents.at(GROUP) is scripted


def test_an_agent_that_is_handed_in_is_of_its_own_kind_and_not_of_the_one_it_stands_in_for() -> None:
    agents = Agents(AgentConfig(name="Ada"), everywhere=ScriptedAgent("hi"))
    assert agents.usual() == ("Ada", "ScriptedAgent")
    assert agents.kind(GROUP) == "ScriptedAgent"
    assert Agents(AgentConfig(name="Ada")).usual() == ("Ada", "demo")


async def test_every_agent_that_holds_something_is_closed_even_if_one_cannot_be() -> None:
    agents = Agents(AgentConfig(places={"telegram": AgentConfig(options="b")}))
    closed: list[str] = []

    class Holder:
        remembers = sees_images = False

        def __init__(self, name: str) -> None:
            self.name = name

        async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
            raise AgentError("not asked")
            yield

        async def close(self) -> None:
            closed.append(self.name)
            raise AgentError("stuck")

    made = agents._generations[-1].made
    made[:] = [(config, Holder(str(number))) for number, (config, _) in enumerate(made)]
    await agents.close()
    assert closed == ["0", "1"]


class Closable:
    """An agent that notes its end."""

    remembers = sees_images = False

    def __init__(self, name: object) -> None:
        self.name = name
        self.closed = False

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        raise AgentError("not asked")
        yield

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def closables(monkeypatch: pytest.MonkeyPatch) -> dict[object, Closable]:
    """Agents by their options, each made once at a time."""
    made: dict[object, Closable] = {}

    class Plugin:
        def make(self, options: object) -> Closable:
            if options == "broken":
                raise ConfigError("this agent cannot be made")
            made[options] = Closable(options)
            return made[options]

    monkeypatch.setattr("belino.turns.agents.registry.find", lambda _kind, _name: Plugin())
    return made


async def test_a_running_turn_keeps_its_agent_and_a_new_turn_gets_the_new_one(
    closables: dict[object, Closable],
) -> None:
    agents = Agents(AgentConfig(name="Ada", options="old"))
    where = ConversationKey(platform="memory", account="default", channel="x")
    async with agents.turn():
        await agents.adopt(agents.prepare(AgentConfig(name="Bea", options="new")))
        assert (agents.at(where), agents.author(where).name) == (closables["old"], "Ada")
        other = asyncio.get_running_loop().create_task(_agent_of_new_turn(agents, where), context=Context())
        assert await other is closables["new"]
        assert not closables["old"].closed
    assert closables["old"].closed and not closables["new"].closed
    assert agents.at(where) is closables["new"]


async def _agent_of_new_turn(agents: Agents, where: ConversationKey) -> object:
    async with agents.turn():
        return agents.at(where)


async def test_an_agent_that_did_not_change_is_kept_and_only_the_others_are_closed(
    closables: dict[object, Closable],
) -> None:
    first = AgentConfig(options="same", places={"a": AgentConfig(options="old")})
    agents = Agents(first)
    same = agents.default
    await agents.adopt(agents.prepare(AgentConfig(options="same", places={"a": AgentConfig(options="new")})))
    assert agents.default is same and not closables["same"].closed
    assert closables["old"].closed and not closables["new"].closed
    await agents.close()
    assert closables["same"].closed and closables["new"].closed


async def test_agents_that_cannot_be_made_leave_the_current_ones_in_use(closables: dict[object, Closable]) -> None:
    agents = Agents(AgentConfig(options="good"))
    with pytest.raises(ConfigError):
        agents.prepare(AgentConfig(options="good", places={"a": AgentConfig(options="broken")}))
    unwanted = agents.prepare(AgentConfig(options="unwanted"))
    await agents.discard(unwanted)
    assert closables["unwanted"].closed and not closables["good"].closed
    assert agents.default is closables["good"]


async def never() -> None:
    raise AssertionError("no agent calls its tools from outside")


class Slow(ScriptedAgent):
    """Has something to load; it fails."""

    loaded = 0

    async def prepare(self) -> None:
        self.loaded += 1
        raise AgentError("the package is missing")


async def test_agents_load_what_they_need_after_the_start_and_a_failure_waits_for_the_turn() -> None:
    agents, clock, slow, tools = Agents(AgentConfig(options=None)), FakeClock(), Slow(), list[str]()
    (generation,) = agents._generations
    generation.made[:] = [(generation.config, ScriptedAgent()), (generation.config, slow)]
    async with asyncio.TaskGroup() as group:
        group.create_task(agents.prepare_all(clock, lambda: tools.append("loaded"), never))
        await asyncio.sleep(0)
        assert slow.loaded == 0 and tools == []
        await clock.wake(PREPARE_SECONDS)
    assert slow.loaded == 1 and tools == ["loaded"]


class FromOutside(ScriptedAgent):
    """Is a program, or a server elsewhere."""

    calls_over_mcp = True


async def test_what_serves_tools_is_loaded_for_agents_that_call_them_from_outside() -> None:
    agents, clock, loaded = Agents(AgentConfig(options=None)), FakeClock(), list[str]()

    async def server() -> None:
        loaded.append("server")

    (generation,) = agents._generations
    generation.made[:] = [(generation.config, FromOutside())]
    async with asyncio.TaskGroup() as group:
        group.create_task(agents.prepare_all(clock, lambda: loaded.append("tools"), server))
        await asyncio.sleep(0)
        assert loaded == []
        await clock.wake(PREPARE_SECONDS)
    assert loaded == ["server"]
    assert CommandAgent.calls_over_mcp and HttpAgent.calls_over_mcp


async def test_the_demo_loads_nothing() -> None:
    agents, clock, tools = Agents(AgentConfig(options=None)), FakeClock(), list[str]()
    async with asyncio.TaskGroup() as group:
        group.create_task(agents.prepare_all(clock, lambda: tools.append("loaded"), never))
        await asyncio.sleep(0)
        await clock.wake(PREPARE_SECONDS)
    assert not isinstance(agents.default, Prepares) and tools == []
