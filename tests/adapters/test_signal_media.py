"""Files on Signal: read from the daemon only when they are asked for, piece by piece, and never held as a whole."""

import base64
from collections.abc import AsyncIterator

import pytest

from adapters.signal_harness import Device, Devices
from belino.domain.errors import AdapterError, MediaError, MediaExpired
from belino.domain.media import MediaKind
from belino.net.stream import base64_decoded
from belino.testing import FakeUpload, SignalServer, make_png
from belino.testing.faults import CannedAnswer, Reset, Truncate

PICTURE = make_png(400, 300)


async def pieces(text: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(text), size):
        yield text[at : at + size]


@pytest.mark.parametrize("size", [1, 3, 4, 5, 1000])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 1001])
async def test_base64_is_decoded_however_it_is_cut(size: int, length: int) -> None:
    content = bytes(range(256)) * 4
    told = base64.b64encode(content[:length]) + b'"},"id":1}'
    out = b"".join([piece async for piece in base64_decoded(told[:2], pieces(told[2:], size))])
    assert out == content[:length]


async def test_text_that_is_no_base64_or_has_no_end_is_an_error() -> None:
    for told in (b"****", b'!!!!"'):
        with pytest.raises(AdapterError):
            _ = [piece async for piece in base64_decoded(told, pieces(b"", 1))]


async def test_a_picture_and_a_quote_with_its_thumbnail_are_fetched_when_asked_for(
    signal: SignalServer, device: Device
) -> None:
    ann = signal.user("Ann")
    async with device.listening():
        shown = signal.say(
            ann, ann, "look", files=[PICTURE, FakeUpload(content=b"a" * 99, name="a.txt", mime="text/plain")]
        )
        signal.say(ann, ann, "what is it?", quote=shown)
        await device.heard(2)
        assert signal.bytes_served == 0
        picture, note = device.messages[0].media
        assert await device.fetch(picture) == PICTURE
        assert await device.fetch(note) == b"a" * 99
        quote = device.messages[1].quote
        assert quote is not None
        assert (await device.fetch(quote.media[0]))[:3] == b"\xff\xd8\xff"
    assert (picture.size, picture.width, note.file_name) == (len(PICTURE), 400, "a.txt")


async def test_a_sticker_is_fetched_from_its_pack(signal: SignalServer, device: Device) -> None:
    ann = signal.user("Ann")
    signal.stickers["00abac3bc18d7f599bff2325dc306d43", 2] = b"RIFFxxxxWEBP"
    async with device.listening():
        signal.say(ann, ann, sticker=("00abac3bc18d7f599bff2325dc306d43", 2))
        await device.heard(1)
    (ref,) = device.messages[0].media
    assert (ref.kind, await device.fetch(ref)) == (MediaKind.STICKER, b"RIFFxxxxWEBP")


async def test_a_file_that_the_daemon_does_not_hold_has_expired(signal: SignalServer, device: Device) -> None:
    ann = signal.user("Ann")
    async with device.listening():
        signal.say(ann, ann, files=[PICTURE])
        await device.heard(1)
    (ref,) = device.messages[0].media
    signal.answers.ignores_attachments = True
    with pytest.raises(MediaExpired, match="only without --ignore-attachments"):
        await device.fetch(ref)


async def test_a_failure_before_the_first_byte_is_tried_again_and_a_broken_file_is_an_error(
    signal: SignalServer, devices: Devices
) -> None:
    ann = signal.user("Ann")
    device = devices()
    async with device.listening():
        signal.say(ann, ann, files=[FakeUpload(content=b"z" * 500_000, name="z.bin")])
        await device.heard(1)
    (ref,) = device.messages[0].media
    signal.fail("getAttachment", CannedAnswer(status=502))
    assert len(await device.fetch(ref)) == 500_000
    signal.fail("getAttachment", Truncate(at=200_000))
    with pytest.raises((AdapterError, MediaError)):
        await device.fetch(ref)
    signal.fail("getAttachment", Reset(), times=9)
    with pytest.raises(AdapterError):
        await device.fetch(ref)
