"""The web chat as a platform."""

import asyncio
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from belino.adapters import web
from belino.domain.errors import Busy, MediaExpired
from belino.domain.limits import Once
from belino.domain.media import MediaRef, kind_of
from belino.domain.message import Arrival, Author, ConversationKey, Message
from belino.domain.outcome import MessageOutcome
from belino.domain.ports import Taken
from belino.domain.reply import Parcel
from belino.testing import FakeClock, FakeContext, Trial, check_adapter

SAMPLE = Path(__file__).parent.parent / "samples" / "web" / "message.json"
MAIN = ConversationKey(platform="web", account="default", channel="main")


def said(raw: dict[str, Any]) -> tuple[Message, ...]:
    """What a page posts, as the web door makes a message of it."""
    where = ConversationKey.parse(raw["conversation"])
    sent = datetime.fromisoformat(raw["sent"])
    media = tuple(
        MediaRef(
            platform=where.platform,
            account=where.account,
            channel_id=where.channel,
            message_id=raw["id"],
            item=item["upload_id"],
            kind=kind_of(item["mime_type"]),
            mime=item["mime_type"],
            created=sent,
            file_name=item["file_name"],
            size=item["size"],
            sha256=item["sha256"],
        )
        for item in raw["attachments"]
    )
    author = Author(id="you", name="You")
    return (Message(conversation=where, id=raw["id"], author=author, sent=sent, text=raw["message"], media=media),)


def sample() -> dict[str, Any]:
    raw: dict[str, Any] = json.loads(SAMPLE.read_text(encoding="utf-8"))
    return raw


def make() -> web.Adapter:
    return web.Adapter(web.Config(), FakeContext())


async def deliver(adapter: Any, raw: Any) -> None:
    await adapter.post(said(raw)[0])


async def test_the_web_keeps_the_adapter_contract() -> None:
    checked = await check_adapter(
        Trial(make=make, parse=said, samples=[sample()], conversation=MAIN, deliver=deliver, secrets=["canary"])
    )
    assert "nothing is acknowledged before it is stored" in checked


async def test_a_post_waits_until_somebody_listens_and_tells_what_became_of_it() -> None:
    adapter = make()
    taken: list[Arrival] = []

    async def accept(arrival: Arrival, *, cursor: str | None = None) -> Taken:
        taken.append(arrival)
        return Taken(outcome=MessageOutcome.WAITING, trace="t1")

    async with asyncio.TaskGroup() as group:
        post = group.create_task(adapter.post(said(sample())[0]))
        await asyncio.sleep(0)
        assert not post.done()
        running = group.create_task(adapter.run(accept, None))
        async with asyncio.timeout(60):
            assert (await post).trace == "t1"
        running.cancel()
    assert taken == list(said(sample()))


async def test_a_post_that_nobody_listens_to_is_busy_and_not_lost_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "LISTEN_SECONDS", 0.01)
    with pytest.raises(Busy, match="send it again"):
        await make().post(said(sample())[0])


async def test_an_adapter_that_was_cancelled_no_longer_takes_posts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "LISTEN_SECONDS", 0.01)
    adapter = make()

    async def accept(arrival: Arrival, *, cursor: str | None = None) -> Taken:
        raise AssertionError("nobody listens any more")

    async with asyncio.TaskGroup() as group:
        running = group.create_task(adapter.run(accept, None))
        await asyncio.sleep(0)
        running.cancel()
    with pytest.raises(Busy):
        await adapter.post(said(sample())[0])


async def test_a_parcel_is_known_by_its_key() -> None:
    clock = FakeClock()
    adapter = web.Adapter(web.Config(), FakeContext(clock=clock))
    receipt = await adapter.send(Parcel(key="p-1-0-abc", conversation=MAIN, text="hello"))
    assert (receipt.message_id, receipt.sent) == ("p-1-0-abc", clock.now())
    assert adapter.limits.once is Once.KEY


async def test_media_whose_bytes_are_gone_has_expired() -> None:
    (ref,) = said(sample())[0].media
    with pytest.raises(MediaExpired, match="ask the sender to upload it"):
        async with make().open_media(ref):
            pass
