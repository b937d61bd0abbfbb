"""The WhatsApp we test against keeps the documented rules of the Cloud API."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any

import pytest
from aiohttp import ClientSession, FormData

from belino.testing import CloudPace, FakeClock, WhatsAppServer, make_jpeg
from belino.testing.whatsapp import VERSION
from belino.testing.whatsapp.calls import LINK_SECONDS
from belino.testing.whatsapp.world import INBOUND_SECONDS, UPLOAD_SECONDS, WINDOW_SECONDS

Call = Callable[..., Awaitable[tuple[int, Any]]]
TEXT = {"messaging_product": "whatsapp", "type": "text", "text": {"body": "hi"}}


@asynccontextmanager
async def calling(server: WhatsAppServer) -> AsyncIterator[Call]:
    """Calls with the number's token: the status, and the answer's error code or its body."""
    async with ClientSession() as session:

        async def call(path: str, fields: Any = None, *, token: str | None = None) -> tuple[int, Any]:
            headers = {"Authorization": f"Bearer {server.token if token is None else token}"}
            url = path if "://" in path else f"{server.url}{VERSION}/{path}"
            method = "GET" if fields is None else "POST"
            given: Any = {"data": fields} if isinstance(fields, FormData) else {"json": fields} if fields else {}
            async with session.request(method, url, headers=headers, **given) as answer:
                raw = await answer.read()
                told: Any = json.loads(raw) if answer.content_type == "application/json" else raw
                wrong = isinstance(told, dict) and "error" in told
                return answer.status, told["error"]["code"] if wrong else told

        yield call


@pytest.fixture
async def server() -> AsyncIterator[WhatsAppServer]:
    async with WhatsAppServer(clock=FakeClock()) as running:
        yield running


def clock_of(server: WhatsAppServer) -> FakeClock:
    assert isinstance(server.clock, FakeClock)
    return server.clock


def statuses(server: WhatsAppServer) -> list[tuple[str, int]]:
    """The statuses that wait for the business: each with its error code."""
    values = [json.loads(body)["entry"][0]["changes"][0]["value"] for body, _ in server.hook._waiting]
    told = [status for value in values for status in value.get("statuses", [])]
    return [(status["status"], status.get("errors", [{"code": 0}])[0]["code"]) for status in told]


def form(content: bytes, mime: str) -> FormData:
    made = FormData({"messaging_product": "whatsapp", "type": mime})
    made.add_field("file", BytesIO(content), filename="a", content_type=mime)
    return made


async def test_without_the_token_nothing_is_answered(server: WhatsAppServer) -> None:
    async with calling(server) as call:
        assert await call(server.number_id, token="wrong") == (401, 190)
        assert (await call(server.number_id))[0] == 200
        assert await call("987654321") == (400, 100)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"type": "text"}, 100),
        ({**TEXT}, 131008),
        ({**TEXT, "to": "1", "text": {"body": "x" * 4097}}, 100),
        ({**TEXT, "to": "1", "text": {"body": ""}}, 100),
        ({**TEXT, "to": "1", "recipient_type": "group"}, 131009),
        ({**TEXT, "to": "15550783881"}, 131021),
        ({**TEXT, "to": "1", "type": "image"}, 131008),
        ({**TEXT, "to": "1", "type": "image", "image": {"id": "7"}}, 131009),
        ({**TEXT, "to": "1", "type": "reaction", "reaction": {"message_id": "wamid.x", "emoji": "👍"}}, 131009),
        ({**TEXT, "to": "1", "type": "template", "template": {"name": "no", "language": {"code": "en"}}}, 132001),
        ({"messaging_product": "whatsapp", "status": "read", "message_id": "wamid.x"}, 131009),
    ],
)
async def test_a_message_that_is_not_as_documented_is_refused_at_once(
    server: WhatsAppServer, fields: Any, code: int
) -> None:
    async with calling(server) as call:
        assert (await call(f"{server.number_id}/messages", fields))[1] == code
    assert server.sent == []


async def test_what_cannot_be_delivered_is_told_by_a_status_only(server: WhatsAppServer) -> None:
    ann, bob = server.user("Ann"), server.user("Bob")
    server.say(ann, ann, "hi")
    async with calling(server) as call:
        for to in (ann["id"], bob["id"], "4915100000000"):
            assert (await call(f"{server.number_id}/messages", {**TEXT, "to": to}))[0] == 200
        clock_of(server).shift(WINDOW_SECONDS + 1)
        await call(f"{server.number_id}/messages", {**TEXT, "to": ann["id"]})
    assert statuses(server) == [
        ("sent", 0),
        ("delivered", 0),
        ("failed", 131047),
        ("failed", 131026),
        ("failed", 131047),
    ]
    assert [sent["channel"] for sent in server.sent] == [ann["id"]]


async def test_templates_are_delivered_always_with_one_line_for_each_variable(server: WhatsAppServer) -> None:
    server.templates["answer"], ann = 1, server.user("Ann")
    base: Any = {"messaging_product": "whatsapp", "to": ann["id"], "type": "template"}

    def named(*texts: str) -> Any:
        parameters = [{"type": "text", "text": text} for text in texts]
        parts = [{"type": "body", "parameters": parameters}]
        return {**base, "template": {"name": "answer", "language": {"code": "en"}, "components": parts}}

    async with calling(server) as call:
        answers = [
            await call(f"{server.number_id}/messages", named(*texts)) for texts in (("a", "b"), ("a\nb",), ("a",))
        ]
    assert [told if status != 200 else status for status, told in answers] == [132000, 100, 200]


async def test_a_person_gets_a_burst_and_then_one_message_in_six_seconds() -> None:
    async with WhatsAppServer(clock=FakeClock(), pace=CloudPace(pair_burst=3)) as server, calling(server) as call:
        ann = server.user("Ann")
        server.say(ann, ann, "hi")
        codes = [(await call(f"{server.number_id}/messages", {**TEXT, "to": ann["id"]}))[0] for _ in range(4)]
        assert codes == [200, 200, 200, 400]
        clock_of(server).shift(18)
        assert (await call(f"{server.number_id}/messages", {**TEXT, "to": ann["id"]}))[0] == 200
    async with WhatsAppServer(clock=FakeClock(), pace=CloudPace(per_second=1)) as server, calling(server) as call:
        for person, code in ((server.user("Ann"), 200), (server.user("Bob"), 130429)):
            status, told = await call(f"{server.number_id}/messages", {**TEXT, "to": person["id"]})
            assert code in (status, told)


async def test_uploads_are_of_the_documented_types_and_sizes_and_kept_for_thirty_days(server: WhatsAppServer) -> None:
    async with calling(server) as call:
        upload = f"{server.number_id}/media"
        assert (await call(upload, form(b"PK", "application/zip")))[1] == 100
        assert (await call(upload, form(bytes(5 * 1024 * 1024 + 1), "image/jpeg")))[1] == 131053
        assert (await call(upload, form(bytes(5 * 1024 * 1024 + 1), "application/pdf")))[0] == 200
        picture = make_jpeg(8, 8)
        media_id = (await call(upload, form(picture, "image/jpeg")))[1]["id"]
        told = (await call(media_id))[1]
        assert (await call(told["url"]))[1] == picture
        assert (await call(told["url"], token="wrong"))[0] == 401
        assert (await call(f"{media_id}?phone_number_id=7"))[1] == 100
        clock_of(server).shift(LINK_SECONDS)
        assert (await call(told["url"]))[0] == 404
        clock_of(server).shift(UPLOAD_SECONDS)
        assert (await call(media_id))[1] == 100


async def test_a_persons_file_is_kept_for_a_week_with_its_checksum_in_base64(server: WhatsAppServer) -> None:
    ann = server.user("Ann")
    message = server.say(ann, ann, "look", files=[make_jpeg(8, 8)])
    assert message["image"]["sha256"].endswith("=") and message["image"]["caption"] == "look"
    async with calling(server) as call:
        assert len((await call(message["image"]["id"]))[1]["sha256"]) == 64
        clock_of(server).shift(INBOUND_SECONDS)
        assert (await call(message["image"]["id"]))[1] == 100


async def test_a_voice_message_that_is_no_opus_is_not_delivered(server: WhatsAppServer) -> None:
    ann = server.user("Ann")
    server.say(ann, ann, "hi")
    async with calling(server) as call:
        media_id = (await call(f"{server.number_id}/media", form(b"OggS vorbis", "audio/ogg")))[1]["id"]
        audio = {"messaging_product": "whatsapp", "to": ann["id"], "type": "audio", "audio": {"id": media_id}}
        assert (await call(f"{server.number_id}/messages", audio))[0] == 200
    assert statuses(server) == [("failed", 131053)]


async def test_a_callback_that_does_not_repeat_the_challenge_is_refused(server: WhatsAppServer) -> None:
    wanted = {"override_callback_uri": f"{server.url}/nowhere", "verify_token": "word"}
    async with calling(server) as call:
        assert (await call(server.number_id, {"webhook_configuration": wanted}))[1] == 2200
    assert not server.hook.url
