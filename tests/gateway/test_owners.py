"""Owners: what they are told, and the groups that they let in."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from belino.config import AccessConfig, ChannelAccess, Config, OwnersConfig
from belino.domain.errors import ConfigError, Unauthorized
from belino.domain.message import UNKNOWN_AUTHOR, Author, ChatType, ConversationKey, Message, Presence, Unsupported
from belino.domain.outcome import MessageOutcome, Standing
from belino.domain.owner import PLATFORM_EVENT, GroupAccess, GroupState
from belino.gateway.access import decide, may_ask, with_groups
from belino.gateway.gateway import Gateway
from belino.gateway.owners import answers_to
from belino.testing.clock import START
from gateway.house import ANN, BOB, EVE, House, until

MEMORY = ("memory", "default")
ROBOT = Author(id="r2", name="R2", is_bot=True)


class OwnedHouse(House):
    """A house whose owner is Ann, on the memory platform."""

    owners: tuple[str, ...] = ("memory:default:ann",)

    def config(self) -> Config:
        return replace(super().config(), access=OwnersConfig(owners=self.owners))


@pytest.fixture
def owned(tmp_path: Path) -> OwnedHouse:
    return OwnedHouse(tmp_path / "home")


def added(
    house: House, channel: str = "group-1", by: Author = BOB, *, presence: Presence = Presence.ADDED
) -> Unsupported:
    said = house.say(channel=channel, author=by)
    return Unsupported(
        conversation=said.conversation,
        id=said.id,
        author=by,
        sent=said.sent,
        what="the bot was added",
        chat_type=ChatType.GROUP,
        channel_name="Harbour [Image: x, ref:a_b]",
        is_event=True,
        presence=presence,
    )


def at(channel: str) -> ConversationKey:
    return ConversationKey(platform="memory", account="default", channel=channel)


def allowed(channel: str, *, inviter: str = "bob", everyone: bool = False) -> GroupAccess:
    return GroupAccess(
        channel=at(channel), state=GroupState.ALLOWED, inviter_id=inviter, everyone=everyone, asked=START
    )


async def write_down(house: House, gateway: Gateway) -> None:
    """Ann writes once, so that she can be written to."""
    await house.ask(gateway, house.say("hello"))
    house.wire.seen.clear()


async def written(house: House, word: str) -> str:
    """The message to the owner that has this word in it, once it is sent."""
    await until(lambda: any(word in text for text in house.wire.texts("dm")))
    return next(text for text in house.wire.texts("dm") if word in text)


def test_an_owner_is_named_by_platform_account_and_id() -> None:
    config = OwnersConfig(owners=("telegram:default:123", "slack:work%3Aeast:U1"))
    assert config.of("telegram", "default") == ("123",)
    assert config.of("slack", "work:east") == ("U1",)
    assert config.of("slack", "default") == ()
    for wrong in ("123", "telegram:123", "telegram:default:", "telegram:default:@ann", "a:b:c:d"):
        with pytest.raises(ConfigError, match="owners holds"):
            OwnersConfig(owners=(wrong,))


def test_an_owner_may_command_in_direct_messages_and_in_allowed_groups_only() -> None:
    access = with_groups(AccessConfig(channels={"team": ChannelAccess()}), ("ann",), [allowed("harbour")])
    direct = Message(conversation=at("dm"), id="1", author=ANN, sent=START, text="x")
    there = replace(direct, chat_type=ChatType.GROUP)
    assert decide(direct, access).standing is Standing.MAY_COMMAND
    for channel, standing in (("team", Standing.OBSERVED), ("harbour", Standing.MAY_COMMAND)):
        assert decide(replace(there, conversation=at(channel)), access).standing is standing
    assert decide(replace(there, conversation=at("elsewhere")), access).standing is Standing.DENIED


@pytest.mark.parametrize(
    ("author", "everyone", "standing"),
    [
        (BOB, False, Standing.MAY_COMMAND),
        (EVE, False, Standing.OBSERVED),
        (EVE, True, Standing.MAY_COMMAND),
        (ROBOT, True, Standing.OBSERVED),
    ],
)
def test_in_an_allowed_group_who_added_the_agent_commands_it_or_every_person(
    author: Author, everyone: bool, standing: Standing
) -> None:
    access = with_groups(AccessConfig(), (), [allowed("harbour", everyone=everyone)])
    said = Message(conversation=at("harbour"), id="1", author=author, sent=START, text="x", chat_type=ChatType.GROUP)
    assert decide(said, access).standing is standing
    assert decide(replace(said, addressed=False), access).standing is Standing.OBSERVED


def test_what_is_configured_about_a_channel_counts_more_than_a_decision_and_a_refusal_allows_nobody() -> None:
    listed = AccessConfig(channels={"harbour": ChannelAccess(senders=("eve",))})
    access = with_groups(listed, (), [allowed("harbour"), replace(allowed("team"), state=GroupState.REFUSED)])
    assert access.channels == listed.channels
    nobody = with_groups(AccessConfig(), (), [allowed("harbour", inviter="")])
    assert nobody.channels["harbour"].senders == ()


def test_the_owner_is_asked_about_groups_where_the_agent_is_added_or_addressed_by_a_person(house: House) -> None:
    access = AccessConfig(channels={"team": ChannelAccess()})
    said = house.say(channel="group-1", author=EVE)
    assert may_ask(said, access) and may_ask(added(house), access)
    assert not may_ask(replace(said, addressed=False), access)
    assert not may_ask(replace(said, author=ROBOT), access)
    assert not may_ask(replace(said, chat_type=ChatType.DIRECT), access)
    assert not may_ask(replace(added(house), chat_type=ChatType.DIRECT), access)
    assert not may_ask(added(house, presence=Presence.REMOVED), access)
    assert not may_ask(added(house, "team"), access)
    assert not may_ask(said, replace(access, groups="list"))


def test_a_platform_event_in_a_place_that_is_not_listed_is_noise_and_not_a_denied_person(house: House) -> None:
    event = added(house)
    assert decide(event, AccessConfig()).reason == PLATFORM_EVENT
    assert decide(replace(event, is_event=False), AccessConfig()).reason == "the channel is not listed"


async def test_a_group_is_asked_about_once_in_a_direct_message_and_allowed_by_its_answer(owned: OwnedHouse) -> None:
    async with owned.at_work() as gateway:
        await write_down(owned, gateway)
        taken = await gateway.accept(added(owned))
        assert (taken.outcome, taken.reason) == (MessageOutcome.DENIED, PLATFORM_EVENT)
        asked = await written(owned, "I was added to")
        (group,) = await gateway.groups.all()
        assert "by Bob" in asked and "ref:a_b]" not in asked.replace("［", "[Image") and group.code in asked
        await gateway.accept(owned.say("hello there", author=BOB, channel="group-1"))
        assert await owned.history(gateway, "group-1") == ()

        taken = await gateway.accept(owned.say(f"/allow {group.code.lower()}"))
        assert (taken.outcome, taken.reason) == (
            MessageOutcome.OBSERVED,
            "an owner's decision: memory:default:group-1 is allowed",
        )
        assert "Bob and you may command me" in await written(owned, "Allowed:")
        assert await gateway.owners.notices() == ()
        for author, outcome in ((BOB, MessageOutcome.WAITING), (EVE, MessageOutcome.OBSERVED)):
            said = owned.say("now", author=author, channel="group-1")
            assert (await gateway.accept(said)).outcome is outcome
        await until(lambda: owned.wire.texts("group-1"))
        assert [text for text in owned.wire.texts("dm") if "I was added" in text] == [asked]


async def test_a_decision_outlives_a_restart_and_can_be_taken_back(owned: OwnedHouse) -> None:
    async with owned.at_work() as gateway:
        await gateway.accept(added(owned))
        decided = await gateway.groups.decide(at("group-1"), allow=True, everyone=True)
        assert decided is not None and decided.everyone
    async with owned.at_work() as gateway:
        said = owned.say("hello", author=EVE, channel="group-1")
        assert (await gateway.accept(said)).outcome is MessageOutcome.WAITING
        assert await gateway.groups.forget(at("group-1"))
        said = owned.say("again", author=EVE, channel="group-1", addressed=False)
        assert (await gateway.accept(said)).outcome is MessageOutcome.DENIED
        assert not await gateway.groups.forget(at("group-1"))


async def test_a_refused_group_is_not_asked_about_again_and_leaves_no_trace(owned: OwnedHouse) -> None:
    async with owned.at_work() as gateway:
        await write_down(owned, gateway)
        for text in ("canary-12 please", "canary-12 again"):
            await gateway.accept(owned.say(text, author=EVE, channel="group-1", channel_name="canary-34"))
        (group,) = await gateway.groups.all()
        await written(owned, "Eve addressed me")
        await gateway.accept(owned.say(f"refuse {group.code}"))
        await written(owned, "Refused:")
        await gateway.accept(owned.say("canary-12", author=EVE, channel="group-1", channel_name="canary-34"))
        await gateway.accept(added(owned))
        assert [(one.state, one.name) for one in await gateway.groups.all()] == [(GroupState.REFUSED, "")]
        assert len([text for text in owned.wire.texts("dm") if "addressed me" in text]) == 1
    held = b"".join(path.read_bytes() for path in owned.home.path.rglob("*") if path.is_file())
    assert b"canary-12" not in held


async def test_a_request_is_withdrawn_when_the_agent_is_removed_and_a_decision_is_kept(house: House) -> None:
    async with house.at_work() as gateway:
        for channel in ("group-1", "group-2"):
            await gateway.accept(added(house, channel))
        await gateway.groups.decide(at("group-2"), allow=True)
        for channel in ("group-1", "group-2"):
            await gateway.accept(added(house, channel, presence=Presence.REMOVED))
        assert [one.channel for one in await gateway.groups.all()] == [at("group-2")]


@pytest.mark.parametrize("text", ["/allow ABCDEF", "allow ABCDEF everyone", "/refuse ABCDEF"])
async def test_a_decision_counts_only_from_an_owner_in_direct_messages(owned: OwnedHouse, text: str) -> None:
    async with owned.at_work() as gateway:
        await gateway.accept(added(owned))
        (group,) = await gateway.groups.all()
        text = text.replace("ABCDEF", group.code)
        await gateway.accept(owned.say(text, author=BOB, channel="dm-bob"))
        await gateway.accept(owned.say(text, channel="team"))
        assert [one.state for one in await gateway.groups.all()] == [GroupState.WAITING]
        taken = await gateway.accept(owned.say("/allow ZZZZZZ everyone"))
        assert taken.reason == "an owner's decision: no group has this code"
        for words in ("allow them", "refuse politely", "Allow everyone"):
            assert (await gateway.accept(owned.say(words))).outcome is MessageOutcome.WAITING
        assert (await gateway.accept(owned.say("allow me to ask"))).outcome is MessageOutcome.WAITING
        assert [one.state for one in await gateway.groups.all()] == [GroupState.WAITING]


async def test_who_added_the_agent_may_be_unknown_and_then_only_owners_command(owned: OwnedHouse) -> None:
    async with owned.at_work() as gateway:
        await gateway.accept(added(owned, by=UNKNOWN_AUTHOR))
        (group,) = await gateway.groups.all()
        assert "only you may command" in answers_to(group)
        await gateway.groups.decide(at("group-1"), allow=True)
        assert gateway.effective_config.adapters[0].access.channels["group-1"].senders == ("ann",)


async def test_the_owner_is_told_of_an_account_that_does_not_work_for_a_minute_and_once_an_hour(
    owned: OwnedHouse,
) -> None:
    owned.accounts = ("default", "other")
    async with owned.at_work() as gateway:
        await write_down(owned, gateway)
        other = ("memory", "other")
        for _ in range(2):
            gateway._health.attempted(other, Unauthorized("the token was revoked"))
            await owned.clock.wake(60)
            await until(lambda: other in gateway.owners._down)
            while not await gateway.owners.notices():
                await asyncio.sleep(0.001)
            gateway._health.attempted(other, None)
            while await gateway.owners.notices():
                await asyncio.sleep(0.001)
        await written(owned, "memory:other does not work (unauthorized): sending: the token was revoked")
    assert len([text for text in owned.wire.texts("dm") if "does not work" in text]) == 1


async def test_a_short_trouble_is_not_told(owned: OwnedHouse) -> None:
    async with owned.at_work() as gateway:
        gateway._health.attempted(MEMORY, Unauthorized("the token was revoked"))
        await owned.clock.asleep(60)
        gateway._health.attempted(MEMORY, None)
        await until(lambda: not owned.clock.sleeps_for(60))
        assert await gateway.owners.notices() == ()


async def test_an_owner_whose_own_account_is_down_is_not_written_to_but_the_next_one_is(owned: OwnedHouse) -> None:
    owned.owners = ("memory:default:ann", "memory:other:bob")
    owned.accounts = ("default", "other")
    async with owned.at_work() as gateway:
        bobs = owned.say("hello", author=BOB)
        await gateway.accept(replace(bobs, conversation=replace(bobs.conversation, account="other")))
        await until(lambda: owned.wires["other"].texts())
        gateway._health.attempted(MEMORY, Unauthorized("the token was revoked"))
        await owned.clock.wake(60)
        await until(lambda: len(owned.wires["other"].texts()) == 2)
        assert "memory:default does not work" in owned.wires["other"].texts()[-1]
    assert owned.wire.texts() == []


async def test_without_an_owner_a_notice_is_for_the_page_and_the_log(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    async with house.at_work() as gateway:
        await gateway.accept(added(house))
        (notice,) = await gateway.owners.notices()
        assert notice.kind == "group memory:default:group-1"
    assert "a group asks for access" in caplog.text and "Harbour" not in caplog.text
    assert house.wire.seen == []
