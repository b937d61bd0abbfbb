"""Talk to measure on: conversations of a corpus, or generated ones of the same shape."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import orjson

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
