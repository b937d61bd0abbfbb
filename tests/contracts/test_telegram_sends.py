"""The Telegram we test against judges what a bot sends as the Bot API's documentation says."""

import hashlib
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from belino.testing import FakeClock, TelegramPace, TelegramServer, make_gif, make_jpeg, make_pdf, make_png, make_webp

Told = dict[str, Any]
KILOBYTE, MEGABYTE = 1024, 1024 * 1024
OGG = b"OggS" + bytes(500)
MP3 = b"ID3" + bytes(500)
WEBM = b"\x1a\x45\xdf\xa3" + bytes(500)
TGS = b"\x1f\x8b" + bytes(500)
MP4 = bytes(4) + b"ftypisom" + bytes(500)


class Bot:
    """A bot that is as plain as curl."""

    def __init__(self, server: TelegramServer, session: aiohttp.ClientSession) -> None:
        self._server = server
        self._session = session

    async def call(self, method: str, /, *, files: dict[str, bytes] | None = None, **fields: Any) -> Told:
        form = aiohttp.FormData()
        for name, value in fields.items():
            form.add_field(name, value if isinstance(value, str) else json.dumps(value))
        for name, content in (files or {}).items():
            form.add_field(name, io.BytesIO(content), filename=f"{name}.bin", content_type="application/octet-stream")
        url = f"{self._server.url}/bot{self._server.token}/{method}"
        async with self._session.post(url, data=form) as answer:
            told: Told = await answer.json()
            return told

    async def result(self, method: str, /, **more: Any) -> Any:
        told = await self.call(method, **more)
        assert told["ok"], told
        return told["result"]

    async def refused(self, method: str, /, **more: Any) -> tuple[int, str]:
        told = await self.call(method, **more)
        assert not told["ok"], told
        return told["error_code"], told["description"]


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer(clock=FakeClock(), pace=TelegramPace(chat_burst=1000, all_per_second=1000)) as server:
        yield server


@pytest.fixture
async def bot(server: TelegramServer) -> AsyncIterator[Bot]:
    async with aiohttp.ClientSession() as session:
        yield Bot(server, session)


@pytest.mark.parametrize(
    ("method", "field", "content", "kept"),
    [
        ("sendPhoto", "photo", make_jpeg(40, 30), "photo"),
        ("sendVoice", "voice", OGG, "voice"),
        ("sendVoice", "voice", MP3, "voice"),
        ("sendVoice", "voice", MP4, "voice"),
        ("sendVoice", "voice", b"RIFF" + bytes(500), "document"),
        ("sendAudio", "audio", MP3, "audio"),
        ("sendAudio", "audio", OGG, "document"),
        ("sendVideo", "video", MP4, "video"),
        ("sendVideo", "video", b"\x1a\x45\xdf\xa3" + bytes(500), "document"),
        ("sendAnimation", "animation", make_gif(8, 8), "animation"),
        ("sendSticker", "sticker", make_webp(512, 512), "sticker"),
        ("sendSticker", "sticker", make_png(512, 512), "document"),
        ("sendSticker", "sticker", WEBM, "sticker"),
        ("sendSticker", "sticker", WEBM.ljust(257 * KILOBYTE), "document"),
        ("sendSticker", "sticker", TGS, "sticker"),
        ("sendSticker", "sticker", TGS.ljust(65 * KILOBYTE), "document"),
        ("sendDocument", "document", make_pdf(), "document"),
        ("sendDocument", "document", MP3, "audio"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{hashlib.sha256(value).hexdigest()[:6]}",
)
async def test_a_file_is_kept_in_the_form_its_bytes_allow(
    server: TelegramServer, bot: Bot, method: str, field: str, content: bytes, kept: str
) -> None:
    ana = server.user("Ana")
    message = await bot.result(method, files={field: content}, chat_id=ana["id"])
    assert kept in message
    assert [received.sha256 for received in server.received] == [hashlib.sha256(content).hexdigest()]


async def test_a_document_that_is_not_to_be_looked_into_stays_one(server: TelegramServer, bot: Bot) -> None:
    ana = server.user("Ana")
    fields = {"chat_id": ana["id"], "disable_content_type_detection": True}
    message = await bot.result("sendDocument", files={"document": make_gif(8, 8)}, **fields)
    assert "animation" not in message


@pytest.mark.parametrize(
    ("method", "field", "content", "code", "says"),
    [
        ("sendPhoto", "photo", make_png(9000, 1001), 400, "PHOTO_INVALID_DIMENSIONS"),
        ("sendPhoto", "photo", make_png(2100, 100), 400, "PHOTO_INVALID_DIMENSIONS"),
        ("sendPhoto", "photo", b"no picture", 400, "IMAGE_PROCESS_FAILED"),
        ("sendPhoto", "photo", 10 * MEGABYTE + 1, 400, "too big for a photo"),
        ("sendDocument", "document", b"", 400, "file must be non-empty"),
        ("sendDocument", "document", 50 * MEGABYTE + 1, 413, "Request Entity Too Large"),
        ("sendDocument", "else", b"x", 400, "there is no document in the request"),
    ],
    ids=["sum", "ratio", "no-picture", "10MB", "empty", "50MB", "nothing"],
)
async def test_files_beyond_the_limits_are_refused(
    server: TelegramServer, bot: Bot, method: str, field: str, content: bytes | int, code: int, says: str
) -> None:
    held = bytes(content) if isinstance(content, int) else content
    told = await bot.refused(method, files={field: held}, chat_id=server.user("Ana")["id"])
    assert told[0] == code
    assert says in told[1]
    assert server.sent == []


async def test_a_server_of_ones_own_takes_more_than_fifty_megabytes() -> None:
    async with TelegramServer(big_files=True) as server, aiohttp.ClientSession() as session:
        message = await Bot(server, session).result(
            "sendDocument", files={"document": bytes(51 * MEGABYTE)}, chat_id=server.user("Ana")["id"]
        )
    assert message["document"]["file_size"] == 51 * MEGABYTE


@pytest.mark.parametrize(
    ("kinds", "says"),
    [
        (["photo"], "2 to 10"),
        (["photo"] * 11, "2 to 10"),
        (["document", "photo"], "Document can't be mixed"),
        (["audio", "document"], "can't be mixed"),
        (["voice", "voice"], "can't be used in an album"),
    ],
    ids=lambda value: "-".join(dict.fromkeys(value)) + str(len(value)) if isinstance(value, list) else None,
)
async def test_albums_that_cannot_be_are_refused(server: TelegramServer, bot: Bot, kinds: list[str], says: str) -> None:
    media = [{"type": kind, "media": f"attach://f{number}"} for number, kind in enumerate(kinds)]
    files = {f"f{number}": make_jpeg(8, 8) for number in range(len(kinds))}
    code, text = await bot.refused("sendMediaGroup", files=files, chat_id=server.user("Ana")["id"], media=media)
    assert code == 400
    assert says in text
    assert server.sent == []


async def test_one_bad_item_refuses_the_whole_album_and_is_named(server: TelegramServer, bot: Bot) -> None:
    media = [{"type": "photo", "media": "attach://a"}, {"type": "video", "media": "attach://gone"}]
    code, text = await bot.refused(
        "sendMediaGroup", files={"a": make_jpeg(8, 8)}, chat_id=server.user("Ana")["id"], media=media
    )
    assert (code, "message #2" in text, server.sent) == (400, True, [])


async def test_captions_are_counted_as_they_are_seen_in_utf_16(server: TelegramServer, bot: Bot) -> None:
    ana = server.user("Ana")
    fields: Told = {"chat_id": ana["id"], "parse_mode": "HTML"}
    for caption, fits in (
        ("<b>" + "x" * 1024 + "</b>", True),
        ("&lt;" * 1024, True),
        ("😀" * 512, True),
        ("😀" * 513, False),
        ("x" * 1025, False),
    ):
        told = await bot.call("sendDocument", files={"document": b"x"}, caption=caption, **fields)
        assert told["ok"] is fits
        if not fits:
            assert told["description"] == "Bad Request: message caption is too long"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<h1>x</h1>", 'Unsupported start tag "h1" at byte offset 0'),
        ("ä<x>", 'Unsupported start tag "x" at byte offset 2'),
        ("<b>x</i>", 'Unmatched end tag at byte offset 4, expected "</b>", found "</i>"'),
        ("<b>x", 'Can\'t find end tag corresponding to start tag "b"'),
        ("x</b>", "Unexpected end tag at byte offset 1"),
        ("1 < 2", "Unclosed start tag at byte offset 2"),
        ("<span>x</span>", 'Tag "span" must have class "tg-spoiler"'),
    ],
    ids=["h1", "x", "crossed", "open", "closed", "less", "span"],
)
async def test_html_telegram_does_not_know_is_refused_with_its_place(
    server: TelegramServer, bot: Bot, text: str, says: str
) -> None:
    told = await bot.refused("sendMessage", chat_id=server.user("Ana")["id"], text=text, parse_mode="HTML")
    assert told[0] == 400
    assert told[1].startswith(f"Bad Request: can't parse entities: {says}")


async def test_html_telegram_knows_is_seen_without_its_tags(server: TelegramServer, bot: Bot) -> None:
    text = (
        '<b>a</b><i>b</i><u>c</u><s>d</s><a href="https://x.example/?a=1&amp;b=>">e</a><code>f</code>'
        '<pre><code class="language-py">g</code></pre><blockquote expandable>h</blockquote>'
        '<span class="tg-spoiler">i</span> &lt;&amp;&#33;&copy;'
    )
    sent = await bot.result("sendMessage", chat_id=server.user("Ana")["id"], text=text, parse_mode="HTML")
    assert sent["text"] == "abcdefghi <&!&copy;"


async def test_changes_are_judged_like_messages(server: TelegramServer, bot: Bot) -> None:
    ana = server.user("Ana")
    said = server.say(ana, ana, "mine")
    sent = await bot.result("sendMessage", chat_id=ana["id"], text="one")
    photo = await bot.result("sendPhoto", files={"photo": make_jpeg(8, 8)}, chat_id=ana["id"])

    async def edit(message: Told, text: str, **more: Any) -> Told:
        return await bot.call("editMessageText", chat_id=ana["id"], message_id=message["message_id"], text=text, **more)

    assert (await edit(sent, "two"))["result"]["text"] == "two"
    for message, text, says in (
        (sent, "two", "message is not modified"),
        (sent, " ", "message text is empty"),
        (sent, "x" * 4097, "message is too long"),
        (said, "hers", "message can't be edited"),
        (photo, "a caption", "there is no text in the message to edit"),
        ({"message_id": 999}, "x", "message to edit not found"),
    ):
        assert says in (await edit(message, text))["description"]
    assert "can't parse entities" in (await edit(sent, "<x>", parse_mode="HTML"))["description"]
    assert [text for _, text in server.edited] == ["two"]


async def test_changes_and_every_item_of_an_album_count_towards_the_pace() -> None:
    async with (
        TelegramServer(clock=FakeClock(), pace=TelegramPace(chat_burst=3)) as server,
        aiohttp.ClientSession() as session,
    ):
        bot, ana = Bot(server, session), server.user("Ana")
        media = [{"type": "document", "media": f"attach://{name}"} for name in ("a", "b")]
        album = await bot.result("sendMediaGroup", files={"a": b"1", "b": b"2"}, chat_id=ana["id"], media=media)
        assert len(album) == 2
        sent = await bot.result("sendMessage", chat_id=ana["id"], text="one")
        told = await bot.call("editMessageText", chat_id=ana["id"], message_id=sent["message_id"], text="two")
        assert (told["error_code"], told["parameters"]) == (429, {"retry_after": 3})


async def test_albums_keep_topic_reply_and_group(server: TelegramServer, bot: Bot) -> None:
    forum, ana = server.group("Workshop", forum=True), server.user("Ana")
    asked = server.say(forum, ana, "hello", topic=12)
    media = [{"type": "document", "media": f"attach://{name}", "caption": name} for name in ("a", "b")]
    album = await bot.result(
        "sendMediaGroup",
        files={"a": b"1", "b": b"2"},
        chat_id=forum["id"],
        message_thread_id=12,
        reply_parameters={"message_id": asked["message_id"]},
        media=media,
    )
    assert [message["caption"] for message in album] == ["a", "b"]
    assert {message["message_thread_id"] for message in album} == {12}
    assert {message["reply_to_message"]["message_id"] for message in album} == {asked["message_id"]}
    assert len({message["media_group_id"] for message in album}) == 1


async def test_only_actions_that_the_documentation_names_can_be_shown(server: TelegramServer, bot: Bot) -> None:
    ana = server.user("Ana")
    assert await bot.result("sendChatAction", chat_id=ana["id"], action="upload_document") is True
    code, says = await bot.refused("sendChatAction", chat_id=ana["id"], action="upload_audio_book")
    assert (code, says) == (400, "Bad Request: wrong parameter action in request")
