"""LINE: what is said is taken, and answered by a reply while that is free, else by a push that is shown once."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from adapters.harness import LIMIT
from adapters.line_harness import Account, Accounts, place
from adapters.line_samples import NAMES, parsed, sample
from belino.adapters.line import Config, hosts
from belino.adapters.line.send import QUOTA_USED_UP, retry_key
from belino.domain.errors import (
    AdapterError,
    ConfigError,
    MediaRefused,
    RateLimited,
    TogetherRefused,
    Unanswered,
    Unauthorized,
    Undeliverable,
)
from belino.domain.limits import SendAs
from belino.domain.message import ConversationKey
from belino.domain.ports import (
    Adapter,
    ChecksChannels,
    Connects,
    Deletes,
    Edits,
    OpensDirects,
    Reacts,
    ReadsHistory,
    Reparses,
    ScreensHooks,
    SendsUnkeyed,
    ShowsTyping,
    TakesHooks,
)
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind
from belino.net.redact import Secret
from belino.testing import FakeClock, LineServer, Trial, check_adapter
from belino.testing.faults import CannedAnswer, Hang, Reset

KEY = "p-1-0-abc"


@pytest.fixture
def ada(line: LineServer) -> Any:
    return line.user("Ada")


def parcel(where: Any, text: str = "hello", /, **more: Any) -> Parcel:
    return Parcel(key=more.pop("key", KEY), conversation=place(where), text=text, **more)


def file(form: SendAs, name: str = "a.png", **more: Any) -> OutgoingFile:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"x"

    facts: dict[str, Any] = {"mime": "image/png", "size": 2_500_000, "sha256": name, "chunks": chunks, **more}
    return OutgoingFile(name=name, send_as=form, **facts)


async def heard(account: Account, who: Any, text: str = "hi", /, **more: Any) -> str:
    """Somebody says something to the listening account; the message's id."""
    said = account.server.say(more.pop("place", who), who, text, **more)
    assert (await account.hear()).status == 200
    return str(said["id"])


async def test_it_keeps_the_contract_of_adapters(line: LineServer, accounts: Accounts, ada: Any) -> None:
    group = line.group("Trip", ada)

    async def deliver(adapter: Adapter, raw: Any) -> None:
        assert isinstance(adapter, TakesHooks)
        account = accounts()
        now = round(account.context.clock.now().timestamp() * 1000)
        while (answer := await adapter.take_hook(account.hook([{**raw, "timestamp": now}]))).status == 503:
            await asyncio.sleep(0.002)
        assert answer.status == 200

    def in_reply(**more: Any) -> Any:
        return {**sample("text_group"), "message": {**sample("text_group")["message"], "quotedMessageId": "1", **more}}

    another = {"mentionees": [{"index": 0, "length": 3, "type": "user", "userId": ada["userId"]}]}
    trial = Trial(
        make=lambda: accounts().adapter,
        parse=parsed,
        samples=[sample("text"), *(sample(name) for name in NAMES)],
        conversation=place(ada),
        spare=[place(group), place(line.user("Bo"))],
        secrets=[line.token, line.channel_secret],
        deliver=deliver,
        refuse=lambda status, headers: line.fail("push", CannedAnswer(status=status, headers=headers)),
        revoke=lambda: line.fail("*", CannedAnswer(status=401), times=50),
        in_thread=in_reply(),
        to_another=in_reply(mention=another),
    )
    checked = await check_adapter(trial)
    assert {
        "a parcel is seen once",
        "a thread can be continued",
        "nothing is acknowledged before it is stored",
        "health reports revoked credentials",
        "429 is RateLimited",
        "401 is Unauthorized",
    } <= set(checked)


def test_it_can_do_what_line_allows_and_claims_nothing_else(account: Account) -> None:
    for able in (Connects, TakesHooks, ScreensHooks, Reparses, ShowsTyping, ChecksChannels, OpensDirects, SendsUnkeyed):
        assert isinstance(account.adapter, able)
    for unable in (Edits, Deletes, Reacts, ReadsHistory):
        assert not isinstance(account.adapter, unable)


async def test_a_message_has_the_names_of_its_author_and_group_which_are_asked_for_once(
    line: LineServer, account: Account, ada: Any
) -> None:
    group = line.group("Trip", ada)
    async with account.listening():
        for text in ("@belino lunch?", "@Ada you are late"):
            await heard(account, ada, text, place=group)
    first, second = account.messages
    assert (first.author.name, first.channel_name, first.addressed) == ("Ada", "Trip", True)
    assert (second.addressed, second.mentions_another) == (False, True)
    assert (line.calls["member"], line.calls["summary"]) == (1, 1)


async def test_a_name_that_cannot_be_had_is_the_id_and_is_not_asked_for_with_every_message(
    line: LineServer, account: Account, ada: Any
) -> None:
    line.fail("profile", CannedAnswer(status=500), times=9)
    async with account.listening():
        for _ in range(3):
            await heard(account, ada)
    assert {message.author.name for message in account.messages} == {ada["userId"]}
    assert line.calls["profile"] == 1


async def test_an_answer_within_a_minute_is_a_reply_and_costs_nothing(
    line: LineServer, account: Account, ada: Any
) -> None:
    async with account.keeping():
        await heard(account, ada)
        receipt = await account.adapter.send(parcel(ada))
    assert (line.calls["reply"], line.calls["push"], line.api.used) == (1, 0, 0)
    assert receipt.message_id == line.sent[0]["id"]
    assert json.loads(account.cursors[0]) == {"replied": [KEY]}, "it was on disk before the call"


@pytest.mark.parametrize("seconds", [49, 51])
async def test_a_reply_token_is_used_while_it_is_valid_and_a_push_is_made_later(
    accounts: Accounts, ada: Any, seconds: float
) -> None:
    clock = FakeClock()
    account = accounts(clock=clock)
    async with account.keeping():
        answer = await account.adapter.take_hook(account.hook([event_of(account, ada)]))
        assert answer.status == 200
        await clock.advance(seconds)
        await account.adapter.send(parcel(ada))
    assert (account.server.calls["reply"], account.server.calls["push"]) == ((1, 0) if seconds < 50 else (0, 1))


def event_of(account: Account, who: Any, **more: Any) -> Any:
    """An event, as of the account's clock, whose token the server knows."""
    account.server.say(who, who, "hi")
    event = account.server._queue.get_nowait()
    account.server.tokens[event["replyToken"]].until = account.server.clock.monotonic() + 60
    return {**event, "timestamp": round(account.context.clock.now().timestamp() * 1000), **more}


async def test_each_token_is_used_once_and_that_of_the_message_that_is_answered_first(
    line: LineServer, account: Account, ada: Any
) -> None:
    group = line.group("Trip", ada)
    async with account.keeping():
        ids = [await heard(account, ada, f"@belino {n}", place=group) for n in range(2)]
        for number, own in enumerate(reversed(ids)):
            await account.adapter.send(parcel(group, key=f"k{number}", reply_to=own))
        await account.adapter.send(parcel(group, key="k2"))
    replies = [call for call in line.requests if call.name == "reply"]
    assert len(replies) == 2 and line.calls["push"] == 1
    tokens = [call.fields["replyToken"] for call in replies]
    assert tokens == [line.tokens and token for token in reversed(list(line.tokens))]


async def test_a_token_that_is_no_longer_valid_costs_a_push_and_no_doubt(
    line: LineServer, account: Account, ada: Any
) -> None:
    async with account.keeping():
        await heard(account, ada)
        for token in line.tokens.values():
            token.used = True
        await account.adapter.send(parcel(ada))
        assert not account.adapter.was_unkeyed(parcel(ada))
    assert (line.calls["reply"], line.calls["push"], len(line.sent)) == (1, 1, 1)


async def test_a_token_of_an_event_that_is_delivered_again_is_not_used(account: Account, ada: Any) -> None:
    async with account.keeping():
        again = event_of(account, ada, deliveryContext={"isRedelivery": True})
        assert (await account.adapter.take_hook(account.hook([again]))).status == 200
        await account.adapter.send(parcel(ada))
    assert account.server.calls["reply"] == 0


async def test_a_reply_whose_answer_was_lost_is_unkeyed_also_after_a_restart_and_a_push_is_not(
    line: LineServer, accounts: Accounts, ada: Any
) -> None:
    account, pushed = accounts(), replace(parcel(ada), key="pushed")
    async with account.keeping():
        line.fail("push", Reset(done=True))
        with pytest.raises(Unanswered):
            await account.adapter.send(pushed)
        await heard(account, ada)
        line.fail("reply", Reset(done=True))
        with pytest.raises(Unanswered):
            await account.adapter.send(parcel(ada))
        assert [account.adapter.was_unkeyed(each) for each in (parcel(ada), pushed)] == [True, False]
    later = accounts()
    async with later.keeping(account.cursors[-1]):
        assert [later.adapter.was_unkeyed(each) for each in (parcel(ada), pushed)] == [True, False]
        receipt = await later.adapter.send(pushed)
    assert receipt.message_id == line.sent[0]["id"], "the same push again is the message that was shown"
    assert len(line.sent) == 2


async def test_a_push_that_may_have_arrived_is_never_repeated_as_a_reply(
    line: LineServer, account: Account, ada: Any
) -> None:
    async with account.keeping():
        line.fail("push", Reset(done=True))
        with pytest.raises(Unanswered):
            await account.adapter.send(parcel(ada))
        await heard(account, ada)
        await account.adapter.send(parcel(ada))
        old = replace(parcel(ada, key="older"), created=account.context.clock.now() - timedelta(minutes=5))
        await account.adapter.send(old)
    assert line.calls["reply"] == 0
    assert len(line.sent) == 2


async def test_where_nothing_can_be_noted_on_disk_every_answer_is_a_push(
    line: LineServer, account: Account, ada: Any
) -> None:
    async with account.listening():
        await heard(account, ada)
        await account.adapter.send(parcel(ada))
    assert (line.calls["reply"], line.calls["push"]) == (0, 1)


@pytest.mark.parametrize("call", ["reply", "push"])
async def test_a_wait_is_kept_and_the_reply_stays_free(line: LineServer, account: Account, ada: Any, call: str) -> None:
    async with account.keeping():
        if call == "reply":
            await heard(account, ada)
        line.fail(call, CannedAnswer(status=429, headers={"Retry-After": "0"}))
        with pytest.raises(RateLimited):
            await account.adapter.send(parcel(ada))
        assert not account.adapter.was_unkeyed(parcel(ada))
        await account.adapter.send(parcel(ada))
    assert (line.calls[call], len(line.sent)) == (2, 1)


async def test_the_retry_key_is_a_uuid_of_the_parcel_s_key_and_line_s_409_is_the_receipt(
    line: LineServer, account: Account, ada: Any
) -> None:
    first = await account.adapter.send(parcel(ada))
    again = await account.adapter.send(parcel(ada))
    assert again.message_id == first.message_id and len(line.sent) == 1
    assert uuid.UUID(retry_key(KEY)) == uuid.UUID(line.requests[-1].headers["x-line-retry-key"])
    assert retry_key(KEY) != retry_key(f"{KEY}x")


async def test_a_used_up_month_is_told_as_that(line: LineServer, account: Account, ada: Any) -> None:
    line.api.quota = 0
    with pytest.raises(Undeliverable) as refused:
        await account.adapter.send(parcel(ada))
    assert str(refused.value) == QUOTA_USED_UP
    assert not isinstance(refused.value, RateLimited)
    async with account.keeping():
        await heard(account, ada)
        await account.adapter.send(parcel(ada, key="free"))
    assert len(line.sent) == 1


async def test_files_and_text_are_messages_of_one_call(line: LineServer, account: Account, ada: Any) -> None:
    files = (
        file(SendAs.PHOTO),
        file(SendAs.VIDEO, "b.mp4", mime="video/mp4"),
        file(SendAs.VOICE, "c.m4a", mime="audio/mp4", seconds=2.5),
        file(SendAs.DOCUMENT, "d.pdf", mime="application/pdf"),
    )
    receipt = await account.adapter.send(parcel(ada, "all of it", files=files, kind=ParcelKind.FILES))
    assert line.calls["push"] == 1 and line.api.used == 1
    picture, video, sound, document, text = line.sent
    assert picture["originalContentUrl"].endswith("/a.png") and picture["previewImageUrl"].endswith("/a.png/preview")
    assert (video["type"], video["previewImageUrl"].endswith("/b.mp4/preview")) == ("video", True)
    assert (sound["type"], sound["duration"]) == ("audio", 2500)
    assert document["text"] == "d.pdf (2.4MB)\nhttps://belino.test/published/d.pdf"
    assert text["text"] == "all of it"
    assert (receipt.message_id, *receipt.also) == tuple(message["id"] for message in line.sent)


async def test_a_sticker_is_sent_by_its_name_and_one_that_line_refuses_as_a_link(
    line: LineServer, account: Account, ada: Any
) -> None:
    await account.adapter.send(parcel(ada, "", files=(file(SendAs.STICKER, "sticker-446-1988.png"),)))
    await account.adapter.send(parcel(ada, "", key="k2", files=(file(SendAs.STICKER, "sticker-1-999.png"),)))
    sticker, link = line.sent
    assert (sticker["type"], sticker["packageId"], sticker["stickerId"]) == ("sticker", "446", "1988")
    assert link["type"] == "text" and "sticker-1-999.png" in link["text"]


async def test_a_picture_without_a_preview_and_a_sound_without_a_length_are_links(
    line: LineServer, account: Account, ada: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_preview(_: OutgoingFile) -> str:
        raise MediaRefused("it cannot be decoded")

    monkeypatch.setattr(account.context, "publish_preview", no_preview)
    files = (file(SendAs.PHOTO), file(SendAs.AUDIO, "b.mp3"))
    await account.adapter.send(parcel(ada, "", files=files))
    assert [message["type"] for message in line.sent] == ["text", "text"]


async def test_files_are_refused_where_they_cannot_be_published(
    line: LineServer, account: Account, ada: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nowhere(_: OutgoingFile) -> str:
        raise ConfigError("files can be fetched from belino only over HTTPS; set server.public_url")

    monkeypatch.setattr(account.context, "publish", nowhere)
    with pytest.raises(Undeliverable, match=r"server\.public_url"):
        await account.adapter.send(parcel(ada, "", files=(file(SendAs.DOCUMENT),)))
    assert line.sent == []


async def test_one_of_several_files_that_line_refuses_is_named(line: LineServer, account: Account, ada: Any) -> None:
    files = (file(SendAs.PHOTO), file(SendAs.STICKER, "sticker-1-999.png"))
    with pytest.raises(TogetherRefused) as refused:
        await account.adapter.send(parcel(ada, "", files=files))
    assert refused.value.culprit == 1
    assert line.sent == []


async def test_an_answer_in_a_group_quotes_what_it_answers(line: LineServer, account: Account, ada: Any) -> None:
    group = line.group("Trip", ada)
    async with account.keeping():
        own = await heard(account, ada, "@belino when?", place=group)
        await account.adapter.send(parcel(group, reply_to=own))
        await account.adapter.send(parcel(group, key="k2", reply_to="unknown"))
    assert line.quotes[line.sent[0]["quoteToken"]] == place(group).channel
    assert "quoteToken" not in line.sent[1]


async def test_a_quote_of_what_the_account_said_addresses_it(line: LineServer, account: Account, ada: Any) -> None:
    group = line.group("Trip", ada)
    async with account.listening():
        await account.adapter.send(parcel(group))
        await heard(account, ada, "and then?", place=group, quote=line.sent[0])
    (said,) = account.messages
    assert said.addressed and said.reply_to == line.sent[0]["id"]


async def test_an_edit_is_refused_with_a_sentence(account: Account, ada: Any) -> None:
    with pytest.raises(Undeliverable, match="does not let an account change a message"):
        await account.adapter.send(parcel(ada, kind=ParcelKind.EDIT, edits="1"))


@pytest.mark.parametrize(
    ("where", "told"),
    [("Unobody", "Failed to send messages"), ("C0", "Failed to send messages")],
)
async def test_a_place_that_line_does_not_know_is_told_in_its_words(account: Account, where: str, told: str) -> None:
    there = ConversationKey(platform="line", account="default", channel=where)
    with pytest.raises(Undeliverable, match=told):
        await account.adapter.send(Parcel(key=KEY, conversation=there, text="x"))


@pytest.mark.parametrize("text", ["", "x" * 5_001, "😀" * 2_501])
async def test_a_text_of_a_length_that_line_refuses_is_told(account: Account, ada: Any, text: str) -> None:
    with pytest.raises(Undeliverable):
        await account.adapter.send(parcel(ada, text))


async def test_broken_answers_are_faults_and_a_bad_token_is_unauthorized(
    line: LineServer, accounts: Accounts, ada: Any
) -> None:
    account = accounts()
    for fault, kind in (
        (CannedAnswer(status=500), AdapterError),
        (CannedAnswer(status=200, body=b"<html>"), Unanswered),
        (CannedAnswer(status=404, body=b"<html>not here</html>"), AdapterError),
        (Reset(), Unanswered),
    ):
        line.fail("push", fault)
        with pytest.raises(kind) as told:
            await account.adapter.send(parcel(ada))
        assert not isinstance(told.value, Undeliverable)
    stranger = accounts(channel_access_token="revoked-token")
    with pytest.raises(Unauthorized, match="channel access token"):
        await stranger.adapter.send(parcel(ada))
    with pytest.raises(Unauthorized):
        await stranger.listen()


async def test_the_loading_animation_is_for_one_person(line: LineServer, account: Account, ada: Any) -> None:
    await account.adapter.show_typing(place(ada))
    assert line.loading == [(ada["userId"], 5)]
    with pytest.raises(Undeliverable, match="one person"):
        await account.adapter.show_typing(place(line.group("Trip", ada)))
    with pytest.raises(Undeliverable):
        await account.adapter.show_typing(ConversationKey(platform="line", account="default", channel="Unobody"))


async def test_a_hanging_server_holds_no_other_conversation(line: LineServer, account: Account, ada: Any) -> None:
    bo = line.user("Bo")
    line.fail("push", Hang())
    async with asyncio.TaskGroup() as group, asyncio.timeout(LIMIT):
        hanging = group.create_task(account.adapter.send(parcel(ada)))
        while not line.calls["push"]:
            await asyncio.sleep(0.002)
        await account.adapter.send(parcel(bo, key="k2"))
        hanging.cancel()
    assert [message["to"] for message in line.sent] == [bo["userId"]]


async def test_who_is_written_to_first_is_written_to_by_the_id(account: Account, ada: Any) -> None:
    assert await account.adapter.direct(ada["userId"]) == ada["userId"]


def test_only_line_s_own_hosts_get_the_token() -> None:
    secrets: Any = {"channel_access_token": Secret("T", "t"), "channel_secret": Secret("S", "s")}
    assert hosts(Config(**secrets)) == {"api.line.me", "api-data.line.me"}
    own = Config(**secrets, api_url="https://line.example", data_url="https://files.line.example")
    assert hosts(own) == {"line.example", "files.line.example"}
    for wrong in ("http://line.example", "https://user@line.example", "line.example"):
        with pytest.raises(ConfigError, match="api_url"):
            Config(**secrets, api_url=wrong)
