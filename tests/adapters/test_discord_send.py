"""What leaves for Discord: once, pinging nobody, within its limits; and what its refusals mean."""

import base64
import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from adapters.discord_harness import Bot, place
from adapters.harness import until
from belino.adapters.discord.capabilities import FORM_BYTES
from belino.adapters.discord.client import DiscordRefused
from belino.adapters.discord.send import nonce_of
from belino.domain.errors import (
    AdapterError,
    MediaRefused,
    NothingToEdit,
    RateLimited,
    Unanswered,
    Undeliverable,
    Unreached,
)
from belino.domain.limits import Markup, Once, SendAs
from belino.domain.message import ConversationKey
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind
from belino.net.clock import SystemClock
from belino.testing.discord import DiscordServer
from belino.testing.discord.request import DiscordPace, cloudflare_ban, refusal, slow_down
from belino.testing.discord.shapes import Json
from belino.testing.faults import CannedAnswer, Reset, Stall

BotAt = Callable[..., Bot]
SEND, EDIT = "POST /channels/{channel}/messages", "PATCH /channels/{channel}/messages/{message}"


@pytest.fixture
def ada(discord: DiscordServer) -> Json:
    return discord.user("ada")


@pytest.fixture
def room(discord: DiscordServer, ada: Json) -> Json:
    return discord.channel(discord.guild("Club", ada), "harbour")


def parcel(where: Json | ConversationKey, text: str = "", /, **more: Any) -> Parcel:
    conversation = where if isinstance(where, ConversationKey) else place(where)
    return Parcel(**{"key": f"key of {text}", "conversation": conversation, "text": text, **more})


def file(content: bytes, name: str = "a.bin", mime: str = "application/octet-stream", **more: Any) -> OutgoingFile:
    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 1000):
            yield content[start : start + 1000]

    digest = hashlib.sha256(content).hexdigest()
    return OutgoingFile(name=name, mime=mime, size=len(content), sha256=digest, chunks=chunks, **more)


async def test_the_same_parcel_twice_is_one_message(discord: DiscordServer, discord_bot: Bot, room: Json) -> None:
    first = await discord_bot.adapter.send(parcel(room, "hello"))
    again = await discord_bot.adapter.send(parcel(room, "hello"))
    other = await discord_bot.adapter.send(parcel(room, "hello", key="another"))
    assert first.message_id == again.message_id != other.message_id
    assert [message["content"] for message in discord.sent] == ["hello", "hello"]


def test_a_nonce_is_short_and_says_nothing_of_the_key() -> None:
    one, other = (nonce_of(parcel(place({"id": "1"}), key=key)) for key in ("p-1-0-abc", "p-1-1-abc"))
    assert len(one) <= 25 and one != other and "abc" not in one


async def test_an_answer_lost_on_the_way_is_not_said_twice(
    discord: DiscordServer, discord_bot: Bot, room: Json
) -> None:
    discord.fail(SEND, Reset(done=True))
    with pytest.raises(Unanswered):
        await discord_bot.adapter.send(parcel(room, "hello"))
    receipt = await discord_bot.adapter.send(parcel(room, "hello"))
    assert [message["id"] for message in discord.sent] == [receipt.message_id]


async def test_ten_files_go_with_the_text_in_their_order(discord: DiscordServer, discord_bot: Bot, room: Json) -> None:
    files = tuple(file(bytes([n]) * (5000 + n), f'n{n} "ü".bin') for n in range(10))
    receipt = await discord_bot.adapter.send(parcel(room, "ten", kind=ParcelKind.FILES, files=files))
    (sent,) = discord.sent
    assert sent["content"] == "ten" and len(sent["attachments"]) == 10
    assert [upload.sha256 for upload in discord.received] == [one.sha256 for one in files]
    assert receipt.stored is not None and [one.size for one in receipt.stored] == [one.size for one in files]


async def test_a_voice_message_has_its_length_and_its_waveform(
    discord: DiscordServer, discord_bot: Bot, room: Json
) -> None:
    waveform = bytes(range(256))
    sound = file(b"OggS" * 500, "v.ogg", "audio/ogg", send_as=SendAs.VOICE, seconds=3.25, waveform=waveform)
    receipt = await discord_bot.adapter.send(parcel(room, kind=ParcelKind.FILES, files=(sound,)))
    (sent,) = discord.sent
    assert sent["flags"] & 1 << 13
    (attached,) = sent["attachments"]
    assert (attached["duration_secs"], base64.b64decode(attached["waveform"])) == (3.25, waveform)
    assert receipt.stored is not None and receipt.stored[0].form is SendAs.VOICE


async def test_where_voice_messages_are_forbidden_the_sound_goes_as_a_file(
    discord: DiscordServer, discord_bot: Bot, room: Json
) -> None:
    discord.forbid(room, "SEND_VOICE_MESSAGES")
    sound = file(b"OggS" * 500, "v.ogg", "audio/ogg", send_as=SendAs.VOICE, seconds=3.25)
    receipt = await discord_bot.adapter.send(parcel(room, kind=ParcelKind.FILES, files=(sound,)))
    assert not discord.sent[0]["flags"]
    assert receipt.stored is not None and receipt.stored[0].form is SendAs.AUDIO


async def test_answers_in_threads_go_there_and_a_reply_to_what_is_gone_goes_all_the_same(
    discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json
) -> None:
    thread = discord.thread(room, ada, "talk")
    asked = discord.say(thread, ada, "hello?")
    await discord_bot.adapter.send(parcel(place(room, thread), "one", reply_to=asked["id"]))
    discord.delete(asked)
    await discord_bot.adapter.send(parcel(place(room, thread), "two", reply_to=asked["id"]))
    one, two = discord.sent
    assert one["channel_id"] == two["channel_id"] == thread["id"]
    assert one["message_reference"]["message_id"] == asked["id"] and "message_reference" not in two


async def test_an_answer_pings_nobody(discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json) -> None:
    asked = discord.say(room, ada, "hello?")
    text = f"<@{ada['id']}> @everyone <@&{room['guild_id']}>"
    receipt = await discord_bot.adapter.send(parcel(room, text, reply_to=asked["id"]))
    await discord_bot.adapter.edit(receipt.message_id, parcel(room, f"{text}!"))
    assert discord.sent[0]["mentions"] == []
    posted, changed = (call for call in discord.requests if call.method in ("POST", "PATCH"))
    assert posted.fields["allowed_mentions"] == changed.fields["allowed_mentions"] == {"parse": []}


async def test_a_draft_grows_and_one_that_cannot_be_changed_any_more_is_to_be_said_anew(
    discord: DiscordServer, discord_bot: Bot, room: Json
) -> None:
    draft = await discord_bot.adapter.send(parcel(room, "Once", kind=ParcelKind.DRAFT))
    await discord_bot.adapter.edit(draft.message_id, parcel(room, "Once upon"))
    final = parcel(room, "Once upon a time", kind=ParcelKind.EDIT, edits=draft.message_id)
    assert (await discord_bot.adapter.send(final)).message_id == draft.message_id
    assert [text for _, text in discord.edited] == ["Once upon", "Once upon a time"]
    discord.delete(discord.sent[0])
    for gone in (final, replace(final, edits="draft:abc")):
        with pytest.raises(NothingToEdit):
            await discord_bot.adapter.send(gone)
    other = await discord_bot.adapter.send(parcel(room, "Twice"))
    for code in (50083, 30046):
        discord.fail(EDIT, refusal(400, code, "not any more"))
        with pytest.raises(NothingToEdit):
            await discord_bot.adapter.send(replace(final, edits=other.message_id))


@pytest.mark.parametrize(
    "answer",
    [
        refusal(403, 160002, "Cannot reply without permission to read message history"),
        refusal(404, 10008, "Unknown Message"),
        refusal(
            400,
            50035,
            "Invalid Form Body",
            errors={"message_reference": {"_errors": [{"code": "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE"}]}},
        ),
    ],
    ids=lambda answer: str(answer.status),
)
async def test_what_may_not_be_a_reply_is_said_without_being_one(
    discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json, answer: CannedAnswer
) -> None:
    asked = discord.say(room, ada, "hello?")
    discord.fail(SEND, answer)
    await discord_bot.adapter.send(parcel(room, "hello", reply_to=asked["id"], files=(file(b"abc"),)))
    (said,) = discord.sent
    assert (said["content"], len(said["attachments"]), "message_reference" in said) == ("hello", 1, False)


@pytest.mark.parametrize("status", [403, 408])
async def test_a_page_of_somebody_before_discord_is_no_word_of_discords(
    discord: DiscordServer, discord_bot: Bot, room: Json, status: int
) -> None:
    discord.fail(SEND, CannedAnswer(status=status, body=b"<html>Just a moment...</html>"))
    with pytest.raises(AdapterError, match="before Discord") as failed:
        await discord_bot.adapter.send(parcel(room, "hello"))
    assert not isinstance(failed.value, Undeliverable)


async def test_drafts_are_shown_where_the_settings_say(
    discord: DiscordServer, discord_bot_at: BotAt, room: Json, ada: Json
) -> None:
    pauses = {}
    for drafts in ("direct", "always", "never"):
        bot = discord_bot_at(discord, drafts=drafts)
        async with bot.listening():
            discord.say(ada, ada, "hello")
            await until(lambda bot=bot: bot.taken)  # type: ignore[misc]
        both = (bot.adapter.draft_pause(place(discord.dm(ada))), bot.adapter.draft_pause(place(room)))
        pauses[drafts] = tuple(pause is not None for pause in both)
    assert pauses == {"direct": (True, False), "always": (True, True), "never": (False, False)}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (refusal(403, 50013, "Missing Permissions"), "may not do this here"),
        (refusal(403, 50001, "Missing Access"), "does not see this channel"),
        (refusal(403, 50007, "Cannot send messages to this user"), "takes no direct messages"),
        (refusal(404, 10003, "Unknown Channel"), "is gone"),
        (refusal(413, 40005, "Request entity too large"), "no file that large"),
        (CannedAnswer(status=413, body=b"<html>"), "no file that large"),
        (refusal(400, 50035, "Invalid Form Body"), "Invalid Form Body"),
        (refusal(400, 200000, "Message was blocked"), "moderation rules"),
    ],
    ids=lambda value: str(getattr(value, "status", "")),
)
async def test_what_discord_will_never_take_is_given_up_with_the_reason(
    discord: DiscordServer, discord_bot: Bot, room: Json, answer: CannedAnswer, says: str
) -> None:
    discord.fail(SEND, answer)
    with pytest.raises(Undeliverable, match=says):
        await discord_bot.adapter.send(parcel(room, "hello"))
    assert discord.calls[SEND] == 1


async def test_a_conversation_that_is_no_channel_is_told_without_a_call(
    discord: DiscordServer, discord_bot: Bot
) -> None:
    for channel in ("elsewhere", "../users", "1/2", "٣"):
        with pytest.raises(Undeliverable, match="no channel of Discord"):
            await discord_bot.adapter.send(parcel(place({"id": channel}), "hello"))
    assert not discord.calls


async def test_a_bad_gateway_may_be_tried_again(discord: DiscordServer, discord_bot: Bot, room: Json) -> None:
    discord.fail(SEND, CannedAnswer(status=502, body=b"<html>bad gateway</html>"))
    with pytest.raises(AdapterError) as failed:
        await discord_bot.adapter.send(parcel(room, "hello"))
    assert not isinstance(failed.value, Undeliverable)
    await discord_bot.adapter.send(parcel(room, "hello"))


@pytest.mark.parametrize(
    ("fault", "elsewhere"),
    [
        (slow_down(7.5), True),
        (slow_down(7.5, "global"), False),
        (cloudflare_ban(7), False),
        (slow_down(7, "shared"), True),
    ],
    ids=["route", "global", "page", "shared"],
)
async def test_a_429_closes_the_channel_or_everything_and_nothing_is_called_meanwhile(
    discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json, fault: CannedAnswer, elsewhere: bool
) -> None:
    discord.fail(SEND, fault)
    for _ in range(3):
        with pytest.raises(RateLimited) as limited:
            await discord_bot.adapter.send(parcel(room, "hello"))
        assert 6 < limited.value.retry_after <= 7.5
    assert discord.calls[SEND] == 1
    other = discord_bot.adapter.send(parcel(discord.dm(ada), "hello"))
    if elsewhere:
        await other
    else:
        with pytest.raises(RateLimited):
            await other


async def test_commands_are_acknowledged_while_everything_else_waits(
    discord: DiscordServer, discord_bot: Bot, room: Json
) -> None:
    discord.fail(SEND, slow_down(60, "global"))
    with pytest.raises(RateLimited):
        await discord_bot.adapter.send(parcel(room, "hello"))
    with pytest.raises(RateLimited):
        await discord_bot.adapter.show_typing(place(room))
    with pytest.raises(DiscordRefused, match="Unknown interaction"):
        await discord_bot.adapter._client.call("POST", "/interactions/{}/{}/callback", "1", "abc", fields={"type": 5})


async def test_an_empty_bucket_is_waited_for_before_discord_has_to_say_so(
    discord: DiscordServer, discord_bot: Bot, room: Json
) -> None:
    sent = 0
    with pytest.raises(RateLimited) as limited:
        for number in range(10):
            await discord_bot.adapter.send(parcel(room, f"message {number}"))
            sent += 1
    assert sent == len(discord.sent) == discord.calls[SEND] == 5
    assert 0 < limited.value.retry_after <= 5


async def test_a_file_that_changed_or_cannot_be_read_is_not_sent_half(
    discord: DiscordServer, discord_bot: Bot, room: Json
) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise MediaRefused("the bytes changed")

    half = replace(file(b"x" * 5000), chunks=broken)
    short = replace(file(b"x" * 5000), size=6000)
    for bad, says in ((half, "cannot be read"), (short, "no longer the file")):
        with pytest.raises(Undeliverable, match=says):
            await discord_bot.adapter.send(parcel(room, kind=ParcelKind.FILES, files=(bad,)))
    assert discord.sent == []


async def test_an_upload_that_broke_off_surely_did_not_arrive(
    discord: DiscordServer, discord_bot: Bot, room: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belino.adapters.discord.client.CALL_SECONDS", 0.3)
    monkeypatch.setattr("belino.adapters.discord.client.SLOWEST_BYTES_A_SECOND", 1e12)
    discord.fail(SEND, Stall(after=1000))
    big = file(bytes(64 * 1024 * 1024))  # more than the system holds between the two ends
    with pytest.raises(Unreached, match="broke off"):
        await discord_bot.adapter.send(parcel(room, kind=ParcelKind.FILES, files=(big,)))


async def test_larger_files_are_planned_where_the_settings_say_so(
    discord: DiscordServer, discord_bot_at: BotAt
) -> None:
    usual, boosted = discord_bot_at(discord).adapter.limits, discord_bot_at(discord, upload_mb=50).adapter.limits
    assert usual.files[SendAs.DOCUMENT].max_bytes == 10 * 1024 * 1024
    assert {limit.max_bytes for limit in boosted.files.values()} == {50 * 1024 * 1024 - FORM_BYTES}
    assert usual.album_bytes == 25 * 1024 * 1024 - FORM_BYTES
    assert (usual.once, usual.markup, usual.text_chars) == (Once.KEY, Markup.CHAT, 2000)


async def test_what_arrived_long_ago_is_found_and_what_did_not_is_not(discord_bot_at: BotAt) -> None:
    async with DiscordServer(pace=DiscordPace(routes={})) as discord:
        await find_and_miss(discord, discord_bot_at(discord))


async def find_and_miss(discord: DiscordServer, discord_bot: Bot) -> None:
    ada = discord.user("ada")
    room = discord.channel(discord.guild("Club", ada), "harbour")
    asked = discord.say(room, ada, "hello?")
    now = SystemClock().now()
    async with discord_bot.listening():
        sent = parcel(room, "hello there ", reply_to=asked["id"], files=(file(b"abc"),), created=now)
        receipt = await discord_bot.adapter.send(sent)
        found = await discord_bot.adapter.find_sent(sent)
        assert found is not None and found.message_id == receipt.message_id
        discord.messages[room["id"]][receipt.message_id]["content"] = "hello\u200b there"
        assert await discord_bot.adapter.find_sent(sent) == found
        for number in range(230):
            discord.compose(room, ada, f"busy {number}")
        assert await discord_bot.adapter.find_sent(sent) == found
        discord.say(room, ada, "impostor")
        for other in (
            replace(sent, text="hello"),
            replace(sent, files=()),
            replace(sent, files=(file(b"abcd"),)),
            replace(sent, reply_to="1"),
            replace(sent, created=now + timedelta(hours=1)),
            parcel(room, "impostor", created=now),
            replace(sent, conversation=place({"id": "1"})),
        ):
            assert await discord_bot.adapter.find_sent(other) is None


async def test_typing_is_shown_while_a_turn_runs_and_a_file_is_uploaded(
    discord: DiscordServer, discord_bot: Bot, room: Json, ada: Json
) -> None:
    thread = discord.thread(room, ada, "talk")
    await discord_bot.adapter.show_typing(place(room), note="search")
    await discord_bot.adapter.show_upload(place(room, thread), SendAs.PHOTO)
    typed = [call.ids["channel"] for call in discord.requests if call.route.endswith("/typing")]
    assert typed == [room["id"], thread["id"]]
