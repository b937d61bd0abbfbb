"""The page speaks on another platform only where an adapter lends it a voice."""

from collections.abc import Callable
from typing import Any

from belino.config import AccessConfig, AdapterConfig, Config
from belino.domain.message import ConversationKey
from belino.domain.ports import Adapter, AdapterContext
from belino.gateway.accounts import from_registry
from belino.testing import MemoryAdapter, MemoryPlatform
from belino.testing.memory import Config as MemoryConfig

PLACE = "memory:default:c1"
WORDS: dict[str, Any] = {"conversation": PLACE, "message": "What is this?", "id": "v1", "reply_to": "1"}


class Lent(MemoryAdapter):
    """A platform whose visitor is Zoe."""

    visitor = "zoe"

    async def speak(self, conversation: ConversationKey, text: str, *, key: str, reply_to: str | None = None) -> str:
        if all(update["id"] != key for update in self._far_side.updates):
            self._far_side.offer(update(key, f"{text} ({reply_to})", channel=conversation.channel))
        return key


def update(number: str, text: str, channel: str = "c1") -> dict[str, Any]:
    return {"id": number, "channel": channel, "from": {"id": "zoe", "name": "Zoe"}, "date": 1_790_000_000, "text": text}


def settings(adapter: Callable[..., Adapter]) -> dict[str, Any]:
    """The options of a gateway that listens on a platform in memory, where Zoe has spoken once."""
    far_side = MemoryPlatform()
    far_side.offer(update("1", "hello"))
    memory = AdapterConfig(
        platform="memory", access=AccessConfig(senders=("*",)), options=MemoryConfig(far_side=far_side)
    )

    def make(config: AdapterConfig, desk: AdapterContext) -> Adapter:
        return adapter(config.options, desk) if config.platform == "memory" else from_registry(config, desk)

    return {"config": Config(adapters=(*Config().adapters, memory)), "make_adapter": make}


async def known(site: Any) -> dict[str, Any]:
    """The conversation in the list, once its first message is there."""
    for _ in range(10_000):
        _, answer, _ = await site.ask("GET", "/api/conversations")
        for one in answer["conversations"]:
            if one["conversation"] == PLACE:
                found: dict[str, Any] = one
                return found
    raise AssertionError("nobody spoke")


async def test_what_the_page_says_comes_back_as_the_visitors_message_and_only_once(run_site: Any) -> None:
    async with run_site(**settings(Lent)) as site:
        assert (await known(site))["visitor"] == "zoe"
        for _ in range(2):
            status, said, _ = await site.ask("POST", "/api/messages", json=WORDS)
            assert (status, said["message_id"]) == (200, "v1")
        _, answer, _ = await site.ask("GET", f"/api/messages?conversation={PLACE}")
        spoken = [message for message in answer["messages"] if message["id"] == "v1"]
        assert [(message["author"]["id"], message["text"]) for message in spoken] == [("zoe", "What is this? (1)")]


async def test_elsewhere_the_page_only_watches(run_site: Any) -> None:
    async with run_site(**settings(MemoryAdapter)) as site:
        assert (await known(site))["visitor"] is None
        status, answer, _ = await site.ask("POST", "/api/messages", json=WORDS)
        assert status == 400
        assert "on their own platform" in answer["error"]["message"]


async def test_files_stay_here_and_replies_stay_there(run_site: Any) -> None:
    async with run_site(**settings(Lent)) as site:
        await known(site)
        file = {"file_name": "a.txt", "mime_type": "text/plain", "content": "eA=="}
        for wrong in (
            WORDS | {"attachments": [file]},
            WORDS | {"message": " "},
            WORDS | {"conversation": "web:default:main"},
        ):
            status, _, _ = await site.ask("POST", "/api/messages", json=wrong)
            assert status == 400
