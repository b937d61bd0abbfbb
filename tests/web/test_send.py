"""Scripts send through the outbox, and learn what became of each message."""

from typing import Any

import pytest

from belino.domain.message import ChatType, ConversationKey
from belino.testing.files import make_png
from web.conftest import MAIN

OTHER = ConversationKey(platform="web", account="default", channel="other")


async def send(site: Any, headers: dict[str, str] | None = None, **body: Any) -> tuple[int, Any]:
    status, told, _ = await site.ask("POST", "/api/send", headers=headers, json={"conversation": str(MAIN), **body})
    return status, told


async def test_a_text_and_a_file_are_sent_and_answered_with_their_receipts(site: Any) -> None:
    picture = {"content": list(make_png(4, 4)), "mime_type": "image/png", "file_name": "plot.png"}
    status, told = await send(site, await site.token(MAIN), text="The **plot**", files=[picture])
    assert status == 200, told
    assert {(each["state"], bool(each["message_id"])) for each in told["parcels"]} == {("sent", True)}
    shown = await site.gateway.store.history(MAIN, limit=50)
    assert [ref.file_name for message in shown for ref in message.media] == ["plot.png"]
    assert "plot" in "".join(message.text for message in shown) and all(each.author.is_agent for each in shown)


async def test_an_upload_is_sent_and_a_second_send_finds_it_gone(site: Any) -> None:
    begun = {"conversation": str(MAIN), "file_name": "notes.txt", "mime_type": "text/plain", "size": 5}
    _, upload, _ = await site.ask("POST", "/api/uploads", json=begun)
    headers = {**site.program, "Upload-Offset": "0"}
    await site.ask("PATCH", f"/api/uploads/{upload['upload_id']}", headers=headers, data=b"hello")
    status, told = await send(site, files=[{"upload_id": upload["upload_id"]}])
    assert status == 200 and told["parcels"][0]["files"][0]["name"] == "notes.txt", told
    assert (await send(site, files=[{"upload_id": upload["upload_id"]}]))[0] == 404


async def test_a_reply_names_a_message_of_the_channel_and_a_token_no_other_conversation(site: Any) -> None:
    await site.gateway.store.open_conversation(OTHER, "Other", ChatType.DIRECT)
    assert (await send(site, await site.token(MAIN), conversation=str(OTHER), text="x"))[0] == 404
    status, told = await send(site, text="x", reply_to="unknown")
    assert status == 409 and "reply_to" in told["error"]["message"]
    assert [each.text for each in await site.gateway.store.parcels(limit=50) if each.text == "x"] == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"text": " "}, 400),
        ({"text": "x", "as": "hologram"}, 400),
        ({"text": "x", "as": "photo"}, 400),
        ({"text": "x", "as": "voice"}, 409),
        ({"text": "x", "wait": 601}, 400),
        ({"text": "x", "conversation": "web:default:nowhere"}, 404),
    ],
)
async def test_what_cannot_be_sent_is_refused_whole(site: Any, body: dict[str, Any], status: int) -> None:
    assert (await send(site, **body))[0] == status
    assert await site.gateway.store.parcels(limit=5) == ()
