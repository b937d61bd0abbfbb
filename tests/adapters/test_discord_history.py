"""What was said on Discord while nobody listened, and no session remembers: asked for where we listened before."""

from collections.abc import Callable

import pytest

from adapters.discord_harness import Bot, place
from adapters.harness import until
from belino.adapters.discord import history as past
from belino.adapters.discord.authors import made_at
from belino.domain.errors import AdapterError
from belino.domain.message import Arrival, Message, ThreadReport, Unsupported
from belino.domain.outcome import MessageOutcome
from belino.domain.ports import Taken
from belino.testing.discord import DiscordServer
from belino.testing.discord.request import slow_down
from belino.testing.discord.shapes import Json
from belino.testing.faults import CannedAnswer

BotAt = Callable[..., Bot]
HISTORY = "GET /channels/{channel}/messages"

pytestmark = pytest.mark.usefixtures("brisk_discord")


async def miss_two(discord: DiscordServer, bot: Bot) -> Json:
    """Two people whom the bot knows say something while it does not listen; the first of them is told."""
    ada, bo = discord.user("ada"), discord.user("bo")
    async with bot.listening():
        discord.say(ada, ada, "one")
        discord.say(bo, bo, "two")
        await until(lambda: len(bot.taken) == 2)
    await discord.forget_sessions()
    discord.say(ada, ada, "three")
    discord.say(bo, bo, "four")
    return ada


async def miss_many(discord: DiscordServer, bot: Bot) -> None:
    """Somebody whom the bot knows says more than two pages hold while it does not listen."""
    ada = discord.user("ada")
    async with bot.listening():
        discord.say(ada, ada, "before")
        await until(lambda: bot.taken)
    await discord.forget_sessions()
    for number in range(230):
        discord.compose(discord.dm(ada), ada, f"message {number}")


async def test_after_a_session_is_lost_known_channels_are_asked_for_what_was_missed(
    discord: DiscordServer, discord_bot: Bot, discord_bot_at: BotAt
) -> None:
    ada = discord.user("ada")
    club = discord.guild("Club", ada)
    room, quiet, strange = (discord.channel(club, name) for name in ("harbour", "quiet", "strange"))
    async with discord_bot.listening():
        for where in (room, quiet, ada):
            discord.say(where, ada, "before")
        root = discord.say(room, ada, "a thread begins here")
        thread = discord.thread(room, ada, "talk", message=root)
        discord.say(thread, ada, "in the thread")
        await until(lambda: discord_bot.texts[-1:] == ["in the thread"])
    await discord.forget_sessions()
    for where, words in ((room, "missed"), (ada, "missed in private"), (thread, "missed in a thread")):
        discord.say(where, ada, words)
    discord.say(strange, ada, "never heard of")
    later = discord_bot_at(discord)
    async with later.listening(cursor=discord_bot.cursor):
        await until(lambda: len(later.texts) >= 3)
        discord.say(room, ada, "live again")
        await until(lambda: later.texts[-1:] == ["live again"])
    assert sorted(later.texts) == ["live again", "missed", "missed in a thread", "missed in private"]
    caught = next(a for a, _ in later.taken if isinstance(a, Message) and a.text == "missed in a thread")
    assert caught.conversation == place(room, thread)
    # The quiet channel is known to have nothing new.
    assert discord.calls[HISTORY] == 3


async def test_a_message_in_history_tells_of_the_thread_under_it_and_a_notice_is_no_reply(
    discord: DiscordServer, discord_bot: Bot
) -> None:
    ada = discord.user("ada")
    room = discord.channel(discord.guild("Club", ada), "harbour")
    root = discord.say(room, ada, "a thread begins here")
    discord.say(room, ada, "nothing under it")
    async with discord_bot.listening():
        thread = discord.thread(room, ada, "talk", message=root)
        replies = [discord.say(thread, ada, f"reply {number}") for number in range(4)]
        await until(lambda: discord_bot.texts[-1:] == ["reply 3"])
        notices = [arrival for arrival, _ in discord_bot.taken if isinstance(arrival, Unsupported)]
        assert [(notice.what, notice.is_notice) for notice in notices] == [("a thread was opened at a message", True)]
        busy, quiet = await discord_bot.adapter.history(place(room))
    assert busy.thread_report == ThreadReport(replies=4, last=made_at(replies[-1]["id"]))
    assert quiet.thread_report is None


async def test_a_bot_killed_while_it_catches_up_asks_again(
    discord: DiscordServer, discord_bot: Bot, discord_bot_at: BotAt
) -> None:
    await miss_two(discord, discord_bot)
    dying = discord_bot_at(discord)

    async def one_only(arrival: Arrival, *, cursor: str | None = None) -> Taken:
        if dying.taken:
            raise RuntimeError("killed")
        dying.taken.append((arrival, cursor))
        return Taken(outcome=MessageOutcome.OBSERVED)

    dying.accept = one_only  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="killed"):
        await dying.listen(discord_bot.cursor)
    later = discord_bot_at(discord)
    async with later.listening(cursor=dying.cursor):
        await until(lambda: later.taken)
    assert sorted(dying.texts + later.texts) == ["four", "three"]


async def test_a_long_absence_is_caught_up_page_by_page_and_429_is_obeyed(
    discord: DiscordServer, discord_bot: Bot, discord_bot_at: BotAt
) -> None:
    await miss_many(discord, discord_bot)
    discord.fail(HISTORY, slow_down(0.05))
    later = discord_bot_at(discord)
    async with later.listening(cursor=discord_bot.cursor):
        await until(lambda: len(later.texts) == 230)
    assert later.texts == [f"message {number}" for number in range(230)]
    assert discord.calls[HISTORY] == 4


async def test_of_more_than_can_be_caught_up_the_latest_is_told_and_the_rest_is_not_silent(
    discord: DiscordServer,
    discord_bot: Bot,
    discord_bot_at: BotAt,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(past, "MOST_PAGES", 2)
    await miss_many(discord, discord_bot)
    later = discord_bot_at(discord)
    async with later.listening(cursor=discord_bot.cursor):
        await until(lambda: len(later.texts) == 200)
    assert later.texts == [f"message {number}" for number in range(30, 230)]
    assert "the oldest are not told" in caplog.text


@pytest.mark.parametrize("broken", [1, 2])
async def test_a_channel_discord_fails_to_tell_of_does_not_keep_it_from_the_others(
    discord: DiscordServer, discord_bot: Bot, discord_bot_at: BotAt, monkeypatch: pytest.MonkeyPatch, broken: int
) -> None:
    monkeypatch.setattr("belino.net.stream.backoff", lambda *args, **named: 0.0)
    ada = await miss_two(discord, discord_bot)
    discord.fail(HISTORY, CannedAnswer(status=500), times=3 * broken)
    later = discord_bot_at(discord)
    if broken == 2:
        with pytest.raises(AdapterError, match="500"):
            await later.listen(discord_bot.cursor)
        return
    async with later.listening(cursor=discord_bot.cursor):
        await until(lambda: later.texts == ["four"])
        discord.say(ada, ada, "five")
        await until(lambda: later.texts == ["four", "five"])


async def test_threads_and_posts_begun_meanwhile_are_caught_up_where_we_listened_before(
    discord: DiscordServer, discord_bot: Bot, discord_bot_at: BotAt
) -> None:
    ada = discord.user("ada")
    club = discord.guild("Club", ada)
    room, quiet, forum = (
        discord.channel(club, "harbour"),
        discord.channel(club, "quiet"),
        discord.channel(club, "f", 15),
    )
    async with discord_bot.listening():
        root = discord.say(room, ada, "before")
        discord.post(forum, ada, "Keys", "an old post")
        discord.thread(room, ada, "silent")
        await until(lambda: discord_bot.texts == ["before", "an old post"])
    await discord.forget_sessions()
    discord.say(discord.thread(room, ada, "talk", message=root), ada, "in a new thread")
    discord.post(forum, ada, "Locks", "a new post")
    discord.say(discord.thread(quiet, ada, "aside"), ada, "where nobody listened")
    later = discord_bot_at(discord)
    async with later.listening(cursor=discord_bot.cursor):
        await until(lambda: len(later.texts) == 2)
        discord.say(room, ada, "live again")
        await until(lambda: later.texts[-1:] == ["live again"])
    assert sorted(later.texts) == ["a new post", "in a new thread", "live again"]


async def test_a_thread_that_was_archived_meanwhile_is_asked_for_what_was_missed(
    discord: DiscordServer, discord_bot: Bot, discord_bot_at: BotAt
) -> None:
    ada = discord.user("ada")
    room = discord.channel(discord.guild("Club", ada), "harbour")
    thread = discord.thread(room, ada, "talk")
    async with discord_bot.listening():
        discord.say(thread, ada, "before")
        await until(lambda: discord_bot.texts == ["before"])
    await discord.forget_sessions()
    discord.say(thread, ada, "missed")
    discord.channels[thread["id"]]["thread_metadata"]["archived"] = True
    later = discord_bot_at(discord)
    async with later.listening(cursor=discord_bot.cursor):
        await until(lambda: later.taken)
    assert later.texts == ["missed"] and later.taken[0][0].conversation == place(room, thread)


async def test_what_was_edited_says_when(discord: DiscordServer, discord_bot: Bot) -> None:
    ada = discord.user("ada")
    room = discord.channel(discord.guild("Club", ada), "harbour")
    async with discord_bot.listening():
        discord.say(room, ada, "as it was said")
        discord.edit(discord.say(room, ada, "a typo"), "no typo")
        plain, edited = await discord_bot.adapter.history(place(room))
    assert plain.edited is None
    assert edited.text == "no typo" and edited.edited is not None and edited.edited >= edited.sent
