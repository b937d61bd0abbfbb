"""Intake: how fast arrivals become durable, compared with one commit for each on the same disk."""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from belino.bench import Row
from belino.domain.message import Author, ConversationKey, Message
from belino.domain.outcome import MessageOutcome, Standing
from belino.domain.stored import Verdict
from belino.net.clock import SystemClock
from belino.storage.home import Home
from belino.storage.store import Store, open_store

TOGETHER = 5_000
ALONE = 1_000
BURST = 10_000
ROUNDS = 5
GOAL_RATIO = 5.0
GOAL_BURST_SECONDS = 15.0

_ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="bench", answer=True)
_TEXTS = ("What is in this picture?", "Please read the attached report and tell me what changed since last week. " * 4)


def run(*, corpus: Path | None = None) -> list[Row]:
    """Measure. Texts are the lines of the corpus folder's text files; without one, two lines of ours."""
    texts = _TEXTS if corpus is None else _lines(corpus)
    rows = [_rate_row(conversations, texts) for conversations in (1, 1_000)]
    return [*rows, _burst_row(texts)]


def _lines(corpus: Path) -> tuple[str, ...]:
    files = sorted(corpus.rglob("*.txt"))
    return tuple(line for file in files for line in file.read_text(encoding="utf-8").splitlines()) or _TEXTS


def _rate_row(conversations: int, texts: Sequence[str]) -> Row:
    """Rounds alternate, so that a machine that slows down slows both; the median counts."""
    together, alone = [], []
    for _ in range(ROUNDS):
        alone.append(ALONE / asyncio.run(_measure(ALONE, conversations, texts, at_once=False)))
        together.append(TOGETHER / asyncio.run(_measure(TOGETHER, conversations, texts, at_once=True)))
    ours, beside = median(together), median(alone)
    return Row(
        metric=f"durable arrivals per second, {conversations:,} conversation{'s' if conversations > 1 else ''}",
        ours=ours,
        beside_name="one commit each",
        beside=beside,
        ratio=ours / beside,
        goal=f"≥ {GOAL_RATIO:g}×",
        ok=ours / beside >= GOAL_RATIO,
    )


def _burst_row(texts: Sequence[str]) -> Row:
    seconds = asyncio.run(_measure(BURST, 1_000, texts, at_once=True, met=False))
    return Row(
        metric=f"seconds until {BURST:,} arrivals offered at once are durable",
        ours=seconds,
        goal=f"≤ {GOAL_BURST_SECONDS:g} s",
        ok=seconds <= GOAL_BURST_SECONDS,
    )


async def _measure(count: int, conversations: int, texts: Sequence[str], *, at_once: bool, met: bool = True) -> float:
    """Seconds until every arrival was acknowledged, in a fresh store.

    `met`: every conversation is already known. The first arrival of a conversation costs more than later ones, so two
    measurements are comparable only if neither includes it.
    """
    greetings, messages = _messages(conversations, count, texts)
    with TemporaryDirectory(prefix="belino-bench-") as folder:
        store = await open_store(Home.at(Path(folder) / "state"), clock=SystemClock())
        try:
            if met:
                await _offer_together(store, greetings)
            begun = time.perf_counter()
            if at_once:
                await _offer_together(store, messages)
            else:
                for message in messages:
                    await _offer(store, message)
            return time.perf_counter() - begun
        finally:
            await store.close()


async def _offer_together(store: Store, messages: Sequence[Message]) -> None:
    async with asyncio.TaskGroup() as group:
        for message in messages:
            group.create_task(_offer(store, message))


async def _offer(store: Store, message: Message) -> None:
    taken = await store.take_in(message, _ANSWER, cursor=message.id)
    if taken.outcome is not MessageOutcome.WAITING:
        raise RuntimeError(f"an arrival of the bench was {taken.outcome}")


def _messages(conversations: int, count: int, texts: Sequence[str]) -> tuple[list[Message], list[Message]]:
    """One message for each conversation, and then those that are counted."""
    now = datetime.now(UTC)
    authors = [Author(id=f"u-{number}", name=f"Person {number}") for number in range(20)]
    places = [
        ConversationKey(platform="bench", account="default", channel=f"channel-{number}")
        for number in range(conversations)
    ]
    said = [
        Message(
            conversation=places[number % conversations],
            id=str(number),
            author=authors[number % len(authors)],
            sent=now,
            text=texts[number % len(texts)],
        )
        for number in range(conversations + count)
    ]
    return said[:conversations], said[conversations:]
