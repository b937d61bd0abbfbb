"""Talks of one person with the agent on each platform: commands, silence, actions, questions and service messages."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from belino.domain.message import Author, ConversationKey, Message
from belino.domain.outcome import MessageOutcome
from belino.domain.reply import ParcelState
from belino.domain.stored import StoredMessage
from belino.domain.turn import Final
from belino.gateway.gateway import Gateway
from belino.testing import ScriptedAgent, ToolCall
from belino.testing.fakes import ScriptLine
from belino.web.wire import message_json
from journeys.busy_group import BOT as TELEGRAM_BOT
from journeys.busy_group import BusyGroup
from journeys.busy_place import BusyPlace, told, until
from journeys.busy_server import BOT as DISCORD_BOT
from journeys.busy_server import BusyServer
from journeys.busy_workspace import BOT as SLACK_BOT
from journeys.busy_workspace import BusyWorkspace
from journeys.recording import WebPlace, place_on

ANN = Author(id="user-4711", name="Ann Walker")
ASK = ToolCall(name="ask_user", arguments={"question": "Deploy now?", "choices": ["Yes", "No"]})


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What Ann sees of one message."""

    text: str
    reactions: tuple[str, ...]
    buttons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """Ann and the agent alone."""

    place: BusyPlace
    gateway: Gateway
    agent: ScriptedAgent

    async def ask(self, text: str, *lines: ScriptLine) -> None:
        """Ann writes; wait until the agent has done this, and everything is sent."""
        self.agent.script.append(list(lines))
        await self._answered(lambda: self.place.write(text), text)

    async def command(self, text: str) -> str:
        """Ann gives a command; belino's answer."""
        before = len(await self.messages(of_agent=True))
        await self._act(lambda: self.place.write(text), text)

        async def answered() -> bool:
            return len(await self.messages(of_agent=True)) > before

        await until(answered)
        return (await self.messages(of_agent=True))[-1].text

    async def _answered(self, act: Callable[[], object], text: str = "", press: str | None = None) -> None:
        before = sum(self.gateway.counters.turns.values())
        await self._act(act, text, press)

        async def settled() -> bool:
            ended = sum(self.gateway.counters.turns.values()) > before
            return ended and {each.state for each in await self.gateway.store.parcels()} <= {ParcelState.SENT}

        await until(settled)

    async def _act(self, act: Callable[[], object], text: str, press: str | None = None) -> None:
        """Let Ann do something; in the page, by a message."""
        if (page := self.gateway.web) is None:
            act()
            return
        now, own = self.gateway.clock.now(), f"m-{len(await self.messages(of_agent=False))}"
        await page.post(Message(conversation=self.place.private, id=own, author=ANN, sent=now, text=text, press=press))

    async def press(self, message: StoredMessage, label: str) -> None:
        """Ann presses a button."""
        parcel = await self.gateway.store.parcel_of(self.where, message.id)
        assert parcel is not None
        keys = {each.label: each.key for each in await self.gateway.store.open_buttons(parcel.key)}
        await self._answered(lambda: self._press(message, label), press=keys[label])

    def _press(self, message: StoredMessage, label: str) -> None:
        channel, own = self.where.channel, message.id
        match self.place:
            case BusyGroup() as group:
                group.server.press(group.server.messages[int(channel), int(own)], group.ann, label)
            case BusyServer() as club:
                club.discord.press(club.discord.messages[channel][own], club.ann, label)
            case BusyWorkspace() as crew:
                crew.slack.press({**crew.slack.messages[channel][own], "channel": channel}, crew.ann, label)

    @property
    def where(self) -> ConversationKey:
        return self.place.private.whole_channel

    async def messages(self, *, of_agent: bool) -> list[StoredMessage]:
        history = await self.gateway.store.history(self.place.private, limit=50)
        return [each for each in history if each.author.is_agent is of_agent]

    async def seen(self, message: StoredMessage) -> Seen | None:
        """A message as it is on the platform now; None if it is gone."""
        channel, own = self.where.channel, message.id
        match self.place:
            case BusyGroup() as group:
                if (place := (int(channel), int(own))) not in group.server.messages:
                    return None
                raw = group.server.messages[place]
                rows = raw.get("reply_markup", {}).get("inline_keyboard", [])
                labels = tuple(button["text"] for row in rows for button in row)
                return Seen(text=raw["text"], reactions=tuple(group.server.reacted.get(place, ())), buttons=labels)
            case BusyServer() as club:
                if own not in club.discord.messages[channel]:
                    return None
                raw = club.discord.messages[channel][own]
                labels = tuple(button["label"] for row in raw.get("components") or [] for button in row["components"])
                return Seen(text=raw["content"], reactions=tuple(club.discord.reactions[own]), buttons=labels)
            case BusyWorkspace() as crew:
                if own not in crew.slack.messages[channel]:
                    return None
                raw = crew.slack.messages[channel][own]
                actions = [block for block in raw.get("blocks") or [] if block["type"] == "actions"]
                labels = tuple(each["text"]["text"] for block in actions for each in block["elements"])
                return Seen(text=raw["text"], reactions=tuple(crew.slack.reactions[channel, own]), buttons=labels)
            case _:
                return await self._in_page(message)

    async def _in_page(self, message: StoredMessage) -> Seen | None:
        (stored,) = await self.gateway.store.messages(self.where, [message.id])
        shown: dict[str, Any] = dict(await message_json(self.gateway.store, stored))
        if shown["deleted"] is not None:
            return None
        offered = shown["choices"]
        labels = () if offered is None or offered["chosen"] else tuple(each["label"] for each in offered["buttons"])
        return Seen(text=shown["text"], reactions=tuple(emoji for emoji, _ in shown["reactions"]), buttons=labels)


class Page(WebPlace):
    """The web chat, with what the agent may do in it."""

    def table(self) -> dict[str, Any]:
        return {**super().table(), **self.more}


@pytest.fixture(params=["telegram", "discord", "slack", "web"])
async def talk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Talk]:
    async with place_on(request.param, tmp_path / "home") as there:
        place = Page(tmp_path / "page") if isinstance(there, WebPlace) else there
        may = {place.private.channel: {"senders": ["*"], "agent_may": ["react", "edit", "delete"]}}
        others = {} if isinstance(place, WebPlace) else {"web": {"enabled": False}}
        adapter = place.adapter() | {"access": {**place.adapter().get("access", {}), "channels": may}}
        place.more |= {"adapters": {place.platform: adapter, **others}, "delivery": {"sign": "off"}}
        agent = ScriptedAgent()
        async with place.gateway(agent) as gateway:
            yield Talk(place=place, gateway=gateway, agent=agent)
            assert (await gateway.audit()).is_balanced


async def test_commands_are_answered_by_belino_and_the_silent_agent_sends_nothing(talk: Talk) -> None:
    assert "Agent: belino" in await talk.command("/status")
    assert talk.agent.turns == []
    before = len(await talk.messages(of_agent=True))
    await talk.ask("thanks", ToolCall(name="stay_silent", arguments={"reason": "nothing to add"}))
    asked = (await talk.messages(of_agent=False))[-1]
    assert (asked.outcome, asked.reason) == (MessageOutcome.SILENT, "chose silence: nothing to add")
    assert len(await talk.messages(of_agent=True)) == before
    assert "chose silence" in await talk.command("/why")


async def test_code_reaches_the_agent_as_it_was_written(talk: Talk) -> None:
    code = '{"items": [{"file": "a.txt"}, {"image_url": "x"}]} a[file:1]'
    await talk.ask(code, "Fine")
    assert code in talk.agent.told()


async def test_the_agent_reacts_edits_its_answer_and_deletes_it(talk: Talk) -> None:
    await talk.ask("What is the answer?", "The answer is 41")
    (question,), (answer,) = await talk.messages(of_agent=False), await talk.messages(of_agent=True)
    await talk.ask("Good", ToolCall(name="react", arguments={"message_id": question.id, "emoji": "👍"}), "Done")
    seen = await talk.seen(question)
    assert seen is not None and seen.reactions in (("👍",), ("+1",), ("thumbsup",))
    edit = {"message_id": answer.short_id, "text": "The answer is 42"}
    await talk.ask("Are you sure?", ToolCall(name="edit_message", arguments=edit), "Corrected")
    seen = await talk.seen(answer)
    assert seen is not None and seen.text == "The answer is 42"
    await talk.ask("Delete it", ToolCall(name="delete_message", arguments={"message_id": answer.id}), "Gone")
    assert await talk.seen(answer) is None
    assert [each.text for each in await talk.messages(of_agent=True) if each.deleted is None] == [
        "Done",
        "Corrected",
        "Gone",
    ]


async def test_an_open_question_that_the_agent_edits_keeps_its_buttons_and_they_work(talk: Talk) -> None:
    await talk.ask("Go on", ASK, Final(silent=True))
    (question,) = await talk.messages(of_agent=True)
    edit = {"message_id": question.id, "text": "Deploy today?"}
    await talk.ask("Today, you mean?", ToolCall(name="edit_message", arguments=edit), Final(silent=True))
    assert await talk.seen(question) == Seen(text="Deploy today?", reactions=(), buttons=("Yes", "No"))
    await talk.press(question, "No")
    assert '"value": "No"' in talk.agent.told()
    seen = await talk.seen(question)
    assert seen is not None and (seen.text, seen.buttons) == ("Deploy today?\n\n✓ No", ())


@pytest.mark.parametrize("platform", ["telegram", "discord", "slack"])
async def test_the_agent_is_told_what_a_service_message_says(platform: str, tmp_path: Path) -> None:
    async with place_on(platform, tmp_path / "home") as place, place.gateway() as gateway:
        match place:
            case BusyGroup() as group:
                group.server.hears_all = True
                group.server.say(group.chat, group.ann, new_chat_title="Sailors")
                group.server.say(group.chat, group.ann, f"{TELEGRAM_BOT} what is new?")
            case BusyServer() as club:
                club.discord.say(club.room, club.ann, "Sailors", type=4)
                club.discord.say(club.room, club.ann, f"{DISCORD_BOT} what is new?")
            case BusyWorkspace() as crew:
                crew.slack.say(crew.room, crew.ann, "renamed it", subtype="channel_name", name="Sailors", old_name="a")
                crew.slack.say(crew.room, crew.ann, f"{SLACK_BOT} what is new?")
        await until(lambda: gateway.counters.turns["answered"])
    assert "Sailors" in told(place.agent.turns[0])
