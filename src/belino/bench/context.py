"""Context: what a group costs an agent, in lines, in a long thread and in a session, and what it is not told."""

import asyncio
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from belino.bench import Row, _group_session
from belino.bench._group import CHANNEL, Talk, TalkGroup, lengthened, talks
from belino.config import AgentConfig
from belino.context.budget import ContextConfig
from belino.context.line_format import TimeColumn, line, message_line, short_time
from belino.context.prompt import context_blocks
from belino.context.snapshot import assemble
from belino.domain.context import ContextMessage
from belino.domain.media import TextBlock
from belino.domain.message import Author, ConversationKey, Message
from belino.domain.outcome import Standing
from belino.domain.safe_text import disarm
from belino.domain.stored import StoredMessage, Verdict
from belino.domain.tokens import estimate_tokens
from belino.domain.turn import Turn
from belino.gateway.gateway import Gateway
from belino.net.clock import SystemClock
from belino.storage.encryption import MESSAGE_CODES
from belino.storage.home import Home
from belino.storage.short_ids import IN_TEXT, LEAST_CHARS, short_id
from belino.storage.store import Store, open_store
from belino.testing import ScriptedAgent
from belino.testing.fakes import ToolCall

BEFORE = 30
THREAD = 70
TURNS = 20
UNSEEN = 2
"""Messages of others in the thread between two questions to the agent; one more is said in the channel."""
SEARCHES = 5
GROUPS = 4
"""Talks that a session in a group is measured with."""
LINES, APART = 500, 25
"""Messages whose lines are measured, and the seconds between them: a busy group."""
CHANNEL_MESSAGES = 100_000
REPLIES = 600
ASSEMBLIES = 300
GOAL_TOLD, GOAL_TOOLS = 3.5, 5.0
GOAL_ADJACENT, GOAL_RESULTS = 20.0, 450
GOAL_SAVED = 34.8 - 24
"""Tokens less per line."""
GOAL_MS, GOAL_SLOW_MS = 12.0, 20.0
OLD = "thread sent again"

_CHANNEL = ConversationKey(platform="bench", account="default", channel=CHANNEL)
_OBSERVED = Verdict(standing=Standing.OBSERVED, reason="bench")
_ID = re.compile(rf"^({IN_TEXT.pattern})\|", re.MULTILINE)
_COUNTED = (
    re.compile(r"^Thread \S+: (?P<shown>\d+) of (?P<all>\d+) replies;.*channel_messages\(", re.MULTILINE),
    re.compile(r": the last (?P<shown>\d+) of (?P<all>\d+) messages before .*channel_messages\(cursor="),
    re.compile(r"(?P<shown>)(?P<all>\d+) of these left out, the oldest: channel_messages\("),
    re.compile(r"(?P<shown>)(?P<all>\d+) said in the channel itself: channel_messages\("),
)
"""What is left out and counted, with the call that gets it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One session in one thread."""

    told: int
    """Tokens given to the agent."""
    news: int
    """Of those, the tokens of notes about messages of others since the last turn."""
    old: int
    said: int
    shown: int
    counted: int
    adjacent: int
    adjacent_tokens: int
    results: tuple[int, ...]
    calls_cold: int
    calls_steady: int
    messages: int


def run(*, corpus: Path | None = None) -> list[Row]:
    """Measure. Conversations come from the corpus folder's JSON files; without one, generated ones."""
    spoken = talks(corpus, least=BEFORE + 1 + THREAD + TURNS * (UNSEEN + 2))
    sessions = [asyncio.run(_session(talk)) for talk in spoken]
    long = [asyncio.run(_session(lengthened(talk))) for talk in spoken]
    words = [text for talk in spoken for _, text in talk.said]
    return [
        _line_row(spoken),
        *_token_rows(sessions),
        *_whole_rows(sessions, "messages"),
        *_whole_rows(long, "long messages"),
        *_group_session.rows(_long_talks(corpus)[:GROUPS]),
        *_call_rows(sessions),
        *_assembly_rows(asyncio.run(_assemblies(words))),
    ]


def _long_talks(corpus: Path | None) -> list[Talk]:
    """Talks that are long enough for a session in a group; generated ones if the corpus has none."""
    try:
        return talks(corpus, least=_group_session.MESSAGES)
    except ValueError:
        return talks(None, least=_group_session.MESSAGES)


def _line_row(spoken: Sequence[Talk]) -> Row:
    costs = [cost for talk in spoken for cost in _line_costs(talk)]
    ours, old = (sum(each) / len(costs) for each in zip(*costs, strict=True))
    return Row(
        metric="tokens per overheard line of a busy group",
        ours=ours,
        beside_name="as of version 0.9",
        beside=old,
        ratio=ours / old,
        goal=f"≥ {GOAL_SAVED:.1f} less",
        ok=old - ours >= GOAL_SAVED,
    )


def _line_costs(talk: Talk) -> Iterator[tuple[int, int]]:
    """What the line of each message costs, and what it cost with its platform's id, its day and its mark."""
    today, chance = datetime(2026, 1, 1, 12, tzinfo=UTC), Random(1)  # noqa: S311 - the same ids each time
    times = TimeColumn(today)
    for number, (name, text) in enumerate(talk.said[:LINES]):
        moment = today + timedelta(seconds=APART * number)
        message = ContextMessage(
            message_id=str(10_000 + number),
            ts=moment,
            author=Author(id=name, name=name),
            text=disarm(text),
            short_id=short_id(chance.randrange(MESSAGE_CODES), LEAST_CHARS),
        )
        old = line([message.message_id, short_time(moment, today), name, message.text, "(observed)"])
        yield estimate_tokens(f"{message_line(message, times.write(moment))}\n"), estimate_tokens(f"{old}\n")


def _token_rows(sessions: Sequence[Measured]) -> list[Row]:
    told, old = sum(one.told for one in sessions), sum(one.old for one in sessions)
    quiet = told - sum(one.news for one in sessions)
    dearest = max(tokens for one in sessions for tokens in one.results)
    name = f"tokens of a {TURNS}-turn session in a thread of {THREAD}"
    return [
        _part_row(f"{name}, all told or counted", told / len(sessions), old / len(sessions), GOAL_TOLD),
        _part_row(f"{name}, with tools only", quiet / len(sessions), old / len(sessions), GOAL_TOOLS),
        Row(
            metric="tokens of eight search results, the dearest page",
            ours=dearest,
            goal=f"≤ {GOAL_RESULTS}",
            ok=dearest <= GOAL_RESULTS,
        ),
    ]


def _whole_rows(sessions: Sequence[Measured], what: str) -> list[Row]:
    """Whether everything is told or counted, and how dense the lines of the channel are."""
    shown, counted = sum(one.shown for one in sessions), sum(one.counted for one in sessions)
    said = sum(one.said for one in sessions)
    adjacent = 1000 * sum(one.adjacent for one in sessions) / sum(one.adjacent_tokens for one in sessions)
    return [
        Row(
            metric=f"{what} of these threads: {shown:,} shown + {counted:,} counted with a call",
            ours=shown + counted,
            beside_name="all",
            beside=said,
            goal="= all",
            ok=shown + counted == said,
        ),
        Row(
            metric=f"adjacent {what} per 1,000 tokens",
            ours=adjacent,
            goal=f"≥ {GOAL_ADJACENT:g}",
            ok=adjacent >= GOAL_ADJACENT,
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


def _assembly_rows(milliseconds: Sequence[tuple[float, float]]) -> list[Row]:
    cpu, wall = (sorted(each) for each in zip(*milliseconds, strict=True))
    name = f"CPU ms to assemble a thread of {REPLIES} in a channel of {CHANNEL_MESSAGES:,}"
    return [
        Row(
            metric=f"{name}, {percentile}",
            ours=cpu[int(len(cpu) * part)],
            beside_name="wall-clock ms",
            beside=wall[int(len(wall) * part)],
            goal=f"≤ {goal:g} ms",
            ok=cpu[int(len(cpu) * part)] <= goal,
        )
        for percentile, part, goal in (("p50", 0.5, GOAL_MS), ("p99", 0.99, GOAL_SLOW_MS))
    ]


async def _session(talk: Talk) -> Measured:
    """A channel, a thread in it that involves the agent, and then question after question."""
    group = _Thread(talk)
    with TemporaryDirectory(prefix="belino-bench-") as folder:
        async with group.gateway(Path(folder), AgentConfig(options=None), group.agent) as gateway:
            for _ in range(BEFORE):
                group.overhear()
            group.open()
            for _ in range(THREAD):
                group.overhear(in_thread=True)
            await group.question(gateway)
            cold = len(group.platform.asked)
            for _ in range(TURNS - 1):
                group.overhear()
                for _ in range(UNSEEN):
                    group.overhear(in_thread=True)
                await group.question(gateway)
            steady = len(group.platform.asked) - cold
            results = await group.search(gateway, talk.intents[:SEARCHES])
            stored = await gateway.store.messages(replace(_CHANNEL, platform="memory"), group.overheard)
    shorts = [message.short_id for message in stored]
    return _measure(group, shorts, results, calls=(cold, steady))


def _measure(group: "_Thread", shorts: Sequence[str], results: tuple[int, ...], *, calls: tuple[int, int]) -> Measured:
    turns = [_texts(turn) for turn in group.agent.turns[:TURNS]]
    told = "\n".join(text for texts in turns for text in texts)
    ids = frozenset(_ID.findall(told))  # some may have become longer since
    channel = turns[0][0]
    return Measured(
        told=sum(estimate_tokens(text) for texts in turns for text in texts),
        news=sum(estimate_tokens(text) for texts in turns for text in texts if text.startswith("<<<meanwhile")),
        old=group.old,
        said=len(shorts),
        shown=sum(any(short.startswith(each) for each in ids) for short in shorts),
        counted=sum(int(each["all"]) - int(each["shown"] or 0) for form in _COUNTED for each in form.finditer(told)),
        adjacent=channel.count("\n") - 3,
        adjacent_tokens=estimate_tokens(channel),
        results=results,
        calls_cold=calls[0],
        calls_steady=calls[1],
        messages=TURNS * (UNSEEN + 2),
    )


def _texts(turn: Turn) -> list[str]:
    return [block.text for block in turn.blocks if isinstance(block, TextBlock)]


class _Thread(TalkGroup):
    """A group with one thread, and what another design would send of it with every question."""

    def __init__(self, talk: Talk) -> None:
        super().__init__(talk)
        self.agent = ScriptedAgent(sees_images=False)
        self.overheard: list[str] = []
        """Ids of the messages that are not addressed to the agent."""
        self.old = 0
        self._root: str | None = None
        self._history: list[str] = []

    def overhear(self, *, in_thread: bool = False) -> None:
        """The next message of the talk, by its author."""
        name, text = self.hear()
        self.offer(name, text, thread=self._root if in_thread else None)
        self.overheard.append(self.last)
        if in_thread:
            self._history.append(_old_line(name, text))

    def open(self) -> None:
        """The thread's first message."""
        name, text = self.hear()
        self.offer(name, text)
        self.overheard.append(self.last)
        self._root, self._history = self.last, [_old_line(name, text)]

    async def question(self, gateway: Gateway) -> None:
        """A message to the agent in the thread."""
        name, text = self.hear()
        self._history.append(_old_line(name, text))
        await self.ask(gateway, name, text, thread=self._root)
        self.old += estimate_tokens("\n".join(self._history))
        self._history.append(_old_line("belino", f"turn {len(self.agent.turns)}"))

    async def search(self, gateway: Gateway, intents: Sequence[str]) -> tuple[int, ...]:
        """The cost of search result pages that the agent asks for."""
        self.agent.script.append([ToolCall(name="channel_context", arguments={"intent": one}) for one in intents])
        await self.ask(gateway, "Anna", "find it", thread=self._root)
        pages = [block.text for blocks in self.agent.answers for block in blocks if isinstance(block, TextBlock)]
        return tuple(estimate_tokens(page) for page in pages)


def _old_line(name: str, text: str) -> str:
    """A line of a thread's history as the other design sends it: author, time, text."""
    return f"[{datetime.now(UTC):%Y-%m-%d %H:%M}] {name}: {text}"


async def _assemblies(words: Sequence[str]) -> list[tuple[float, float]]:
    """Milliseconds of CPU and on the clock to read the store, select and write, each time from scratch."""
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


async def _assembly(store: Store, anchor: Sequence[StoredMessage]) -> tuple[float, float]:
    config = ContextConfig()
    cpu, begun = time.process_time(), time.perf_counter()
    context = await assemble(store, anchor, config, now=datetime.now(UTC))
    context_blocks(context, fence="0" * 24)
    return (time.process_time() - cpu) * 1000, (time.perf_counter() - begun) * 1000


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
