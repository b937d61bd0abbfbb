"""The LINE of the tests keeps the documented rules: tokens, keys, limits, quotas, preparation, redelivery."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import RawTestServer

from belino.testing import FakeClock, LineServer, make_jpeg
from belino.testing.line.calls import KEY_SECONDS
from belino.testing.line.world import KEPT_SECONDS, REDELIVERY_SECONDS, REPLY_SECONDS

TEXT = [{"type": "text", "text": "hello"}]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def line(clock: FakeClock) -> AsyncIterator[LineServer]:
    async with LineServer(clock=clock) as running:
        running.webhook.active = False
        yield running


async def call(line: LineServer, path: str, fields: Any = None, /, **headers: str) -> tuple[int, Any]:
    method = "GET" if fields is None else "POST"
    sent = {"Authorization": f"Bearer {line.token}", **headers}
    async with (
        ClientSession() as session,
        session.request(method, f"{line.url}/v2/bot/{path}", json=fields, headers=sent) as answer,
    ):
        return answer.status, await answer.json()


def token_of(line: LineServer, *, ago: float = 0.0) -> str:
    """A reply token whose event was delivered so long ago."""
    ada = line.user("Ada")
    event = line.event("message", ada, ada, message={"id": "1", "type": "text", "text": "hi"})
    line.tokens[event["replyToken"]].until = line.clock.monotonic() + REPLY_SECONDS - ago
    return str(event["replyToken"])


async def test_without_the_token_nothing_is_told(line: LineServer) -> None:
    assert (await call(line, "info", Authorization="Bearer wrong"))[0] == 401
    assert (await call(line, "info"))[1]["userId"] == line.bot["userId"]


async def test_a_reply_token_serves_once_within_a_minute_of_its_delivery(line: LineServer) -> None:
    for ago, status in ((59.0, 200), (60.0, 400)):
        fields = {"replyToken": token_of(line, ago=ago), "messages": TEXT}
        assert (await call(line, "message/reply", fields))[0] == status
        assert (await call(line, "message/reply", fields))[1]["message"] == "Invalid reply token"
    fields = {"replyToken": token_of(line), "messages": TEXT}
    assert (await call(line, "message/reply", fields, **{"X-Line-Retry-Key": str(uuid.uuid4())}))[0] == 400


async def test_a_push_under_a_key_is_shown_once_for_a_day(line: LineServer, clock: FakeClock) -> None:
    fields, key = {"to": line.user("Ada")["userId"], "messages": TEXT}, {"X-Line-Retry-Key": str(uuid.uuid4())}
    first = await call(line, "message/push", fields, **key)
    status, again = await call(line, "message/push", fields, **key)
    assert (first[0], status, again["message"]) == (200, 409, "The retry key is already accepted")
    assert again["sentMessages"] == first[1]["sentMessages"] and len(line.sent) == 1
    await clock.advance(KEY_SECONDS)
    assert (await call(line, "message/push", fields, **key))[0] == 200
    assert (await call(line, "message/push", fields, **{"X-Line-Retry-Key": "no uuid"}))[0] == 400


async def test_a_month_s_messages_are_counted_by_people_and_replies_are_not(line: LineServer) -> None:
    group = line.group("Trip", line.user("Ada"), line.user("Bo"))
    line.api.quota = 3
    fields = {"to": group["groupId"], "messages": TEXT * 5}
    assert (await call(line, "message/push", fields))[0] == 200
    status, told = await call(line, "message/push", fields)
    assert (status, told["message"]) == (429, "You have reached your monthly limit.")
    assert (await call(line, "message/reply", {"replyToken": token_of(line), "messages": TEXT}))[0] == 200
    assert (await call(line, "message/quota/consumption"))[1] == {"totalUsage": 2}


URL = "https://belino.example/files/x"


@pytest.mark.parametrize(
    "messages",
    [
        [],
        TEXT * 6,
        [{"type": "text", "text": ""}],
        [{"type": "text", "text": "😀" * 2501}],
        [{"type": "text", "text": "x", "quoteToken": "unknown"}],
        [{"type": "image", "originalContentUrl": URL}],
        [{"type": "image", "originalContentUrl": "http://belino.example/x", "previewImageUrl": URL}],
        [{"type": "video", "originalContentUrl": URL, "previewImageUrl": f"{URL}{'x' * 2000}"}],
        [{"type": "audio", "originalContentUrl": URL}],
        [{"type": "audio", "originalContentUrl": URL, "duration": 0}],
        [{"type": "sticker", "packageId": "1", "stickerId": "1"}],
        [{"type": "file", "originalContentUrl": URL}],
    ],
)
async def test_messages_that_line_does_not_take_are_refused_by_their_property(line: LineServer, messages: Any) -> None:
    status, told = await call(line, "message/push", {"to": line.user("Ada")["userId"], "messages": messages})
    assert status == 400 and told["details"][0]["property"].startswith("messages")
    assert line.sent == []


async def test_the_loading_animation_takes_multiples_of_five_seconds_for_a_person(line: LineServer) -> None:
    ada = line.user("Ada")["userId"]
    for fields, status in (
        ({"chatId": ada, "loadingSeconds": 20}, 202),
        ({"chatId": ada, "loadingSeconds": 7}, 400),
        ({"chatId": ada, "loadingSeconds": 65}, 400),
        ({"chatId": "C1"}, 400),
    ):
        assert (await call(line, "chat/loading/start", fields))[0] == status
    for _ in range(96):
        line.api.keep_pace("loading")
    assert (await call(line, "chat/loading/start", {"chatId": ada}))[0] == 429


async def test_a_file_is_there_once_it_is_prepared_until_it_is_dropped_or_unsent(
    line: LineServer, clock: FakeClock
) -> None:
    ada, path = line.user("Ada"), "message/{}/content"
    video, photo = line.say(ada, ada, video=make_jpeg(8, 8)), line.say(ada, ada, image=make_jpeg(8, 8))
    line.preparing[video["id"]] = 1
    assert (await call(line, path.format(video["id"])))[0] == 202
    assert (await call(line, f"{path.format(video['id'])}/transcoding"))[1] == {"status": "processing"}
    assert (await call(line, f"{path.format(video['id'])}/transcoding"))[1] == {"status": "succeeded"}
    await clock.advance(KEPT_SECONDS)
    assert (await call(line, path.format(video["id"])))[0] == 410
    line.unsend(photo)
    assert (await call(line, path.format(photo["id"])))[0] == 404


async def test_what_was_not_acknowledged_is_delivered_again_and_says_so() -> None:
    answers, seen = [500, 200], list[Any]()

    async def hook(request: web.BaseRequest) -> web.Response:
        seen.append((await request.read(), dict(request.headers)))
        return web.Response(status=answers[len(seen) - 1])

    clock = FakeClock()
    async with RawTestServer(hook) as server, LineServer(clock=clock) as line, asyncio.timeout(30):
        line.webhook.url = f"http://127.0.0.1:{server.port}/hook"
        ada = line.user("Ada")
        line.say(ada, ada, "hello")
        await clock.wake(REDELIVERY_SECONDS)
        while len(seen) < 2:
            await asyncio.sleep(0.002)
        assert [b'"isRedelivery": true' in body for body, _ in seen] == [False, True]
        assert all(headers["x-line-signature"] == line.signature(body) for body, headers in seen)
