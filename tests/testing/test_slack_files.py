"""The files of the Slack we test against: private links, uploads in three steps, and every way both go wrong."""

import asyncio
import hashlib
from collections.abc import AsyncIterator

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from belino.testing import FakeUpload, make_jpeg, make_wav
from belino.testing.faults import CannedAnswer, Stall, Truncate
from belino.testing.slack import SlackServer
from testing.slack_app import LIMIT, Told, listening, refused


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=LIMIT)) as session:
        yield session


async def get(session: aiohttp.ClientSession, link: str, token: str = "", **headers: str) -> tuple[int, str, bytes]:
    if token:
        headers["Authorization"] = f"Bearer {token}"
    async with session.get(link, headers=headers, allow_redirects=False) as answer:
        kind = answer.headers.get("Location") or answer.content_type
        return answer.status, kind, await answer.read()


def sent_file(server: SlackServer, content: bytes | FakeUpload) -> Told:
    ana = server.user("Ana Lima")
    (file,) = server.say(ana, ana, "look", files=[content])["files"]
    assert isinstance(file, dict)
    return file


async def test_a_private_link_wants_the_token_and_shows_everybody_else_a_login_page(
    server: SlackServer, session: aiohttp.ClientSession
) -> None:
    picture = make_jpeg(64, 48)
    file = sent_file(server, picture)
    assert (file["mimetype"], file["original_w"], file["size"]) == ("image/jpeg", 64, len(picture))
    for link in (file["url_private"], file["url_private_download"]):
        assert (await get(session, link, server.bot_token))[2] == picture
        status, kind, page = await get(session, link)
        assert (status, kind) == (200, "text/html")
        assert b"Sign in" in page
    server.scopes.discard("files:read")
    assert (await get(session, file["url_private"], server.bot_token))[1] == "text/html"
    assert server.bytes_served == 2 * len(picture)
    assert [allowed for _, allowed in server.downloads] == [True, False, True, False, True]


async def test_a_redirect_leads_to_a_link_that_wants_the_token_again(
    server: SlackServer, session: aiohttp.ClientSession
) -> None:
    file = sent_file(server, b"words")
    server.redirect_files = True
    status, place, _ = await get(session, file["url_private"], server.bot_token)
    assert status == 302
    assert (await get(session, server.url + place))[1] == "text/html"
    assert (await get(session, server.url + place, server.bot_token))[2] == b"words"


async def test_a_file_that_moved_is_found_again_by_its_id(
    server: SlackServer, app: AsyncWebClient, session: aiohttp.ClientSession
) -> None:
    file = sent_file(server, b"words")
    server.move_file(file["id"])
    assert (await get(session, file["url_private"], server.bot_token))[0] == 404
    fresh = (await app.files_info(file=file["id"]))["file"]
    assert (await get(session, fresh["url_private"], server.bot_token))[2] == b"words"


async def test_a_file_that_is_gone_or_hidden_leaves_its_name_in_the_message(
    server: SlackServer, app: AsyncWebClient, session: aiohttp.ClientSession
) -> None:
    ana = server.user("Ana Lima")
    one, two = server.say(ana, ana, "both", files=[b"first", b"second"])["files"]
    server.delete_file(one["id"])
    server.hide_file(two["id"])
    (message,) = (await app.conversations_history(channel=server.dm(ana)["id"]))["messages"]
    assert [file["mode"] for file in message["files"]] == ["tombstone", "hidden_by_limit"]
    assert "url_private" not in message["files"][1]
    assert (await refused(app.files_info(file=one["id"])))["error"] == "file_deleted"
    assert (await refused(app.files_info(file="F0NOTHERE00")))["error"] == "file_not_found"
    assert (await get(session, one["url_private"], server.bot_token))[0] == 404


async def test_in_a_shared_channel_events_only_name_files_and_history_tells_all(
    server: SlackServer, app: AsyncWebClient
) -> None:
    eve = server.user("Eve Ito", team="T0FARAWAY01")
    shared = server.channel("shared", eve, shared=True)
    async with listening(server) as listener:
        server.say(shared, eve, "ours", files=[make_jpeg(8, 8)])
        (event,) = await listener.wait(1)
    (stub,) = event["files"]
    assert stub["file_access"] == "check_file_info"
    assert "url_private" not in stub
    assert event["user_team"] == "T0FARAWAY01"
    whole = (await app.files_info(file=stub["id"]))["file"]
    (message,) = (await app.conversations_history(channel=shared["id"]))["messages"]
    assert message["files"] == [whole]


async def test_a_recording_says_that_it_is_one(server: SlackServer) -> None:
    ana = server.user("Ana Lima")
    (file,) = server.say(ana, ana, voice=FakeUpload(content=make_wav(), duration=3))["files"]
    assert (file["subtype"], file["duration_ms"], file["mimetype"]) == ("slack_audio", 3000, "audio/mp4")


async def test_the_librarys_own_upload_goes_through_three_steps(server: SlackServer, app: AsyncWebClient) -> None:
    general = server.channel("general", server.user("Ana Lima"))
    picture = make_jpeg(64, 48)
    await app.files_upload_v2(
        channel=general["id"],
        initial_comment="look",
        file_uploads=[{"content": picture, "filename": "a.jpg"}, {"content": b"words", "filename": "b.txt"}],
    )
    (message,) = server.sent
    assert message["text"] == "look"
    assert [file["name"] for file in message["files"]] == ["a.jpg", "b.txt"]
    assert [upload.sha256 for upload in server.received] == [
        hashlib.sha256(content).hexdigest() for content in (picture, b"words")
    ]
    shares = (await app.files_info(file=message["files"][0]["id"]))["file"]["shares"]
    assert shares["public"][general["id"]][0]["ts"] == message["ts"]


async def test_an_upload_must_be_as_long_as_announced_and_complete_before_it_is_shown(
    server: SlackServer, app: AsyncWebClient, session: aiohttp.ClientSession
) -> None:
    where = server.dm(server.user("Ana Lima"))["id"]
    begun = await app.files_getUploadURLExternal(filename="a.bin", length=4)
    file: Told = {"id": begun["file_id"], "title": "A"}
    early = await refused(app.files_completeUploadExternal(files=[file], channel_id=where))
    assert early["error"] == "file_not_found"
    async with session.post(begun["upload_url"], data=b"123") as answer:
        assert answer.status == 400
    async with session.post(begun["upload_url"], data=b"1234") as answer:
        assert await answer.text() == "OK - 4"
    wrong = await refused(app.files_completeUploadExternal(files=[file], channel_id="general"))
    assert wrong["error"] == "invalid_arguments"
    done = await app.files_completeUploadExternal(files=[file], channel_id=where, thread_ts="1767268800.000100")
    assert done["files"] == [{"id": begun["file_id"], "title": "A"}]
    assert server.sent[0]["thread_ts"] == "1767268800.000100"
    again = await refused(app.files_completeUploadExternal(files=[file], channel_id=where))
    assert again["error"] == "file_not_found"
    assert (await refused(app.files_getUploadURLExternal(filename="x", length=2**31)))["error"] == (
        "file_upload_size_restricted"
    )


async def test_downloads_and_uploads_have_bad_days(
    server: SlackServer, app: AsyncWebClient, session: aiohttp.ClientSession
) -> None:
    link, token = sent_file(server, bytes(200_000))["url_private"], server.bot_token
    assert len((await get(session, link, token, Range="bytes=150000-"))[2]) == 50_000
    server.fail("file", Truncate(at=70_000))
    with pytest.raises(aiohttp.ClientPayloadError):
        await get(session, link, token)
    server.fail("file", CannedAnswer(status=503, body=b"later"))
    assert (await get(session, link, token))[0] == 503
    begun = await app.files_getUploadURLExternal(filename="a.bin", length=4)
    server.fail("upload", Stall())
    async with asyncio.TaskGroup() as group:
        stuck = group.create_task(session.post(begun["upload_url"], data=b"1234").__aenter__())
        async with asyncio.timeout(LIMIT):
            while not server.stalled:
                await asyncio.sleep(0)
        stuck.cancel()
    assert server.received == []
