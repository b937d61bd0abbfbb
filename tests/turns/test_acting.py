"""What the agent does besides answering: reactions, edits, deletions and silence, each with a visible outcome."""

import json
from collections.abc import Iterator

import pytest
import splintr

from auditing import accounts_balance
from belino.config import AccessConfig, ChannelAccess
from belino.domain.errors import ToolError, Undeliverable
from belino.domain.message import ConversationKey
from belino.domain.outcome import MessageOutcome
from belino.domain.reply import Parcel, Receipt
from belino.domain.turn import Final, TextDelta
from belino.gateway.gateway import Gateway
from belino.testing import FakeContext, ScriptedAgent, ToolCall
from belino.testing.memory import Config as MemoryConfig
from gateway.house import House, Wire

__all__ = ["accounts_balance"]

SIGNS = ("⏳", "👀", "✅", "⚠️")
"""Reactions that show work in progress; the tests below are about the agent's own."""
ACTS = ("react", "edit_message", "delete_message", "stay_silent", "ask_user")


class ActingWire(Wire):
    """A platform with reactions and edits; it deletes, too."""

    def __init__(self, house: House) -> None:
        super().__init__(MemoryConfig(), FakeContext(clock=house.clock))
        self.acts: list[tuple[str, ...]] = []

    async def react(self, conversation: ConversationKey, message_id: str, emoji: str, *, added: bool = True) -> None:
        if emoji in SIGNS:
            return
        if emoji == "nonsense":
            raise Undeliverable("this chat has no reaction nonsense")
        self.acts.append(("react", message_id, emoji))

    async def edit(self, message_id: str, parcel: Parcel) -> Receipt:
        self.acts.append(("edit", message_id, parcel.text))
        return Receipt(message_id=message_id, sent=self._context.clock.now())

    async def delete(self, conversation: ConversationKey, message_id: str) -> None:
        self.acts.append(("delete", message_id))


@pytest.fixture
def wire(house: House) -> Iterator[ActingWire]:
    wire = house.wires["default"] = ActingWire(house)
    everything = ChannelAccess(senders=("*",), agent_may=("react", "edit", "delete"))
    house.access = AccessConfig(senders=("ann",), channels={"dm": everything, "open": ChannelAccess(senders=("*",))})
    yield wire


def names(agent: ScriptedAgent) -> set[str]:
    return {spec.name for spec in agent.turns[-1].toolbox.specs} & set(ACTS)


async def steps(gateway: Gateway, message_id: str) -> list[tuple[str, str]]:
    where = ConversationKey(platform="memory", account="default", channel="dm")
    story = await gateway.store.story(where, message_id)
    assert story is not None
    return [(step.outcome, step.reason) for step in story.steps]


async def test_the_tools_are_those_of_the_platform_that_the_operator_permits(house: House, wire: ActingWire) -> None:
    house.agent = agent = ScriptedAgent()
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        assert names(agent) == set(ACTS)
        await house.ask(gateway, house.say(channel="open", addressed=True))
        assert names(agent) == {"react", "edit_message", "stay_silent", "ask_user"}


class PlainWire(Wire):
    """A platform without reactions."""

    react = None  # type: ignore[assignment]


async def test_a_platform_without_reactions_has_no_tool_for_them(house: House) -> None:
    house.agent = agent = ScriptedAgent()
    house.wires["default"] = PlainWire(MemoryConfig(), FakeContext(clock=house.clock))
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        assert names(agent) == {"stay_silent", "ask_user"}


async def test_a_reaction_is_shown_and_kept_with_its_message(house: House, wire: ActingWire) -> None:
    house.agent = ScriptedAgent([ToolCall(name="react", arguments={"message_id": "m1", "emoji": "👍"}), "Done"])
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        assert wire.acts == [("react", "m1", "👍")]
        assert (await house.history(gateway))[0].reactions == (("👍", 1),)


async def test_an_edited_answer_is_the_edited_text_in_history(house: House, wire: ActingWire) -> None:
    house.agent = ScriptedAgent("The answer is 41")
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        answer = (await house.history(gateway))[-1]
        edit = {"message_id": answer.short_id, "text": "The answer is **42**"}
        house.agent.script.append([ToolCall(name="edit_message", arguments=edit), "Corrected"])
        await house.ask(gateway, house.say("Are you sure?"))
        assert wire.acts[0][:2] == ("edit", answer.id)
        edited = next(each for each in await house.history(gateway) if each.id == answer.id)
        assert edited.text == "The answer is **42**" and edited.edited is not None


async def test_a_deleted_answer_is_gone_from_history(house: House, wire: ActingWire) -> None:
    house.agent = ScriptedAgent("A secret")
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        answer = (await house.history(gateway))[-1]
        house.agent.script.append([ToolCall(name="delete_message", arguments={"message_id": answer.id}), "Gone"])
        await house.ask(gateway, house.say("Delete it"))
        assert wire.acts == [("delete", answer.id)]
        assert not any("A secret" in each.text for each in await house.history(gateway))


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("edit_message", {"message_id": "m1", "text": "mine now"}, "not yours"),
        ("delete_message", {"message_id": "m1"}, "not yours"),
        ("react", {"message_id": "elsewhere", "emoji": "👍"}, "one message of this channel"),
        ("react", {"message_id": "m1", "emoji": "nonsense"}, "no reaction nonsense"),
        ("react", {"message_id": "m1"}, "emoji must be"),
    ],
)
async def test_what_is_not_its_own_or_not_possible_is_refused_in_a_sentence(
    house: House, wire: ActingWire, tool: str, arguments: dict[str, object], says: str
) -> None:
    house.agent = agent = ScriptedAgent()
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        with pytest.raises(ToolError, match=says):
            await agent.turns[-1].toolbox.call(tool, arguments)
        assert not wire.acts
        assert any(outcome == "refused" and says in reason for outcome, reason in await steps(gateway, "m1"))


async def test_silence_sends_nothing_and_explains_itself(house: House, wire: ActingWire) -> None:
    silent = ToolCall(name="stay_silent", arguments={"reason": "they talk to each other"})
    house.agent = ScriptedAgent(
        [silent, TextDelta(text="Well"), Final(text="Well")], Final(text="no need", silent=True)
    )
    async with house.at_work() as gateway:
        for number, reason in ((1, "they talk to each other"), (2, "no need")):
            await house.ask(gateway, house.say())
            assert ("chose silence", reason) in await steps(gateway, f"m{number}")
        assert not wire.offered
        first = (await house.history(gateway))[0]
        assert (first.outcome, first.reason) == (
            MessageOutcome.SILENT,
            "chose silence: they talk to each other",
        )


async def test_all_tools_together_cost_a_model_at_most_1700_tokens(house: House, wire: ActingWire) -> None:
    vocabulary = splintr.Tokenizer.from_pretrained("o200k_base")
    house.agent = agent = ScriptedAgent()
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        told = [
            json.dumps({"name": spec.name, "description": spec.description, "parameters": dict(spec.schema)})
            for spec in agent.turns[-1].toolbox.specs
        ]
    assert sum(len(vocabulary.encode(each)) for each in told) <= 1_700
