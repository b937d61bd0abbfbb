"""An account on Signal: it hears people through the daemon, loses nothing when the stream breaks, and answers."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from adapters.harness import LIMIT, until
from adapters.signal_harness import Device, Devices, channel
from belino.adapters.signal import Config
from belino.adapters.signal.authors import SignalAccount, SignalParseContext
from belino.adapters.signal.parse import parse
from belino.domain.errors import AdapterError, ConfigError, Unauthorized, Unfindable
from belino.domain.linking import LinksDevice
from belino.domain.outcome import MessageOutcome
from belino.domain.ports import Adapter
from belino.domain.reply import Parcel
from belino.net.clock import SystemClock
from belino.testing import FakeClock, FakeUpload, SignalServer, Trial, check_adapter, make_png
from belino.testing.clock import START
from belino.testing.faults import CannedAnswer, Reset

PICTURE = make_png(40, 30)


def view_of(server: SignalServer) -> SignalParseContext:
    me = SignalAccount(number=server.number, uuid=server.me["uuid"])
    return SignalParseContext(account="default", me=me, received=START)


async def test_signal_keeps_the_adapter_contract(signal: SignalServer, devices: Devices) -> None:
    ann, bob = signal.user("Ann"), signal.user("Bob")
    hikers = signal.group("Hikers", ann, bob)
    spare = [signal.user("Cas"), signal.user("Dan")]
    signal.say(ann, ann, "see", files=[PICTURE, FakeUpload(content=b"a report" * 30_000, name="report.pdf")])
    signal.say(ann, ann, viewOnce=True)
    other = signal.say(hikers, ann, "one")
    signal.say(hikers, bob, "two", quote=other)
    signal.say(hikers, bob, "\ufffc two", quote=other, mentions=[signal.mention(ann, 0)])
    picture, once, _, in_thread, to_another = events = list(signal.waiting)
    signal.waiting.clear()
    media = {own: bytes(upload.content) for own, upload in signal.attachments.items()}  # type: ignore[arg-type]
    made: list[Device] = []

    def make() -> Adapter:
        made.append(devices())
        return made[-1].adapter

    async def deliver(_: Adapter, raw: Any) -> None:
        before = signal.handed_out
        signal.waiting.append(raw)
        signal.news()
        await until(lambda: signal.handed_out > before)

    def refuse(status: int, headers: Any) -> None:
        signal.fail("*", CannedAnswer(status=status, headers=headers))

    def revoke() -> None:
        signal.answers.linked = False

    tried = Trial(
        make=make,
        parse=lambda raw: parse(raw, view_of(signal)),
        samples=[picture, once, events[2]],
        conversation=channel(ann),
        spare=[channel(each) for each in spare],
        media=media,
        refuse=refuse,
        in_thread=in_thread,
        to_another=to_another,
        revoke=revoke,
    )
    assert {"bytes stream in chunks", "429 is RateLimited", "a reaction is added and removed once"} <= set(
        await check_adapter(tried)
    )


async def test_direct_and_group_messages_arrive_with_their_people(signal: SignalServer, device: Device) -> None:
    ann, bob = signal.user("Ann"), signal.user("Bob")
    hikers = signal.group("Hikers", ann, bob)
    async with device.listening():
        signal.say(ann, ann, "hello")
        signal.say(hikers, bob, "who comes?")
        signal.say(hikers, bob, "\ufffc, you?", mentions=[signal.mention(signal.me, 0)])
        await device.heard(3)
    first, second, third = device.messages
    assert (first.conversation, first.text, first.addressed) == (channel(ann), "hello", True)
    assert (first.author.id, first.author.name, first.author.other_names) == (ann["uuid"], "Ann", (ann["number"],))
    assert (second.conversation, second.channel_name, second.addressed) == (channel(hikers), "Hikers", False)
    assert (third.text, third.addressed) == ("@belino, you?", True)
    assert first.id.endswith(f".{ann['uuid']}")
    assert signal.bytes_served == 0


async def test_nothing_is_lost_when_the_stream_breaks_off(signal: SignalServer, device: Device) -> None:
    ann = signal.user("Ann")
    async with device.listening():
        signal.say(ann, ann, "before")
        await device.heard(1)
        signal.drop_streams()
        for number in range(3):
            signal.say(ann, ann, f"in between {number}")
        await device.heard(4)
        signal.say(ann, ann, "after")
        await device.heard(5)
    assert device.texts == ["before", "in between 0", "in between 1", "in between 2", "after"]


async def test_what_was_said_while_belino_was_away_waits_at_signal(signal: SignalServer, devices: Devices) -> None:
    ann = signal.user("Ann")
    signal.say(ann, ann, "good morning")
    device = devices()
    async with device.listening():
        await device.heard(1)
    assert device.texts == ["good morning"]


async def test_a_silent_stream_is_kept_open_and_a_dead_one_is_opened_again(
    signal: SignalServer, devices: Devices
) -> None:
    signal.fail("events", Reset(), times=2)
    device = devices()
    ann = signal.user("Ann")
    async with device.listening():
        signal.say(ann, ann, "hello")
        await device.heard(1)
    assert signal.calls["events"] == 3


async def test_a_daemon_that_stays_away_ends_the_listening_with_a_reason(
    signal: SignalServer, devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belino.adapters.signal.socket.backoff", lambda *_: 0.0)
    signal.fail("events", CannedAnswer(status=500), times=10)
    with pytest.raises(AdapterError, match="status 500"):
        await devices().listen()
    assert signal.calls["events"] == 6


async def test_an_account_that_the_daemon_does_not_have_is_refused(signal: SignalServer, devices: Devices) -> None:
    with pytest.raises(Unauthorized, match=r"does not serve \+491701; `belino setup signal` links it"):
        await devices(number="+491701").listen()
    signal.answers.linked = False
    with pytest.raises(Unauthorized, match="does not serve any account"):
        await devices().listen()


async def test_a_daemon_for_one_account_needs_no_number(devices: Devices) -> None:
    async with SignalServer(single=True) as single:
        ann = single.user("Ann")
        device = devices(single)
        async with device.listening():
            single.say(ann, ann, "hello")
            await device.heard(1)
        assert not await device.adapter.needs_link()
        await device.adapter.send(Parcel(key="k", conversation=channel(ann), text="hi"))
        assert [sent["message"] for sent in single.sent] == ["hi"]


async def test_messages_of_our_other_devices_are_context_and_a_note_to_self_is_a_question(
    signal: SignalServer, device: Device
) -> None:
    ann = signal.user("Ann")
    async with device.listening():
        signal.sync(ann, "from my phone")
        signal.sync(signal.me, "remind me")
        await device.heard(2)
    own, note = device.messages
    assert (own.conversation, own.author.is_agent, own.addressed) == (channel(ann), True, False)
    assert (note.conversation, note.author.is_agent, note.addressed) == (channel(signal.me), False, True)
    assert note.author.id == signal.me["uuid"]


async def test_a_parcel_without_an_answer_is_found_by_the_sync_and_else_stays_uncertain(
    signal: SignalServer, device: Device
) -> None:
    ann = signal.user("Ann")
    parcel = Parcel(key="k", conversation=channel(ann), text="the answer", created=SystemClock().now())
    async with device.listening():
        with pytest.raises(Unfindable, match="Signal keeps no messages"):
            await device.adapter.find_sent(parcel)
        synced = signal.sync(ann, "the answer")
        await device.heard(1)
        found = await device.adapter.find_sent(parcel)
    assert found is not None
    assert found.message_id == str(synced["timestamp"])


async def test_a_sender_whom_the_agent_will_answer_gets_a_read_receipt(signal: SignalServer, devices: Devices) -> None:
    ann = signal.user("Ann")
    for receipts in (True, False):
        device = devices(read_receipts=receipts)
        device.outcome = MessageOutcome.WAITING
        async with device.listening():
            said = signal.say(ann, ann, "hello")
            await device.heard(1)
            await until(lambda: signal.calls["sendReceipt"] == 1)
    (call,) = [call for call in signal.requests if call.method == "sendReceipt"]
    assert call.params["recipient"] == ann["uuid"]
    assert call.params["targetTimestamp"] < said["timestamp"]


async def test_a_changed_safety_number_is_reported_and_the_message_is_not_lost_silently(
    signal: SignalServer, device: Device
) -> None:
    ann = signal.user("Ann")
    async with device.listening():
        signal.change_key(ann)
        await device.heard(1)
    (arrival, _) = device.taken[0]
    assert "new safety number of Ann" in getattr(arrival, "what", "")
    assert device.context.problems == {"safety number": "the safety number of Ann changed; `belino doctor`"}


async def test_a_device_is_linked_by_codes_until_the_phone_has_scanned_one(devices: Devices) -> None:
    clock = FakeClock()
    async with SignalServer(linked=False, clock=clock) as server:
        device = devices(server, clock=clock)
        assert isinstance(device.adapter, LinksDevice)
        assert await device.adapter.needs_link()
        codes = device.adapter.link()
        first = await anext(codes)
        assert first.scan.startswith("sgnl://linkdevice?uuid=")
        assert "canary-code" not in repr(first)
        waiting = asyncio.ensure_future(anext(codes))
        await clock.wake(90.0)
        second = await asyncio.wait_for(waiting, LIMIT)
        assert second.scan != first.scan
        done = asyncio.ensure_future(anext(codes, None))
        await until(lambda: server.calls["finishLink"] == 2)
        server.scan()
        assert await asyncio.wait_for(done, LIMIT) is None
        assert not await device.adapter.needs_link()


async def test_the_doctor_says_whether_the_daemon_runs_serves_us_and_trusts_everyone(
    signal: SignalServer, devices: Devices
) -> None:
    account, clock = await devices().adapter.check()
    assert (account.ok, account.says) == (True, f"signal-cli 0.14.6 serves {signal.number}")
    assert clock.ok
    signal.change_key(signal.user("Ann", number="+4917011"))
    (changed,) = [found for found in await devices().adapter.check() if not found.ok]
    assert changed.says == "changed for +4917011: their messages are not read, and nothing is sent to them"
    (missing,) = await devices(number="+491701").adapter.check()
    assert (missing.ok, "belino setup signal" in missing.cure) == (False, True)


async def test_the_doctor_says_how_to_start_a_daemon_that_is_down(signal: SignalServer, devices: Devices) -> None:
    device = devices()
    signal.fail("check", Reset(), times=3)
    (found,) = await device.adapter.check()
    assert (found.ok, found.name) == (False, "signal:default daemon")
    assert "signal-cli daemon --http" in found.cure


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"url": "ftp://x"}, "url must be"),
        ({"number": "0151"}, "international form"),
        ({"shared_folder": Path("x")}, "whole path"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Config(**settings)


async def test_typing_is_silent_and_receipts_are_about_our_messages(signal: SignalServer, device: Device) -> None:
    ann, bob = signal.user("Ann"), signal.user("Bob")
    hikers = signal.group("Hikers", ann, bob)
    async with device.listening():
        receipt = await device.adapter.send(Parcel(key="k", conversation=channel(hikers), text="hi"))
        signal.type(ann)
        signal.post_story(ann)
        signal.receipt(bob, int(receipt.message_id))
        signal.receipt(bob, int(receipt.message_id), read=True)
        await device.heard(2)
        await device.adapter.show_typing(channel(hikers))
    told = [
        (str(getattr(each, "state", "")), each.conversation, getattr(each, "message_id", ""))
        for each, _ in device.taken
    ]
    assert told == [
        ("delivered", channel(hikers), receipt.message_id),
        ("read", channel(hikers), receipt.message_id),
    ]
    assert signal.calls["sendTyping"] == 1


async def test_a_group_message_that_did_not_reach_everyone_says_so_in_the_accounts_health(
    signal: SignalServer, device: Device
) -> None:
    ann, bob = signal.user("Ann"), signal.user("Bob")
    hikers = signal.group("Hikers", ann, bob)
    bob["trust"] = "UNTRUSTED"
    parcel = Parcel(key="k", conversation=channel(hikers), text="hi")
    assert (await device.adapter.send(parcel)).message_id
    says = "the last message to a group did not reach 1 of 2: 1 whose safety number changed"
    assert device.context.problems == {"recipients": says}
    bob["trust"] = "TRUSTED_VERIFIED"
    await device.adapter.send(parcel)
    assert device.context.problems == {}
