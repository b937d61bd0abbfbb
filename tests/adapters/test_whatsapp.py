"""A business number keeps the contract of adapters; it sends what WhatsApp takes, and tells what it refuses."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from adapters.whatsapp_harness import Business, Businesses, place
from adapters.whatsapp_samples import NAMES, parsed, sample
from belino.adapters.whatsapp import SETUP, Adapter, Config, hosts
from belino.adapters.whatsapp.errors import WORDS
from belino.domain.errors import (
    AdapterError,
    ConfigError,
    NothingToEdit,
    RateLimited,
    Unanswered,
    Unauthorized,
    Undeliverable,
    Unreached,
    Withheld,
)
from belino.domain.limits import SendAs
from belino.domain.message import Arrival, ConversationKey, DeliveryState, DeliveryStatus
from belino.domain.ports import Adapter as Port
from belino.domain.ports import Taken, TakesHooks
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind
from belino.net.redact import Secret
from belino.testing import CloudPace, FakeClock, FakeUpload, Trial, WhatsAppServer, check_adapter, make_jpeg
from belino.testing.faults import CannedAnswer, Hang, Reset
from belino.testing.whatsapp.shapes import NUMBER_ID
from belino.testing.whatsapp.world import INBOUND_SECONDS
from journeys.offering import opus

DAY = 24 * 3600.0
CANARY = "EAAcanaryOfTheContract0000"


def file(content: bytes, name: str, mime: str, form: SendAs, caption: str = "") -> OutgoingFile:
    async def chunks() -> Any:
        for at in range(0, len(content), 64 * 1024):
            yield content[at : at + 64 * 1024]

    facts: Any = {"size": len(content), "sha256": f"{len(content):064}", "chunks": chunks}
    return OutgoingFile(name=name, mime=mime, send_as=form, caption=caption, **facts)


def parcel(where: Any, text: str = "hello", **more: Any) -> Parcel:
    return Parcel(key=more.pop("key", "k1"), conversation=place(where), text=text, **more)


def files(where: Any, *given: OutgoingFile, **more: Any) -> Parcel:
    return parcel(where, "", kind=ParcelKind.FILES, files=given, **more)


@pytest.fixture
def ada(whatsapp: WhatsAppServer) -> Any:
    """A person who has just written."""
    person = whatsapp.user("Ada", "16505551234")
    whatsapp.say(person, person, "hello")
    return person


async def test_a_business_keeps_the_whole_contract() -> None:
    async with WhatsAppServer(token=CANARY) as server:
        ada = server.user("Ada", "16505551234")
        spare = [server.user(name) for name in ("Bo", "Cy")]
        for person in (ada, *spare):
            server.say(person, person, "hello")
        picture = make_jpeg(64, 48)
        told = server.send_file(ada, ada, FakeUpload(content=picture, mime="image/jpeg"))
        sent = [body for body, _ in server.hook._waiting][-1]
        business = Business(server, clock=FakeClock())

        async def deliver(adapter: Port, raw: Any) -> None:
            assert isinstance(adapter, TakesHooks) and isinstance(adapter, Adapter)
            await adapter.connected()
            await asyncio.sleep(0)
            assert (await adapter.take_hook(business.signed(raw))).status == 200

        def refuse(status: int, headers: Mapping[str, str]) -> None:
            server.fail("messages", CannedAnswer(status=status, headers=dict(headers)))

        checked = await check_adapter(
            Trial(
                make=lambda: Adapter(business.config, business.context),
                parse=parsed,
                samples=[sample("image"), json.loads(sent), *(sample(name) for name in NAMES)],
                conversation=place(ada),
                spare=[place(each) for each in spare],
                secrets=[CANARY, server.app_secret, server.verify_token],
                deliver=deliver,
                media={told["image"]["id"]: picture},
                refuse=refuse,
                in_thread=sample("group_next"),
                to_another=sample("group_another"),
                revoke=server.revoke_token,
            )
        )
        await business.client.close()
    assert len(checked) == 15, checked


async def test_text_is_sent_to_the_person_with_its_reply_and_preview(
    whatsapp: WhatsAppServer, business: Business, ada: Any
) -> None:
    receipt = await business.adapter.send(parcel(ada, "*hi* https://example.org", reply_to="wamid.q"))
    (sent,) = whatsapp.sent
    assert (sent["id"], sent["text"]) == (receipt.message_id, "*hi* https://example.org")
    assert sent["raw"]["text"]["preview_url"] is True
    assert (sent["raw"]["to"], sent["raw"]["context"]) == (ada["id"], {"message_id": "wamid.q"})


async def test_previews_can_be_off_and_groups_and_hidden_numbers_are_named_as_such(
    whatsapp: WhatsAppServer, businesses: Businesses, ada: Any
) -> None:
    business, group = businesses(link_previews=False), whatsapp.group("Hikers", ada)
    whatsapp.people["US.1349"] = hidden = {"id": "US.1349", "name": "Pablo"}
    whatsapp.written["US.1349"] = whatsapp.clock.monotonic()
    await business.adapter.send(parcel(group))
    await business.adapter.send(parcel(hidden))
    first, second = (sent["raw"] for sent in whatsapp.sent)
    assert (first["recipient_type"], first["to"], first["text"]["preview_url"]) == ("group", group["id"], False)
    assert (second["recipient_type"], second["recipient"], "to" in second) == ("individual", "US.1349", False)


@pytest.mark.parametrize(
    ("form", "mime", "content", "kind"),
    [
        (SendAs.PHOTO, "image/jpeg", make_jpeg(64, 48), "image"),
        (SendAs.VIDEO, "video/mp4", b"\0\0\0\x18ftypmp42", "video"),
        (SendAs.AUDIO, "audio/mpeg", b"ID3 sound", "audio"),
        (SendAs.VOICE, "audio/ogg", opus(0.2), "audio"),
        (SendAs.STICKER, "image/webp", b"RIFF....WEBP", "sticker"),
        (SendAs.DOCUMENT, "application/pdf", b"%PDF-1.7", "document"),
        (SendAs.DOCUMENT, "text/csv", b"a,b", "document"),
    ],
)
async def test_each_form_is_uploaded_first_and_sent_by_its_id(
    whatsapp: WhatsAppServer, business: Business, ada: Any, form: SendAs, mime: str, content: bytes, kind: str
) -> None:
    caption = "" if form in (SendAs.AUDIO, SendAs.VOICE, SendAs.STICKER) else "a caption"
    receipt = await business.adapter.send(files(ada, file(content, "name.bin", mime, form, caption)))
    (sent,), (received,) = whatsapp.sent, whatsapp.received
    shown = sent["raw"][kind]
    assert (sent["type"], received.content, shown.get("caption", "")) == (kind, content, caption)
    assert (shown.get("filename"), shown.get("voice")) == (
        "name.bin" if kind == "document" else None,
        True if form is SendAs.VOICE else None,
    )
    assert receipt.stored is not None and receipt.stored[0].ref is not None
    assert await business.fetch(receipt.stored[0].ref) == content


async def test_a_file_whose_message_has_to_wait_is_uploaded_once(
    whatsapp: WhatsAppServer, business: Business, ada: Any
) -> None:
    picture = files(ada, file(make_jpeg(64, 48), "a.jpg", "image/jpeg", SendAs.PHOTO))
    whatsapp.fail("messages", CannedAnswer(status=400, parameters={"code": 131056}))
    with pytest.raises(RateLimited):
        await business.adapter.send(picture)
    assert isinstance(whatsapp.clock, FakeClock)
    whatsapp.clock.shift(30)
    await business.adapter.send(picture)
    assert (whatsapp.calls["upload"], len(whatsapp.sent)) == (1, 1)


async def test_reactions_replace_each_other_and_a_removal_of_an_older_one_is_none(
    whatsapp: WhatsAppServer, business: Business, ada: Any
) -> None:
    message, where = next(iter(whatsapp.said)), place(ada)
    await business.adapter.react(where, message, "👀")
    await business.adapter.react(where, message, ":white_check_mark:")
    await business.adapter.react(where, message, "👀", added=False)
    assert whatsapp.reactions == {message: "✅"}
    await business.adapter.react(where, message, "✅", added=False)
    assert whatsapp.reactions == {}


async def test_typing_marks_the_last_message_as_read_and_is_not_repeated_while_it_shows(
    whatsapp: WhatsAppServer, business: Business, ada: Any
) -> None:
    async with business.listening():
        await business.told()
        for _ in range(5):
            await business.adapter.show_typing(place(ada))
        (message,) = whatsapp.said
        assert whatsapp.read == [(message, True)]
        assert isinstance(whatsapp.clock, FakeClock)
        whatsapp.clock.shift(21)
        await business.adapter.show_typing(place(ada))
        assert len(whatsapp.read) == 2
        whatsapp.say(ada, ada, "and another thing")
        await business.told()
        await business.adapter.send(parcel(ada))
    assert whatsapp.read[-1] == (list(whatsapp.said)[1], False), "an answer marks what it answers as read"


async def test_typing_is_shown_where_whatsapp_has_it_and_is_wanted(
    whatsapp: WhatsAppServer, businesses: Businesses, ada: Any
) -> None:
    group = whatsapp.group("Hikers", ada)
    for business, where in ((businesses(), group), (businesses(), ada), (businesses(read_receipts=False), ada)):
        with pytest.raises(Undeliverable):
            await business.adapter.show_typing(place(where))
    quiet = businesses(read_receipts=False)
    async with quiet.listening():
        await quiet.told()
        await quiet.adapter.send(parcel(ada))
    assert whatsapp.read == []


async def test_outside_the_24_hours_a_parcel_is_held_and_goes_once_the_person_writes(
    whatsapp: WhatsAppServer, business: Business, ada: Any
) -> None:
    assert isinstance(whatsapp.clock, FakeClock)
    async with business.listening():
        await business.told()
        whatsapp.clock.shift(DAY + 1)
        receipt = await business.adapter.send(parcel(ada))
        await business.told()
        (status,) = [one for one, _ in business.taken if isinstance(one, DeliveryStatus)]
        assert (status.state, status.message_id) == (DeliveryState.WINDOW_CLOSED, receipt.message_id)
        with pytest.raises(Withheld, match=r"name one in adapters\.whatsapp\.template"):
            await business.adapter.send(parcel(ada))
        whatsapp.say(ada, ada, "are you there?")
        await business.told()
        await business.adapter.send(parcel(ada, "yes"))
    assert [sent["text"] for sent in whatsapp.sent] == ["yes"]


@pytest.mark.parametrize("late", [True, False])
async def test_a_report_that_the_window_was_closed_is_out_of_date_once_the_person_has_written(
    whatsapp: WhatsAppServer, business: Business, ada: Any, late: bool
) -> None:
    reopened = list[str]()

    class Accepting:
        async def __call__(self, arrival: Arrival, *, cursor: str | None = None) -> Taken:
            return await business.accept(arrival, cursor=cursor)

        async def reopen(self, conversation: ConversationKey) -> None:
            assert business.taken, "what they wrote is on disk first"
            reopened.append(conversation.channel)

    assert isinstance(whatsapp.clock, FakeClock)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(business.adapter.run(Accepting(), None))
        await business.adapter.connected()
        await asyncio.sleep(0)
        await business.told()
        assert reopened == [ada["id"]]
        failed = {"id": "wamid.1", "status": "failed", "recipient_id": ada["id"], "errors": [{"code": 131047}]}
        at = int(whatsapp.clock.now().timestamp()) + (-60 if late else 60)
        whatsapp.tell({"statuses": [{**failed, "timestamp": str(at)}]})
        await business.told()
        running.cancel()
    assert reopened == [ada["id"]] * (2 if late else 1)


async def test_with_a_template_the_text_is_sent_again_in_it_and_files_are_held(
    whatsapp: WhatsAppServer, businesses: Businesses, ada: Any
) -> None:
    assert isinstance(whatsapp.clock, FakeClock)
    business = businesses(template="answer", template_language="en_US")
    whatsapp.templates["answer"] = 1
    async with business.listening():
        await business.told()
        whatsapp.clock.shift(DAY + 1)
        await business.adapter.send(parcel(ada, "It is\n\nready."))
        await business.told()
        (status,) = [one for one, _ in business.taken if isinstance(one, DeliveryStatus)]
        assert status.state is DeliveryState.AGAIN
        await business.adapter.send(parcel(ada, "It is\n\nready."))
        with pytest.raises(Withheld):
            await business.adapter.send(files(ada, file(make_jpeg(8, 8), "a.jpg", "image/jpeg", SendAs.PHOTO)))
        with pytest.raises(Withheld, match="up to 900 characters"):
            await business.adapter.send(parcel(ada, "x" * 901))
    (sent,) = whatsapp.sent
    assert (sent["type"], sent["text"]) == ("template", "It is ready.")
    assert sent["raw"]["template"]["language"] == {"code": "en_US"}


async def test_a_window_that_meta_says_is_closed_at_once_is_the_same(
    whatsapp: WhatsAppServer, businesses: Businesses, ada: Any
) -> None:
    business = businesses(template="answer")
    whatsapp.templates["answer"] = 1
    whatsapp.fail("messages", CannedAnswer(status=400, parameters={"code": 131047}))
    await business.adapter.send(parcel(ada, "at last"))
    assert [sent["type"] for sent in whatsapp.sent] == ["template"]


async def test_a_person_who_gets_too_much_is_given_time_four_times_as_long_each_time(businesses: Businesses) -> None:
    clock = FakeClock()
    async with WhatsAppServer(clock=clock, pace=CloudPace(pair_burst=2, pair_seconds=6.0)) as server:
        business = businesses(server=server)
        ada, bo = server.user("Ada"), server.user("Bo")
        for person in (ada, bo):
            server.say(person, person, "hi")
        waits = []
        for _ in range(2):
            await business.adapter.send(parcel(ada))
        for _ in range(3):
            with pytest.raises(RateLimited) as limited:
                await business.adapter.send(parcel(ada))
            waits.append(limited.value.retry_after)
            before = server.calls["messages"]
            with pytest.raises(RateLimited):
                await business.adapter.send(parcel(ada))
            assert server.calls["messages"] == before, "no call while it waits"
            clock.shift(waits[-1] if waits[-1] < 5 else 0)
            if waits[-1] >= 5:
                break
        await business.adapter.send(parcel(bo))
        assert waits == [1.0, 4.0, 16.0]
        clock.shift(16)
        await business.adapter.send(parcel(ada))
        assert len(server.sent) == 4


@pytest.mark.parametrize(("code", "seconds"), [(130429, 1), (80007, 60), (4, 60)])
async def test_limits_of_the_number_or_the_account_hold_everyone_back(
    whatsapp: WhatsAppServer, business: Business, ada: Any, code: int, seconds: float
) -> None:
    bo = whatsapp.user("Bo")
    whatsapp.fail("messages", CannedAnswer(status=400, parameters={"code": code}))
    for person in (ada, bo):
        with pytest.raises(RateLimited) as limited:
            await business.adapter.send(parcel(person))
        assert limited.value.retry_after == pytest.approx(seconds, abs=0.01)
    assert whatsapp.calls["messages"] == 1


async def test_an_account_that_has_used_up_its_calls_waits_as_long_as_meta_says(
    whatsapp: WhatsAppServer, business: Business, ada: Any
) -> None:
    usage = '{"102290129340398":[{"type":"messaging","call_count":100,"estimated_time_to_regain_access":7}]}'
    headers = {"X-Business-Use-Case-Usage": usage}
    whatsapp.fail("messages", CannedAnswer(status=400, headers=headers, parameters={"code": 80007}))
    with pytest.raises(RateLimited) as limited:
        await business.adapter.send(parcel(ada))
    assert limited.value.retry_after == 420


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (0, Unauthorized), (190, Unauthorized), (200, Unauthorized), (131031, Unauthorized), (131042, Unauthorized),
        (131000, AdapterError), (2, AdapterError), (131048, Withheld), (131047, Withheld), (131026, Undeliverable),
        (131009, Undeliverable), (131051, Undeliverable), (199999, Undeliverable),
    ],
)  # fmt: skip
async def test_metas_codes_mean_what_they_say_and_are_told_in_words(
    whatsapp: WhatsAppServer, business: Business, ada: Any, code: int, error: type[AdapterError]
) -> None:
    whatsapp.fail("messages", CannedAnswer(status=400, description="details of it", parameters={"code": code}))
    with pytest.raises(error) as caught:
        await business.adapter.send(parcel(ada))
    assert WORDS.get(code, "details of it") in str(caught.value) or code == 131047
    if error is AdapterError:
        assert type(caught.value) is AdapterError


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (CannedAnswer(status=500), AdapterError),
        (CannedAnswer(status=200, body=b"<html>"), Unanswered),
        (CannedAnswer(status=200, body=b"{}"), Unanswered),
        (CannedAnswer(status=200, body=b'{"messages": []}'), Unanswered),
        (Reset(), Unanswered),
        (Reset(done=True), Unanswered),
    ],
)
async def test_an_answer_that_does_not_come_or_cannot_be_read_leaves_doubt(
    whatsapp: WhatsAppServer, business: Business, ada: Any, fault: Any, error: type[AdapterError]
) -> None:
    whatsapp.fail("messages", fault)
    with pytest.raises(error):
        await business.adapter.send(parcel(ada))


async def test_an_upload_that_breaks_off_or_is_not_answered_has_done_nothing(
    whatsapp: WhatsAppServer, business: Business, ada: Any
) -> None:
    whatsapp.fail("upload", Reset())
    large = file(b"%PDF-1.7" + bytes(20_000_000), "a.pdf", "application/pdf", SendAs.DOCUMENT)
    with pytest.raises(Unreached):
        await business.adapter.send(files(ada, large))
    whatsapp.fail("upload", Reset(done=True))
    with pytest.raises(Unreached):
        await business.adapter.send(files(ada, file(b"%PDF", "a.pdf", "application/pdf", SendAs.DOCUMENT)))
    assert whatsapp.sent == [] and whatsapp.calls["messages"] == 0


async def test_whatsapp_edits_nothing_and_takes_one_file_to_a_message(business: Business, ada: Any) -> None:
    with pytest.raises(NothingToEdit):
        await business.adapter.send(parcel(ada, kind=ParcelKind.EDIT, edits="wamid.1"))
    one = file(b"%PDF", "a.pdf", "application/pdf", SendAs.DOCUMENT)
    with pytest.raises(Undeliverable, match="one file"):
        await business.adapter.send(files(ada, one, one))


async def test_a_number_that_is_hung_at_the_start_lets_nothing_be_sent(
    whatsapp: WhatsAppServer, business: Business
) -> None:
    whatsapp.fail("number", Hang())
    running = asyncio.ensure_future(business.adapter.run(business.accept, None))
    connecting = asyncio.ensure_future(business.adapter.connected())
    while not whatsapp.calls["number"]:
        await asyncio.sleep(0.002)
    assert not connecting.done()
    for task in (running, connecting):
        task.cancel()
    await asyncio.gather(running, connecting, return_exceptions=True)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"token": None}, "token is needed"),
        ({"app_secret": Secret("S", "")}, "keeps others from calling us"),
        ({"app_secret": Secret("S", "  ")}, "app_secret is needed"),
        ({"verify_token": None}, "verify_token is needed"),
        ({"phone_number_id": "+1 555 078 3881"}, "it is not the phone number"),
        ({"template": "My Template"}, "template must be"),
        ({"template_language": "english"}, "template_language must be"),
        ({"public_url": "http://bot.example.org"}, "must be encrypted"),
        ({"api_url": "https://user@graph.facebook.com"}, "api_url must be"),
    ],
)
def test_settings_that_cannot_work_are_refused_with_the_way_out(given: dict[str, Any], says: str) -> None:
    whole: dict[str, Any] = {
        "token": Secret("T", "EAA1"), "app_secret": Secret("S", "s3cret"), "verify_token": Secret("V", "word"),
        "phone_number_id": NUMBER_ID,
    }  # fmt: skip
    Config(**whole)
    with pytest.raises(ConfigError, match=says):
        Config(**{**whole, **given})


def test_the_token_goes_to_the_exact_hosts_of_the_api_and_its_files() -> None:
    whole: dict[str, Any] = {
        "token": Secret("T", "EAA1"), "app_secret": Secret("S", "s3cret"), "verify_token": Secret("V", "word"),
        "phone_number_id": NUMBER_ID,
    }  # fmt: skip
    assert hosts(Config(**whole)) == {"graph.facebook.com", "lookaside.fbsbx.com"}
    own = Config(**whole, api_url="http://127.0.0.1:81/v26.0", files_url="http://127.0.0.1:82")
    assert hosts(own) == {"127.0.0.1:81", "127.0.0.1:82"}


def test_setup_asks_for_what_mode_cloud_needs_and_hides_the_secrets() -> None:
    assert [question.key for question in SETUP if question.secret] == ["token", "app_secret", "verify_token"]
    assert all(question.when == ("mode", "cloud") for question in SETUP)


async def test_a_number_registers_its_own_address_so_that_several_numbers_of_one_app_have_one_each(
    whatsapp: WhatsAppServer, businesses: Businesses
) -> None:
    business = businesses(public_url="http://127.0.0.1:1/")
    async with business.listening():
        while not business.context.problems:
            await asyncio.sleep(0.002)
    assert "2200" in business.context.problems["webhook"]
    (call,) = [each for each in whatsapp.requests if "webhook_configuration" in each.fields]
    told = call.fields["webhook_configuration"]
    assert told["override_callback_uri"] == "http://127.0.0.1:1/hooks/whatsapp/default"


async def test_an_address_that_meta_cannot_reach_yet_is_registered_once_it_can(
    whatsapp: WhatsAppServer, businesses: Businesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [False, True]

    async def verify(url: str, token: str) -> bool:
        return answers.pop(0)

    monkeypatch.setattr(whatsapp.hook, "verify", verify)
    business = businesses(public_url="http://127.0.0.1:1")
    assert isinstance(whatsapp.clock, FakeClock)
    async with business.listening():
        while answers:
            await whatsapp.clock.advance(0.5)
            await asyncio.sleep(0.002)
        while business.context.problems:
            await asyncio.sleep(0.002)


async def test_a_recorded_call_parses_to_the_same_arrivals(
    whatsapp: WhatsAppServer, business: Business, ada: Any
) -> None:
    async with business.listening():
        await business.told()
    (payload, known, arrivals) = business.context.reported[0]
    received = whatsapp.clock.now() + timedelta(hours=1)
    assert tuple(business.adapter.reparse(payload, known, received)) == tuple(arrivals)


def test_the_server_keeps_a_persons_file_for_a_week() -> None:
    assert INBOUND_SECONDS == 7 * DAY
    assert replace(CloudPace(), pair_burst=1).pair_burst == 1
