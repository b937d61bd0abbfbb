"""Encrypted files of a linked device: fetched by their links, checked, and had from the phone when they are gone."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.harness import until
from adapters.linked_harness import Phone
from belino.domain.errors import AdapterError, MediaError, MediaExpired, MediaRefused
from belino.domain.media import MediaRef
from belino.testing import FakeUpload, make_png
from belino.testing.faults import CannedAnswer, Truncate
from belino.testing.linked import LinkedWorld

PICTURE = make_png(64, 48)


@pytest.fixture
async def world() -> AsyncIterator[LinkedWorld]:
    async with LinkedWorld() as world:
        yield world


@pytest.fixture
async def phone(world: LinkedWorld, tmp_path: Path) -> AsyncIterator[Phone]:
    phone = Phone(world, tmp_path)
    async with phone.listening():
        yield phone
    await phone.client.close()


async def sent(world: LinkedWorld, phone: Phone, content: bytes = PICTURE, **more: Any) -> MediaRef:
    before = len(phone.messages)
    world.say(world.person("491701"), file=more.pop("file", content), **more)
    await until(lambda: len(phone.messages) > before)
    return replace(phone.messages[-1].media[0], id="wa_k3v9d0q2m7xa")


async def test_nothing_is_fetched_on_arrival_and_one_request_fetches_a_file(world: LinkedWorld, phone: Phone) -> None:
    ref = await sent(world, phone)
    assert (world.calls["file"], world.bytes_served) == (0, 0)
    assert await phone.fetch(ref) == PICTURE
    assert world.calls["file"] == 1


async def test_a_download_that_breaks_off_goes_on_where_it_was(world: LinkedWorld, phone: Phone) -> None:
    content = hashlib.sha256(b"film").digest() * 100_000
    film = FakeUpload(content=content, mime="video/mp4")
    ref = await sent(world, phone, file=film, part="videoMessage")
    world.fail("file", Truncate(at=1_500_000))
    assert await phone.fetch(ref) == content
    assert world.calls["file"] == 2
    assert world.bytes_served < len(content) + 200_000


@pytest.mark.parametrize("status", [403, 404, 410])
async def test_a_file_that_whatsapp_no_longer_has_is_uploaded_again_by_the_phone(
    world: LinkedWorld, phone: Phone, status: int
) -> None:
    ref = await sent(world, phone)
    world.fail("file", CannedAnswer(status=status))
    assert await phone.fetch(ref) == PICTURE
    assert (world.calls["file"], world.calls["reupload"]) == (2, 1)


async def test_a_file_that_nobody_has_is_expired_and_asked_for_once(world: LinkedWorld, phone: Phone) -> None:
    ref = await sent(world, phone)
    world.expire_files()
    world.phone_has_files = False
    with pytest.raises(MediaExpired, match="wa_k3v9d0q2m7xa"):
        await phone.fetch(ref)
    world.phone_has_files = True
    world.fail("file", CannedAnswer(status=410), times=2)
    with pytest.raises(MediaExpired):
        await phone.fetch(ref)
    assert world.calls["reupload"] == 2


async def test_without_a_connection_a_file_is_fetched_and_an_expired_one_is_told(
    world: LinkedWorld, phone: Phone
) -> None:
    ref = await sent(world, phone)
    phone.adapter._client = None
    assert await phone.fetch(ref) == PICTURE
    world.expire_files()
    with pytest.raises(MediaExpired):
        await phone.fetch(ref)


async def test_a_file_to_be_viewed_once_is_refused_without_a_request(world: LinkedWorld, phone: Phone) -> None:
    with pytest.raises(MediaRefused, match="viewed once"):
        await phone.fetch(await sent(world, phone, once=True))
    assert world.calls["file"] == 0


@pytest.mark.parametrize(
    ("locator", "sealed"),
    [
        ({"path": "https://evil.example/x"}, {}),
        ({"path": "@evil.example/x"}, {}),
        ({"type": "spreadsheet"}, {}),
        ({"plain": "not base64!"}, {}),
        ({}, {"key": ""}),
        ({}, {"key": "c2hvcnQ="}),
    ],
)
async def test_a_message_that_names_no_file_of_whatsapp_is_refused(
    world: LinkedWorld, phone: Phone, locator: dict[str, str], sealed: dict[str, str]
) -> None:
    ref = await sent(world, phone)
    broken = replace(ref, locator={**ref.locator, **locator}, sealed={**ref.sealed, **sealed})
    with pytest.raises((MediaError, AdapterError)):
        await phone.fetch(broken)


async def test_a_file_that_was_changed_on_the_way_is_refused(world: LinkedWorld, phone: Phone) -> None:
    ref = await sent(world, phone)
    (hosted,) = world._files.values()
    assert isinstance(hosted.upload.content, bytes)
    changed = bytearray(hosted.upload.content)
    changed[40] ^= 1
    hosted.upload = replace(hosted.upload, content=bytes(changed))
    with pytest.raises(MediaRefused, match="checksum"):
        await phone.fetch(ref)


async def test_a_temporary_failure_is_tried_again(world: LinkedWorld, phone: Phone) -> None:
    ref = await sent(world, phone)
    world.fail("file", CannedAnswer(status=503))
    assert await phone.fetch(ref) == PICTURE
