"""WhatsApp as a linked device: linking, events, sends and ends, over a program of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.harness import until
from adapters.linked_harness import Phone, place
from belino.domain.reply import Parcel
from belino.testing import make_png
from belino.testing.linked import LinkedWorld


@pytest.fixture
async def world() -> AsyncIterator[LinkedWorld]:
    async with LinkedWorld() as world:
        yield world


@pytest.fixture
async def phone(world: LinkedWorld, tmp_path: Path) -> AsyncIterator[Phone]:
    phone = Phone(world, tmp_path)
    yield phone
    await phone.client.close()


async def test_smoke(world: LinkedWorld, phone: Phone) -> None:
    ann = world.person("491701")
    async with phone.listening():
        world.say(ann, text="hello")
        said = world.say(ann, text="look", file=make_png(32, 20))
        await until(lambda: len(phone.messages) == 2)
        assert phone.texts == ["hello", "look"]
        (ref,) = phone.messages[1].media
        assert await phone.fetch(ref) == make_png(32, 20)
        receipt = await phone.adapter.send(
            Parcel(key="a", conversation=place(ann), text="hi", reply_to=said["Info"]["ID"])
        )
        assert receipt.message_id.endswith(".me")
    assert world.sent[0]["text"] == "hi"
