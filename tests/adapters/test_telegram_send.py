"""Files and formatted text on their way to Telegram: each in its form, whole, and once."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from adapters.harness import until
from adapters.telegram_harness import Bot, telegram
from belino.domain.errors import (
    AdapterError,
    MarkupRefused,
    MediaNotFound,
    NothingToEdit,
    RateLimited,
    TogetherRefused,
    Unanswered,
    Unauthorized,
    Undeliverable,
)
from belino.domain.limits import Markup, SendAs
from belino.domain.message import ConversationKey
from belino.domain.ports import Edits, ShowsTyping, ShowsUpload
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind, StoredFile
from belino.testing import FakeClock, TelegramPace, TelegramServer, make_gif, make_jpeg, make_pdf, make_png, make_webp
from belino.testing.faults import CannedAnswer, Reset, Stall

BotAt = Callable[..., Bot]

OGG = b"OggS" + bytes(2000)
MP3 = b"ID3" + bytes(3000)
MP4 = bytes(4) + b"ftypisom" + bytes(4000)
MEGABYTE = 1024 * 1024


def file(name: str, mime: str, content: bytes, send_as: SendAs, **more: Any) -> OutgoingFile:
    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 1000):
            yield content[start : start + 1000]

    digest = hashlib.sha256(content).hexdigest()
    return OutgoingFile(name=name, mime=mime, size=len(content), sha256=digest, send_as=send_as, chunks=chunks, **more)


PHOTO = file("chart.png", "image/png", make_png(640, 480), SendAs.PHOTO, width=640, height=480)
PDF = file("report.pdf", "application/pdf", make_pdf(), SendAs.DOCUMENT)
VOICE = file("note.ogg", "audio/ogg", OGG, SendAs.VOICE, seconds=12.4)
SONG = file("song.mp3", "audio/mpeg", MP3, SendAs.AUDIO, seconds=180.0)
FILM = file("film.mp4", "video/mp4", MP4, SendAs.VIDEO, width=320, height=240, seconds=3.0)
LOOP = file("loop.gif", "image/gif", make_gif(40, 30), SendAs.ANIMATION, width=40, height=30)
STICKER = file("wave.webp", "image/webp", make_webp(512, 512), SendAs.STICKER)
EVERY_FORM = {str(one.send_as): one for one in (PHOTO, PDF, VOICE, SONG, FILM, LOOP, STICKER)}


def place(chat: Mapping[str, Any], thread: str | None = None) -> ConversationKey:
    return ConversationKey(platform="telegram", account="default", channel=str(chat["id"]), thread=thread)


def parcel(chat: Mapping[str, Any], *files: OutgoingFile, thread: str | None = None, **more: Any) -> Parcel:
    kind = ParcelKind.FILES if files else ParcelKind.TEXT
    return Parcel(**{"key": "p", "conversation": place(chat, thread), "kind": kind, "files": files, **more})


@pytest.mark.parametrize("form", sorted(EVERY_FORM))
async def test_each_form_arrives_by_its_own_method_byte_for_byte(server: TelegramServer, bot: Bot, form: str) -> None:
    one = EVERY_FORM[form]
    receipt = await bot.adapter.send(parcel(server.user("Ada"), one))
    (message,), (received,) = server.sent, server.received
    assert form in message
    assert (received.sha256, received.name, received.mime) == (one.sha256, one.name, one.mime)
    assert server.calls == {f"send{form.title()}": 1}
    assert receipt.message_id == str(message["message_id"])
    assert receipt.stored is not None
    assert receipt.stored[0].form is one.send_as


async def test_what_telegram_shows_is_told_with_the_file(server: TelegramServer, bot: Bot) -> None:
    ada = server.user("Ada")
    for one in (VOICE, FILM, LOOP):
        await bot.adapter.send(parcel(ada, one))
    voice, film, loop = server.sent
    assert voice["voice"]["duration"] == 12
    assert (film["video"]["width"], film["video"]["height"], film["video"]["duration"]) == (320, 240, 3)
    assert (loop["animation"]["width"], loop["animation"]["height"]) == (40, 30)


async def test_a_gif_that_is_to_be_a_document_stays_one(server: TelegramServer, bot: Bot) -> None:
    receipt = await bot.adapter.send(parcel(server.user("Ada"), replace(LOOP, send_as=SendAs.DOCUMENT)))
    assert receipt.stored == (StoredFile(form=SendAs.DOCUMENT, size=LOOP.size, name="loop.gif"),)


async def test_an_album_is_one_call_with_a_caption_for_each_and_a_receipt_for_all(
    server: TelegramServer, bot: Bot
) -> None:
    files = (replace(PHOTO, caption="<b>one</b>", plain="one"), FILM, replace(PHOTO, caption="three"))
    receipt = await bot.adapter.send(parcel(server.user("Ada"), *files, markup=Markup.HTML))
    assert server.calls == {"sendMediaGroup": 1}
    assert [message.get("caption") for message in server.sent] == ["one", None, "three"]
    assert len({message["media_group_id"] for message in server.sent}) == 1
    assert [received.sha256 for received in server.received] == [one.sha256 for one in files]
    ids = [str(message["message_id"]) for message in server.sent]
    assert [receipt.message_id, *receipt.also] == ids
    assert [stored.form for stored in receipt.stored or ()] == [SendAs.PHOTO, SendAs.VIDEO, SendAs.PHOTO]


@pytest.mark.parametrize("kind", ["file", "album"])
async def test_topic_reply_and_business_connection_are_kept_with_files(
    server: TelegramServer, bot: Bot, kind: str
) -> None:
    forum, ada = server.group("Workshop", forum=True), server.user("Ada")
    asked = server.say(forum, ada, "hello", topic=12)
    files = (PHOTO, FILM) if kind == "album" else (PDF,)
    await bot.adapter.send(parcel(forum, *files, thread="12", reply_to=str(asked["message_id"])))
    for message in server.sent:
        assert message["message_thread_id"] == 12
        assert message["reply_to_message"]["message_id"] == asked["message_id"]
    business = ConversationKey(platform="telegram", account="default", channel=f"{ada['id']}@bc_1")
    await bot.adapter.send(replace(parcel(ada, *files), conversation=business))
    assert server.requests[-1].fields["business_connection_id"] == "bc_1"


async def test_files_follow_a_group_to_its_new_id(server: TelegramServer, bot: Bot) -> None:
    old = server.group("Engine room", kind="group")
    new = server.migrate(old)
    receipt = await bot.adapter.send(parcel(old, PHOTO, FILM, reply_to="1"))
    assert {message["chat"]["id"] for message in server.sent} == {new["id"]}
    assert {received.sha256 for received in server.received} == {PHOTO.sha256, FILM.sha256}
    ids = [f"{message['message_id']}@{new['id']}" for message in server.sent]
    assert [receipt.message_id, *receipt.also] == ids


async def test_a_name_that_would_end_its_header_is_only_a_name(server: TelegramServer, bot: Bot) -> None:
    name = 'Bericht "Mai"\r\nContent-Type: text/html\r\n\r\n<b>Übersicht 日本.pdf'
    await bot.adapter.send(parcel(server.user("Ada"), replace(PDF, name=name)))
    (received,) = server.received
    assert received.sha256 == PDF.sha256
    assert received.mime == "application/pdf"
    assert "Übersicht 日本.pdf" in str(received.name)
    assert "\r" not in str(received.name)


@pytest.mark.parametrize("kind", ["text", "caption", "album", "edit"])
async def test_markup_that_telegram_cannot_read_is_told_from_other_refusals(
    server: TelegramServer, bot: Bot, kind: str
) -> None:
    ada = server.user("Ada")
    bad = replace(PDF, caption="<u>ok</u> <h1>no</h1>")
    sent = await bot.adapter.send(parcel(ada, text="draft"))
    outgoing = {
        "text": parcel(ada, text="<b>x", markup=Markup.HTML),
        "caption": parcel(ada, bad, markup=Markup.HTML),
        "album": parcel(ada, PDF, bad, markup=Markup.HTML),
        "edit": parcel(ada, text="<x>y</x>", markup=Markup.HTML, kind=ParcelKind.EDIT, edits=sent.message_id),
    }[kind]
    with pytest.raises(MarkupRefused):
        await bot.adapter.send(outgoing)
    assert len(server.sent) == 1
    await bot.adapter.send(replace(outgoing, markup=Markup.PLAIN))


@pytest.mark.parametrize("why", ["ENTITIES_TOO_LONG", "ENTITY_BOUNDS_INVALID"])
async def test_markup_that_telegrams_servers_find_too_much_is_refused_markup_too(
    server: TelegramServer, bot: Bot, why: str
) -> None:
    outgoing = parcel(server.user("Ada"), text="<b>x</b>", markup=Markup.HTML)
    server.fail("sendMessage", CannedAnswer(status=400, description=f"Bad Request: {why}"))
    with pytest.raises(MarkupRefused):
        await bot.adapter.send(outgoing)
    server.fail("sendMessage", CannedAnswer(status=400, description=f"Bad Request: {why}"))
    with pytest.raises(Undeliverable):
        await bot.adapter.send(replace(outgoing, markup=Markup.PLAIN))


@pytest.mark.parametrize(
    "body", [b'{"ok": true, "result": {}}', b'{"ok": true, "result": [{"message_id": 7}, {}]}', b"<html>", b""]
)
async def test_a_message_that_telegram_took_without_a_readable_receipt_may_have_arrived(
    server: TelegramServer, bot: Bot, body: bytes
) -> None:
    server.fail("sendMessage", CannedAnswer(status=200, body=body))
    with pytest.raises(Unanswered):
        await bot.adapter.send(parcel(server.user("Ada"), text="hello"))


async def test_two_films_that_telegram_shows_later_are_two_messages(server: TelegramServer, bot: Bot) -> None:
    group = server.group("Engine room")
    later = CannedAnswer(status=200, body=b'{"ok": true, "result": {"message_id": 0, "date": 1767268800}}')
    server.fail("sendVideo", later, times=2)
    receipts = [await bot.adapter.send(parcel(group, FILM, key=key)) for key in ("p-1", "p-2")]
    assert len({receipt.message_id for receipt in receipts}) == 2
    assert "0" not in {receipt.message_id for receipt in receipts}


@pytest.mark.parametrize(
    "answer", [CannedAnswer(status=302, body=b""), CannedAnswer(status=200, body=b'{"ok": false}')]
)
async def test_a_message_that_telegram_did_not_take_did_not_arrive(
    server: TelegramServer, bot: Bot, answer: CannedAnswer
) -> None:
    server.fail("sendMessage", answer)
    with pytest.raises(AdapterError) as caught:
        await bot.adapter.send(parcel(server.user("Ada"), text="hello"))
    assert not isinstance(caught.value, Unanswered)


@pytest.mark.parametrize("status", [400, 403, 404])
async def test_a_page_that_a_proxy_answers_with_is_no_refusal_of_telegrams(
    server: TelegramServer, bot: Bot, status: int
) -> None:
    server.fail("sendMessage", CannedAnswer(status=status, body=b"<html>Blocked by the firewall</html>"))
    with pytest.raises(AdapterError, match=f"before Telegram.* {status}") as caught:
        await bot.adapter.send(parcel(server.user("Ada"), text="hello"))
    assert not isinstance(caught.value, (Unanswered, Undeliverable, Unauthorized))


async def test_a_method_that_a_server_does_not_have_says_nothing_against_the_token(
    server: TelegramServer, bot: Bot
) -> None:
    for outgoing, refused in (
        (parcel(server.user("Ada"), text="hello"), Undeliverable),
        (parcel(server.user("Ada"), PDF, replace(PDF, name="other.pdf")), TogetherRefused),
    ):
        server.fail("*", CannedAnswer(status=404, description="Not Found: method not found"))
        with pytest.raises(refused, match="method not found"):
            await bot.adapter.send(outgoing)


async def test_of_an_album_that_was_too_many_in_its_middle_a_part_may_have_arrived(
    server: TelegramServer, bot: Bot
) -> None:
    why = 'Bad Request: failed to send message #2 with the error message "Too Many Requests: retry after 8"'
    server.fail("sendMediaGroup", CannedAnswer(status=400, description=why))
    with pytest.raises(Unanswered, match="in the middle of the album"):
        await bot.adapter.send(parcel(server.user("Ada"), PDF, replace(PDF, name="other.pdf")))


@pytest.mark.parametrize(
    "answer",
    [
        CannedAnswer(status=413, body=b"<html>413 Request Entity Too Large</html>"),
        CannedAnswer(
            status=400,
            description='Bad Request: failed to send message #2 with the error message "MEDIA_INVALID"',
        ),
        CannedAnswer(status=400, description="Bad Request: group send failed"),
    ],
    ids=["too large", "one is bad", "group"],
)
async def test_an_album_that_telegram_will_not_take_may_go_file_by_file(
    server: TelegramServer, bot: Bot, answer: CannedAnswer
) -> None:
    server.fail("sendMediaGroup", answer)
    with pytest.raises(TogetherRefused):
        await bot.adapter.send(parcel(server.user("Ada"), PDF, replace(PDF, name="other.pdf")))


@pytest.mark.parametrize(("why", "says"), [("TOPIC_CLOSED", "is closed"), ("message thread not found", "is gone")])
async def test_a_topic_that_takes_no_answers_is_named(server: TelegramServer, bot: Bot, why: str, says: str) -> None:
    server.fail("sendMessage", CannedAnswer(status=400, description=f"Bad Request: {why}"))
    with pytest.raises(Undeliverable, match=f"the topic {says}"):
        await bot.adapter.send(parcel(server.group("Ferry"), text="at nine", thread="5"))


async def test_formatted_text_is_sent_as_html(server: TelegramServer, bot: Bot) -> None:
    ada = server.user("Ada")
    await bot.adapter.send(parcel(ada, text="<b>a</b> &lt; b", markup=Markup.HTML))
    await bot.adapter.send(parcel(ada, text="<b>a</b> &lt; b"))
    assert [message["text"] for message in server.sent] == ["a < b", "<b>a</b> &lt; b"]


async def test_a_picture_that_is_no_photo_for_telegram_goes_as_a_document(server: TelegramServer, bot: Bot) -> None:
    ada = server.user("Ada")
    long = file("long.png", "image/png", make_png(2100, 100), SendAs.PHOTO)
    receipt = await bot.adapter.send(parcel(ada, long, reply_to="77"))
    assert [stored.form for stored in receipt.stored or ()] == [SendAs.DOCUMENT]
    with pytest.raises(TogetherRefused, match="#2") as refused:
        await bot.adapter.send(parcel(ada, PHOTO, long, reply_to="77"))
    assert refused.value.culprit == 1
    server.fail("sendMediaGroup", CannedAnswer(status=400, description="Bad Request: PHOTO_INVALID_DIMENSIONS"))
    receipt = await bot.adapter.send(parcel(ada, PHOTO, long))
    assert [stored.form for stored in receipt.stored or ()] == [SendAs.DOCUMENT, SendAs.DOCUMENT]


async def test_whoever_takes_no_voice_messages_gets_neither_voice_nor_file(server: TelegramServer, bot: Bot) -> None:
    ada = server.user("Ada")
    server.no_voice.add(ada["id"])
    with pytest.raises(Undeliverable, match="takes no voice messages"):
        await bot.adapter.send(parcel(ada, VOICE))
    assert (server.sent, server.received) == ([], [])


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (CannedAnswer(status=413, description="Request Entity Too Large"), "no file that large"),
        (CannedAnswer(status=413, body=b"<html>413 Request Entity Too Large</html>"), "no file that large"),
        (CannedAnswer(status=400, description="Bad Request: file is too big"), "no file that large"),
        (
            CannedAnswer(status=400, description="Bad Request: wrong file identifier/HTTP URL specified"),
            "not read the file",
        ),
        (
            CannedAnswer(status=400, description="Bad Request: not enough rights to send documents to the chat"),
            "not enough",
        ),
        (CannedAnswer(status=403, description="Forbidden: bot was blocked by the user"), "blocked by the user"),
    ],
)
async def test_a_file_telegram_will_never_take_is_undeliverable_with_a_sentence(
    server: TelegramServer, bot: Bot, answer: CannedAnswer, says: str
) -> None:
    server.fail("sendDocument", answer)
    with pytest.raises(Undeliverable, match=says):
        await bot.adapter.send(parcel(server.user("Ada"), PDF))
    assert server.calls == {"sendDocument": 1}


async def test_a_file_whose_bytes_are_gone_or_changed_is_not_half_sent(server: TelegramServer, bot: Bot) -> None:
    async def gone() -> AsyncIterator[bytes]:
        yield b"%PDF"
        raise MediaNotFound("the bytes are not here any more")

    ada = server.user("Ada")
    with pytest.raises(Undeliverable, match="not here any more"):
        await bot.adapter.send(parcel(ada, replace(PDF, chunks=gone)))
    for size in (PDF.size - 1, PDF.size + 1):
        with pytest.raises(Undeliverable, match="no longer the file"):
            await bot.adapter.send(parcel(ada, replace(PDF, size=size)))
    assert server.sent == []
    await bot.adapter.send(parcel(ada, PDF))
    assert len(server.sent) == 1


async def test_a_second_try_uploads_the_whole_file_again(server: TelegramServer, bot: Bot) -> None:
    large = file("large.bin", "application/octet-stream", bytes(range(256)) * 12_000, SendAs.DOCUMENT)
    outgoing = parcel(server.user("Ada"), large)
    for fault in (Reset(), CannedAnswer(status=502, body=b"<html>Bad Gateway</html>")):
        server.fail("sendDocument", fault)
        with pytest.raises(AdapterError):
            await bot.adapter.send(outgoing)
    await bot.adapter.send(outgoing)
    assert [received.sha256 for received in server.received] == [large.sha256]


def endless(read: list[int]) -> OutgoingFile:
    """45 MB that are counted as they are read."""

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(45):
            read.append(MEGABYTE)
            yield bytes(MEGABYTE)

    digest = hashlib.sha256(bytes(45 * MEGABYTE)).hexdigest()
    return OutgoingFile(name="a.bin", mime="application/octet-stream", size=45 * MEGABYTE, sha256=digest, chunks=chunks)


async def test_a_large_file_arrives_whole(server: TelegramServer, bot: Bot) -> None:
    large = endless([])
    receipt = await bot.adapter.send(parcel(server.user("Ada"), large))
    assert receipt.stored == (StoredFile(form=SendAs.DOCUMENT, size=large.size, name="a.bin"),)
    assert [received.sha256 for received in server.received] == [large.sha256]


async def test_bytes_are_read_no_faster_than_telegram_takes_them(server: TelegramServer, bot: Bot) -> None:
    read: list[int] = []
    server.fail("sendDocument", Stall(after=MEGABYTE))
    async with asyncio.TaskGroup() as group:
        sending = group.create_task(bot.adapter.send(parcel(server.user("Ada"), endless(read))))
        await until(lambda: server.stalled)
        for _ in range(1000):
            await asyncio.sleep(0)
        sending.cancel()
    assert 1 <= len(read) <= 20, "the rest waits on disk, not in memory"


async def test_a_chat_that_is_to_be_left_alone_is_not_even_asked(server: TelegramServer, bot_at: BotAt) -> None:
    clock = FakeClock()
    bot, ada, bob = bot_at(server.url, clock=clock), server.user("Ada"), server.user("Bob")
    server.fail("sendMessage", CannedAnswer(status=429, parameters={"retry_after": 7}))
    with pytest.raises(RateLimited):
        await bot.adapter.send(parcel(ada, text="one"))
    clock.shift(6.5)
    with pytest.raises(RateLimited) as caught:
        await bot.adapter.send(parcel(ada, text="one", thread="12"))
    assert caught.value.retry_after == pytest.approx(0.5)
    await bot.adapter.send(parcel(bob, text="another chat"))
    clock.shift(0.5)
    await bot.adapter.send(parcel(ada, text="one"))
    assert server.calls["sendMessage"] == 3


async def test_a_bot_that_has_had_enough_of_all_chats_asks_none(server: TelegramServer, bot_at: BotAt) -> None:
    clock = FakeClock()
    bot = bot_at(server.url, clock=clock)
    for number in range(20):
        await bot.adapter.send(parcel(server.user(f"User {number}"), text="hi"))
    server.fail("sendMessage", CannedAnswer(status=429, parameters={"retry_after": 7}))
    with pytest.raises(RateLimited):
        await bot.adapter.send(parcel(server.user("Ada"), text="hi"))
    with pytest.raises(RateLimited):
        await bot.adapter.send(parcel(server.user("Bob"), text="hi"))
    assert server.calls["sendMessage"] == 21


async def test_more_than_thirty_calls_a_second_wait_for_their_second(bot_at: BotAt) -> None:
    clock = FakeClock()
    async with telegram(pace=TelegramPace(all_per_second=1000)) as server, asyncio.TaskGroup() as group:
        bot = bot_at(server.url, clock=clock)
        for number in range(31):
            group.create_task(bot.adapter.send(parcel(server.user(f"User {number}"), text="hi")))
        await until(lambda: len(server.sent) == 30 and clock.sleeping)
        assert server.calls["sendMessage"] == 30
        await clock.advance(1)
        await until(lambda: len(server.sent) == 31)


async def test_a_wait_is_obeyed_to_the_millisecond_where_telegram_names_it(server: TelegramServer, bot: Bot) -> None:
    server.fail("sendMessage", CannedAnswer(status=429, parameters={"retry_after": 2, "adaptive_retry": 1250}))
    with pytest.raises(RateLimited) as caught:
        await bot.adapter.send(parcel(server.user("Ada"), text="hi"))
    assert caught.value.retry_after == 1.25


async def test_a_wait_that_only_the_sentence_names_is_obeyed_too(server: TelegramServer, bot: Bot) -> None:
    body = b'{"ok": false, "error_code": 429, "description": "Too Many Requests: retry after 35"}'
    server.fail("sendMessage", CannedAnswer(status=429, body=body))
    with pytest.raises(RateLimited) as caught:
        await bot.adapter.send(parcel(server.user("Ada"), text="hi"))
    assert caught.value.retry_after == 35


async def test_a_message_is_changed_and_one_that_reads_so_already_counts_as_changed(
    server: TelegramServer, bot: Bot
) -> None:
    ada = server.user("Ada")
    sent = await bot.adapter.send(parcel(ada, text="thinking", kind=ParcelKind.DRAFT))
    final = parcel(ada, text="<b>42</b>", markup=Markup.HTML, kind=ParcelKind.EDIT, edits=sent.message_id)
    assert isinstance(bot.adapter, Edits)
    for _ in range(2):
        receipt = await bot.adapter.send(final)
        assert receipt.message_id == sent.message_id
    assert [message["text"] for message in server.sent] == ["42"]


async def test_a_message_that_was_deleted_is_not_changed_and_nothing_is_shown_in_its_place(
    server: TelegramServer, bot: Bot
) -> None:
    ada = server.user("Ada")
    with pytest.raises(NothingToEdit, match="is gone"):
        await bot.adapter.edit("4711", parcel(ada, text="the ans …"))
    with pytest.raises(NothingToEdit, match="is gone"):
        await bot.adapter.send(parcel(ada, text="the answer", kind=ParcelKind.EDIT, edits="4711"))
    assert not server.sent


@pytest.mark.parametrize(
    "answer",
    [
        CannedAnswer(status=400, description="Bad Request: MESSAGE_EDIT_TIME_EXPIRED"),
        CannedAnswer(
            status=400,
            description="Bad Request: group chat was upgraded to a supergroup chat",
            parameters={"migrate_to_chat_id": -1007},
        ),
        CannedAnswer(status=404, description="Not Found: method not found"),
        CannedAnswer(status=404, description="Not Found"),
        CannedAnswer(status=404, body=b"404: Not Found"),
    ],
    ids=["too old", "group moved", "an old server", "a small server", "a smaller server"],
)
async def test_a_draft_that_can_no_longer_be_changed_does_not_cost_the_answer(
    server: TelegramServer, bot: Bot, answer: CannedAnswer
) -> None:
    server.fail("editMessageText", answer)
    with pytest.raises(NothingToEdit):
        await bot.adapter.send(parcel(server.group("Ferry"), text="42", kind=ParcelKind.EDIT, edits="7"))


@pytest.mark.parametrize("why", ["message to be replied not found", "replied message not found"])
async def test_an_answer_whose_question_is_gone_goes_without_its_reply(
    server: TelegramServer, bot: Bot, why: str
) -> None:
    group = server.group("Ferry")
    server.fail("sendMessage", CannedAnswer(status=400, description=f"Bad Request: {why}"))
    await bot.adapter.send(parcel(group, text="at nine", reply_to="4711"))
    assert [message["text"] for message in server.sent] == ["at nine"]
    first, second = (request.fields for request in server.requests)
    assert "reply_parameters" in first and "reply_parameters" not in second


async def test_typing_is_shown_in_the_topic(server: TelegramServer, bot: Bot) -> None:
    forum = server.group("Workshop", forum=True)
    assert isinstance(bot.adapter, ShowsTyping)
    await bot.adapter.show_typing(place(forum, "12"))
    (call,) = server.requests
    assert (call.fields["action"], call.fields["message_thread_id"]) == ("typing", 12)


@pytest.mark.parametrize("form", SendAs)
async def test_an_upload_is_shown_by_an_action_that_telegram_knows(
    server: TelegramServer, bot: Bot, form: SendAs
) -> None:
    assert isinstance(bot.adapter, ShowsUpload)
    await bot.adapter.show_upload(place(server.group("Workshop", forum=True), "12"), form)
    (call,) = server.requests
    assert call.fields["message_thread_id"] == 12


async def test_a_photo_is_streamed_from_a_jpeg_too(server: TelegramServer, bot: Bot) -> None:
    one = file("a.jpg", "image/jpeg", make_jpeg(1280, 720), SendAs.PHOTO, caption="x" * 1024)
    await bot.adapter.send(parcel(server.user("Ada"), one))
    assert len(server.sent[0]["caption"]) == 1024
