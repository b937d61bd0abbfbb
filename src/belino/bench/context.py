"""Context: what a long thread costs an agent, compared with sending the thread with every turn."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import orjson

from belino.bench import Row
from belino.config import AccessConfig, AdapterConfig, AgentConfig, ChannelAccess, Config
from belino.context.budget import ContextConfig
from belino.context.prompt import context_blocks
from belino.context.snapshot import assemble
from belino.domain.media import TextBlock
from belino.domain.message import Author, ConversationKey, Message
from belino.domain.outcome import Standing
from belino.domain.reply import ParcelState
from belino.domain.stored import StoredMessage, Verdict
from belino.domain.tokens import estimate_tokens
from belino.domain.turn import Turn
from belino.gateway.gateway import Gateway
from belino.net.clock import SystemClock
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing import MemoryAdapter, ScriptedAgent
from belino.testing.fakes import ToolCall
from belino.testing.memory import Config as MemoryConfig
from belino.testing.memory import MemoryPlatform

BEFORE = 20
THREAD = 70
TURNS = 20
UNSEEN = 2
"""Messages of others in the thread between two questions to the agent."""
SEARCHES = 5
CHANNEL_MESSAGES = 100_000
REPLIES = 600
ASSEMBLIES = 300
PATIENCE_SECONDS = 120.0
LOOK_AGAIN_SECONDS = 0.002
GOAL_TOLD, GOAL_TOOLS = 3.5, 5.0
GOAL_ADJACENT, GOAL_RESULTS, GOAL_MS = 20.0, 450, 20.0
OLD = "thread sent again"

_CHANNEL = ConversationKey(platform="bench", account="default", channel="c")
_OBSERVED = Verdict(standing=Standing.OBSERVED, reason="bench")

PER_FILE = 4

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One session in one thread."""

    told: int
    """Tokens given to the agent."""
    news: int
    """Of those, the tokens of notes about messages of others since the last turn."""
    old: int
    lost: int
    adjacent: int
    adjacent_tokens: int
    results: tuple[int, ...]
    calls_cold: int
    calls_steady: int
    messages: int


def run(*, corpus: Path | None = None) -> list[Row]:
    """Measure. Conversations come from the corpus folder's JSON files; without one, generated ones."""
    spoken = talks(corpus, least=BEFORE + 1 + THREAD + TURNS * (UNSEEN + 1))
    sessions = [asyncio.run(_session(talk)) for talk in spoken]
    words = [text for talk in spoken for _, text in talk.said]
    return [*_token_rows(sessions), *_call_rows(sessions), _assembly_row(asyncio.run(_assemblies(words)))]


def _token_rows(sessions: Sequence[Measured]) -> list[Row]:
    told, old = sum(one.told for one in sessions), sum(one.old for one in sessions)
    quiet, lost = told - sum(one.news for one in sessions), sum(one.lost for one in sessions)
    adjacent = 1000 * sum(one.adjacent for one in sessions) / sum(one.adjacent_tokens for one in sessions)
    dearest = max(tokens for one in sessions for tokens in one.results)
    name = f"tokens of a {TURNS}-turn session in a thread of {THREAD}"
    return [
        _part_row(f"{name}, nothing lost", told / len(sessions), old / len(sessions), GOAL_TOLD),
        _part_row(f"{name}, with tools only", quiet / len(sessions), old / len(sessions), GOAL_TOOLS),
        Row(metric="messages of these threads that the agent was not told", ours=lost, goal="0", ok=lost == 0),
        Row(
            metric="adjacent messages per 1,000 tokens",
            ours=adjacent,
            goal=f"≥ {GOAL_ADJACENT:g}",
            ok=adjacent >= GOAL_ADJACENT,
        ),
        Row(
            metric="tokens of eight search results, the dearest page",
            ours=dearest,
            goal=f"≤ {GOAL_RESULTS}",
            ok=dearest <= GOAL_RESULTS,
        ),
    ]


def _part_row(metric: str, ours: float, old: float, part: float) -> Row:
    ratio = ours / old
    return Row(
        metric=metric,
        ours=ours,
        beside_name=OLD,
        beside=old,
        ratio=ratio,
        goal=f"≤ 1/{part:g}",
        ok=ratio <= 1 / part,
    )


def _call_rows(sessions: Sequence[Measured]) -> list[Row]:
    steady = sum(one.calls_steady for one in sessions) / sum(one.messages for one in sessions)
    cold = max(one.calls_cold for one in sessions)
    return [
        Row(
            metric="platform calls per message, steady state",
            ours=steady,
            beside_name="asked with every reply",
            beside=1.0,
            goal="0",
            ok=steady == 0,
        ),
        Row(metric="platform calls per channel after a cold start", ours=cold, goal="≤ 1", ok=cold <= 1),
    ]


def _assembly_row(milliseconds: Sequence[float]) -> Row:
    slow = sorted(milliseconds)[int(len(milliseconds) * 0.99)]
    return Row(
        metric=f"ms to assemble a thread of {REPLIES} in a channel of {CHANNEL_MESSAGES:,}, p99",
        ours=slow,
        goal=f"≤ {GOAL_MS:g} ms",
        ok=slow <= GOAL_MS,
    )


async def _session(talk: Talk) -> Measured:
    """A channel, a thread in it that involves the agent, and then question after question."""
    group = _Group(talk)
    with TemporaryDirectory(prefix="belino-bench-") as folder:
        async with group.gateway(Path(folder)) as gateway:
            group.say(BEFORE, thread=None)
            group.say(1, thread=None)
            root = group.last
            group.say(THREAD, thread=root)
            old = [await group.ask(gateway, root)]
            cold = len(group.platform.asked)
            for _ in range(TURNS - 1):
                group.say(UNSEEN, thread=root)
                old.append(await group.ask(gateway, root))
            steady = len(group.platform.asked) - cold
            results = await group.search(gateway, root)
    return _measure(group, sum(old), results, calls=(cold, steady))


def _measure(group: "_Group", old: int, results: tuple[int, ...], *, calls: tuple[int, int]) -> Measured:
    turns = [_texts(turn) for turn in group.agent.turns[:TURNS]]
    told = "\n".join(text for texts in turns for text in texts)
    channel = turns[0][0]
    return Measured(
        told=sum(estimate_tokens(text) for texts in turns for text in texts),
        news=sum(estimate_tokens(text) for texts in turns for text in texts if text.startswith("<<<meanwhile")),
        old=old,
        lost=sum(f"\n{number}|" not in told for number in group.overheard),
        adjacent=channel.count("\n") - 3,
        adjacent_tokens=estimate_tokens(channel),
        results=results,
        calls_cold=calls[0],
        calls_steady=calls[1],
        messages=TURNS * (UNSEEN + 1),
    )


def _texts(turn: Turn) -> list[str]:
    return [block.text for block in turn.blocks if isinstance(block, TextBlock)]


class _Group:
    """People in a channel, an in-memory platform, and a real gateway."""

    def __init__(self, talk: Talk) -> None:
        self.platform = MemoryPlatform()
        self.agent = ScriptedAgent(sees_images=False)
        self.overheard: list[str] = []
        """Ids of messages in the thread that are not addressed to the agent."""
        self.last = ""
        self._talk = talk
        self._next = iter(talk.said)
        self._history: list[str] = []
        self._asked = 0

    @asynccontextmanager
    async def gateway(self, folder: Path) -> AsyncIterator[Gateway]:
        """A gateway on a fresh state folder, running until the block is left."""
        access = AccessConfig(channels={"c": ChannelAccess(senders=("*",))})
        adapter = AdapterConfig(
            platform="memory", account="default", access=access, options=MemoryConfig(far_side=self.platform)
        )
        config = Config(agent=AgentConfig(options=None), adapters=(adapter,))
        made = Gateway(
            config,
            Home.at(folder / "state"),
            agent=self.agent,
            make_adapter=lambda config, context: MemoryAdapter(config.options, context),
        )
        async with asyncio.timeout(PATIENCE_SECONDS), made as gateway, asyncio.TaskGroup() as tasks:
            working = tasks.create_task(gateway.run())
            yield gateway
            working.cancel()

    def say(self, count: int, *, thread: str | None) -> None:
        """The next message of the talk, by its author; a thread's first message belongs to it too."""
        for name, text in (next(self._next) for _ in range(count)):
            self._offer(name, text, thread)
            if thread is not None:
                self.overheard.append(self.last)

    async def ask(self, gateway: Gateway, thread: str) -> int:
        """A message to the agent; returns the tokens that the other design would have sent."""
        name, text = next(self._next)
        self._offer(name, f"@belino {text}", thread)
        await self._answered(gateway)
        old = estimate_tokens("\n".join(self._history))
        self._history.append(_old_line("belino", f"turn {len(self.agent.turns)}"))
        return old

    async def search(self, gateway: Gateway, thread: str) -> tuple[int, ...]:
        """The cost of search result pages that the agent asks for."""
        intents = self._talk.intents[:SEARCHES]
        self.agent.script.append([ToolCall(name="channel_context", arguments={"intent": one}) for one in intents])
        self._offer("Anna", "@belino find it", thread)
        await self._answered(gateway)
        pages = [block.text for blocks in self.agent.answers for block in blocks if isinstance(block, TextBlock)]
        return tuple(estimate_tokens(page) for page in pages)

    def _offer(self, name: str, text: str, thread: str | None) -> None:
        self.last = str(1000 + len(self.platform.updates))
        self._history = [*self._history, _old_line(name, text)] if thread else [_old_line(name, text)]
        self.platform.offer(
            {
                "id": self.last,
                "channel": "c",
                "thread": thread,
                "from": {"id": name, "name": name},
                "date": time.time(),
                "text": text,
                "direct": False,
            }
        )

    async def _answered(self, gateway: Gateway) -> None:
        """Wait until every message is stored and answered; each answer is a message too."""
        self._asked += 1
        await self.platform.until_acknowledged(len(self.platform.updates))
        while sum(gateway.counters.turns.values()) < self._asked or await _under_way(gateway):
            await gateway.clock.sleep(LOOK_AGAIN_SECONDS)


async def _under_way(gateway: Gateway) -> bool:
    parcels = await gateway.store.parcels(limit=1)
    return any(parcel.state in (ParcelState.READY, ParcelState.SENDING) for parcel in parcels)


def _old_line(name: str, text: str) -> str:
    """A line of a thread's history as the other design sends it: author, time, text."""
    return f"[{datetime.now(UTC):%Y-%m-%d %H:%M}] {name}: {text}"


async def _assemblies(words: Sequence[str]) -> list[float]:
    """Milliseconds to read the store, select and write, each time from scratch."""
    with TemporaryDirectory(prefix="belino-bench-") as folder:
        store = await open_store(Home.at(Path(folder) / "state"), clock=SystemClock())
        try:
            async with asyncio.TaskGroup() as tasks:
                for message in _busy_channel(words):
                    tasks.create_task(store.take_in(message, _OBSERVED))
            anchor = await store.messages(_CHANNEL, [str(CHANNEL_MESSAGES - 1)])
            return [await _assembly(store, anchor) for _ in range(ASSEMBLIES)]
        finally:
            await store.close()


async def _assembly(store: Store, anchor: Sequence[StoredMessage]) -> float:
    config = ContextConfig()
    begun = time.perf_counter()
    context = await assemble(store, anchor, config, now=datetime.now(UTC))
    context_blocks(context, fence="0" * 24)
    return (time.perf_counter() - begun) * 1000


def _busy_channel(words: Sequence[str]) -> Iterator[Message]:
    """A channel in which one in ten of the last messages is a reply in one thread, the very last included."""
    begun = datetime.now(UTC) - timedelta(seconds=CHANNEL_MESSAGES)
    people = [Author(id=f"u-{number}", name=f"Person {number}") for number in range(20)]
    first_reply = CHANNEL_MESSAGES - 10 * REPLIES
    thread = replace(_CHANNEL, thread=str(first_reply))
    for number in range(CHANNEL_MESSAGES):
        yield Message(
            conversation=thread if number > first_reply and number % 10 == 9 else _CHANNEL,
            id=str(number),
            author=people[number % len(people)],
            sent=begun + timedelta(seconds=number),
            text=words[number % len(words)],
        )


def talks(corpus: Path | None, *, least: int) -> list[Talk]:
    """Conversations of at least so many messages, a few from each file of a corpus; without one, two generated ones."""
    if corpus is None:
        return [_made(seed, least) for seed in (1, 2)]
    found = [talk for file in sorted(corpus.glob("*.json")) for talk in list(_of_file(file, least))[:PER_FILE]]
    if not found:
        raise ValueError(f"{corpus} has no conversation of {least} messages")
    return found


def _of_file(file: Path, least: int) -> Iterator[Talk]:
    for channel in orjson.loads(file.read_bytes())["channels"]:
        said = tuple(
            (message["author"], message["text"] or message["caption"])
            for message in channel["messages"]
            if message["text"] or message["caption"]
        )
        if len(said) >= least:
            yield Talk(said=said, intents=tuple(query["intent"] for query in channel["queries"]))


def _made(seed: int, count: int) -> Talk:
    chance = Random(seed)  # noqa: S311 - the same talk each time
    said = tuple(
        (chance.choice(_PEOPLE), f"{chance.choice(_OPENINGS)} {chance.choice(_SUBJECTS)} {chance.choice(_EVENTS)}")
        for _ in range(count)
    )
    return Talk(said=said, intents=tuple(f"What about {subject}?" for subject in _SUBJECTS))
