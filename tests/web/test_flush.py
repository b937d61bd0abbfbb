"""Files a script dropped, sent at once; and what an agent sent, in the page's history."""

import os
from typing import Any

from belino.domain.message import ConversationKey
from belino.testing.files import make_png
from web.conftest import MAIN

TRIP = ConversationKey(platform="web", account="default", channel="trip")


def put(site: Any, name: str, content: bytes) -> None:
    place = site.gateway.home.outgoing(TRIP) / "pending" / name
    place.write_bytes(content)
    os.utime(place, (1_000_000_000, 1_000_000_000))


async def media(site: Any, where: ConversationKey) -> list[dict[str, Any]]:
    """What the agent sent, once it is there."""
    async with site.socket() as chat:
        while True:
            _, page, _ = await site.ask("GET", f"/api/messages?conversation={where}")
            found = [item for message in page["messages"] for item in message["media"]]
            if found:
                return found
            await chat.event("message")


async def test_pending_files_are_sent_on_demand_and_are_in_the_history_with_their_bytes(site: Any) -> None:
    await site.ask("POST", "/api/conversations", json={"name": "Trip"})
    picture = make_png(20, 10)
    put(site, "chart.png", picture)
    status, told, _ = await site.ask("POST", "/api/outbox/flush", json={"conversation": str(TRIP)})
    assert (status, told) == (
        200,
        {"flushed": [{"conversation": str(TRIP), "sent": ["chart.png"], "refused": [], "waiting": 0}]},
    )
    (item,) = await media(site, TRIP)
    assert (item["file_name"], item["mime"]) == ("chart.png", "image/png")
    _, body, _ = await site.ask("GET", item["url"])
    assert body == picture
    status, told, _ = await site.ask("POST", "/api/outbox/flush", json={})
    assert (status, told) == (200, {"flushed": []})


async def test_a_conversation_nobody_opened_has_nothing_to_flush(site: Any) -> None:
    status, _, _ = await site.ask("POST", "/api/outbox/flush", json={"conversation": "web:default:nowhere"})
    assert status == 404
    assert not (site.gateway.home.path / "media").exists() or "nowhere" not in str(
        list((site.gateway.home.path / "media").iterdir())
    )


async def test_a_channels_token_flushes_nothing(site: Any) -> None:
    own = await site.token()
    status, _, _ = await site.ask("POST", "/api/outbox/flush", json={"conversation": str(MAIN)}, headers=own)
    assert status in (403, 404)


async def test_a_chart_the_demo_agent_draws_arrives_in_the_history(site: Any) -> None:
    await site.ask("POST", "/api/messages", json={"conversation": str(MAIN), "message": "draw a chart"})
    (item,) = await media(site, MAIN)
    assert (item["file_name"], item["mime"], item["caption"]) == ("chart-1.png", "image/png", "Messages by hour")
    _, body, _ = await site.ask("GET", item["url"])
    assert body.startswith(b"\x89PNG")
    sent = site.gateway.home.outgoing(MAIN) / "sent" / "chart-1.png"
    for _ in range(1000):
        if sent.exists():
            break
        await site.ask("GET", "/api/status")
    assert sent.read_bytes() == body
