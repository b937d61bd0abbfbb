"""An answer that takes its time is shown while it is written, in one message, whatever happens on the way."""

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from belino.config import from_table
from belino.domain.message import ConversationKey
from belino.domain.outcome import MessageOutcome
from belino.domain.stored import StoredMessage
from belino.domain.turn import Final, ReplyPart, TextDelta, Turn
from belino.gateway.gateway import Gateway
from belino.storage.home import Home
from belino.testing import FakeClock, TelegramServer
from belino.testing.faults import CannedAnswer, Hang
from belino.turns.drafts import FIRST_CHARS, NO_ANSWER

pytestmark = pytest.mark.slow

PATIENCE = 60.0


class Writer:
    """An agent that says what it is handed, when it is handed it."""

    remembers = True
    sees_images = True

    def __init__(self) -> None:
        self.lines: asyncio.Queue[ReplyPart | Exception] = asyncio.Queue()
        self.turns: list[Turn] = []

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        self.turns.append(turn)
        while True:
            line = await self.lines.get()
            if isinstance(line, Exception):
                raise line
            yield line

    def write(self, text: str) -> None:
        self.lines.put_nowait(TextDelta(text=text))

    def end(self, text: str) -> None:
        self.lines.put_nowait(Final(text=text))


class Chat:
    """One person who talks to the bot, and a clock that moves while somebody waits."""

    def __init__(self, server: TelegramServer, clock: FakeClock, path: Path) -> None:
        self.server = server
        self.clock = clock
        self.home = Home.at(path)
        self.agent = Writer()
        self.ada = server.user("Ada")
        self.group = server.group("Workshop")

    @asynccontextmanager
    async def gateway(self, **settings: Any) -> AsyncIterator[Gateway]:
        access = {"senders": ["*"], "channels": {str(self.group["id"]): {"senders": ["*"], "mention": False}}}
        telegram = {"token": "env:BELINO_TEST_TOKEN", "api_url": self.server.url, "access": access, **settings}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("BELINO_TEST_TOKEN", self.server.token)
            config = from_table({"adapters": {"telegram": telegram, "web": {"enabled": False}}})
        async with (
            Gateway(config, self.home, agent=self.agent, clock=self.clock) as gateway,
            asyncio.TaskGroup() as group,
        ):
            running = group.create_task(gateway.run())
            try:
                yield gateway
            finally:
                gateway.stop()
                await self.until(running.done)

    async def until(self, happened: Callable[[], object]) -> None:
        """Let time pass until it is so."""
        async with asyncio.timeout(PATIENCE):
            while not happened():
                await self.clock.advance(0.1)
                await asyncio.sleep(0.001)

    async def pass_time(self, seconds: float) -> None:
        end = self.clock.monotonic() + seconds
        await self.until(lambda: self.clock.monotonic() >= end)

    def parcel_states(self) -> list[str]:
        with closing(sqlite3.connect(self.home.database)) as connection:
            return [state for (state,) in connection.execute("SELECT state FROM parcels")]

    @property
    def seen(self) -> list[str]:
        return [message.get("text", "") for message in self.server.sent]

    @property
    def where(self) -> ConversationKey:
        return ConversationKey(platform="telegram", account="default", channel=str(self.ada["id"]))

    async def draft(self, text: str = "Once upon a time") -> None:
        """Ask, and wait until the answer's beginning is seen."""
        self.server.say(self.ada, self.ada, "tell me a story")
        await self.until(lambda: self.agent.turns)
        self.agent.write(text)
        await self.until(lambda: self.server.sent)
        assert self.seen == [f"{text} …"]


@pytest.fixture
async def chat(tmp_path: Path) -> AsyncIterator[Chat]:
    clock = FakeClock()
    async with TelegramServer(clock=clock) as server:
        server.unknown_methods.add("sendmessagedraft")  # a draft is a message where there are no previews
        yield Chat(server, clock, tmp_path / "home")


async def test_a_draft_grows_no_faster_than_telegram_allows_and_becomes_the_answer(chat: Chat) -> None:
    async with chat.gateway():
        await chat.draft()
        begun = chat.clock.monotonic()
        for number in range(10):
            chat.agent.write(f" {number}")
            await chat.pass_time(1)
        grown = len(chat.server.edited)
        assert 2 <= grown <= (chat.clock.monotonic() - begun) / 1.5
        assert chat.seen[0].startswith("Once upon a time 0 1")
        chat.agent.end("**The end.**")
        await chat.until(lambda: chat.seen == ["The end."])
    async with chat.gateway() as gateway:
        history = await gateway.store.history(chat.where)
    assert [message.text for message in history] == ["tell me a story", "The end."]


async def test_an_answer_that_is_there_at_once_is_one_call(chat: Chat) -> None:
    async with chat.gateway():
        chat.server.say(chat.ada, chat.ada, "hello")
        await chat.until(lambda: chat.agent.turns)
        chat.agent.write("Hi")
        chat.agent.end("Hi!")
        await chat.until(lambda: chat.server.sent)
        await chat.pass_time(10)
    assert chat.seen == ["Hi!"]
    assert chat.server.calls["editMessageText"] == 0


async def test_an_answer_whose_files_take_their_time_is_not_shown_before_them(chat: Chat) -> None:
    async with chat.gateway() as gateway:
        may_end = asyncio.Event()
        prepare = gateway._replies.parcels

        async def slowly(*arguments: Any) -> Any:
            await may_end.wait()
            return await prepare(*arguments)

        gateway._turns._replies.parcels = slowly  # type: ignore[method-assign,assignment]
        chat.server.say(chat.ada, chat.ada, "hello")
        await chat.until(lambda: chat.agent.turns)
        chat.agent.write("Hi")
        chat.agent.end("Hi!")
        await chat.pass_time(10)
        assert chat.seen == []
        may_end.set()
        await chat.until(lambda: chat.seen == ["Hi!"])


async def test_a_long_answer_is_the_draft_and_what_follows_it(chat: Chat) -> None:
    async with chat.gateway():
        await chat.draft()
        chat.agent.end("\n\n".join(f"Paragraph {number}. " + "word " * 300 for number in range(5)))
        await chat.until(lambda: len(chat.server.sent) >= 2 and chat.server.edited)
        await chat.pass_time(20)
    assert chat.seen[0].startswith("Paragraph 0.")
    assert all(f"Paragraph {number}." in " ".join(chat.seen) for number in range(5))
    assert "Once upon" not in " ".join(chat.seen)


async def test_the_apology_of_a_turn_that_fails_takes_the_drafts_place(chat: Chat) -> None:
    async with chat.gateway():
        await chat.draft()
        chat.agent.lines.put_nowait(RuntimeError("boom"))
        await chat.until(lambda: chat.server.edited)
    assert len(chat.seen) == 1
    assert chat.seen[0].startswith("Sorry, I could not answer that")


async def test_a_turn_that_is_stopped_leaves_what_was_written_and_says_so(chat: Chat) -> None:
    async with chat.gateway() as gateway:
        await chat.draft()
        assert await gateway.abort(chat.where)
        await chat.until(lambda: chat.server.edited)
    assert chat.seen == ["Once upon a time\n\n(stopped)"]


async def test_a_restart_goes_on_with_the_same_draft(chat: Chat) -> None:
    async with chat.gateway():
        await chat.draft()
    assert len(chat.agent.turns) == 1
    async with chat.gateway():
        await chat.until(lambda: len(chat.agent.turns) == 2)
        chat.agent.write("Once more")
        await chat.until(lambda: chat.seen == ["Once more …"])
        chat.agent.end("The end.")
        await chat.until(lambda: chat.seen == ["The end."])


async def test_a_restart_that_answers_at_once_ends_the_draft_too(chat: Chat) -> None:
    async with chat.gateway():
        await chat.draft()
    async with chat.gateway():
        await chat.until(lambda: len(chat.agent.turns) == 2)
        chat.agent.end("The end.")
        await chat.until(lambda: chat.seen == ["The end."])


async def test_a_crash_ends_in_the_same_message(chat: Chat, tmp_path: Path) -> None:
    async with chat.gateway():
        await chat.draft()
        await chat.until(lambda: chat.parcel_states() == ["sent"])
        # The disk as a process that dies now leaves it: the turn runs, its draft is seen and its receipt stored.
        # Copied file by file, a database that is being written to would be torn.
        crashed = tmp_path / "after the crash"
        shutil.copytree(chat.home.path, crashed, ignore=shutil.ignore_patterns("belino.db*"))
        with (
            closing(sqlite3.connect(chat.home.database)) as running,
            closing(sqlite3.connect(crashed / chat.home.database.name)) as copy,
        ):
            running.backup(copy)
        (crashed / chat.home.database.name).chmod(0o600)
    chat.home = Home.at(crashed)
    async with chat.gateway():
        await chat.until(lambda: len(chat.agent.turns) == 2)
        chat.agent.end("The end.")
        await chat.until(lambda: chat.seen == ["The end."])


async def test_a_platform_that_asks_for_patience_gets_no_more_changes_until_the_answer(chat: Chat) -> None:
    async with chat.gateway():
        await chat.draft()
        chat.server.fail("editMessageText", CannedAnswer(status=429, parameters={"retry_after": 12}))
        chat.agent.write(" there")
        await chat.until(lambda: chat.server.calls["editMessageText"] == 1)
        asked = chat.clock.monotonic()
        chat.agent.write(" was")
        await chat.pass_time(8)
        chat.agent.end("The end.")
        await chat.until(lambda: chat.seen == ["The end."])
        assert chat.clock.monotonic() - asked > 11.999  # the clock is a sum of tenths
    assert chat.server.calls["editMessageText"] == 2


async def test_a_draft_that_could_not_be_sent_does_not_cost_the_answer(chat: Chat) -> None:
    async with chat.gateway():
        chat.server.say(chat.ada, chat.ada, "hello")
        await chat.until(lambda: chat.agent.turns)
        chat.server.fail("sendMessage", CannedAnswer(status=400, description="Bad Request: some reason"))
        chat.agent.write("Hi")
        await chat.until(lambda: chat.server.calls["sendMessage"])
        chat.agent.write(" there")
        await chat.pass_time(5)
        chat.agent.end("Hi there!")
        await chat.until(lambda: chat.seen == ["Hi there!"])


async def test_a_draft_somebody_deletes_comes_back_only_as_the_answer(chat: Chat) -> None:
    async with chat.gateway():
        await chat.draft()
        del chat.server.messages[chat.ada["id"], chat.server.sent[0]["message_id"]]
        for word in (" there", " was"):
            chat.agent.write(word)
            await chat.pass_time(5)
        assert len(chat.seen) == 1
        chat.agent.end("The end.")
        await chat.until(lambda: len(chat.seen) == 2)
    assert chat.seen[1] == "The end."


async def test_a_change_that_hangs_is_not_seen_after_the_answer(chat: Chat) -> None:
    async with chat.gateway():
        await chat.draft()
        chat.server.fail("editMessageText", Hang(seconds=4))
        chat.agent.write(" there")
        await chat.until(lambda: chat.server.calls["editMessageText"])
        chat.agent.end("The end.")
        await chat.until(lambda: chat.seen == ["The end."])
        await chat.pass_time(20)
    assert chat.seen == ["The end."]


@pytest.mark.parametrize(("drafts", "direct", "group"), [("direct", 1, 0), ("always", 1, 1), ("never", 0, 0)])
async def test_where_drafts_are_shown_is_the_operators_choice(chat: Chat, drafts: str, direct: int, group: int) -> None:
    async with chat.gateway(drafts=drafts):
        for place, expected in ((chat.ada, direct), (chat.group, group)):
            before, turns = len(chat.server.sent), len(chat.agent.turns)
            chat.server.say(place, chat.ada, "@belino_bot a story")
            await chat.until(lambda count=turns: len(chat.agent.turns) > count)  # type: ignore[misc]
            chat.agent.write("Once")
            await chat.pass_time(5)
            await chat.until(lambda count=before + expected: len(chat.server.sent) >= count)  # type: ignore[misc]
            assert len(chat.server.sent) - before == expected
            chat.agent.end("The end.")
            await chat.until(lambda count=before: chat.seen[count:] == ["The end."])  # type: ignore[misc]


async def test_a_draft_shows_no_path_of_this_machine(chat: Chat) -> None:
    async with chat.gateway():
        chat.server.say(chat.ada, chat.ada, "a chart, please")
        await chat.until(lambda: chat.agent.turns)
        chat.agent.write(f"Here: {chat.home.outgoing(chat.where)}/chart.png")
        await chat.until(lambda: chat.server.sent)
        chat.agent.end("Here.")
        await chat.until(lambda: chat.seen == ["Here."])
        first = next(request for request in chat.server.requests if "text" in request.fields)
        assert first.fields["text"] == "Here: chart.png …"


async def test_in_a_group_the_draft_is_a_reply_and_so_is_the_answer_it_becomes(chat: Chat) -> None:
    async with chat.gateway(drafts="always"):
        question = chat.server.say(chat.group, chat.ada, "tell us a story")
        await chat.until(lambda: chat.agent.turns)
        chat.agent.write("Once upon a time")
        await chat.until(lambda: chat.server.sent)
        chat.agent.end("Once upon a time there was a bot.")
        await chat.until(lambda: chat.seen == ["Once upon a time there was a bot."])
    (message,) = chat.server.sent
    assert message["reply_to_message"]["message_id"] == question["message_id"]


async def test_whoever_watches_is_told_that_a_draft_became_the_answer(chat: Chat) -> None:
    async with chat.gateway() as gateway, gateway.notices.subscribe() as notices:
        await chat.draft()
        chat.agent.end("Once upon a time there was a bot.")
        await chat.until(lambda: chat.seen == ["Once upon a time there was a bot."])
        told = list[str]()
        async with asyncio.timeout(PATIENCE):
            async for notice in notices:
                if isinstance(notice.payload, StoredMessage) and notice.payload.author.is_agent:
                    told.append(notice.payload.text)
                if told[-1:] == ["Once upon a time there was a bot."]:
                    break
    assert told == ["Once upon a time …", "Once upon a time there was a bot."]


async def test_where_the_platform_has_previews_the_answer_is_its_only_message(chat: Chat) -> None:
    chat.server.unknown_methods.clear()
    async with chat.gateway():
        chat.server.say(chat.ada, chat.ada, "tell me a story")
        await chat.until(lambda: chat.agent.turns)
        for word in ("Once upon a ti", "me there was a harbour", " and in it a b"):
            chat.agent.write(word)
            await chat.pass_time(0.8)
        await chat.until(lambda: chat.server.drafts)
        await chat.until(lambda: chat.server.drafts[-1][1].endswith("and in it a b …"))
        await chat.pass_time(45)  # a preview is kept alive while the agent is silent
        kept = len(chat.server.drafts)
        assert chat.server.sent == []
        chat.agent.end("Once upon a time there was a harbour and in it a bot.")
        await chat.until(lambda: chat.server.sent)
    assert chat.seen == ["Once upon a time there was a harbour and in it a bot."]
    assert chat.server.drafts[0][1] == "Once upon a time there was a harbour and in it a …"
    assert len({number for number, _ in chat.server.drafts}) == 1 and kept >= 4
    assert chat.server.calls["editMessageText"] == 0


async def test_a_stopped_turn_whose_preview_vanishes_leaves_what_was_written(chat: Chat) -> None:
    chat.server.unknown_methods.clear()
    async with chat.gateway() as gateway:
        chat.server.say(chat.ada, chat.ada, "tell me a story")
        await chat.until(lambda: chat.agent.turns)
        chat.agent.write("Once upon a time")
        await chat.until(lambda: chat.server.drafts)
        assert await gateway.abort(chat.where)
        await chat.until(lambda: chat.server.sent)
    assert chat.seen == ["Once upon a time\n\n(stopped)"]


async def test_a_chat_that_takes_no_previews_gets_a_draft_as_a_message_and_is_asked_once(chat: Chat) -> None:
    chat.server.unknown_methods.clear()
    chat.server.fail(
        "sendMessageDraft", CannedAnswer(status=400, description="Bad Request: chat type is not supported")
    )
    async with chat.gateway():
        await chat.draft()
        chat.agent.end("The end.")
        await chat.until(lambda: chat.seen == ["The end."])
        chat.server.say(chat.ada, chat.ada, "another")
        await chat.until(lambda: len(chat.agent.turns) == 2)
        chat.agent.write("And then")
        await chat.until(lambda: len(chat.server.sent) == 2)
        chat.agent.end("Over.")
        await chat.until(lambda: chat.seen == ["The end.", "Over."])
    assert chat.server.calls["sendMessageDraft"] == 1


async def test_the_first_draft_is_not_half_a_word(chat: Chat) -> None:
    story = "Once upon a time there was a harbour in the north where many boats were kept"
    async with chat.gateway():
        chat.server.say(chat.ada, chat.ada, "tell me a story")
        await chat.until(lambda: chat.agent.turns)
        for at in range(0, len(story), 5):
            chat.agent.write(story[at : at + 5])
            await chat.pass_time(0.3)
        await chat.until(lambda: chat.server.sent)
        first = next(request for request in chat.server.requests if request.method == "sendMessage")
        chat.agent.end("The end.")
        await chat.until(lambda: chat.seen == ["The end."])
    shown = first.fields["text"].removesuffix(" …")
    assert len(shown) >= FIRST_CHARS
    assert shown.split() == story.split()[: len(shown.split())]


@pytest.mark.parametrize("has_previews", [True, False])
async def test_an_agent_that_chooses_silence_leaves_nothing_of_its_draft(chat: Chat, has_previews: bool) -> None:
    if has_previews:
        chat.server.unknown_methods.clear()
    async with chat.gateway() as gateway:
        chat.server.say(chat.ada, chat.ada, "thanks")
        await chat.until(lambda: chat.agent.turns)
        chat.agent.write("There is nothing to add.")
        await chat.until(lambda: chat.server.drafts or chat.server.sent)
        chat.agent.lines.put_nowait(Final(text="thanks need no answer", silent=True))
        await chat.until(lambda: gateway.counters.turns["answered"] == 1)
        await chat.until(lambda: has_previews or chat.server.calls["deleteMessage"])
        asked, *drafts = await gateway.store.history(chat.where, limit=10)
        assert asked.outcome is MessageOutcome.SILENT
        assert all(draft.deleted is not None for draft in drafts) and len(drafts) == (0 if has_previews else 1)
        assert all(state == "sent" for state in chat.parcel_states())
        assert (await gateway.audit()).is_balanced
    assert chat.server.calls["editMessageText"] == 0
    assert not [own for own, message in chat.server.messages.items() if message.get("text", "").startswith("There")]


async def test_pages_are_told_that_the_draft_of_a_silent_agent_is_deleted(chat: Chat) -> None:
    async with chat.gateway() as gateway, gateway.notices.subscribe() as notices:
        await chat.draft("There is nothing to add.")
        chat.agent.lines.put_nowait(Final(text="thanks need no answer", silent=True))
        await chat.until(lambda: gateway.counters.turns["answered"] == 1)
        async with asyncio.timeout(PATIENCE):
            async for notice in notices:
                said = notice.payload
                if isinstance(said, StoredMessage) and said.author.is_agent and said.deleted is not None:
                    assert said.text == ""
                    break


async def test_where_the_draft_of_a_silent_agent_cannot_be_deleted_it_says_so_and_explain_why(chat: Chat) -> None:
    async with chat.gateway() as gateway:
        await chat.draft("There is nothing to add.")
        chat.server.fail("deleteMessage", CannedAnswer(status=400, description="Bad Request: message can't be deleted"))
        chat.agent.lines.put_nowait(Final(text="thanks need no answer", silent=True))
        await chat.until(lambda: chat.seen == [NO_ANSWER])
        asked = (await gateway.store.history(chat.where, limit=10))[0]
        story = await gateway.store.story(chat.where, asked.id)
        await chat.until(lambda: chat.parcel_states() == ["sent", "sent"])
        assert (await gateway.audit()).is_balanced
    assert story is not None and asked.outcome is MessageOutcome.SILENT
    assert [step.reason for step in story.steps if step.outcome == "draft not deleted"] == [
        "Telegram will not delete it: Bad Request: message can't be deleted"
    ]


async def test_a_draft_that_waits_to_be_sent_is_not_sent_for_a_silent_agent(chat: Chat) -> None:
    async with chat.gateway() as gateway:
        chat.server.fail("sendMessage", CannedAnswer(status=429, parameters={"retry_after": 600}))
        chat.server.say(chat.ada, chat.ada, "thanks")
        await chat.until(lambda: chat.agent.turns)
        chat.agent.write("There is nothing to add.")
        await chat.until(lambda: chat.server.calls["sendMessage"])
        chat.agent.lines.put_nowait(Final(text="thanks need no answer", silent=True))
        await chat.until(lambda: gateway.counters.turns["answered"] == 1)
        assert chat.parcel_states() == ["dead"]
        await chat.pass_time(700)
        assert (await gateway.audit()).is_balanced
    assert (chat.seen, chat.server.calls["sendMessage"]) == ([], 1)
