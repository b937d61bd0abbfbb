"""LINE's files: fetched by the message's id when somebody asks, once LINE has them ready, or told to be gone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer

from adapters.line_harness import Account, Accounts
from belino.adapters.line.media import PREPARE_SECONDS
from belino.domain.errors import AdapterError, AddressRefused, MediaError, MediaExpired, Unauthorized
from belino.domain.media import MediaRef
from belino.net.client import Client
from belino.net.guard import Guard
from belino.testing import FakeClock, FakeUpload, LineServer, make_jpeg
from belino.testing.faults import CannedAnswer, Truncate
from belino.testing.line.world import KEPT_SECONDS

PHOTO = make_jpeg(64, 48)


async def ref_of(account: Account, **fields: Any) -> MediaRef:
    """The ref of what somebody sends; nothing is fetched for it."""
    ada = account.server.user("Ada")
    async with account.listening():
        account.server.say(ada, ada, **fields)
        assert (await account.hear()).status == 200
    assert (account.server.calls["file"], account.server.calls["transcoding"], account.server.bytes_served) == (0, 0, 0)
    (ref,) = account.messages[-1].media
    return ref


@pytest.mark.parametrize("kind", ["image", "video", "audio", "file"])
async def test_a_file_is_fetched_by_its_message_s_id(account: Account, kind: str) -> None:
    ref = await ref_of(account, **{kind: PHOTO})
    assert await account.fetch(ref) == PHOTO
    assert account.server.calls["transcoding"] == (1 if kind in ("video", "audio") else 0)


async def test_a_video_is_waited_for_while_line_prepares_it(line: LineServer, accounts: Accounts) -> None:
    clock = FakeClock()
    account = accounts(clock=clock)
    ada = line.user("Ada")
    account.server.say(ada, ada, video=PHOTO)
    event = account.server._queue.get_nowait()
    async with account.listening():
        now = round(clock.now().timestamp() * 1000)
        assert (await account.adapter.take_hook(account.hook([{**event, "timestamp": now}]))).status == 200
    (ref,) = account.messages[0].media
    line.preparing[ref.message_id] = 3
    assert await outcome(account, clock, ref) == PHOTO
    assert line.calls["transcoding"] == 4
    line.preparing[ref.message_id] = 10**6
    assert f"after {PREPARE_SECONDS:g} seconds" in str(await outcome(account, clock, ref))
    line.preparing[ref.message_id] = -1
    assert "could not prepare" in str(await outcome(account, clock, ref))


async def outcome(account: Account, clock: FakeClock, ref: MediaRef) -> object:
    """What a fetch gives or says, while time goes on."""

    async def move() -> None:
        while True:
            await asyncio.sleep(0.001)
            await clock.advance(1)

    async with asyncio.TaskGroup() as group:
        moving = group.create_task(move())
        try:
            return await account.fetch(ref)
        except (AdapterError, MediaError) as error:
            return str(error)
        finally:
            moving.cancel()


async def test_a_picture_that_is_not_ready_yet_is_told_as_that(account: Account) -> None:
    ref = await ref_of(account, image=PHOTO)
    account.server.preparing[ref.message_id] = 5
    with pytest.raises(MediaError, match="still preparing"):
        await account.fetch(ref)


@pytest.mark.parametrize("kind", ["image", "video"])
async def test_a_file_that_line_no_longer_has_is_expired(line: LineServer, account: Account, kind: str) -> None:
    ref = await ref_of(account, **{kind: PHOTO})
    stored = line.files[ref.message_id]
    stored.opened_at = line.clock.monotonic() - KEPT_SECONDS
    with pytest.raises(MediaExpired, match="no longer hands out"):
        await account.fetch(ref)
    del line.files[ref.message_id]
    with pytest.raises(MediaExpired, match="no longer hands out"):
        await account.fetch(ref)


async def test_a_download_that_breaks_off_is_resumed(account: Account) -> None:
    content = PHOTO * 200
    ref = await ref_of(account, file=FakeUpload(content=content, name="a.bin"))
    account.server.fail("file", Truncate(at=100_000))
    assert await account.fetch(ref) == content


async def test_a_revoked_token_is_told_at_the_download(account: Account) -> None:
    ref = await ref_of(account, image=PHOTO)
    account.server.fail("file", CannedAnswer(status=401), times=9)
    with pytest.raises(Unauthorized):
        await account.fetch(ref)


async def test_a_sticker_s_picture_is_fetched_without_the_token(account: Account) -> None:
    raw = {"type": "sticker", "packageId": "446", "stickerId": "1988", "stickerResourceType": "STATIC"}
    ref = await ref_of(account, raw=raw)
    assert (await account.fetch(ref)).startswith(b"\x89PNG")


@asynccontextmanager
async def elsewhere(seen: list[dict[str, str]]) -> AsyncIterator[str]:
    async def serve(request: web.BaseRequest) -> web.Response:
        seen.append({name.lower(): value for name, value in request.headers.items()})
        return web.Response(body=PHOTO, content_type="image/jpeg")

    async with RawTestServer(serve) as server:
        yield f"127.0.0.1:{server.port}"


async def test_a_file_elsewhere_is_fetched_through_the_guard_and_without_the_token(account: Account) -> None:
    seen: list[dict[str, str]] = []
    async with elsewhere(seen) as host:
        provider = {"type": "external", "originalContentUrl": f"http://{host}/full.jpg"}
        ref = await ref_of(account, raw={"type": "image", "contentProvider": provider})
        with pytest.raises(AddressRefused):
            await account.fetch(ref)
        assert seen == []
        allowing = Client(guard=Guard([host]), hosts=[account.server.url.removeprefix("http://")])
        account.adapter._client._http = allowing
        assert await account.fetch(ref) == PHOTO
        await allowing.close()
    assert "authorization" not in seen[0]


async def test_a_file_elsewhere_whose_address_is_lost_is_expired(account: Account) -> None:
    provider = {"type": "external", "originalContentUrl": "https://pictures.example/a.jpg"}
    ref = await ref_of(account, raw={"type": "image", "contentProvider": provider})
    with pytest.raises(MediaExpired):
        await account.fetch(replace(ref, sealed={}))
