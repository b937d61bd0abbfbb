"""The Signal adapter: what people do arrives, and what the agent says leaves, through a daemon on loopback."""

import pytest

from adapters.harness import until
from adapters.signal_harness import Device, channel, signal
from belino.domain.message import Deletion, DeliveryStatus, Edit, Reaction, Unsupported
from belino.testing import FakeUpload, make_png
from belino.testing.signal import SignalServer

PICTURE = make_png(40, 30)


async def test_direct_and_group_messages_arrive_with_their_people() -> None:
    async with signal() as server:
        device = Device(server)
        ann, bob = server.user("Ann"), server.user("Bob")
        hikers = server.group("Hikers", ann, bob)
        async with device.listening():
            server.say(ann, ann, "hello")
            server.say(hikers, bob, "who comes?")
            server.say(hikers, bob, "\ufffc, you?", mentions=[server.mention(server.me, 0)])
            await device.heard(3)
        first, second, third = device.messages
        assert (first.conversation, first.text, first.addressed) == (channel(ann), "hello", True)
        assert (first.author.id, first.author.name, first.author.other_names) == (ann["uuid"], "Ann", (ann["number"],))
        assert (second.conversation, second.channel_name, second.addressed) == (channel(hikers), "Hikers", False)
        assert (third.text, third.addressed) == ("@belino, you?", True)
        assert first.id.endswith(f".{ann['uuid']}")
