"""Who addresses the agent without a mention: in a thread where it spoke, by a wake word; and when bots are answered."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from belino.config import AccessConfig, ChannelAccess
from belino.domain.message import Author, ConversationKey, Message
from belino.domain.outcome import MessageOutcome
from belino.domain.stored import StoredMessage
from belino.gateway.addressing import has_word
from belino.gateway.explain import explain
from belino.gateway.gateway import Gateway
from gateway.house import ANN, BOB, EVE, House, until
from gateway.test_joining import SlowAgent

ROBOT = Author(id="r2", name="R2", is_bot=True)
TEAM = ConversationKey(platform="memory", account="default", channel="team")


def in_thread(house: House, text: str, *, author: Author = BOB, thread: str = "t1", **more: object) -> Message:
    said = house.say(text, author=author, channel="team", addressed=False)
    return replace(said, conversation=replace(TEAM, thread=thread), **more)  # type: ignore[arg-type]


async def outcome(gateway: Gateway, message: Message) -> tuple[MessageOutcome, str]:
    taken = await gateway.accept(message)
    return taken.outcome, taken.reason


async def spoke(house: House, gateway: Gateway) -> Message:
    """A turn in the thread t1, which the agent answers."""
    asked = in_thread(house, "hello", author=ANN, addressed=True)
    await house.ask(gateway, asked)
    return asked


async def test_in_a_thread_where_the_agent_spoke_no_mention_is_needed(house: House) -> None:
    async with house.at_work() as gateway:
        before = in_thread(house, "before it spoke")
        assert await outcome(gateway, before) == (MessageOutcome.OBSERVED, "the agent was not addressed")
        await spoke(house, gateway)
        after = in_thread(house, "and after")
        await house.ask(gateway, after)
        told = await explain(gateway.store, f"{after.conversation}/{after.id}")
        assert (told.message.outcome, told.message.reason) == (MessageOutcome.ANSWERED, "continues turn 1's thread")
        elsewhere = in_thread(house, "in another thread", thread="t2")
        assert (await outcome(gateway, elsewhere))[0] is MessageOutcome.OBSERVED


async def test_in_a_thread_where_the_agent_is_about_to_speak_no_mention_is_needed(house: House) -> None:
    agent = house.agent = SlowAgent()
    async with house.at_work() as gateway:
        await gateway.accept(in_thread(house, "hello", author=ANN, addressed=True))
        await until(lambda: agent.turns)
        after = in_thread(house, "and this?")
        assert (await gateway.accept(after)).turn == 2
        elsewhere = in_thread(house, "in another thread", thread="t2")
        assert (await outcome(gateway, elsewhere))[0] is MessageOutcome.OBSERVED
        agent.go_on.set()
        await until(lambda: house.wire.texts() == ["hello", "and this?"])
        told = await explain(gateway.store, f"{after.conversation}/{after.id}")
        assert told.message.reason == "continues turn 1's thread"


async def test_a_chain_of_replies_is_a_thread(house: House) -> None:
    async with house.at_work() as gateway:
        asked = house.say("hello", author=ANN, channel="team")
        await house.ask(gateway, asked)
        reply = house.say("is that so?", author=BOB, channel="team", addressed=False, reply_to=asked.id)
        await house.ask(gateway, reply)
        assert (await history(gateway, reply)).reason == "continues turn 1's thread"
        beside = house.say("lunch?", author=BOB, channel="team", addressed=False)
        assert (await outcome(gateway, beside))[0] is MessageOutcome.OBSERVED


async def history(gateway: Gateway, message: Message) -> StoredMessage:
    (found,) = await gateway.store.messages(TEAM, [message.id])
    return found


async def test_a_message_to_another_person_does_not_continue_the_thread(house: House) -> None:
    async with house.at_work() as gateway:
        await spoke(house, gateway)
        aside = in_thread(house, "@carl, what do you think?", mentions_another=True)
        assert (await outcome(gateway, aside))[0] is MessageOutcome.OBSERVED


async def test_participation_never_lets_an_observed_sender_or_a_bot_command(house: House) -> None:
    house.access = replace(house.access, channels={"team": ChannelAccess(senders=("ann", "r2"))})
    async with house.at_work() as gateway:
        await spoke(house, gateway)
        for author, reason in ((EVE, "not on the channel's list"), (ROBOT, "the agent was not addressed")):
            assert await outcome(gateway, in_thread(house, "go on", author=author)) == (MessageOutcome.OBSERVED, reason)


async def test_participation_ends_after_its_time(house: House) -> None:
    async with house.at_work() as gateway:
        await spoke(house, gateway)
        house.clock.shift(59 * 60)
        assert (await outcome(gateway, in_thread(house, "still here")))[0] is MessageOutcome.WAITING
        house.clock.shift(3 * 60 * 60)
        assert (await outcome(gateway, in_thread(house, "hours later")))[0] is MessageOutcome.OBSERVED


@pytest.mark.parametrize(("account", "channel", "answers"), [(0, None, False), (60, 0, False), (0, 5, True)])
async def test_participation_is_set_per_account_and_per_channel(
    house: House, account: int, channel: int | None, answers: bool
) -> None:
    rules = ChannelAccess(senders=("ann", "bob"), participation_minutes=channel)
    house.access = AccessConfig(participation_minutes=account, channels={"team": rules})
    async with house.at_work() as gateway:
        await spoke(house, gateway)
        taken = await gateway.accept(in_thread(house, "go on"))
        assert (taken.outcome is MessageOutcome.WAITING) is answers


@pytest.mark.parametrize(
    ("text", "word", "has"),
    [
        ("Hey Belino, what is this?", "hey belino", True),
        ("hey, BELINO!", "hey belino", True),
        ("a belinograph", "belino", False),
        ("hey there belino", "hey belino", False),
        ("STRASSE", "straße", True),
        ("小贝你好", "小贝", True),
        ("(.*)", ".*", False),
    ],
)
def test_a_wake_word_is_whole_words_in_any_case(text: str, word: str, has: bool) -> None:
    assert has_word(text, word) is has


async def test_a_wake_word_addresses_the_agent_where_it_is_set(house: House) -> None:
    own = ChannelAccess(senders=("bob",), wake_words=("oi",))
    house.access = AccessConfig(
        wake_words=("hey belino",), channels={"team": own, "open": ChannelAccess(senders=("*",))}
    )
    async with house.at_work() as gateway:
        said = house.say("Hey belino: lunch?", author=EVE, channel="open", addressed=False)
        assert await outcome(gateway, said) == (MessageOutcome.WAITING, "says 'hey belino'")
        said = house.say("hey belino: lunch?", author=BOB, channel="team", addressed=False)
        assert (await outcome(gateway, said))[0] is MessageOutcome.OBSERVED
        said = house.say("oi!", author=BOB, channel="team", addressed=False)
        assert (await outcome(gateway, said))[0] is MessageOutcome.WAITING
        said = house.say("oi!", author=EVE, channel="team", addressed=False)
        assert await outcome(gateway, said) == (MessageOutcome.OBSERVED, "not on the channel's list")


async def test_a_reload_applies_wake_words_at_once(house: House) -> None:
    async with house.at_work() as gateway:
        said = house.say("oi!", author=BOB, channel="team", addressed=False)
        assert (await outcome(gateway, said))[0] is MessageOutcome.OBSERVED
        house.access = replace(house.access, wake_words=("oi",))
        await gateway.reload(house.config())
        said = house.say("oi!", author=BOB, channel="team", addressed=False)
        assert (await outcome(gateway, said))[0] is MessageOutcome.WAITING


async def test_bots_that_answer_each_other_stop_until_a_person_writes(house: House) -> None:
    house.access = AccessConfig(channels={"team": ChannelAccess(senders=("bob", "r2"))})
    async with house.at_work() as gateway:
        for _ in range(2):
            await house.ask(gateway, house.say("beep", author=ROBOT, channel="team"))
        third, reason = await outcome(gateway, house.say("beep", author=ROBOT, channel="team"))
        assert (third, "no person wrote since 2 answers to bots" in reason) == (MessageOutcome.OBSERVED, True)
        await gateway.accept(house.say("enough?", author=EVE, channel="team", addressed=False))
        assert (await outcome(gateway, house.say("beep", author=ROBOT, channel="team")))[0] is MessageOutcome.WAITING


async def test_bots_are_counted_also_when_they_come_together(house: House) -> None:
    house.access = AccessConfig(channels={"team": ChannelAccess(senders=("r2",))})
    async with house.gateway() as gateway:
        said = [(house.say("beep", author=ROBOT, channel="team"), None) for _ in range(4)]
        taken = await gateway._intake.accept_all(said)
        assert [one.outcome for one in taken] == [MessageOutcome.WAITING] * 2 + [MessageOutcome.OBSERVED] * 2


def rules_of(**channels: Sequence[str]) -> AccessConfig:
    named = {own.replace("_", ":"): ChannelAccess(senders=tuple(senders)) for own, senders in channels.items()}
    return AccessConfig(channels={"*" if own == "all" else own: rules for own, rules in named.items()})


@pytest.mark.parametrize(
    ("access", "expected"),
    [
        (rules_of(server_s1=["bob"]), MessageOutcome.WAITING),
        (rules_of(server_s2=["bob"]), MessageOutcome.DENIED),
        (rules_of(server_s1=[]), MessageOutcome.OBSERVED),
        (rules_of(all=["bob"]), MessageOutcome.WAITING),
        (rules_of(all=["bob"], server_s1=[]), MessageOutcome.OBSERVED),
        (rules_of(all=["*"], server_s1=["*"], team=["ann"]), MessageOutcome.OBSERVED),
    ],
    ids=[
        "its server",
        "another server",
        "empty is no one",
        "all",
        "a server before all",
        "a channel before its server",
    ],
)
async def test_the_narrowest_of_channel_server_and_all_counts(
    house: House, access: AccessConfig, expected: MessageOutcome
) -> None:
    house.access = access
    async with house.gateway() as gateway:
        said = house.say("hello", author=BOB, channel="team", server="s1")
        assert (await gateway.accept(said)).outcome is expected


async def test_rules_for_all_channels_give_no_access_to_direct_messages(house: House) -> None:
    house.access = replace(rules_of(all=["*"]), direct="list")
    async with house.gateway() as gateway:
        assert (await gateway.accept(house.say("hello", author=EVE))).outcome is MessageOutcome.DENIED


async def test_an_answer_in_a_server_is_sent_while_the_server_is_listed(house: House) -> None:
    house.access = rules_of(server_s1=["bob"])
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say("hello", author=BOB, channel="group-1", server="s1"))
        assert len(house.wire.texts("group-1")) == 1
