"""Who answers where, and under which name."""

from collections.abc import AsyncIterator

from belino.config import AgentConfig, from_table
from belino.domain.errors import AgentError
from belino.domain.message import ConversationKey
from belino.domain.turn import ReplyPart, Turn
from belino.testing import ScriptedAgent
from belino.turns.agents import Agents, agent_at

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

    agents._made = [(config, Holder(str(number))) for number, (config, _) in enumerate(agents._made)]
    await agents.close()
    assert closed == ["0", "1"]
