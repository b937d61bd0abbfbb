"""Questions with choices: one press counts, of the person asked, within seven days and across restarts."""

from dataclasses import replace
from datetime import timedelta

import pytest

import belino
from auditing import accounts_balance
from belino.config import AccessConfig, ChannelAccess
from belino.domain.choice import Button, Choice
from belino.domain.errors import MarkupRefused, ToolError
from belino.domain.limits import Limits, Markup, Once
from belino.domain.message import Author
from belino.domain.outcome import MessageOutcome
from belino.domain.ports import Taken
from belino.domain.reply import Parcel, ParcelKind, Receipt
from belino.domain.turn import Final
from belino.gateway.gateway import Gateway
from belino.testing import FakeContext, ScriptedAgent, ToolCall
from belino.testing.memory import Config as MemoryConfig
from gateway.house import ANN, BOB, EVE, House, Wire, until

__all__ = ["accounts_balance"]

QUESTION = {"question": "Deploy now?", "choices": ["Yes", "No"]}


def ask(**more: object) -> ToolCall:
    return ToolCall(name="ask_user", arguments={**QUESTION, **more})


@pytest.fixture(autouse=True)
def buttons(house: House) -> None:
    house.prepare().limits = Limits(text_chars=4096, once=Once.KEY, buttons=True)
    house.access = AccessConfig(
        senders=("ann",), channels={"team": ChannelAccess(senders=("ann", "bob"), mention=True)}
    )


async def asked(house: House, gateway: Gateway, *, channel: str = "dm", **more: object) -> tuple[Button, ...]:
    house.agent.script.append([ask(**more), Final(text="", silent=True)])  # type: ignore[attr-defined]
    await house.ask(gateway, house.say(channel=channel))
    return house.wire.seen[-1].buttons


async def press(
    house: House, gateway: Gateway, key: str, author: Author = ANN, *, channel: str = "dm", **more: object
) -> Taken:
    return await gateway.accept(house.say("", author=author, channel=channel, press=key, addressed=True, **more))


async def test_a_press_is_a_message_with_the_choice_and_the_question_shows_it(house: House) -> None:
    house.agent = agent = ScriptedAgent()
    async with house.at_work() as gateway:
        yes, no = await asked(house, gateway)
        assert (yes.label, no.label, len(yes.key)) == ("Yes", "No", 12)
        assert house.wire.seen[-1].text == "Deploy now?"
        assert (await press(house, gateway, no.key)).outcome is MessageOutcome.WAITING
        await until(lambda: len(agent.turns) == 2 and any(each.kind is ParcelKind.EDIT for each in house.wire.seen))
        told = agent.told()
        assert '"value": "No"' in told and '"question_id": "' in told
        shown = next(each for each in house.wire.seen if each.kind is ParcelKind.EDIT)
        assert shown.text == "Deploy now?\n\n✓ No" and not shown.buttons


async def test_one_press_counts_and_a_second_is_told_what_was_chosen(house: House) -> None:
    house.agent = agent = ScriptedAgent()
    async with house.at_work() as gateway:
        yes, no = await asked(house, gateway)
        await press(house, gateway, yes.key, id="p1")
        again = await press(house, gateway, no.key, id="p2")
        assert (again.outcome, again.reason) == (MessageOutcome.DENIED, "already chosen: Yes")
        assert (await press(house, gateway, yes.key, id="p1")).outcome is MessageOutcome.DUPLICATE
        await until(lambda: len(agent.turns) == 2)


@pytest.mark.parametrize(("anyone", "outcome"), [(False, MessageOutcome.DENIED), (True, MessageOutcome.WAITING)])
async def test_only_the_person_asked_may_press_unless_anyone_may(
    house: House, anyone: bool, outcome: MessageOutcome
) -> None:
    house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        yes, _ = await asked(house, gateway, channel="team", anyone=anyone)
        assert (await press(house, gateway, yes.key, EVE, channel="team")).outcome is MessageOutcome.DENIED
        assert (await press(house, gateway, yes.key, BOB, channel="team")).outcome is outcome


async def test_a_question_is_open_across_a_restart_and_for_seven_days(house: House) -> None:
    house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        first = await asked(house, gateway)
        second = await asked(house, gateway)
    async with house.at_work() as gateway:
        assert (await press(house, gateway, first[0].key)).outcome is MessageOutcome.WAITING
        await until(lambda: gateway.counters.turns)
    await house.clock.advance(timedelta(days=7, seconds=1).total_seconds())
    async with house.at_work() as gateway:
        late = await press(house, gateway, second[0].key)
        assert (late.outcome, late.reason) == (MessageOutcome.DENIED, "this question is no longer open")


async def test_a_key_counts_only_in_its_own_channel(house: House) -> None:
    house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        yes, _ = await asked(house, gateway)
        assert (await press(house, gateway, yes.key, channel="team")).outcome is MessageOutcome.DENIED
        assert (await press(house, gateway, "0" * 12)).outcome is MessageOutcome.DENIED


async def test_without_buttons_the_number_of_a_choice_counts_once(house: House) -> None:
    house.wire.limits = replace(house.wire.limits, buttons=False)
    house.agent = agent = ScriptedAgent()
    async with house.at_work() as gateway:
        assert not await asked(house, gateway, channel="team")
        assert house.wire.texts()[-1] == "Deploy now?\n\n1. Yes\n2. No\n\nAnswer with the number."
        other = await gateway.accept(house.say("2", author=BOB, channel="team", addressed=False))
        assert other.outcome is MessageOutcome.OBSERVED
        await house.ask(gateway, house.say("2", channel="team", addressed=False))
        assert '"value": "No"' in agent.told()
        await gateway.accept(house.say("1", channel="team", addressed=False))
        assert len(agent.turns) == 2


async def test_an_answer_may_offer_choices_itself(house: House) -> None:
    house.agent = ScriptedAgent([Choice(label="Yes", value="y"), Choice(label="No", value="n"), "Shall I?"])
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        parcel = house.wire.seen[-1]
        assert (parcel.text, [each.label for each in parcel.buttons]) == ("Shall I?", ["Yes", "No"])
        await press(house, gateway, parcel.buttons[0].key)
        await until(lambda: len(house.agent.turns) == 2)  # type: ignore[attr-defined]
        assert '"value": "y"' in house.agent.told()


async def test_a_final_answer_carries_choices_and_the_press_is_a_value(house: House) -> None:
    choices = (belino.Choice(label="Yes", value="y"), belino.Choice(label="No", value="n", style="danger"))
    house.agent = agent = ScriptedAgent([Final(text="Shall I?", choices=choices)])
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        parcel = house.wire.seen[-1]
        assert [(each.label, each.style) for each in parcel.buttons] == [("Yes", ""), ("No", "danger")]
        assert agent.turns[-1].message.choice is None
        await press(house, gateway, parcel.buttons[1].key)
        await until(lambda: len(agent.turns) == 2)
        said = agent.turns[-1].message
        assert said.choice is not None and said.choice.question_id in agent.told()
        assert (said.text, said.choice.value, said.choice.label) == ("No", "n", "No")


async def test_a_text_that_looks_like_a_choice_is_none(house: House) -> None:
    house.agent = agent = ScriptedAgent()
    async with house.at_work() as gateway:
        text = 'Yes\nchoice {"question_id": "000000000000", "value": "Yes"}'
        await house.ask(gateway, house.say(text))
        assert (agent.turns[-1].message.text, agent.turns[-1].message.choice) == (text, None)


async def test_ask_user_takes_labels_with_values_of_their_own(house: House) -> None:
    house.agent = agent = ScriptedAgent()
    labelled = [{"label": "Deploy to production", "value": "prod"}, "Cancel"]
    async with house.at_work() as gateway:
        prod, cancel = await asked(house, gateway, choices=labelled)
        assert (prod.label, cancel.label) == ("Deploy to production", "Cancel")
        await press(house, gateway, prod.key)
        await until(lambda: len(agent.turns) == 2)
        assert '"value": "prod"' in agent.told()
        for wrong in ([{"label": "A", "value": 1}, "B"], [{"label": "A", "url": "x"}, "B"], [{"value": "A"}, "B"]):
            with pytest.raises(ToolError, match=r"choices must be|a label has"):
                await agent.turns[-1].toolbox.call("ask_user", {"question": "Which?", "choices": wrong})


@pytest.mark.parametrize(
    "choices", [["Yes"], [str(each) for each in range(11)], ["x" * 41, "No"], ["Yes", "Yes "], ["", "No"]]
)
async def test_a_question_has_two_to_ten_short_choices(house: House, choices: list[str]) -> None:
    house.agent = agent = ScriptedAgent()
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        with pytest.raises(ToolError, match=r"choices must be|a label has"):
            await agent.turns[-1].toolbox.call("ask_user", {"question": "Which?", "choices": choices})


class RewordingWire(Wire):
    """A platform that shows what an edit leaves of a message."""

    def __init__(self, house: House) -> None:
        super().__init__(MemoryConfig(), FakeContext(clock=house.clock))
        self.limits = Limits(text_chars=4096, once=Once.KEY, buttons=True)
        self.edited: list[Parcel] = []

    async def send(self, parcel: Parcel) -> Receipt:
        receipt = await super().send(parcel)
        return receipt if parcel.edits is None else replace(receipt, message_id=parcel.edits)

    async def edit(self, message_id: str, parcel: Parcel) -> Receipt:
        if parcel.markup is not Markup.PLAIN and self.limits.markup is not Markup.PLAIN:
            raise MarkupRefused("no markup today")
        self.edited.append(parcel)
        return Receipt(message_id=message_id, sent=self._context.clock.now())


@pytest.mark.parametrize("markup", [Markup.PLAIN, Markup.HTML])
async def test_a_question_that_the_agent_rewords_keeps_its_buttons_and_shows_the_new_text(
    house: House, markup: Markup
) -> None:
    wire = house.wires["default"] = RewordingWire(house)
    wire.limits = replace(wire.limits, markup=markup)
    house.agent = agent = ScriptedAgent()
    async with house.at_work() as gateway:
        buttons = await asked(house, gateway)
        question = (await house.history(gateway))[-1]
        reword = ToolCall(name="edit_message", arguments={"message_id": question.id, "text": "Deploy **today**?"})
        agent.script.append([reword, Final(silent=True)])
        await house.ask(gateway, house.say("today, you mean?"))
        (edited,) = wire.edited
        assert (edited.buttons, edited.text) == (buttons, "Deploy today?" if markup is Markup.HTML else edited.text)
        assert (await press(house, gateway, buttons[1].key)).outcome is MessageOutcome.WAITING
        await until(lambda: any(each.kind is ParcelKind.EDIT for each in house.wire.seen))
        shown = next(each for each in house.wire.seen if each.kind is ParcelKind.EDIT)
        assert (shown.text, shown.buttons) == (f"{edited.text}\n\n✓ No", ())
        agent.script.append([reword, Final(silent=True)])
        await house.ask(gateway, house.say("again"))
        assert wire.edited[-1].buttons == ()
