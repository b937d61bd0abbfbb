"""Slack over Socket Mode: what is said is taken, acknowledged once it is on disk, and answered."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from adapters.harness import LIMIT, until
from adapters.slack_harness import App, Apps, place
from adapters.slack_samples import NAMES, parsed, sample
from belino.adapters.slack import Config, hosts
from belino.adapters.slack.socket import ATTEMPTS
from belino.domain.errors import (
    AdapterError,
    ConfigError,
    NothingToEdit,
    RateLimited,
    StoreFull,
    Unanswered,
    Unauthorized,
    Undeliverable,
)
from belino.domain.limits import Markup
from belino.domain.message import Arrival, ChatType, ConversationKey, Deletion, Edit, Message, Reaction
from belino.domain.ports import (
    Adapter,
    Checks,
    Connects,
    Drafts,
    ReadsBack,
    ReadsHistory,
    ShowsTyping,
    ShowsUpload,
    Taken,
    TakesHooks,
)
from belino.domain.reply import Parcel, ParcelKind
from belino.net.redact import Secret
from belino.testing import FakeClock, SlackServer, Trial, check_adapter
from belino.testing.faults import CannedAnswer, Hang, Reset


async def test_it_keeps_the_contract_of_adapters(slack: SlackServer, apps: Apps) -> None:
    ada = slack.user("Ada")

    def in_thread(text: str) -> Any:
        said = sample("thread_reply")
        return {**said, "event": {**said["event"], "text": text, "blocks": []}}

    async def deliver(_: Adapter, raw: Any) -> None:
        await until(lambda: slack.socket_mode.connections)
        slack.deliveries.event(raw["event"], "message.im")
        await until(lambda: slack.socket_mode.acks)

    trial = Trial(
        make=lambda: apps().adapter,
        parse=parsed,
        samples=[sample("text_dm"), *(sample(name) for name in NAMES)],
        conversation=place(slack.dm(ada)),
        secrets=[slack.bot_token, slack.app_token, slack.signing_secret],
        deliver=deliver,
        refuse=lambda status, headers: slack.fail("chat.postMessage", CannedAnswer(status=status, headers=headers)),
        revoke=lambda: slack.fail("*", CannedAnswer(status=401), times=50),
        in_thread=in_thread("and then?"),
        to_another=in_thread("<@U0OTHER0001> and then?"),
    )
    checked = await check_adapter(trial)
    assert {
        "a thread can be continued",
        "a reaction is added and removed once",
        "buttons are shown, and removed by an edit",
        "health reports revoked credentials",
        "a parcel is seen once",
        "nothing is acknowledged before it is stored",
        "429 is RateLimited",
    } <= set(checked)


async def test_it_can_do_what_the_platform_allows(app: App) -> None:
    for protocol in (Connects, Drafts, ReadsBack, ReadsHistory, ShowsTyping, ShowsUpload, TakesHooks, Checks):
        assert isinstance(app.adapter, protocol)


async def test_a_direct_message_arrives_with_the_names_of_who_and_whom(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada Lovelace")
    async with app.listening():
        said = slack.say(ada, ada, f"hello <@{slack.bot['id']}> &amp; <https://example.org|you>")
        await until(lambda: app.messages)
    (message,) = app.messages
    assert message.text == "hello @belino & you (https://example.org)"
    assert (message.author.id, message.author.name) == (ada["id"], "Ada")
    assert (message.id, message.chat_type, message.addressed) == (said["ts"], ChatType.DIRECT, True)


async def test_a_mention_in_a_channel_speaks_to_us_and_everything_else_does_not(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    general = slack.channel("general", ada)
    async with app.listening():
        slack.say(general, ada, "lunch?")
        slack.say(general, ada, f"<@{slack.bot['id']}> what is for lunch?")
        await until(lambda: {"lunch?", "@belino what is for lunch?"} <= set(app.texts))
    told = {message.text: message for message in app.messages}
    assert not told["lunch?"].addressed
    assert told["@belino what is for lunch?"].addressed
    assert told["lunch?"].channel_name == "general"


async def test_an_envelope_is_acknowledged_once_it_is_on_disk(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    async with app.listening():
        app.may_take.clear()
        slack.say(ada, ada, "hello")
        await until(lambda: slack.socket_mode.envelopes)
        for _ in range(50):
            await asyncio.sleep(0)
        assert slack.socket_mode.acks == []
        app.may_take.set()
        await until(lambda: slack.socket_mode.acks)
    assert set(slack.socket_mode.acks[0]) == {"envelope_id"}


async def test_what_cannot_be_kept_is_not_acknowledged_and_ends_the_listening(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")

    async def full(arrival: Arrival, *, cursor: str | None = None) -> Taken:
        raise StoreFull("the disk is full")

    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:

        async def listen() -> None:
            with pytest.raises(StoreFull):
                await app.adapter.run(full, None)

        listening = group.create_task(listen())
        await until(lambda: slack.socket_mode.connections)
        slack.say(ada, ada, "hello")
        await listening
    assert slack.socket_mode.acks == []


async def test_a_line_that_slack_wants_replaced_is_replaced_before_it_ends(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    async with app.listening():
        await until(lambda: len(slack.socket_mode.connections) == 1)
        await slack.disconnect("warning")
        await until(lambda: len(slack.socket_mode.connections) == 2)
        for number in range(4):  # over both lines
            slack.say(ada, ada, f"message {number}")
        await until(lambda: len(app.texts) == 4)
    assert sorted(app.texts) == [f"message {number}" for number in range(4)]


@pytest.mark.parametrize("how", ["drop", "refresh"])
async def test_a_line_that_ends_is_opened_again_at_once(slack: SlackServer, app: App, how: str) -> None:
    ada = slack.user("Ada")
    async with app.listening():
        for number in range(1, 4):
            await until(lambda count=number: slack.socket_mode.opened == count and slack.socket_mode.connections)  # type: ignore[misc]
            slack.say(ada, ada, f"message {number}")
            await until(lambda count=number: len(set(app.texts)) == count)  # type: ignore[misc]
            if how == "drop":
                slack.drop_sockets()
            else:
                await slack.disconnect("refresh_requested")
            await until(lambda count=number: slack.socket_mode.opened > count)  # type: ignore[misc]
    assert list(dict.fromkeys(app.texts)) == ["message 1", "message 2", "message 3"]
    assert slack.calls["conversations.history"] <= 3


@pytest.mark.parametrize("how", ["drop", "refresh"])
async def test_what_is_said_while_there_is_no_line_is_not_lost(slack: SlackServer, app: App, how: str) -> None:
    ada = slack.user("Ada")
    async with app.listening():
        slack.say(ada, ada, "one")
        await until(lambda: app.texts == ["one"])
        slack.deliveries.retry_seconds = ()  # a Slack that says things once
        if how == "drop":
            slack.drop_sockets()
        else:
            await slack.disconnect("refresh_requested")
            assert not [line for line in slack.socket_mode.connections if not line.socket.closed]
        slack.say(ada, ada, "two")
        await until(lambda: app.texts == ["one", "two"])


async def test_an_event_that_comes_twice_has_one_id(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    general = slack.channel("general", ada)
    async with app.listening():
        slack.say(general, ada, f"<@{slack.bot['id']}> hi")  # told as a message and as a mention
        await until(lambda: len(app.messages) == 2)
    assert len({message.id for message in app.messages}) == 1
    assert all(message.addressed for message in app.messages)


@pytest.mark.parametrize("error", ["invalid_auth", "account_inactive", "token_revoked"])
async def test_a_token_slack_does_not_take_is_the_operators_business(slack: SlackServer, app: App, error: str) -> None:
    slack.fail("auth.test", CannedAnswer(status=200, body=f'{{"ok": false, "error": "{error}"}}'.encode()))
    with pytest.raises(Unauthorized, match=r"api\.slack\.com/apps"):
        await app.listen()


async def test_socket_mode_that_is_off_is_said(slack: SlackServer, app: App) -> None:
    slack.api.socket_mode_on = False
    with pytest.raises(AdapterError, match=r"apps\.connections\.open"):
        await app.listen()


async def test_a_slack_that_ends_every_line_at_once_is_not_asked_in_a_tight_loop(
    slack: SlackServer, apps: Apps
) -> None:
    clock = FakeClock()
    app = apps(clock=clock)

    async def end_every_line() -> None:
        while True:
            slack.drop_sockets()
            await clock.advance(1)
            await asyncio.sleep(0.002)

    async with asyncio.TaskGroup() as group:
        ending = group.create_task(end_every_line())
        with pytest.raises(AdapterError):
            await app.listen()
        ending.cancel()
    assert slack.calls["apps.connections.open"] <= ATTEMPTS + 1


async def test_an_unreachable_line_is_tried_again_before_the_account_is_down(slack: SlackServer, apps: Apps) -> None:
    clock = FakeClock()
    app = apps(clock=clock)
    slack.fail("apps.connections.open", CannedAnswer(status=502, body=b"<html>"), times=2)
    async with app.listening(waits=False):
        await until(lambda: slack.calls["apps.connections.open"] == 2)
        await until(lambda: clock.sleeping)
        await clock.advance(60)
        await until(lambda: slack.socket_mode.connections)


async def test_text_is_sent_with_its_key_and_found_again_by_it(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    channel = place(slack.dm(ada))
    parcel = Parcel(key="k-1", conversation=channel, text="*hi* &amp; bye", markup=Markup.MRKDWN)
    receipt = await app.adapter.send(parcel)
    (sent,) = slack.sent
    assert (sent["text"], sent["ts"]) == ("*hi* &amp; bye", receipt.message_id)
    assert await app.adapter.find_sent(parcel) is not None
    assert await app.adapter.find_sent(Parcel(key="k-2", conversation=channel, text="*hi* &amp; bye")) is None


async def test_plain_text_stays_what_it_is(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    await app.adapter.send(Parcel(key="k", conversation=place(slack.dm(ada)), text="a < b & *c* <!channel>"))
    assert slack.sent[0]["text"] == "a &lt; b &amp; *c* &lt;!channel&gt;"


async def test_an_answer_goes_into_its_thread(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    general = slack.channel("general", ada)
    root = slack.say(general, ada, "who comes?")
    async with app.listening():
        slack.say(general, ada, "me", thread=root)
        await until(lambda: app.messages)
        (reply,) = app.messages
        assert (reply.conversation.thread, reply.reply_to) == (root["ts"], root["ts"])
        await app.adapter.send(Parcel(key="k", conversation=reply.conversation, text="good"))
    assert slack.sent[0]["thread_ts"] == root["ts"]


async def test_a_question_in_a_channel_can_begin_its_thread(slack: SlackServer, apps: Apps) -> None:
    ada = slack.user("Ada")
    general = slack.channel("general", ada)
    app = apps(reply_in_threads=True)
    async with app.listening():
        asked = slack.say(general, ada, f"<@{slack.bot['id']}> who comes?")
        slack.say(general, ada, "not you")
        await until(lambda: "not you" in app.texts)
    threads = {message.text: message.conversation.thread for message in app.messages}
    assert threads == {"@belino who comes?": asked["ts"], "not you": None}


async def test_an_edit_a_deletion_and_a_reaction_arrive(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    general = slack.channel("general", ada)
    async with app.listening():
        said = slack.say(general, ada, "we meet at 8")
        slack.edit(said, "we meet at 9")
        slack.unfurl(said, {"title": "A page", "from_url": "https://example.org"})
        slack.react(said, ada, "eyes")
        slack.react(said, ada, "eyes", remove=True)
        slack.delete(said)
        await until(lambda: any(isinstance(arrival, Deletion) for arrival in app.arrivals))
        await until(lambda: len(app.arrivals) == 5)
    kinds = [type(arrival) for arrival in app.arrivals]
    assert sorted(kinds, key=str) == sorted([Message, Edit, Reaction, Reaction, Deletion], key=str)
    edit = next(arrival for arrival in app.arrivals if isinstance(arrival, Edit))
    assert (edit.message_id, edit.text) == (said["ts"], "we meet at 9")
    assert {arrival.added for arrival in app.arrivals if isinstance(arrival, Reaction)} == {True, False}


async def test_our_own_message_is_marked_and_our_own_change_is_not_told(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    channel = place(slack.dm(ada))
    async with app.listening():
        receipt = await app.adapter.send(Parcel(key="d", conversation=channel, kind=ParcelKind.DRAFT, text="one …"))
        await app.adapter.edit(receipt.message_id, Parcel(key="e", conversation=channel, text="one two"))
        slack.say(ada, ada, "thanks")
        await until(lambda: "thanks" in app.texts)
    own = app.messages[0]
    assert (own.author.is_agent, own.addressed) == (True, False)
    assert not any(isinstance(arrival, Edit) for arrival in app.arrivals)


async def test_a_draft_becomes_the_answer(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    channel = place(slack.dm(ada))
    draft = await app.adapter.send(Parcel(key="d", conversation=channel, kind=ParcelKind.DRAFT, text="one …"))
    final = Parcel(key="f", conversation=channel, kind=ParcelKind.EDIT, text="one two", edits=draft.message_id)
    assert (await app.adapter.send(final)).message_id == draft.message_id
    assert slack.edited == [(draft.message_id, "one two")]


def written(where: ConversationKey, text: str, **more: Any) -> Parcel:
    return Parcel(conversation=where, text=text, rich=text, markup=Markup.MRKDWN, **more)


@pytest.fixture
async def talk(slack: SlackServer, app: App) -> AsyncIterator[ConversationKey]:
    """A thread of direct messages in which a person has written."""
    ada = slack.user("Ada")
    root = slack.say(ada, ada, "listen")
    async with app.listening():
        slack.say(ada, ada, "tell me", thread=root)
        await until(lambda: "tell me" in app.texts)
        yield replace(place(slack.dm(ada)), thread=root["ts"])


async def test_a_draft_in_a_thread_of_direct_messages_is_streamed_and_becomes_the_answer(
    slack: SlackServer, app: App, talk: ConversationKey
) -> None:
    draft = await app.adapter.send(written(talk, "one …", key="d", kind=ParcelKind.DRAFT))
    await app.adapter.edit(draft.message_id, written(talk, "one **two …", key="d"))
    await app.adapter.edit(draft.message_id, written(talk, "another …", key="d"))
    assert slack.streamed == [(draft.message_id, "one **two")] and slack.calls["chat.postMessage"] == 0
    final = written(talk, "one *two*", key="f", kind=ParcelKind.EDIT, edits=draft.message_id)
    assert (await app.adapter.send(final)).message_id == draft.message_id
    assert slack.edited == [(draft.message_id, "one *two*")] and slack.streaming == []


async def test_a_stream_whose_receipt_was_lost_is_found_and_the_next_draft_is_not_taken_for_it(
    slack: SlackServer, app: App, talk: ConversationKey
) -> None:
    begun = written(talk, "one …", key="d", kind=ParcelKind.DRAFT)
    draft = await app.adapter.send(begun)
    found = await app.adapter.find_sent(begun)
    assert found is not None and found.message_id == draft.message_id
    final = written(talk, "one two", key="f", kind=ParcelKind.EDIT, edits=draft.message_id)
    await app.adapter.send(final)
    assert await app.adapter.find_sent(replace(begun, key="later")) is None
    assert await app.adapter.find_sent(replace(final, edits=None)) is None


async def test_where_slack_streams_nothing_or_ends_a_stream_the_draft_is_edited(
    slack: SlackServer, app: App, talk: ConversationKey
) -> None:
    first = await app.adapter.send(written(talk, "one …", key="d", kind=ParcelKind.DRAFT))
    slack.streaming.clear()
    await app.adapter.edit(first.message_id, written(talk, "one two …", key="d"))
    assert slack.edited == [(first.message_id, "one two …")]
    room = place(slack.channel("general", slack.user("Bo")))
    await app.adapter.send(written(replace(room, thread="1.0"), "one …", key="e", kind=ParcelKind.DRAFT))
    assert slack.calls["chat.startStream"] == 1 and slack.calls["chat.postMessage"] == 1


async def test_a_running_stream_is_ended_before_it_is_deleted(
    slack: SlackServer, app: App, talk: ConversationKey
) -> None:
    draft = await app.adapter.send(written(talk, "one …", key="d", kind=ParcelKind.DRAFT))
    await app.adapter.delete(talk, draft.message_id)
    assert slack.streaming == [] and draft.message_id not in slack.messages[talk.channel]


async def test_an_answer_too_long_for_a_change_takes_the_draft_away_and_is_a_message_of_its_own(
    slack: SlackServer, app: App
) -> None:
    ada = slack.user("Ada")
    channel = place(slack.dm(ada))
    draft = await app.adapter.send(Parcel(key="d", conversation=channel, kind=ParcelKind.DRAFT, text="one …"))
    final = Parcel(key="f", conversation=channel, kind=ParcelKind.EDIT, text="x" * 5000, edits=draft.message_id)
    with pytest.raises(NothingToEdit):
        await app.adapter.edit(draft.message_id, final)
    assert slack.calls["chat.delete"] == 0
    with pytest.raises(NothingToEdit):
        await app.adapter.send(final)
    assert slack.calls["chat.delete"] == 1


async def test_an_answer_whose_draft_was_deleted_is_to_be_said_anew(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    channel = place(slack.dm(ada))
    final = Parcel(key="f", conversation=channel, kind=ParcelKind.EDIT, text="all", edits="1700000000.000100")
    with pytest.raises(NothingToEdit):
        await app.adapter.send(final)


async def test_a_channel_that_had_enough_is_left_alone_and_the_others_are_not(slack: SlackServer, app: App) -> None:
    ada, bob = slack.user("Ada"), slack.user("Bob")
    slack.fail("chat.postMessage", CannedAnswer(status=429, headers={"Retry-After": "30"}))
    for expected in (1, 1):
        with pytest.raises(RateLimited):
            await app.adapter.send(Parcel(key="k", conversation=place(slack.dm(ada)), text="hi"))
        assert slack.calls["chat.postMessage"] == expected
    await app.adapter.send(Parcel(key="l", conversation=place(slack.dm(bob)), text="hi"))


@pytest.mark.parametrize(
    ("error", "says"),
    [("not_in_channel", "/invite"), ("is_archived", "archived"), ("restricted_action", "settings"), ("moon", "moon")],
)
async def test_a_refusal_says_why_and_what_to_do(slack: SlackServer, app: App, error: str, says: str) -> None:
    slack.fail("chat.postMessage", CannedAnswer(status=200, body=f'{{"ok": false, "error": "{error}"}}'.encode()))
    with pytest.raises(Undeliverable, match=says):
        await app.adapter.send(Parcel(key="k", conversation=place({"id": "C0NOWHERE"}), text="hi"))


async def test_a_sign_of_work_is_shown_in_threads_once(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    general = slack.channel("general", ada)
    root = slack.say(general, ada, "who comes?")
    thread = place(general, root["ts"])
    for _ in range(3):
        await app.adapter.show_typing(thread)
    await app.adapter.show_typing(thread, "looking through files")
    with pytest.raises(Undeliverable, match="no status here"):
        await app.adapter.show_typing(place(general))
    assert [words for _, _, words in slack.statuses] == ["is thinking…", "is at work: looking through files"]


async def test_a_command_is_said_to_us_wherever_it_is_typed(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    general = slack.channel("general", ada)
    async with app.listening():
        slack.command(general, ada, "/belino", "hello there")
        slack.command(general, ada, "/belino", "status")
        slack.command(general, ada, "/stop")
        await until(lambda: len(app.messages) == 3)
    assert [message.text for message in app.messages] == ["/belino hello there", "/status", "/stop"]
    assert all(message.addressed for message in app.messages)
    assert slack.socket_mode.acks


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"bot_token": "xoxp-user"}, "bot_token"),
        ({"bot_token": "xoxe.xoxb-1-rotating"}, "rotates"),
        ({"app_token": "xoxb-wrong"}, "app_token"),
        ({"mode": "http", "signing_secret": " "}, "signing_secret"),
        ({"api_url": "http://slack.example.org/api/"}, "encrypted"),
        ({"files_url": "http://files.example.org"}, "files_url must be encrypted"),
        ({"socket_url": "ws://sockets.example.org"}, "socket_url must be encrypted"),
        ({"api_url": "https://user@slack.com/api/"}, "login"),
    ],
)
async def test_settings_that_cannot_be_meant_are_refused(slack: SlackServer, settings: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        App(slack, **settings)


def test_tokens_go_to_slacks_own_hosts_alone() -> None:
    config = Config(bot_token=Secret("B", "xoxb-1"), app_token=Secret("A", "xapp-1"))
    assert hosts(config) == {"slack.com", "files.slack.com", "files-origin.slack.com"}
    own = replace(config, api_url="http://127.0.0.1:8080/api/")
    assert hosts(own) == {"127.0.0.1:8080", "localhost:8080"}
    apart = replace(own, files_url="http://127.0.0.1:8081/", socket_url="ws://127.0.0.1:8082/")
    assert hosts(apart) == {*hosts(own), "127.0.0.1:8081", "127.0.0.1:8082"}
    near = replace(config, api_url="http://10.0.0.7:8080/api/")
    assert hosts(near) == {"10.0.0.7:8080"}


async def test_no_token_is_in_an_error(slack: SlackServer, app: App) -> None:
    for fault in (CannedAnswer(status=500, body=b"?"), Reset()):
        slack.fail("chat.postMessage", fault)
        with pytest.raises(AdapterError) as caught:
            await app.adapter.send(Parcel(key="k", conversation=place({"id": "C0NOWHERE"}), text="hi"))
        assert slack.bot_token not in repr(caught.value)


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"ok": tr', b"[]"])
async def test_a_message_of_which_nobody_knows_whether_it_was_taken_is_looked_for(
    slack: SlackServer, app: App, body: bytes
) -> None:
    slack.fail("chat.postMessage", CannedAnswer(status=200, body=body))
    with pytest.raises(Unanswered):
        await app.adapter.send(Parcel(key="k", conversation=place(slack.dm(slack.user("Ada"))), text="hi"))


async def test_nobody_waits_twice_for_a_name_that_does_not_come(
    slack: SlackServer, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belino.adapters.slack.authors.LEARN_SECONDS", 0.05)
    for method in ("users.list", "users.info"):
        slack.fail(method, Hang(), times=9)
    people = [slack.user("Ada"), slack.user("Bob"), slack.user("Cleo")]
    async with app.listening():
        for number in range(6):
            person = people[number % 3]
            slack.say(person, person, f"message {number}")
        await until(lambda: len(app.texts) == 6)
    assert slack.calls["users.list"] + slack.calls["users.info"] == 1
    assert {message.author.name for message in app.messages} == {person["id"] for person in people}


async def test_the_language_of_a_sender_comes_along_if_slack_tells_it(slack: SlackServer, app: App) -> None:
    ada, bo = slack.user("Ada", locale="de-DE"), slack.user("Bo")
    general = slack.channel("general", ada, bo)
    async with app.listening():
        slack.say(general, ada, "guten Morgen")
        slack.say(general, bo, "good morning")
        await until(lambda: len(app.messages) == 2)
        late = slack.user("Cleo", locale="fr-FR")
        slack.say(general, late, "bonjour")
        await until(lambda: len(app.messages) == 3)
    assert [message.language for message in app.messages] == ["de-DE", "en-US", "fr-FR"]
    assert (slack.calls["users.list"], slack.calls["users.info"]) == (1, 1)


async def test_the_names_in_the_list_of_users_come_along(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada Lovelace")
    general = slack.channel("general", ada)
    async with app.listening():
        slack.say(general, ada, "good morning")
        await until(lambda: len(app.messages) == 1)
    assert app.messages[0].author.name == "Ada"
    assert "Ada Lovelace" in app.messages[0].author.other_names
