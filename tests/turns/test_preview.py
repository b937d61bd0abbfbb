"""What an agent would be told is what it is told."""

from dataclasses import replace
from datetime import timedelta

import pytest

from belino.context.budget import ContextConfig
from belino.domain.errors import NoSuchMessage, SeveralMessages
from belino.domain.media import TextBlock
from belino.domain.message import Author, ConversationKey
from belino.gateway.gateway import Gateway
from belino.storage.encryption import Keys
from belino.testing import ScriptedAgent
from belino.turns.preview import Preview, as_json, preview
from gateway.house import BOB, House, until

TEAM = ConversationKey(platform="memory", account="default", channel="team")


async def look(house: House, gateway: Gateway, at: str | None = None, **config: int) -> Preview:
    key = house.home.key_file.read_bytes()
    return await preview(gateway.store, TEAM, at, ContextConfig(**config), clock=house.clock, key=key)  # type: ignore[arg-type]


async def test_a_preview_is_byte_for_byte_what_the_turn_tells(house: House) -> None:
    agent = house.agent
    assert isinstance(agent, ScriptedAgent)
    async with house.at_work() as gateway:
        for number in range(3):
            await gateway.accept(house.say(f"talk {number}", author=BOB, channel="team", addressed=False))
        first = house.say("what is it about?", channel="team", album="hold")
        await gateway.accept(first)
        seen = await look(house, gateway)
        await house.pass_album()
        await until(lambda: agent.turns)
    (turn,) = agent.turns
    assert seen.told == tuple(block.text for block in turn.blocks if isinstance(block, TextBlock))
    assert seen.system == turn.system and seen.message.id == first.id


async def test_the_price_comes_part_by_part_with_what_was_left_out_and_why(house: House) -> None:
    async with house.at_work() as gateway:
        for number in range(30):
            await gateway.accept(house.say(f"talk {number}", author=BOB, channel="team", addressed=False))
        told = await look(house, gateway, snapshot_tokens=100)
    value = as_json(told)
    parts = {cost.part: cost for cost in told.costs}
    assert list(parts) == ["tools", "instructions", "channel", "message"]
    assert told.tokens == value["tokens"] == sum(cost.tokens for cost in told.costs)
    assert parts["channel"].left_out == 29 - parts["channel"].told > 9
    assert "context.snapshot_tokens = 100" in parts["channel"].why[1]
    nothing: dict[str, object] = {"manifest": [], "lost": [], "reattach": []}
    assert value["session"] == {"turns": 0, "has_context": False, "compacted": False, **nothing}


async def test_a_message_may_be_named_and_must_be_of_this_conversation(house: House) -> None:
    async with house.at_work() as gateway:
        first = house.say("one", author=BOB, channel="team", addressed=False)
        await gateway.accept(first)
        await gateway.accept(house.say("two", author=BOB, channel="team", addressed=False))
        elsewhere = house.say("secret", channel="open", addressed=False)
        await gateway.accept(elsewhere)
        assert (await look(house, gateway, first.id)).message.text == "one"
        for name in (elsewhere.id, "nothing"):
            with pytest.raises(NoSuchMessage):
                await look(house, gateway, name)


async def test_a_message_may_be_named_by_its_short_id(house: House) -> None:
    async with house.at_work() as gateway:
        said = house.say("one", author=BOB, channel="team", addressed=False)
        await gateway.accept(said)
        (stored,) = await gateway.store.messages(TEAM, [said.id])
        assert (await look(house, gateway, stored.short_id)).message.id == said.id


async def test_a_short_id_that_several_messages_have_is_refused_with_their_longer_ones(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = iter((305_100_000_000_000, 305_700_000_000_000))
    monkeypatch.setattr(Keys, "message_code", lambda *_: next(codes))
    async with house.at_work() as gateway:
        for text in ("one", "two"):
            await gateway.accept(house.say(text, author=BOB, channel="team", addressed=False))
        with pytest.raises(SeveralMessages, match="may mean several messages; write one of: aa3051, aa3057"):
            await look(house, gateway, "aa305")


async def test_the_last_thing_a_person_said_is_what_would_be_answered(house: House) -> None:
    async with house.at_work() as gateway:
        said = house.say("hello", author=BOB, channel="team", addressed=False)
        agent = Author(id="agent", name="belino", is_agent=True)
        await gateway.accept(said)
        await gateway.accept(house.say("I am here", author=agent, channel="team", addressed=False))
        assert (await look(house, gateway)).message.id == said.id
        with pytest.raises(NoSuchMessage):
            where = replace(TEAM, thread="nowhere")
            key = house.home.key_file.read_bytes()
            await preview(gateway.store, where, None, ContextConfig(), clock=house.clock, key=key)


async def test_an_album_is_told_whole(house: House) -> None:
    async with house.at_work() as gateway:
        for number in range(3):
            item = house.say(f"part {number}", channel="team", album="a", addressed=False)
            await gateway.accept(replace(item, media=(house.picture(item, item=f"f{number}"),)))
        told = "\n".join((await look(house, gateway)).told)
    assert all(f"part {number}" in told for number in range(3))


async def test_an_album_is_told_in_the_order_its_platform_counts(house: House) -> None:
    async with house.at_work() as gateway:
        for number in ("12", "9", "100"):
            item = house.say(f"part {number}.", channel="team", album="a", addressed=False)
            await gateway.accept(replace(item, id=number, sent=house.clock.now()))
        told = "\n".join((await look(house, gateway)).told)
    assert told.index("part 9.") < told.index("part 12.") < told.index("part 100.")


async def test_a_preview_asks_for_the_past_like_a_turn_and_the_past_is_not_what_would_be_answered(house: House) -> None:
    far_side = house.prepare()._far_side
    for number in range(60):
        sent = house.clock.now() - timedelta(minutes=90 - number)
        update = {"id": f"old{number}", "channel": "team", "text": f"old {number}", "date": sent.timestamp()}
        far_side.past.append({**update, "from": {"id": 9, "name": "Cleo"}, "direct": False})
    async with house.at_work() as gateway:
        await gateway.accept(house.say("and now?", author=BOB, channel="team", addressed=False))
        key = house.home.key_file.read_bytes()
        for _ in range(2):
            told = await preview(
                gateway.store, TEAM, None, ContextConfig(), clock=house.clock, key=key, history=gateway.history
            )
            assert told.message.text == "and now?" and "old 59" in "".join(told.told)
    assert far_side.asked == [str(TEAM)]
