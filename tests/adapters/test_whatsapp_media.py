"""Files come by a fresh URL, with their checksum, and the token goes to Meta's own hosts and pages only."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from adapters.whatsapp_harness import Business, Businesses
from belino.adapters.whatsapp.media import CloudDownload
from belino.domain.errors import AdapterError, MediaError, MediaExpired, MediaRefused, Unauthorized
from belino.domain.media import MediaRef
from belino.testing import FakeClock, FakeUpload, WhatsAppServer, make_jpeg
from belino.testing.faults import CannedAnswer, Changed, Endless, Reset, Truncate
from belino.testing.whatsapp.calls import FILE_PATH, LINK_SECONDS
from belino.testing.whatsapp.world import INBOUND_SECONDS

PICTURE = make_jpeg(320, 240)


@pytest.fixture
async def ref(whatsapp: WhatsAppServer, business: Business) -> MediaRef:
    """The ref of a picture that a person sent."""
    ada = whatsapp.user("Ada")
    async with business.listening():
        whatsapp.say(ada, ada, "look", files=[FakeUpload(content=PICTURE, mime="image/jpeg", name="image.jpg")])
        await business.told()
    (message,) = business.messages
    (ref,) = message.media
    return ref


async def test_a_file_is_fetched_by_its_id_with_a_fresh_url_each_time(
    whatsapp: WhatsAppServer, business: Business, ref: MediaRef
) -> None:
    assert (whatsapp.calls["media"], whatsapp.bytes_served) == (0, 0), "nothing is fetched on arrival"
    assert await business.fetch(ref) == PICTURE
    assert isinstance(whatsapp.clock, FakeClock)
    whatsapp.clock.shift(LINK_SECONDS + 1)
    assert await business.fetch(ref) == PICTURE
    assert (whatsapp.calls["media"], len({path for path, _ in whatsapp.downloads})) == (2, 2)
    assert all(allowed for _, allowed in whatsapp.downloads)
    assert all(call.fields["phone_number_id"] for call in whatsapp.requests if call.name == "media")


async def test_a_url_that_has_expired_meanwhile_is_replaced_once(
    whatsapp: WhatsAppServer, business: Business, ref: MediaRef
) -> None:
    whatsapp.fail("file", CannedAnswer(status=404))
    assert await business.fetch(ref) == PICTURE
    assert whatsapp.calls["media"] == 2
    whatsapp.fail("file", CannedAnswer(status=404), times=2)
    with pytest.raises(MediaExpired, match="keeps files for a week"):
        await business.fetch(ref)


async def test_after_a_week_a_file_is_expired_and_one_call_tells(
    whatsapp: WhatsAppServer, business: Business, ref: MediaRef
) -> None:
    assert isinstance(whatsapp.clock, FakeClock)
    whatsapp.clock.shift(INBOUND_SECONDS + 1)
    with pytest.raises(MediaExpired):
        await business.fetch(replace(ref, id="wa_0123456789ab"))
    assert whatsapp.calls["media"] == 1


async def test_bytes_that_are_not_those_that_were_announced_are_refused_at_their_end(
    whatsapp: WhatsAppServer, business: Business, ref: MediaRef
) -> None:
    whatsapp.fail("file", Changed(content=PICTURE[:-1] + b"!"))
    with pytest.raises(MediaError, match="sha256"):
        await business.fetch(ref)
    with pytest.raises(MediaError, match="sha256"):
        await business.fetch(replace(ref, locator={**ref.locator, "sha256": "0" * 64}))
    assert await business.fetch(replace(ref, locator={"media": ref.item})) == PICTURE


@pytest.mark.parametrize("fault", [Truncate(at=1000), Reset(), CannedAnswer(status=503)])
async def test_a_download_that_breaks_off_goes_on(
    whatsapp: WhatsAppServer, business: Business, ref: MediaRef, fault: Any
) -> None:
    assert isinstance(whatsapp.clock, FakeClock)
    whatsapp.fail("file", fault)
    async with asyncio.TaskGroup() as group:
        fetching = group.create_task(business.fetch(ref))
        while not fetching.done():
            await whatsapp.clock.advance(1)
            await asyncio.sleep(0.002)
    assert fetching.result() == PICTURE


async def test_a_body_without_an_end_comes_in_pieces(
    whatsapp: WhatsAppServer, business: Business, ref: MediaRef
) -> None:
    whatsapp.fail("file", Endless())
    taken = 0
    async with business.adapter.open_media(ref) as chunks:
        async for chunk in chunks:
            taken += len(chunk)
            if taken > 2 * len(PICTURE) + 1_000_000:
                break
    assert taken < 10_000_000


async def test_a_revoked_token_is_told_as_such(whatsapp: WhatsAppServer, business: Business, ref: MediaRef) -> None:
    whatsapp.revoke_token()
    with pytest.raises(Unauthorized):
        await business.fetch(ref)


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example.org/whatsapp_business/attachments/?mid=1",
        "https://lookaside.fbsbx.com.evil.example.org/whatsapp_business/attachments/?mid=1",
        "https://evil-lookaside.fbsbx.com/whatsapp_business/attachments/?mid=1",
        "https://lookaside.fbsbx.com@evil.example.org/whatsapp_business/attachments/?mid=1",
        "https://lookaside.fbsbx.com:444/whatsapp_business/attachments/?mid=1",
        "http://lookaside.fbsbx.com/whatsapp_business/attachments/?mid=1",
        "https://graph.facebook.com/v26.0/me?fields=id",
        "https://graph.facebook.com/whatsapp_business/attachments/?mid=1",
        "https://lookaside.fbsbx.com/lookaside/crawler/?url=1",
        "https://lookaside.fbsbx.com/whatsapp_business/attachments/../../elsewhere?mid=1",
        "https://lookaside.fbsbx.com/whatsapp_business/attachments/%2e%2e/elsewhere?mid=1",
        "https://lookaside.fbsbx.com/whatsapp_business/attachments/..%2felsewhere",
        "https://lookaside.fbsbx.com/whatsapp_business/attachments\\..\\elsewhere",
        "ftp://lookaside.fbsbx.com/whatsapp_business/attachments/?mid=1",
        "file:///etc/passwd",
        "//lookaside.fbsbx.com/whatsapp_business/attachments/",
        "",
    ],
)
async def test_a_url_that_is_not_metas_own_page_of_files_never_gets_the_token(
    business: Business, ref: MediaRef, url: str
) -> None:
    download = CloudDownload(business.adapter._client, ref, files_host="lookaside.fbsbx.com")
    with pytest.raises((MediaRefused, AdapterError)):
        download._checked(url)
    good = f"https://lookaside.fbsbx.com{FILE_PATH}?mid=1&ext=2&hash=3"
    assert download._checked(good) == good


async def test_a_redirect_to_another_host_gets_no_token(businesses: Businesses) -> None:
    clock = FakeClock()
    async with WhatsAppServer(clock=clock) as server, WhatsAppServer(clock=clock) as stranger:
        business, ada = businesses(server=server), server.user("Ada")
        async with business.listening():
            server.say(ada, ada, "look", files=[PICTURE])
            await business.told()
        to = f"{stranger.files_url}{FILE_PATH}?mid=1&hash=2"
        server.fail("file", CannedAnswer(status=302, body=b"", headers={"Location": to}))
        with pytest.raises((MediaError, AdapterError)):
            await business.fetch(business.messages[0].media[0])
        assert not any(allowed for _, allowed in stranger.downloads)


async def test_a_ref_whose_id_is_no_id_makes_no_call(
    whatsapp: WhatsAppServer, business: Business, ref: MediaRef
) -> None:
    before = whatsapp.calls["media"]
    for own in ("", "../me", "1?fields=x", "a" * 200):
        with pytest.raises(MediaRefused):
            await business.fetch(replace(ref, locator={"media": own}))
    assert whatsapp.calls["media"] == before
