"""The Slack we test against, met by slack-sdk itself: messages, their history, their changes."""

from collections.abc import AsyncIterator

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from belino.testing import FakeClock, make_jpeg
from belino.testing.slack import SlackServer
from testing.slack_app import listening, refused, web_client


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    async with SlackServer(clock=FakeClock()) as server:
        yield server


@pytest.fixture
def app(server: SlackServer) -> AsyncWebClient:
    return web_client(server)


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


async def test_a_token_that_is_none_is_refused(server: SlackServer) -> None:
    assert (await refused(web_client(server, "xoxb-wrong").auth_test()))["error"] == "invalid_auth"


async def test_the_librarys_own_upload_goes_through_three_steps(server: SlackServer, app: AsyncWebClient) -> None:
    ana = server.user("Ana Lima")
    general = server.channel("general", ana)
    picture = make_jpeg(64, 48)
    await app.files_upload_v2(
        channel=general["id"],
        initial_comment="look",
        file_uploads=[{"content": picture, "filename": "a.jpg"}, {"content": b"words", "filename": "b.txt"}],
    )
    (message,) = server.sent
    assert message["text"] == "look"
    assert [file["name"] for file in message["files"]] == ["a.jpg", "b.txt"]
    assert [upload.size for upload in server.received] == [len(picture), 5]
