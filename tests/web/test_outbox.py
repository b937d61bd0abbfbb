"""The outbox over HTTP: seen, asked for again and dropped by the person the gateway belongs to, and by nobody else."""

from pathlib import Path
from typing import Any

import pytest

from belino.domain.errors import Undeliverable
from belino.domain.message import DeliveryState, DeliveryStatus
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind, ParcelState, Receipt
from belino.testing import START
from web.conftest import MAIN, Site


async def given_up(site: Site, key: str = "p-1", reason: str = "the person has blocked us") -> None:
    """A parcel that the platform refused, in a conversation that stays quiet."""
    store = site.gateway.store
    adapter = site.gateway.adapters["web", "default"]

    async def refuse(parcel: Parcel) -> Receipt:
        raise Undeliverable(reason)

    send, adapter.send = adapter.send, refuse  # type: ignore[method-assign]
    async with site.socket() as chat:
        await store.put_parcels([Parcel(key=key, conversation=MAIN, text="the answer", trace="t")])
        site.gateway._sender.wake(MAIN)
        while (await chat.event("parcel"))["state"] != "dead":
            pass
    adapter.send = send  # type: ignore[method-assign]


async def test_what_was_given_up_is_listed_with_its_reason_and_sent_when_asked_for(site: Site) -> None:
    await given_up(site)
    _, listed, _ = await site.ask("GET", "/api/outbox?unsent=1")
    assert [(one["key"], one["state"], one["reason"]) for one in listed["parcels"]] == [
        ("p-1", "dead", "the person has blocked us")
    ]
    assert (await site.ask("GET", "/api/outbox/p-1"))[1]["text"] == "the answer"
    async with site.socket() as chat:
        status, asked, _ = await site.ask("POST", "/api/outbox/p-1/retry", headers=await site.browser())
        assert (status, asked["state"]) == (200, "ready")
        while (await chat.event("parcel"))["state"] != "sent":
            pass
    assert (await site.ask("GET", "/api/outbox?unsent=1"))[1] == {"parcels": []}
    for method, path in (("POST", "/retry"), ("DELETE", "")):
        status, refused, _ = await site.ask(method, f"/api/outbox/p-1{path}")
        assert (status, refused["error"]["message"]) == (409, "This parcel is already sent.")


async def test_what_is_dropped_is_told_as_dropped_and_stays_so(site: Site) -> None:
    await given_up(site)
    status, dropped, _ = await site.ask("DELETE", "/api/outbox/p-1")
    assert (status, dropped["state"], dropped["dropped"]) == (200, "dead", True)
    assert (await site.ask("POST", "/api/outbox/p-1/retry"))[0] == 409
    assert (await site.ask("GET", f"/api/outbox?conversation={MAIN}&unsent=1"))[1] == {"parcels": []}
    assert len((await site.ask("GET", f"/api/outbox?conversation={MAIN}"))[1]["parcels"]) == 1


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", "/retry"), ("DELETE", "")])
async def test_a_parcel_nobody_knows_is_not_found_and_a_conversations_token_finds_none(
    site: Site, method: str, path: str
) -> None:
    await given_up(site)
    assert (await site.ask(method, f"/api/outbox/p-2{path}"))[0] == 404
    for headers, refused in ((await site.token(), {403, 404}), ({}, {401})):
        assert (await site.ask(method, f"/api/outbox/p-1{path}", headers=headers))[0] in refused
    record = await site.gateway.store.parcel("p-1")
    assert record is not None
    assert (record.state, record.dropped) == (ParcelState.DEAD, False)


async def test_the_outbox_does_not_tell_pairing_codes(site: Site) -> None:
    await site.gateway.store.put_parcels([Parcel(key="pairing-7", conversation=MAIN, text="AAAA-1111")])
    assert "AAAA-1111" not in str((await site.ask("GET", "/api/outbox"))[1])


async def test_what_the_platform_could_not_deliver_after_all_is_told_on_its_message(site: Site) -> None:
    store = site.gateway.store
    async with site.socket() as chat:
        await chat.call("chat.send", conversation=str(MAIN), message="hello", attachments=[], id="q1")
        while (await chat.event("parcel"))["state"] != "sent":
            pass
    (said,) = [message for message in await store.history(MAIN) if message.author.is_agent]
    failed = DeliveryStatus(
        conversation=MAIN, id="s", message_id=said.id, sent=START, state=DeliveryState.FAILED, reason="blocked"
    )
    await site.gateway.accept(failed)
    _, page, _ = await site.ask("GET", f"/api/messages?conversation={MAIN}")
    told: list[Any] = [(one["delivery"], one["delivery_reason"]) for one in page["messages"]]
    assert told == [(None, ""), ("dead", "blocked")]


async def test_files_on_their_way_are_listed_by_name_and_never_by_path(site: Site, tmp_path: Path) -> None:
    async def bytes_of() -> Any:
        yield b"report"

    store = site.gateway.store
    blob = await store.keep(bytes_of(), mime="text/plain", limit=10)
    file = OutgoingFile(name="r.txt", mime="text/plain", size=blob.size, sha256=blob.sha256)
    await store.put_parcels([Parcel(key="f", conversation=MAIN, kind=ParcelKind.FILES, files=(file,))])
    _, shown, _ = await site.ask("GET", "/api/outbox/f")
    assert shown["files"] == [{"name": "r.txt", "mime": "text/plain", "size": 6, "send_as": "document", "caption": ""}]
    assert str(tmp_path) not in str(shown)
