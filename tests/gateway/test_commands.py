"""Commands in a chat are carried out by belino, without the agent, and answered once."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from belino.config import AgentConfig, Config
from belino.domain.message import ConversationKey, Deletion
from belino.domain.outcome import MessageOutcome
from belino.domain.ports import AcceptsMany
from belino.domain.reply import ParcelState
from belino.domain.search import SearchIntent, SearchQuery
from belino.domain.turn import Final, ReplyPart, Turn
from belino.gateway.explain import explain
from belino.gateway.gateway import Gateway
from belino.testing import FakeContext, ScriptedAgent
from belino.testing.memory import Config as MemoryConfig
from gateway.house import ANN, BOB, House, HungAgent, Wire, until

DM = ConversationKey(platform="memory", account="default", channel="dm")


async def give(house: House, gateway: Gateway, text: str, **more: object) -> str:
    """Give a command and return its answer."""
    before = len(house.wire.texts())
    taken = await gateway.accept(house.say(text, **more))  # type: ignore[arg-type]
    assert taken.outcome is MessageOutcome.COMMAND
    await until(lambda: len(house.wire.texts()) > before)
    return house.wire.texts()[-1]


async def test_a_command_is_answered_without_the_agent_and_is_no_context_of_later_turns(house: House) -> None:
    agent = house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        assert "/stop" in await give(house, gateway, "/help")
        await house.ask(gateway, house.say("hello"))
        told = "\n".join(getattr(block, "text", "") for turn in agent.turns for block in turn.blocks)
        audit = await gateway.audit()
    assert len(agent.turns) == 1
    assert "/help" not in told
    assert "List the commands" not in told
    assert audit.is_balanced


async def test_a_stored_command_explains_itself_and_its_answer_is_a_message(house: House) -> None:
    async with house.at_work() as gateway:
        await give(house, gateway, "/help")
        await until_idle(gateway)
        question, answer = await house.history(gateway)
        told = await explain(gateway.store, question.trace)
    assert (question.outcome, question.reason) == (MessageOutcome.COMMAND, "the command /help")
    assert answer.author.is_agent
    assert answer.trace == question.trace
    assert [parcel.state for parcel in told.parcels] == [ParcelState.SENT]


class SearchingAgent(ScriptedAgent):
    """Looks up what was said about sessions and models."""

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        blocks = await turn.toolbox.call("channel_context", {"intent": "session model agent cost help"})
        self.found = [getattr(block, "text", "") for block in blocks]
        async for part in super().run_turn(turn):
            yield part


async def test_commands_and_their_answers_are_found_by_no_search(house: House) -> None:
    agent = house.agent = SearchingAgent()
    async with house.at_work() as gateway:
        await gateway.accept(house.say("the session of the council is on Monday"))
        await until(lambda: house.wire.texts())
        await give(house, gateway, "/new")
        await give(house, gateway, "/status")
        await house.ask(gateway, house.say("when is the session?"))
        intents = (SearchIntent(text="session model agent cost"),)
        hits = (await gateway.store.search(DM, SearchQuery(intents=intents))).hits
    found = "\n".join(agent.found)
    assert "council" in found
    assert all(text not in found for text in ("new session", "/new", "/status", "Cost so far"))
    assert [hit.message.text for hit in hits] != []
    assert not any(hit.message.outcome is MessageOutcome.COMMAND for hit in hits)


async def test_the_audit_has_no_difference_with_commands_joined_messages_and_chosen_silence(house: House) -> None:
    agent = house.agent = HungAgent()
    async with house.at_work() as gateway:
        await gateway.accept(house.say("think"))
        await until(lambda: agent.running)
        await gateway.accept(house.say("one more"))
        await gateway.accept(house.say("and one more"))
        await give(house, gateway, "/status")
        await give(house, gateway, "/stop")
        await until(lambda: gateway.counters.turns["aborted"])
    house.agent = ScriptedAgent([Final(text="", silent=True)], "said")
    async with house.at_work() as gateway:
        accept = gateway._intake.for_account("memory", "default")
        assert isinstance(accept, AcceptsMany)
        await accept.many([(house.say("nothing to answer"), None), (house.say("and this belongs to it"), None)])
        await until(lambda: gateway.counters.turns["answered"])
        await house.ask(gateway, house.say("a question"))
        await give(house, gateway, "/why")
        await until_idle(gateway)
        audit = await gateway.audit()
        outcomes = {message.outcome for message in await house.history(gateway)}
    assert audit.is_balanced
    (arrivals,) = (balance for balance in audit.arrivals if balance.taken)
    counted = {outcome: times for outcome, times in arrivals.outcomes.items() if times}
    assert counted == {"aborted": 3, "command": 3, "chose silence": 2, "answered": 1}
    assert {MessageOutcome.COMMAND, MessageOutcome.ABORTED, MessageOutcome.SILENT} < outcomes


async def until_idle(gateway: Gateway) -> None:
    while any(each.state is not ParcelState.SENT for each in await gateway.store.parcels()):
        await gateway.store.waiting_turns()


async def test_a_command_that_comes_twice_is_carried_out_and_answered_once(house: House) -> None:
    async with house.at_work() as gateway:
        command = house.say("/new")
        await gateway.accept(command)
        again = await gateway.accept(command)
        await until_idle(gateway)
        audit = await gateway.audit()
    assert again.outcome is MessageOutcome.DUPLICATE
    assert len(house.wire.texts()) == 1
    assert audit.is_balanced


async def test_an_answer_that_a_crash_interrupts_is_sent_at_the_next_start_once(house: House) -> None:
    async with house.gateway() as gateway:  # nothing is sent: it does not run
        await gateway.accept(house.say("/help"))
    async with house.at_work() as gateway:
        await until(lambda: house.wire.texts())
        await until_idle(gateway)
    assert len(house.wire.texts()) == 1


async def test_new_clears_the_memory_and_what_was_said_before_is_no_context(house: House) -> None:
    agent = house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say("the word is heliotrope"))
        assert (await gateway.store.session(DM)).turns == 1
        assert "new session" in await give(house, gateway, "/new")
        cleared = await gateway.store.session(DM)
        await house.ask(gateway, house.say("which word?"))
    told = "\n".join(getattr(block, "text", "") for block in agent.turns[-1].blocks)
    assert (cleared.turns, cleared.memory) == (0, None)
    assert "heliotrope" not in told


async def test_stop_ends_the_running_turn_and_those_that_wait(house: House) -> None:
    agent = house.agent = HungAgent()
    async with house.at_work() as gateway:
        await gateway.accept(house.say("think"))
        await until(lambda: agent.running)
        await gateway.accept(house.say("and this"))
        assert await give(house, gateway, "/stop") == "Stopped."
        await until(lambda: agent.cancelled)
        await until(lambda: gateway.counters.turns["aborted"])
        outcomes = [message.outcome for message in (await house.history(gateway))[:2]]
        audit = await gateway.audit()
        assert await give(house, gateway, "/stop") == "There is nothing to stop."
    assert outcomes == [MessageOutcome.ABORTED, MessageOutcome.ABORTED]
    assert audit.is_balanced


async def test_a_turn_that_was_stopped_does_not_run_again_after_a_crash(house: House) -> None:
    agent = house.agent = HungAgent()
    async with house.until_killed() as gateway:
        await gateway.accept(house.say("think"))
        await until(lambda: agent.running)
        gateway._commands._callbacks = replace(gateway._commands._callbacks, abort=lambda _: False)
        await give(house, gateway, "/stop")
    house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        await until_recovered(gateway)
        first = (await house.history(gateway))[0]
    assert (first.outcome, house.agent.turns) == (MessageOutcome.ABORTED, [])


async def until_recovered(gateway: Gateway) -> None:
    while (await gateway.store.conversation_facts(DM)).running:
        await gateway.store.waiting_turns()


async def test_status_states_agent_model_cost_context_and_what_waits(house: House) -> None:
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say("hello"))
        said = await give(house, gateway, "/status")
    assert "Agent: belino (ScriptedAgent)" in said
    assert "Cost so far:" in said
    assert "Tokens in context:" in said
    assert "Pictures and files in context: 0" in said
    assert "waiting: 0" in said


async def test_why_explains_the_last_answer(house: House) -> None:
    async with house.at_work() as gateway:
        assert "not answered anything" in await give(house, gateway, "/why")
        await house.ask(gateway, house.say("what is the time?"))
        said = await give(house, gateway, "/why")
    assert "Ann: what is the time?" in said
    assert "answered" in said


class ChoosyAgent(ScriptedAgent):
    """Has models to choose from."""

    model = "small"

    def why_not(self, model: str) -> str:
        return "it is gone" if model == "gone" else ""


class ChoosyHouse(House):
    def config(self) -> Config:
        return replace(super().config(), agent=AgentConfig(options=None, models=("large", "gone")))


async def test_a_model_is_chosen_from_the_list_for_one_conversation_and_survives_a_restart(tmp_path: Path) -> None:
    house = ChoosyHouse(tmp_path / "home")
    agent = house.agent = ChoosyAgent()
    async with house.at_work() as gateway:
        assert "small (in use)" in await give(house, gateway, "/model")
        assert "not on the list" in await give(house, gateway, "/model huge")
        assert "it is gone" in await give(house, gateway, "/model gone")
        assert "large" in await give(house, gateway, "/model LARGE")
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say("hello"))
        await house.ask(gateway, house.say("hello", channel="team"))
        assert "Model: large (chosen here)" in await give(house, gateway, "/status")
        await give(house, gateway, "/model small")
        await house.ask(gateway, house.say("hello"))
    assert [turn.model for turn in agent.turns] == ["large", "", ""]


async def test_an_unknown_command_goes_to_the_agent(house: House) -> None:
    agent = house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say("/deploy now"))
        await house.ask(gateway, house.say("/new@another_bot"))
        await give(house, gateway, "/help@Belino")
        await give(house, gateway, "@belino /help")
    assert len(agent.turns) == 2


async def test_only_senders_who_may_command_can_use_commands(house: House) -> None:
    eve = replace(BOB, id="eve", name="Eve")
    async with house.at_work() as gateway:
        observed = await gateway.accept(house.say("/new", author=eve, channel="team"))
        overheard = await gateway.accept(house.say("/new", author=ANN, channel="team", addressed=False))
        denied = await gateway.accept(house.say("/new", author=eve, channel="group-unlisted"))
        await give(house, gateway, "/help", channel="team")
    assert [one.outcome for one in (observed, overheard, denied)] == [
        MessageOutcome.OBSERVED,
        MessageOutcome.OBSERVED,
        MessageOutcome.DENIED,
    ]
    assert len(house.wire.texts()) == 1


async def test_a_refused_sender_is_told_where_only_they_see_it(house: House) -> None:
    eve = replace(BOB, id="eve", name="Eve")
    async with house.at_work() as gateway:
        refused = house.say("/new", author=eve, channel="team", invoked=True)
        await gateway.accept(refused)
        await gateway.accept(refused)
        await until(lambda: house.wire.texts())
        await until_idle(gateway)
        history = await house.history(gateway, "team")
        audit = await gateway.audit()
    assert [parcel.reply_to for parcel in house.wire.seen] == [refused.id]
    assert house.wire.texts()[0].startswith("You may not")
    assert [message.outcome for message in history] == [MessageOutcome.OBSERVED]
    assert audit.is_balanced


async def test_voice_answers_that_none_is_configured(house: House) -> None:
    async with house.at_work() as gateway:
        assert "No voice is configured" in await give(house, gateway, "/voice on")


class GreetedWire(Wire):
    """A platform whose clients send a command when a chat is opened."""

    def command_aliases(self) -> dict[str, str]:
        return {"start": "help"}


async def test_what_a_client_sends_when_a_chat_is_opened_is_answered_by_belino_itself(house: House) -> None:
    agent = house.agent = ScriptedAgent()
    house.wires["default"] = GreetedWire(MemoryConfig(), FakeContext(clock=house.clock))
    async with house.at_work() as gateway:
        for opened in ("/start", "/start invitation_7", "/Start@Belino"):
            said = await give(house, gateway, opened)
            assert said.startswith("I am belino.") and "/stop" in said
        await house.ask(gateway, house.say("/start the engine"))
    assert len(agent.turns) == 1


async def test_elsewhere_start_is_a_message_to_the_agent(house: House) -> None:
    agent = house.agent = ScriptedAgent()
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say("/start"))
    assert len(agent.turns) == 1


async def test_turns_that_are_stopped_or_whose_messages_are_deleted_no_longer_count_as_waiting(house: House) -> None:
    agent = house.agent = HungAgent()
    async with house.at_work() as gateway:
        await gateway.accept(house.say("think"))
        await until(lambda: agent.running)
        gone = house.say("one")
        album = [house.say("", album="a", media=(house.picture(gone, item=item),)) for item in ("1", "2")]
        for said in (gone, *album):
            await gateway.accept(said)
        assert (gateway._sessions.waiting, await gateway.store.waiting_turns()) == (2, 2)
        deletion = Deletion(conversation=DM, id="d1", message_id=gone.id, author=ANN, sent=house.clock.now())
        for _ in range(2):  # the same deletion may come again
            await gateway.accept(deletion)
        assert (gateway._sessions.waiting, await gateway.store.waiting_turns()) == (1, 1)
        assert "waiting: 1" in await give(house, gateway, "/status")
        await give(house, gateway, "/stop")
        assert (gateway._sessions.waiting, await gateway.store.waiting_turns()) == (0, 0)
