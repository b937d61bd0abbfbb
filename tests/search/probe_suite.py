"""The probes of word matching: questions in many languages, and the message that answers each."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from belino.bench._conversations import made
from belino.domain.message import Author, ConversationKey, Message

FOLDER = Path(__file__).parent / "probes"
CHANNEL = ConversationKey(platform="web", account="default", channel="team")
START = datetime(2026, 6, 1, 8, 0, tzinfo=UTC)
NOW = datetime(2026, 10, 30, 9, 0, tzinfo=UTC)  # a Friday


class Line(NamedTuple):
    """One message of a probe."""

    author: str
    text: str


class Probe(NamedTuple):
    """A question, the messages that come before its answer, and the answer."""

    category: str
    language: str
    sent: datetime | None
    before: tuple[Line, ...]
    answer: Line
    question: str


def probes(name: str) -> list[Probe]:
    """The probes of one file."""
    blocks = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").split("\n\n")
    return [_probe(block.strip().splitlines()) for block in blocks if not block.lstrip().startswith("#")]


def _probe(lines: list[str]) -> Probe:
    category, language, *sent = lines[0].split()
    marked = [(line[0], line[1:].strip()) for line in lines[1:]]
    said = {mark: [_line(text) for found, text in marked if found == mark] for mark in "-="}
    (question,) = (text for mark, text in marked if mark == "?")
    day = datetime.fromisoformat(f"{sent[0]}T12:00:00+00:00") if sent else None
    return Probe(category, language, day, tuple(said["-"]), said["="][0], question)


def _line(text: str) -> Line:
    author, _, words = text.partition(": ")
    return Line(author, words)


def conversation(asked: list[Probe]) -> tuple[list[Message], dict[Probe, str]]:
    """All their messages between small talk in English, oldest first, and the id of each answer."""
    talk = [Line(one.author, one.text) for each in made() for one in each.said]
    step = (NOW - timedelta(days=1) - START) / (len(talk) + len(asked))
    every = max(1, len(talk) // len(asked))
    said: list[tuple[datetime, Line]] = []
    answers: dict[Probe, Line] = {}
    for number, line in enumerate(talk):
        said.append((START + (number + number // every) * step, line))
    for number, probe in enumerate(asked):
        sent = probe.sent or START + (number + 1) * (every + 1) * step - step
        for at, line in enumerate((*probe.before, probe.answer)):
            said.append((sent + timedelta(seconds=20 * at), line))
        answers[probe] = probe.answer
    said.sort(key=lambda one: one[0])
    places = {line: str(at) for at, (_, line) in enumerate(said)}
    return list(_messages(said)), {probe: places[answer] for probe, answer in answers.items()}


def _messages(said: list[tuple[datetime, Line]]) -> Iterator[Message]:
    for at, (sent, line) in enumerate(said):
        author = Author(id=f"u-{line.author.casefold()}", name=line.author)
        yield Message(conversation=CHANNEL, id=str(at), author=author, sent=sent, text=line.text)
