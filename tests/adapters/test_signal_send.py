"""What leaves for Signal: text with its styles, files, quotes, edits; and what the daemon's refusals mean."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.signal_harness import Device, Devices, channel
from belino.adapters.signal import MOST_EDITS
from belino.adapters.signal.capabilities import FILE_BYTES, INLINE_BYTES
from belino.adapters.signal.send import styled
from belino.domain.errors import (
    AdapterError,
    NothingToEdit,
    RateLimited,
    Unanswered,
    Unauthorized,
    Undeliverable,
    Unreached,
)
from belino.domain.limits import Markup, SendAs
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind
from belino.testing import SignalServer, make_png
from belino.testing.faults import CannedAnswer, Reset

PICTURE = make_png(40, 30)


def file(
    content: bytes, name: str, mime: str, form: SendAs = SendAs.DOCUMENT, *, size: int | None = None
) -> OutgoingFile:
    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(content), 1000):
            yield content[at : at + 1000]

    sha256 = hashlib.sha256(content).hexdigest()
    return OutgoingFile(
        name=name, mime=mime, size=len(content) if size is None else size, sha256=sha256, send_as=form, chunks=chunks
    )


def text(place: dict[str, Any], words: str = "hello", **more: Any) -> Parcel:
    return Parcel(key="k", conversation=channel(place), text=words, **more)


def test_tags_become_styles_counted_in_utf16() -> None:
    code = '<pre><code class="language-py">a &lt; b</code></pre>'
    html = f"😀 <b>bold <i>both</i></b> &lt;x&gt; {code} <tg-spoiler>no</tg-spoiler>"
    words, styles = styled(html)
    assert words == "😀 bold both <x> a < b no"
    assert styles == ("8:4:ITALIC", "3:9:BOLD", "17:5:MONOSPACE", "23:2:SPOILER")


def test_a_link_is_followed_by_its_address_unless_it_is_that() -> None:
    assert styled('<a href="https://a.example/">here</a>')[0] == "here (https://a.example/)"
    assert styled('<a href="https://a.example/">https://a.example/</a>')[0] == "https://a.example/"


async def test_the_time_is_the_id_and_styles_are_kept(signal: SignalServer, device: Device) -> None:
    ann = signal.user("Ann")
    receipt = await device.adapter.send(text(ann, "<b>yes</b>", markup=Markup.HTML))
    (sent,) = signal.sent
    assert (sent["message"], sent["textStyle"], receipt.message_id) == ("yes", ["0:3:BOLD"], str(sent["timestamp"]))


async def test_an_answer_in_a_group_quotes_what_it_answers(signal: SignalServer, device: Device) -> None:
    ann = signal.user("Ann")
    hikers = signal.group("Hikers", ann)
    async with device.listening():
        asked = signal.say(hikers, ann, "who comes?")
        await device.heard(1)
        await device.adapter.send(text(hikers, reply_to=device.messages[0].id, quoted="who comes?"))
    (sent,) = signal.sent
    quote = (sent["quoteTimestamp"], sent["quoteAuthor"], sent["quoteMessage"])
    assert quote == (asked["timestamp"], ann["uuid"], "who comes?")


async def test_files_go_as_data_uris_with_their_names_and_types(signal: SignalServer, device: Device) -> None:
    ann = signal.user("Ann")
    album = (
        file(PICTURE, "a b;c,ü.png", "image/png", SendAs.PHOTO),
        file(b"x" * 10_001, "report.pdf", "application/pdf"),
        file(b"", "empty.txt", "text/plain"),
    )
    await device.adapter.send(replace(text(ann, "see"), kind=ParcelKind.FILES, files=album[:2]))
    (sent,) = signal.sent
    assert [(each.name, each.mime, each.sha256) for each in sent["files"]] == [
        (each.name, each.mime, each.sha256) for each in album[:2]
    ]
    assert sent["message"] == "see"


async def test_a_voice_message_is_marked_as_one(signal: SignalServer, device: Device) -> None:
    ann = signal.user("Ann")
    note = file(b"OggS" * 100, "note.ogg", "audio/ogg; codecs=opus", SendAs.VOICE)
    await device.adapter.send(replace(text(ann, ""), kind=ParcelKind.FILES, files=(note,)))
    (sent,) = signal.sent
    assert (sent["voiceNote"], sent["files"][0].mime) == (True, "audio/ogg")


async def test_large_files_go_through_the_shared_folder_and_are_removed_from_it(
    signal: SignalServer, devices: Devices, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    device = devices(shared_folder=shared)
    ann = signal.user("Ann")
    large = file(b"y" * 3_000_000, "../report.pdf", "application/pdf")
    await device.adapter.send(replace(text(ann, ""), kind=ParcelKind.FILES, files=(large,)))
    assert (signal.received[0].name, signal.received[0].sha256) == (".._report.pdf".lstrip("."), large.sha256)
    assert list(shared.iterdir()) == []
    assert device.adapter.limits.files[SendAs.DOCUMENT].max_bytes == FILE_BYTES
    assert devices().adapter.limits.files[SendAs.DOCUMENT].max_bytes == INLINE_BYTES


async def test_a_shared_folder_that_is_missing_is_a_reason_and_sends_nothing(
    signal: SignalServer, devices: Devices, tmp_path: Path
) -> None:
    device = devices(shared_folder=tmp_path / "missing")
    some = file(b"y" * 3_000, "report.pdf", "application/pdf")
    with pytest.raises(Undeliverable, match=r"report\.pdf cannot be handed to signal-cli: the shared folder cannot be"):
        await device.adapter.send(replace(text(signal.user("Ann"), ""), kind=ParcelKind.FILES, files=(some,)))
    shared = tmp_path / "shared"
    shared.mkdir()
    shorter = file(b"short", "a.bin", "application/octet-stream", size=5_000)
    with pytest.raises(Undeliverable, match="is no longer the file"):
        device = devices(shared_folder=shared)
        await device.adapter.send(replace(text(signal.user("Bob"), ""), kind=ParcelKind.FILES, files=(shorter,)))
    assert signal.sent == []


async def test_the_inline_limit_is_what_the_daemon_can_read(signal: SignalServer, device: Device) -> None:
    ann = signal.user("Ann")
    fits = file(b"z" * INLINE_BYTES, "fits.bin", "application/octet-stream")
    await device.adapter.send(replace(text(ann, ""), kind=ParcelKind.FILES, files=(fits,)))
    assert signal.received[0].sha256 == fits.sha256
    too_large = file(b"z" * (INLINE_BYTES + 400_000), "too-large.bin", "application/octet-stream")
    with pytest.raises(AdapterError, match="internal server error"):
        await device.adapter.send(replace(text(ann, ""), kind=ParcelKind.FILES, files=(too_large,)))


async def test_a_file_that_is_no_longer_what_it_was_is_not_sent(signal: SignalServer, device: Device) -> None:
    ann = signal.user("Ann")
    shorter = file(b"short", "a.bin", "application/octet-stream", size=5_000)
    with pytest.raises(Undeliverable, match=r"a\.bin is no longer the file"):
        await device.adapter.send(replace(text(ann, ""), kind=ParcelKind.FILES, files=(shorter,)))
    assert signal.sent == []


async def test_edits_change_the_message_and_drafts_stop_where_signal_does(signal: SignalServer, device: Device) -> None:
    ann = signal.user("Ann")
    shown = await device.adapter.send(
        text(
            ann,
            "one …",
        )
    )
    for number in range(MOST_EDITS + 3):
        edited = await device.adapter.edit(shown.message_id, text(ann, f"one {number} …", kind=ParcelKind.EDIT))
        assert edited.message_id == shown.message_id
    await device.adapter.edit(shown.message_id, text(ann, "the answer", kind=ParcelKind.EDIT))
    (sent,) = signal.sent
    assert (sent["message"], len(sent["edits"])) == ("the answer", MOST_EDITS + 1)


async def test_a_message_of_ours_is_deleted_and_reacted_to(signal: SignalServer, device: Device) -> None:
    ann = signal.user("Ann")
    shown = await device.adapter.send(text(ann))
    await device.adapter.react(channel(ann), shown.message_id, "👀")
    await device.adapter.delete(channel(ann), shown.message_id)
    assert signal.sent[0]["deleted"]
    (reaction,) = [call.params for call in signal.requests if call.method == "sendReaction"]
    assert (reaction["targetAuthor"], reaction["targetTimestamp"]) == (signal.number, int(shown.message_id))


async def test_an_answer_in_a_place_with_a_timer_expires_too(signal: SignalServer, device: Device) -> None:
    ann = signal.user("Ann")
    ann["timer"] = 60
    async with device.listening():
        receipt = await device.adapter.send(text(ann))
        assert receipt.expires is not None
        assert receipt.expires - device.context.clock.now() <= timedelta(seconds=60)
        signal.set_timer(ann, ann, 0)
        await device.heard(1)
        assert (await device.adapter.send(text(ann))).expires is None


async def test_a_rate_limit_is_obeyed_with_the_wait_that_signal_names(devices: Devices) -> None:
    async with SignalServer(per_minute=1) as hasty:
        ann, bob = hasty.user("Ann"), hasty.user("Bob")
        device = devices(hasty)
        await device.adapter.send(text(ann))
        with pytest.raises(RateLimited) as first:
            await device.adapter.send(text(ann))
        assert 50 < first.value.retry_after <= 60
        with pytest.raises(RateLimited):
            await device.adapter.send(text(ann))
        await device.adapter.send(text(bob))
        assert hasty.calls["send"] == 3


@pytest.mark.parametrize(
    ("state", "error", "says"),
    [
        ({"trust": "UNTRUSTED"}, Undeliverable, r"the safety number of \+\d+ changed"),
        ({"left": True}, Undeliverable, "not on Signal"),
    ],
)
async def test_a_person_who_cannot_be_reached_is_told_with_the_reason(
    signal: SignalServer, device: Device, state: dict[str, Any], error: type[Exception], says: str
) -> None:
    ann = signal.user("Ann")
    ann |= state
    with pytest.raises(error, match=says):
        await device.adapter.send(text(ann))


async def test_a_group_that_we_left_is_closed(signal: SignalServer, device: Device) -> None:
    hikers = signal.group("Hikers", signal.user("Ann"))
    hikers["isMember"] = False
    with pytest.raises(Undeliverable, match="not in this group"):
        await device.adapter.send(text(hikers))


async def test_an_unlinked_account_is_a_refusal_of_our_credentials(signal: SignalServer, device: Device) -> None:
    ann = signal.user("Ann")
    async with device.listening():
        signal.answers.linked = False
        with pytest.raises(Unauthorized, match="`belino setup signal` links it"):
            await device.adapter.send(text(ann))


async def test_without_an_answer_nobody_knows_whether_it_was_sent(signal: SignalServer, device: Device) -> None:
    ann = signal.user("Ann")
    async with device.listening():
        signal.fail("send", Reset(done=True))
        with pytest.raises(Unanswered):
            await device.adapter.send(text(ann))
    assert len(signal.sent) == 1


async def test_a_daemon_that_is_down_was_not_reached(signal: SignalServer, devices: Devices) -> None:
    ann = signal.user("Ann")
    device = devices()
    async with device.listening():
        pass
    await signal._loopback.stop()
    with pytest.raises(Unreached):
        await device.adapter.send(text(ann))


async def test_an_error_page_is_no_answer_and_a_wait_in_its_headers_is_obeyed(
    signal: SignalServer, device: Device
) -> None:
    ann = signal.user("Ann")
    async with device.listening():
        signal.fail("send", CannedAnswer(status=502, body=b"<html>"))
        with pytest.raises(AdapterError, match="status 502"):
            await device.adapter.send(text(ann))
        signal.fail("send", CannedAnswer(status=429, headers={"Retry-After": "7"}))
        with pytest.raises(RateLimited):
            await device.adapter.send(text(ann))


async def test_an_edit_of_a_message_that_cannot_be_changed_is_sent_anew(signal: SignalServer, device: Device) -> None:
    hikers = signal.group("Hikers", signal.user("Ann"))
    shown = await device.adapter.send(text(hikers))
    hikers["isMember"] = False
    with pytest.raises(NothingToEdit):
        await device.adapter.edit(shown.message_id, text(hikers, "other", kind=ParcelKind.EDIT))
