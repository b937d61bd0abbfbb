"""Group of people who talk: their messages from a corpus or by rule, an in-memory platform, and a real gateway."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import orjson

from belino.config import AccessConfig, AdapterConfig, AgentConfig, ChannelAccess, Config
from belino.domain.ports import Agent
from belino.domain.reply import ParcelState
from belino.gateway.gateway import Gateway
from belino.storage.home import Home
from belino.testing import MemoryAdapter
from belino.testing.memory import Config as MemoryConfig
from belino.testing.memory import MemoryPlatform

File = Mapping[str, str]
"""As the in-memory platform describes it."""
CHANNEL = "c"
PER_FILE = 4
LONG_CHARS = 800
PATIENCE_SECONDS = 120.0
LOOK_AGAIN_SECONDS = 0.002

_PEOPLE = ("Anna", "Bo", "Chidi", "Dilek", "Emre", "Fatima")
_OPENINGS = ("I think", "Did you see that", "Yesterday", "For the record,", "As far as I know", "Somebody said", "Hm,")
_SUBJECTS = ("the export job", "our printer", "the new invoice form", "the train to Lyon", "the staging server")
_EVENTS = (
    "stopped again right after the update, and nobody knows why.",
    "will be ready on Friday if the parts come in time.",
    "costs twice what we agreed in spring, so we should ask for another offer.",
    "works for me now; try it with the second account, please.",
    "is on the list for next week.",
    "made everybody laugh at the meeting, but the question behind it is serious: who pays for the support afterwards?",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """The messages of one channel, and what people may search for in it."""

    said: tuple[tuple[str, str], ...]
    """Names and words, oldest first."""
    intents: tuple[str, ...]


def talks(corpus: Path | None, *, least: int) -> list[Talk]:
    """Conversations of at least so many messages, a few from each file of a corpus; without one, two generated ones."""
    if corpus is None:
        return [_made(seed, least) for seed in (1, 2)]
    found = [talk for file in sorted(corpus.glob("*.json")) for talk in list(_of_file(file, least))[:PER_FILE]]
    if not found:
        raise ValueError(f"{corpus} has no conversation of {least} messages")
    return found


def lengthened(talk: Talk) -> Talk:
    """The same talk in long messages: each goes on with the words of those after it."""
    texts = [text for _, text in talk.said]
    said = tuple((name, _from(texts, place)) for place, (name, _) in enumerate(talk.said))
    return Talk(said=said, intents=talk.intents)


def _from(texts: list[str], place: int) -> str:
    words = texts[place]
    for step in range(1, len(texts)):
        if len(words) >= LONG_CHARS:
            break
        words += f" {texts[(place + step) % len(texts)]}"
    return words


def _of_file(file: Path, least: int) -> Iterator[Talk]:
    for channel in orjson.loads(file.read_bytes())["channels"]:
        spoken = [message for message in channel["messages"] if message["text"] or message["caption"]]
        if len(spoken) >= least:
            yield Talk(
                said=tuple((message["author"], message["text"] or message["caption"]) for message in spoken),
                intents=tuple(query["intent"] for query in channel["queries"]),
            )


def _made(seed: int, count: int) -> Talk:
    chance = Random(seed)  # noqa: S311 - the same talk each time
    said = tuple(
        (chance.choice(_PEOPLE), f"{chance.choice(_OPENINGS)} {chance.choice(_SUBJECTS)} {chance.choice(_EVENTS)}")
        for _ in range(count)
    )
    return Talk(
        said=said,
        intents=tuple(f"What about {subject}?" for subject in _SUBJECTS),
    )


class TalkGroup:
    """A channel that anyone may command in, told the messages of a talk one after another."""

    def __init__(self, talk: Talk) -> None:
        self.platform = MemoryPlatform()
        self.last = ""
        """The id of the newest message."""
        self._next = iter(talk.said)
        self._asked = 0

    @asynccontextmanager
    async def gateway(self, folder: Path, config: AgentConfig, agent: Agent | None = None) -> AsyncIterator[Gateway]:
        """A gateway on a fresh state folder, running until the block is left."""
        access = AccessConfig(channels={CHANNEL: ChannelAccess(senders=("*",), participation_minutes=0)})
        adapter = AdapterConfig(
            platform="memory", account="default", access=access, options=MemoryConfig(far_side=self.platform)
        )
        made = Gateway(
            Config(agent=config, adapters=(adapter,)),
            Home.at(folder / "state"),
            agent=agent,
            make_adapter=lambda config, context: MemoryAdapter(config.options, context),
        )
        async with asyncio.timeout(PATIENCE_SECONDS), made as gateway, asyncio.TaskGroup() as tasks:
            working = tasks.create_task(gateway.run())
            yield gateway
            working.cancel()

    def hear(self) -> tuple[str, str]:
        """The talk's next name and words."""
        return next(self._next)

    def offer(self, name: str, text: str, *, thread: str | None = None, files: Sequence[File] = ()) -> None:
        """A message on the platform."""
        self.last = str(1000 + len(self.platform.updates))
        self.platform.offer(
            {
                "id": self.last,
                "channel": CHANNEL,
                "thread": thread,
                "from": {"id": name, "name": name},
                "date": time.time(),
                "text": text,
                "direct": False,
                "files": list(files),
            }
        )

    async def ask(
        self, gateway: Gateway, name: str, text: str, *, thread: str | None = None, files: Sequence[File] = ()
    ) -> None:
        """A message to the agent; returns when every message is stored and answered. Each answer is a message too."""
        self.offer(name, f"@belino {text}", thread=thread, files=files)
        self._asked += 1
        await self.platform.until_acknowledged(len(self.platform.updates))
        while sum(gateway.counters.turns.values()) < self._asked or await _is_sending(gateway):
            await gateway.clock.sleep(LOOK_AGAIN_SECONDS)


async def _is_sending(gateway: Gateway) -> bool:
    parcels = await gateway.store.parcels(limit=1)
    return any(parcel.state in (ParcelState.READY, ParcelState.SENDING) for parcel in parcels)
