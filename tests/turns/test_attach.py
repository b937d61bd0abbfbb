"""A picture that is the question comes with it, and everything else waits until it is asked for."""

from dataclasses import replace
from typing import Any

import pytest

from belino.context.budget import ContextConfig
from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Message, Quote
from belino.testing import ScriptedAgent, make_png
from gateway.house import ANN, BOB, House, until


@pytest.fixture
def agent(house: House) -> ScriptedAgent:
    agent = house.agent = ScriptedAgent()
    house.prepare()
    return agent


def shots(house: House, message: Message, count: int, **more: Any) -> tuple[MediaRef, ...]:
    """Pictures of a message, each with bytes of its own."""
    files, found = house.wire._far_side.files, []
    for number in range(count):
        item = f"{message.id}-{number}"
        files[item] = make_png(3 + len(files), 3)
        found.append(replace(house.picture(message, item=item, name=f"{number}.png"), **more))
    return tuple(found)


async def ask(house: House, text: str, count: int = 1, *, channel: str = "team", **more: Any) -> Message:
    async with house.at_work() as gateway:
        message = house.say(text, author=BOB if channel == "team" else ANN, channel=channel)
        message = replace(message, media=shots(house, message, count), **more)
        await house.ask(gateway, message)
    return message


async def outcomes(house: House) -> list[str]:
    async with house.gateway() as gateway:
        return [record.outcome.value for record in await gateway.store.refs(None)]


async def test_a_picture_with_words_is_attached_and_needs_no_tool(house: House, agent: ScriptedAgent) -> None:
    await ask(house, "what is this?")
    (picture,) = agent.pictures()
    assert f"ref:{picture.ref}]: picture 1 below" in agent.told()


async def test_in_a_direct_message_a_picture_needs_no_words(house: House, agent: ScriptedAgent) -> None:
    await ask(house, "", channel="dm")
    assert len(agent.pictures()) == 1


async def test_in_a_group_a_picture_without_words_waits(house: House, agent: ScriptedAgent) -> None:
    await ask(house, "")
    assert not agent.pictures() and "<<<media" not in agent.told()
    assert await outcomes(house) == ["referenced"]


async def test_of_many_pictures_three_are_attached_and_the_rest_is_counted(house: House, agent: ScriptedAgent) -> None:
    await ask(house, "compare them", 5)
    assert len(agent.pictures()) == 3
    assert "2 more are not attached; fetch_media shows them" in agent.told()


async def test_pictures_of_an_album_are_of_the_message_itself(house: House, agent: ScriptedAgent) -> None:
    async with house.at_work() as gateway:
        for text in ("", "which one?"):
            message = house.say(text, author=BOB, channel="team", album="a1")
            await gateway.accept(replace(message, media=shots(house, message, 1)))
        await house.pass_album()
        await until(lambda: gateway.counters.turns)
    assert len(agent.pictures()) == 2


async def test_what_is_quoted_or_was_sent_before_waits(house: House, agent: ScriptedAgent) -> None:
    async with house.at_work() as gateway:
        shot = house.say("", author=BOB, channel="team", addressed=False)
        await gateway.accept(replace(shot, media=shots(house, shot, 1)))
        asked = house.say("and this?", author=BOB, channel="team")
        quoted = Quote(author=ANN, message_id="q1", text="look", sent=asked.sent, media=shots(house, asked, 1))
        await house.ask(gateway, replace(asked, quote=quoted))
    assert not agent.pictures()
    assert agent.told().count("[Image: 0.png") == 2


@pytest.mark.parametrize(
    ("mime", "kind"),
    [
        ("application/pdf", MediaKind.DOCUMENT),
        ("audio/ogg", MediaKind.VOICE),
        ("application/x-tgsticker", MediaKind.STICKER),
    ],
)
async def test_nothing_but_pictures_comes_by_itself(
    house: House, agent: ScriptedAgent, mime: str, kind: MediaKind
) -> None:
    async with house.at_work() as gateway:
        message = house.say("read it", author=BOB, channel="team")
        await house.ask(gateway, replace(message, media=shots(house, message, 1, mime=mime, kind=kind)))
    assert "<<<media" not in agent.told() and len(agent.turns[0].blocks) == 2


async def test_an_agent_that_sees_no_pictures_gets_none(house: House) -> None:
    agent = house.agent = ScriptedAgent(sees_images=False)
    house.prepare()
    await ask(house, "what is this?")
    assert not agent.pictures() and "<<<media" not in agent.told()


async def test_never_means_never(house: House, agent: ScriptedAgent) -> None:
    house.context = ContextConfig(attach_media="never")
    await ask(house, "what is this?", channel="dm")
    assert not agent.pictures()
    assert await outcomes(house) == ["referenced"]
