"""The Slack we test against, met by slack-sdk itself: who may call what, messages, their history, their changes."""

import asyncio
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from belino.testing import FakeClock, make_jpeg
from belino.testing.faults import CannedAnswer, Hang, Reset
from belino.testing.slack import SlackServer
from belino.testing.slack.request import SlackPace
from testing.slack_app import LIMIT, Told, clock_of, listening, refused, web_client


async def error(call: Any) -> str:
    return str((await refused(call))["error"])


async def test_a_message_is_heard_over_the_socket_and_answered_in_its_thread(
    server: SlackServer, app: AsyncWebClient
) -> None:
    ana = server.user("Ana Lima")
    general = server.channel("general", ana)
    async with listening(server) as listener:
        said = server.say(general, ana, f"<@{server.bot['id']}> hello", files=[make_jpeg(64, 48)])
        heard = await listener.wait(2)
        assert [event["type"] for event in heard] == ["message", "app_mention"]
        assert heard[0]["files"][0]["url_private"].startswith(server.url)
        answer = await app.chat_postMessage(channel=heard[0]["channel"], text="hi", thread_ts=heard[0]["ts"])
        await listener.wait(3)
    thread = await app.conversations_replies(channel=general["id"], ts=said["ts"])
    assert [message["text"] for message in thread["messages"]] == [said["text"], "hi"]
    assert answer["message"]["bot_id"] == (await app.auth_test())["bot_id"]


async def test_whoever_calls_is_told_who_they_are_and_what_they_may(server: SlackServer, app: AsyncWebClient) -> None:
    server.scopes = {"chat:write", "files:read"}
    answer = await app.auth_test()
    assert answer["user_id"] == server.bot["id"]
    assert answer.headers["X-OAuth-Scopes"] == "chat:write,files:read"
    assert parsedate_to_datetime(answer.headers["Date"]) == server.clock.now()


async def test_a_call_without_the_right_token_is_refused_by_name(server: SlackServer) -> None:
    assert await error(web_client(server, "").auth_test()) == "not_authed"
    assert await error(web_client(server, "xoxb-wrong").auth_test()) == "invalid_auth"
    app_level = web_client(server, server.app_token)
    assert await error(app_level.chat_postMessage(channel="C1", text="hi")) == "not_allowed_token_type"
    assert await error(web_client(server).apps_connections_open(app_token=server.bot_token)) == "not_allowed_token_type"
    server.api.tokens[server.bot_token] = "token_revoked"
    assert await error(web_client(server).auth_test()) == "token_revoked"


async def test_a_scope_that_is_missing_is_named_with_those_that_are_there(
    server: SlackServer, app: AsyncWebClient
) -> None:
    general = server.channel("general")
    server.scopes = {"chat:write"}
    told = await refused(app.conversations_history(channel=general["id"]))
    assert (told["error"], told["needed"], told["provided"]) == ("missing_scope", "channels:history", "chat:write")
    assert (await refused(app.users_info(user=server.bot["id"])))["needed"] == "users:read"


async def test_people_are_told_page_by_page(server: SlackServer, app: AsyncWebClient) -> None:
    people = [server.user(f"Person {number}") for number in range(4)]
    general = server.channel("general", *people)
    pages = [page["members"] async for page in await app.users_list(limit=2)]
    assert [len(page) for page in pages] == [2, 2, 1]
    members = [page["members"] async for page in await app.conversations_members(channel=general["id"], limit=3)]
    assert [len(page) for page in members] == [3, 2]


async def test_a_bot_posts_only_where_it_is(server: SlackServer, app: AsyncWebClient) -> None:
    public = server.channel("public", member=False)
    hidden = server.channel("hidden", private=True, member=False)
    old = server.channel("old")
    server.archive(old)
    assert await error(app.chat_postMessage(channel=public["id"], text="x")) == "not_in_channel"
    assert await error(app.chat_postMessage(channel=hidden["id"], text="x")) == "channel_not_found"
    assert await error(app.chat_postMessage(channel="C0NOWHERE00", text="x")) == "channel_not_found"
    assert await error(app.chat_postMessage(channel=old["id"], text="x")) == "is_archived"
    assert await error(app.conversations_history(channel=public["id"])) == "not_in_channel"
    server.invite(public)
    assert (await app.chat_postMessage(channel="#public", text="x"))["channel"] == public["id"]


async def test_what_a_message_may_hold_has_limits(server: SlackServer, app: AsyncWebClient) -> None:
    where = server.dm(server.user("Ana Lima"))["id"]
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}
    assert await error(app.api_call("chat.postMessage", data={"channel": where})) == "no_text"
    assert await error(app.chat_postMessage(channel=where, text="x" * 40_001)) == "msg_too_long"
    assert await error(app.chat_postMessage(channel=where, text="x", blocks=[section])) == "invalid_blocks"
    wrong = {"event_type": "belino", "event_payload": "key"}
    assert await error(app.chat_postMessage(channel=where, text="x", metadata=wrong)) == "invalid_metadata_format"
    posted = await app.chat_postMessage(channel=where, text="x" * 40_000)
    assert await error(app.chat_update(channel=where, ts=posted["ts"], text="y" * 4_001)) == "msg_too_long"


async def test_metadata_is_told_to_those_who_ask_for_it(server: SlackServer, app: AsyncWebClient) -> None:
    where = server.dm(server.user("Ana Lima"))["id"]
    key = {"event_type": "belino_parcel", "event_payload": {"key": "p1"}}
    await app.chat_postMessage(channel=where, text="see https://example.org", metadata=key)
    (plain,) = (await app.conversations_history(channel=where))["messages"]
    (whole,) = (await app.conversations_history(channel=where, include_all_metadata=True))["messages"]
    assert "metadata" not in plain
    assert whole["metadata"] == key
    assert plain["text"] == "see <https://example.org>"


async def test_history_comes_newest_first_and_a_cursor_stands_still_while_people_talk(
    server: SlackServer, app: AsyncWebClient
) -> None:
    ana = server.user("Ana Lima")
    general = server.channel("general", ana)
    said = [server.say(general, ana, str(number)) for number in range(5)]
    server.say(general, ana, "aside", thread=said[0])
    server.say(general, ana, "aloud", thread=said[0], broadcast=True)
    first = await app.conversations_history(channel=general["id"], limit=3)
    server.say(general, ana, "later")
    second = await app.conversations_history(
        channel=general["id"], limit=3, cursor=first["response_metadata"]["next_cursor"]
    )
    assert [message["text"] for message in first["messages"]] == ["aloud", "4", "3"]
    assert [message["text"] for message in second["messages"]] == ["2", "1", "0"]
    assert second["messages"][-1]["reply_count"] == 2
    assert not second["has_more"]
    between = {"oldest": said[1]["ts"], "latest": said[3]["ts"]}
    exclusive = await app.conversations_history(channel=general["id"], **between)
    inclusive = await app.conversations_history(channel=general["id"], inclusive=True, **between)
    assert [message["text"] for message in exclusive["messages"]] == ["2"]
    assert [message["text"] for message in inclusive["messages"]] == ["3", "2", "1"]


async def test_every_page_of_a_long_thread_begins_with_the_message_it_hangs_on(
    server: SlackServer, app: AsyncWebClient
) -> None:
    ana = server.user("Ana Lima")
    general = server.channel("general", ana)
    first = server.say(general, ana, "first")
    for number in range(600):
        server.say(general, ana, str(number), thread=first)
    texts: list[str] = []
    cursor = ""
    while True:
        page = await app.conversations_replies(channel=general["id"], ts=first["ts"], limit=200, cursor=cursor)
        assert page["messages"][0]["text"] == "first"
        texts += [message["text"] for message in page["messages"][1:]]
        if not page["has_more"]:
            break
        cursor = page["response_metadata"]["next_cursor"]
    assert texts == [str(number) for number in range(600)]
    assert await error(app.conversations_replies(channel=general["id"], ts="1.000000")) == "thread_not_found"


async def test_an_app_outside_the_marketplace_reads_fifteen_messages_a_minute() -> None:
    async with SlackServer(clock=FakeClock(), pace=SlackPace(unlisted=True)) as server:
        app, ana = web_client(server), server.user("Ana Lima")
        general = server.channel("general", ana)
        for number in range(20):
            server.say(general, ana, str(number))
        page = await app.conversations_history(channel=general["id"], limit=200)
        assert len(page["messages"]) == 15
        clock_of(server).shift(10)
        told = await refused(app.conversations_history(channel=general["id"]))
        assert (told["status"], told["error"], told["headers"]["retry-after"]) == (429, "ratelimited", "50")
        clock_of(server).shift(50)
        assert (await app.conversations_history(channel=general["id"]))["ok"]


async def test_a_channel_takes_a_short_burst_and_then_one_message_a_second(
    server: SlackServer, app: AsyncWebClient
) -> None:
    one, other = server.dm(server.user("Ana Lima"))["id"], server.dm(server.user("Bo Berg"))["id"]
    for number in range(5):
        await app.chat_postMessage(channel=one, text=str(number))
    assert (await refused(app.chat_postMessage(channel=one, text="5")))["status"] == 429
    await app.chat_postMessage(channel=other, text="elsewhere")
    clock_of(server).shift(5)
    await app.chat_postMessage(channel=one, text="5")
    assert len(server.sent) == 7


async def test_a_tier_is_counted_for_each_method(server: SlackServer, app: AsyncWebClient) -> None:
    for _ in range(20):
        await app.conversations_list()
    assert (await refused(app.conversations_list()))["headers"]["retry-after"] == "60"
    assert (await app.auth_test())["ok"]


async def test_only_the_authors_words_are_changed_or_taken_back(server: SlackServer, app: AsyncWebClient) -> None:
    ana = server.user("Ana Lima")
    where = server.dm(ana)["id"]
    theirs = server.say(ana, ana, "mine")
    posted = await app.chat_postMessage(channel=where, text="draft")
    assert await error(app.chat_update(channel=where, ts=theirs["ts"], text="x")) == "cant_update_message"
    assert await error(app.chat_delete(channel=where, ts=theirs["ts"])) == "cant_delete_message"
    await app.chat_update(channel=where, ts=posted["ts"], text="whole")
    assert server.edited == [(posted["ts"], "whole")]
    await app.chat_delete(channel=where, ts=posted["ts"])
    assert await error(app.chat_update(channel=where, ts=posted["ts"], text="x")) == "message_not_found"


async def test_blocks_an_app_wrote_stay_until_it_writes_others(server: SlackServer, app: AsyncWebClient) -> None:
    where = server.dm(server.user("Ana Lima"))["id"]
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "one"}}
    plain = await app.chat_postMessage(channel=where, text="one")
    built = await app.chat_postMessage(channel=where, text="one", blocks=[section])
    changed = await app.chat_update(channel=where, ts=plain["ts"], text="two")
    assert changed["message"]["blocks"][0]["elements"][0]["elements"] == [{"type": "text", "text": "two"}]
    kept = await app.chat_update(channel=where, ts=built["ts"], text="two")
    assert kept["message"]["blocks"] == [section]
    gone = await app.chat_update(channel=where, ts=built["ts"], text="two", blocks=[])
    assert gone["message"]["blocks"] == changed["message"]["blocks"]
    last = await app.chat_update(channel=where, ts=built["ts"], text="three")
    assert last["message"]["blocks"] != gone["message"]["blocks"]


async def test_people_conversations_and_reactions_can_be_asked_for(server: SlackServer, app: AsyncWebClient) -> None:
    ana = server.user("Ana Lima")
    general, other = server.channel("general", ana), server.channel("other", member=False)
    said = server.say(general, ana, "hello")
    assert (await app.users_info(user=ana["id"]))["user"]["real_name"] == "Ana Lima"
    assert await error(app.users_info(user="U0NOBODY000")) == "user_not_found"
    opened = await app.conversations_open(users=[ana["id"]])
    assert opened["channel"]["id"] == server.dm(ana)["id"]
    assert [c["id"] for c in (await app.conversations_list())["channels"]] == [general["id"], other["id"]]
    assert [c["id"] for c in (await app.users_conversations())["channels"]] == [general["id"]]
    assert (await app.conversations_info(channel=other["id"]))["channel"]["is_member"] is False
    item = {"channel": general["id"], "timestamp": said["ts"]}
    await app.reactions_add(name="eyes", **item)
    assert await error(app.reactions_add(name="eyes", **item)) == "already_reacted"
    shown = await app.reactions_get(**item)
    assert shown["message"]["reactions"] == [{"name": "eyes", "users": [server.bot["id"]], "count": 1}]
    await app.reactions_remove(name="eyes", **item)
    assert await error(app.reactions_remove(name="eyes", **item)) == "no_reaction"
    link = await app.chat_getPermalink(channel=general["id"], message_ts=said["ts"])
    assert link["permalink"].endswith(f"/archives/{general['id']}/p{said['ts'].replace('.', '')}")


async def test_json_is_read_by_methods_that_write_and_by_no_other(server: SlackServer) -> None:
    where = server.dm(server.user("Ana Lima"))["id"]

    async def post(method: str, **fields: Any) -> Told:
        headers = {"Authorization": f"Bearer {server.bot_token}"}
        async with (
            asyncio.timeout(LIMIT),
            aiohttp.ClientSession() as session,
            session.post(server.api_url + method, json=fields, headers=headers) as answer,
        ):
            told: Told = await answer.json()
            return told

    posted = await post("chat.postMessage", channel=where, text="hi")
    assert (posted["ok"], posted["warning"]) == (True, "missing_charset")
    unread = await post("conversations.history", channel=where)
    assert unread["error"] == "invalid_arguments"
    assert unread["response_metadata"]["messages"] == ["[ERROR] missing required field: channel"]
    assert (await post("chat.postLetter"))["error"] == "unknown_method"


async def test_a_bad_day_is_scripted_for_the_next_calls(server: SlackServer, app: AsyncWebClient) -> None:
    where = server.dm(server.user("Ana Lima"))["id"]
    server.fail("chat.postMessage", CannedAnswer(status=429, description="ratelimited", headers={"Retry-After": "7"}))
    told = await refused(app.chat_postMessage(channel=where, text="x"))
    assert (told["status"], told["headers"]["retry-after"]) == (429, "7")
    server.fail("chat.postMessage", Reset(done=True))
    with pytest.raises(aiohttp.ClientError):
        await app.chat_postMessage(channel=where, text="arrived all the same")
    assert [message["text"] for message in server.sent] == ["arrived all the same"]
    server.fail("*", Hang(seconds=5))
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(app.auth_test())
        async with asyncio.timeout(LIMIT):
            while not clock_of(server).sleeping:
                await asyncio.sleep(0)
        await clock_of(server).advance(5)
    assert waiting.result()["ok"]


async def test_a_locale_is_told_only_if_it_is_asked_for(server: SlackServer, app: AsyncWebClient) -> None:
    ana = server.user("Ana Lima", locale="pt-BR")
    assert "locale" not in (await app.users_info(user=ana["id"]))["user"]
    assert (await app.users_info(user=ana["id"], include_locale=True))["user"]["locale"] == "pt-BR"
    members = (await app.users_list(include_locale=True))["members"]
    assert [member["locale"] for member in members if member["id"] == ana["id"]] == ["pt-BR"]
