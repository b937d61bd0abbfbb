"""A linked device keeps the contract of adapters, and sends what WhatsApp's apps show."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from adapters.harness import until
from adapters.linked_harness import Phone, place
from belino.adapters.whatsapp import Adapter, Config
from belino.adapters.whatsapp.linked import LIMITS, LinkedAdapter
from belino.adapters.whatsapp.linked.client import LinkedClient, connection
from belino.adapters.whatsapp.linked.parse import LinkedView, parse
from belino.domain.errors import (
    AdapterError,
    ConfigError,
    ListeningRefused,
    RateLimited,
    Unanswered,
    Unauthorized,
    Undeliverable,
    Unreached,
)
from belino.domain.limits import SendAs
from belino.domain.linking import LinksDevice
from belino.domain.message import Message
from belino.domain.outcome import MessageOutcome
from belino.domain.ports import Taken
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind
from belino.net.client import Client
from belino.testing import FakeContext, make_jpeg, make_png
from belino.testing.contract import Trial, check_adapter
from belino.testing.faults import CannedAnswer, Hang, Reset
from belino.testing.linked import ME, MY_LID, LinkedWorld


@pytest.fixture
async def world() -> AsyncIterator[LinkedWorld]:
    async with LinkedWorld() as world:
        yield world


@pytest.fixture
async def phone(world: LinkedWorld, tmp_path: Path) -> AsyncIterator[Phone]:
    phone = Phone(world, tmp_path)
    yield phone
    await phone.client.close()


def file(name: str, content: bytes, form: SendAs, mime: str, **more: Any) -> OutgoingFile:
    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(content), 1000):
            yield content[at : at + 1000]

    digest = hashlib.sha256(content).hexdigest()
    return OutgoingFile(name=name, mime=mime, size=len(content), sha256=digest, send_as=form, chunks=chunks, **more)


def text(address: str, words: str = "hi", **more: Any) -> Parcel:
    return Parcel(key="a", conversation=place(address), text=words, **more)


async def test_it_keeps_the_contract(world: LinkedWorld, tmp_path: Path) -> None:
    """One device sends throughout; another one, of the same account, listens."""
    ann = world.person("491701")
    picture = make_jpeg(64, 48)
    samples = [{"event": "message", "data": world.message(ann, ann, world._content("look", file=picture))}]
    samples.append({"event": "message", "data": world.message(ann, ann, {"conversation": "hello"})})
    client, view = Client(hosts=[world.url.partition("://")[2]]), LinkedView(me=ME, lid=MY_LID)
    folders = [tmp_path / name for name in ("sends", "listens")]
    for folder in folders:
        folder.mkdir()
        (folder / "session.db").write_text(world.link(), encoding="ascii")
    config = Config(mode="linked", media_url=world.media_url, linked_program=tuple(world.linked_program))

    async with connection(folders[0], program=world.linked_program) as sender:

        class Sends(LinkedAdapter):
            @property
            def _connection(self) -> LinkedClient:
                return sender

        def make() -> LinkedAdapter:
            (folders[1] / "linked").touch()
            adapter = Sends(config, FakeContext(http=client, folder=folders[1]))
            adapter._view = view
            return adapter

        async def deliver(_: object, raw: Any) -> None:
            world.tell(raw["event"], raw["data"])
            number = world.events[-1]["number"]
            await until(lambda: any(event["number"] == number for event in world.acknowledged))

        tried = Trial(
            make=make,
            parse=lambda raw: parse(raw, view),
            samples=samples,
            conversation=place(ann),
            spare=[place(world.person("491702")), place(world.person("491703"))],
            media={"0": picture},
            deliver=deliver,
        )
        done = await check_adapter(tried)
    await client.close()
    expected = {"bytes stream in chunks", "nothing is acknowledged before it is stored", "says when it is connected"}
    assert expected <= set(done), done


async def test_events_are_acknowledged_one_by_one_after_their_commit_and_come_again_otherwise(
    world: LinkedWorld, phone: Phone
) -> None:
    ann = world.person("491701")
    phone.may_take.clear()
    async with phone.listening():
        for number in range(20):
            world.say(ann, text=f"message {number}")
        await asyncio.sleep(0)
        assert (phone.taken, len(world.events)) == ([], 20)
    assert len(world.events) == 20, "nothing was acknowledged"
    phone.may_take.set()
    async with phone.listening():
        await until(lambda: not world.events)
    assert phone.texts == [f"message {number}" for number in range(20)]


async def test_a_call_is_answered_while_an_event_waits_for_its_commit(world: LinkedWorld, phone: Phone) -> None:
    ann = world.person("491701")
    async with phone.listening():
        phone.may_take.clear()
        world.say(ann, text="hello")
        assert (await phone.adapter.send(text(ann))).message_id.endswith(".me")
        phone.may_take.set()


async def test_a_device_is_linked_by_codes_of_both_kinds(world: LinkedWorld, tmp_path: Path) -> None:
    phone = Phone(world, tmp_path, linked=False)
    with pytest.raises(Unauthorized, match="not linked"):
        await phone.listen()
    config = Config(
        mode="linked", media_url=world.media_url, linked_program=tuple(world.linked_program), phone="4915550001"
    )
    adapter = Adapter(config, phone.context)
    assert isinstance(adapter, LinksDevice)
    assert await adapter.needs_link()
    codes = []
    async for code in adapter.link():
        codes.append((code.scan[:2], code.type_in))
        if code.type_in:
            world.scan()
    assert codes == [("2@", ""), ("2@", "ABCD-EFGH")]
    assert not await adapter.needs_link()
    async with phone.listening():
        assert (await phone.adapter.check())[0].ok
    await phone.client.close()


@pytest.mark.parametrize(
    ("event", "told", "error", "says"),
    [
        ("logged out", {}, Unauthorized, "the phone logged this device out"),
        ("banned", {"Code": "BROADCAST_LIST", "Expire": 3600}, Unauthorized, "for 1 hours \\(broadcast list\\)"),
        ("replaced", {}, ListeningRefused, "another program opened this session"),
        ("outdated", {}, ListeningRefused, "update belino"),
        ("missing", {"Message": "neonize is not installed"}, ListeningRefused, "neonize is not installed"),
        ("refused", {"Reason": "GENERIC"}, Unreached, "refuses the connection: GENERIC"),
        ("stopped", {}, Unreached, "cannot be reached"),
        ("qr", {"code": "2@x"}, Unauthorized, "not linked"),
    ],
)
async def test_the_end_of_a_session_is_told_in_one_sentence(
    world: LinkedWorld, phone: Phone, event: str, told: Mapping[str, Any], error: type[AdapterError], says: str
) -> None:
    world.tell(event, dict(told))
    with pytest.raises(error, match=says):
        await phone.listen()
    device = (await phone.adapter.check())[0]
    assert device.ok is (error is Unreached)
    assert await phone.adapter.needs_link() is (event in ("logged out", "qr"))


async def test_a_connection_that_breaks_is_reported_until_it_is_back(world: LinkedWorld, phone: Phone) -> None:
    async with phone.listening():
        world.tell("refused", {"Reason": "SERVICE_UNAVAILABLE"})
        world.tell("disconnected", {})
        await until(lambda: phone.context.problems)
        with pytest.raises(Unreached):
            await phone.adapter.send(text(world.person("491701")))
        world.tell("connected", {"JID": ME, "LID": MY_LID})
        await until(lambda: not phone.context.problems)


async def test_a_program_that_dies_is_an_error_that_is_tried_again(world: LinkedWorld, phone: Phone) -> None:
    async def dies() -> None:
        await phone.adapter.connected()
        world.devices.clear()
        world._news.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(dies())
        with pytest.raises(Unreached):
            await phone.listen()


@pytest.mark.parametrize("program", [["/nonexistent/program"], ["false"]])
async def test_a_program_that_cannot_run_is_an_error(
    world: LinkedWorld, tmp_path: Path, program: Sequence[str]
) -> None:
    phone = Phone(world, tmp_path)
    config = Config(mode="linked", media_url=world.media_url, linked_program=tuple(program))
    adapter = Adapter(config, phone.context)
    with pytest.raises(Unreached):
        await adapter.run(phone.accept, None)


async def test_text_replies_edits_deletions_and_reactions_name_the_right_messages(
    world: LinkedWorld, phone: Phone
) -> None:
    ann, bob = world.person("491701"), "77@lid"
    room = world.group("Trips", ann, bob)
    async with phone.listening():
        direct = world.say(ann, text="hello")["Info"]["ID"]
        world.say(bob, room, "hi all", alt=world.person("491702"))
        await until(lambda: len(phone.messages) == 2)
        in_room = phone.messages[1].id
        first = await phone.adapter.send(text(ann, "hello Ann", reply_to=direct))
        await phone.adapter.send(text(room, "hello Bob", reply_to=in_room))
        await phone.adapter.send(text(ann, "again", reply_to=first.message_id))
        await phone.adapter.react(place(room), in_room, ":eyes:")
        await phone.adapter.react(place(room), in_room, ":eyes:", added=False)
        await phone.adapter.edit(first.message_id, text(ann, "hello, Ann"))
        await phone.adapter.send(text(ann, "hello!", kind=ParcelKind.EDIT, edits=first.message_id))
        await phone.adapter.delete(place(ann), first.message_id)
    kinds = ["extendedTextMessage"] * 3 + ["editedMessage"] * 2 + ["protocolMessage"]
    assert [entry["kind"] for entry in world.sent] == kinds
    assert [entry["message"]["reactionMessage"]["text"] for entry in world.reactions] == ["👀", ""]


@pytest.mark.parametrize(
    ("form", "mime", "part"),
    [
        (SendAs.PHOTO, "image/png", "imageMessage"),
        (SendAs.VIDEO, "video/mp4", "videoMessage"),
        (SendAs.AUDIO, "audio/mpeg", "audioMessage"),
        (SendAs.VOICE, "audio/ogg", "audioMessage"),
        (SendAs.STICKER, "image/webp", "stickerMessage"),
        (SendAs.DOCUMENT, "application/pdf", "documentMessage"),
    ],
)
async def test_a_file_of_each_form_is_encrypted_and_named_as_apps_expect(
    world: LinkedWorld, phone: Phone, form: SendAs, mime: str, part: str
) -> None:
    content = bytes(range(256)) * 1000
    more = {"waveform": bytes(range(256)), "seconds": 2.0} if form is SendAs.VOICE else {"width": 4, "height": 3}
    sending = file("report.pdf", content, form, mime, **more)
    async with phone.listening():
        parcel = Parcel(key="b", conversation=place(world.person("491701")), kind=ParcelKind.FILES, files=(sending,))
        receipt = await phone.adapter.send(parcel)
    (entry,) = world.sent
    assert (entry["kind"], entry["sha256"]) == (part, sending.sha256)
    assert receipt.stored is not None
    assert (receipt.stored[0].form, receipt.stored[0].size) == (form, len(content))
    shown = entry["message"][part]
    if form is SendAs.VOICE:
        assert shown["mimetype"] == "audio/ogg; codecs=opus"
    assert ("fileName" in shown) == (form is SendAs.DOCUMENT)
    assert form in LIMITS.files


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (CannedAnswer(status=429), RateLimited),
        (CannedAnswer(status=401), Unauthorized),
        (CannedAnswer(status=503), Unreached),
        (CannedAnswer(status=500), AdapterError),
        (CannedAnswer(status=403, description="server returned error 403"), Undeliverable),
        (Reset(done=True), Unanswered),
    ],
)
async def test_a_refused_call_is_an_error_of_its_kind(
    world: LinkedWorld, phone: Phone, fault: Any, error: type[AdapterError]
) -> None:
    async with phone.listening():
        world.fail("send", fault)
        with pytest.raises(error):
            await phone.adapter.send(text(world.person("491701")))
        if error is RateLimited:
            with pytest.raises(RateLimited):
                await phone.adapter.send(text(world.person("491701")))
    assert world.calls["send"] == 1


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (CannedAnswer(status=413), Undeliverable),
        (CannedAnswer(status=429, headers={"Retry-After": "9"}), RateLimited),
        (CannedAnswer(status=503), AdapterError),
        (CannedAnswer(status=200, body=b"{}"), Undeliverable),
    ],
)
async def test_an_upload_that_fails_sends_nothing(
    world: LinkedWorld, phone: Phone, fault: Any, error: type[AdapterError]
) -> None:
    sending = file("p.png", make_png(8, 8), SendAs.PHOTO, "image/png")
    async with phone.listening():
        world.fail("upload", fault)
        with pytest.raises(error):
            await phone.adapter.send(Parcel(key="c", conversation=place("49170@s.whatsapp.net"), files=(sending,)))
    assert world.sent == []


async def test_a_ticket_that_has_ended_is_tried_again_and_says_nothing_about_the_session(
    world: LinkedWorld, phone: Phone
) -> None:
    sending = file("p.png", make_png(8, 8), SendAs.PHOTO, "image/png")
    parcel = Parcel(key="c", conversation=place("49170@s.whatsapp.net"), files=(sending,))
    async with phone.listening():
        world.fail("upload", CannedAnswer(status=401))
        with pytest.raises(AdapterError, match="ticket") as refused:
            await phone.adapter.send(parcel)
        assert not isinstance(refused.value, Unauthorized)
        await phone.adapter.send(parcel)
    assert len(world.sent) == 1


async def test_what_is_answered_is_marked_as_read_when_typing_begins(world: LinkedWorld, phone: Phone) -> None:
    ann, bob = world.person("491701"), world.person("491702")
    room = world.group("Trips", ann, bob)
    async with phone.listening():
        said = [world.say(who, room, "hi")["Info"]["ID"] for who in (ann, bob)]
        await until(lambda: len(phone.messages) == 2)
        await phone.adapter.show_typing(place(room))
        await phone.adapter.show_typing(place(room))
        await phone.adapter.show_upload(place(room), SendAs.VOICE)
    assert [(told["sender"], told["ids"]) for told in world.read] == [(ann, said[:1]), (bob, said[1:])]
    assert [told.get("voice", False) for told in world.typing] == [False, False, True]


async def test_history_goes_where_history_belongs(world: LinkedWorld, phone: Phone) -> None:
    recalled: list[Message] = []

    class Keeps:
        async def __call__(self, arrival: Any, *, cursor: str | None = None) -> Taken:
            phone.taken.append((arrival, cursor))
            return Taken(outcome=MessageOutcome.OBSERVED)

        async def recall(self, messages: Sequence[Message]) -> None:
            recalled.extend(messages)

    ann = world.person("491701")
    event = {"messages": [world.message(ann, ann, {"conversation": "long ago"})]}
    world.tell("history", event)
    async with asyncio.TaskGroup() as group:
        listening = group.create_task(phone.adapter.run(Keeps(), None))
        await until(lambda: not world.events)
        listening.cancel()
    assert [message.text for message in recalled] == ["long ago"]
    assert phone.taken == []
    world.tell("history", event)
    async with phone.listening():
        await until(lambda: not world.events)
    assert phone.taken == [], "who cannot store history is not given it as news"


async def test_no_message_is_sent_to_what_is_no_chat(world: LinkedWorld, phone: Phone) -> None:
    async with phone.listening():
        with pytest.raises(Undeliverable, match="no chat"):
            await phone.adapter.send(text("status@broadcast"))


async def test_a_recorded_event_is_parsed_again_alike(world: LinkedWorld, phone: Phone) -> None:
    async with phone.listening():
        world.say(world.person("491701"), text="look", file=make_png(8, 8))
        await until(lambda: phone.messages)
    payload, known, arrivals = phone.context.reported[0]
    again = phone.adapter.reparse(json.loads(json.dumps(payload)), known, phone.context.clock.now())
    assert tuple(again) == tuple(arrivals)


async def test_a_hanging_call_ends(world: LinkedWorld, phone: Phone, monkeypatch: pytest.MonkeyPatch) -> None:
    async with phone.listening():
        world.fail("send", Hang())
        assert phone.adapter._client is not None
        with pytest.raises(Unanswered):
            await phone.adapter._client.call("send", {"to": "x", "message": {}}, seconds=0.05)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"phone": "+49 170"}, "phone must be digits"),
        ({"media_url": "ftp://x"}, "media_url"),
        ({"mode": "cloud"}, "token"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_name(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Config(**{"mode": "linked", **settings})
