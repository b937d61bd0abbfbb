"""Evidence: from a question to the words that answer it, by a scripted agent in three calls and 2,000 tokens."""

import asyncio
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from belino.bench import Row
from belino.bench._conversations import made
from belino.bench._error_rates import spoken_words
from belino.bench._evidence_questions import POSTS, QUESTIONS, EvidenceQuestion, Post, PostKind
from belino.bench._readings import missing
from belino.bench.understanding import OCR, SPEECH
from belino.config import AccessConfig, AdapterConfig, AgentConfig, ChannelAccess, Config, ToolsConfig
from belino.domain.errors import BelinoError, ToolError
from belino.domain.media import TextBlock
from belino.domain.message import ConversationKey
from belino.domain.tokens import estimate_tokens
from belino.domain.turn import Toolbox
from belino.gateway.gateway import Gateway
from belino.storage.home import Home
from belino.testing import MemoryPlatform, ScriptedAgent, espeak
from belino.testing.documents import make_docx, make_prose, make_report
from belino.testing.memory import Config as MemoryConfig
from belino.testing.memory import MemoryAdapter, parse
from belino.testing.scenes import scan, talk, written_photo
from belino.understanding.config import MediaTools

GOAL = 0.75
CALLS, TOKENS = 3, 2_000
FIND_TOKENS = 700
CHANNEL = "workshop"
BEGUN = datetime(2026, 2, 2, 9, tzinfo=UTC)
TOGETHER = 4
"""So many posts follow each other; then others talk about something else."""
ELSEWHERE = 8
PAGES_BESIDE = 40
"""Paragraphs that say nothing, around those of a document that do."""

_REF = re.compile(r"\b[a-z]+_[a-z0-9]{12}\b")
_THREAD = re.compile(r"(\w*)\(\d+\)")

ReadAheadSetting = Literal["off", "local"]


def run(*, corpus: Path | None = None) -> list[Row]:
    """Ask every question, with media read ahead and without. A corpus has no effect."""
    for name in (SPEECH, OCR):
        if lacking := missing(name):
            raise BelinoError(f"nothing can be measured: {lacking}")
    if not espeak.installed():
        raise BelinoError("nothing can be measured: the voices of espeak-ng are missing; the dev group installs them")
    with tempfile.TemporaryDirectory(prefix="belino-bench-") as folder:
        media = _media(Path(folder))
        ahead, lazy = (asyncio.run(_answered(Path(folder) / setting, media, setting)) for setting in ("local", "off"))
    return _rows(ahead, lazy)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredQuestion:
    """How a question ended."""

    question: EvidenceQuestion
    is_shown: bool
    """Whether the evidence was shown in text, within the calls and tokens."""
    calls: int
    tokens: int


@dataclass(slots=True, kw_only=True)
class ScriptedSearch:
    """A scripted agent with one question: it knows what the tools tell, and no more."""

    toolbox: Toolbox
    question: EvidenceQuestion
    calls: int = 0
    tokens: int = 0
    _told: list[str] = field(default_factory=list)
    _asked: set[str] = field(default_factory=set)

    async def run(self) -> AnsweredQuestion:
        """ScriptedSearch; look at what the best results carry or belong to; else at the media around the best one."""
        rows = await self._call("channel_context", intent=self.question.ask)
        steps = list(_steps(rows))
        while steps and not self._is_shown() and self.calls < CALLS and self.tokens < TOKENS:
            tool, subject = steps.pop(0)
            if subject in self._asked:
                continue
            self._asked.add(subject)
            if tool == "list_media":
                listed = await self._call("list_media", near=subject, limit=3)
                steps = [("fetch_media", ref) for ref in _REF.findall(listed)] + steps
            elif tool == "channel_messages":
                await self._call(tool, thread_id=subject)
            else:
                room = max(100, min(FIND_TOKENS, TOKENS - self.tokens))
                options = {"as": "text", "find": self.question.ask, "max_tokens": room}
                await self._call(tool, ref=subject, **options)
        return AnsweredQuestion(
            question=self.question,
            is_shown=self._is_shown() and self.tokens <= TOKENS,
            calls=self.calls,
            tokens=self.tokens,
        )

    async def _call(self, tool: str, **arguments: object) -> str:
        self.calls += 1
        try:
            blocks = await self.toolbox.call(tool, arguments)
            text = "\n".join(block.text for block in blocks if isinstance(block, TextBlock))
        except ToolError as error:
            text = str(error)
        self.tokens += estimate_tokens(text)
        self._told.append(text)
        return text

    def _is_shown(self) -> bool:
        told = f" {_plain(' '.join(self._told))} "
        return any(f" {_plain(words)} " in told for words in self.question.shows)


def _plain(text: str) -> str:
    return " ".join(spoken_words(text))


def _steps(results: str) -> Iterator[tuple[str, str]]:
    """What an agent does next with a page of results, the most promising first."""
    rows = [line.split("|") for line in results.splitlines() if line.count("|") >= 4]
    for row in rows[1:]:
        media = _REF.findall(row[6]) if len(row) > 6 else []
        thread = _THREAD.fullmatch(row[5]) if len(row) > 5 else None
        for ref in media:
            yield "fetch_media", ref
        if thread is not None:
            yield "channel_messages", thread[1] or row[0]
        if not media and thread is None:
            yield "list_media", row[0]


async def _answered(folder: Path, media: Sequence[bytes], setting: ReadAheadSetting) -> list[AnsweredQuestion]:
    """The questions, asked of a gateway of its own that has received everything."""
    far_side = MemoryPlatform()
    adapter = AdapterConfig(
        platform="memory",
        account="default",
        access=AccessConfig(channels={CHANNEL: ChannelAccess(senders=("*",))}),
        options=MemoryConfig(far_side=far_side),
    )
    tools = ToolsConfig(media=MediaTools(read_ahead=setting, read_ahead_fetch=True))
    config = Config(agent=AgentConfig(options=None), adapters=(adapter,), tools=tools)
    home = Home.at(folder)
    async with Gateway(
        config,
        home,
        agent=ScriptedAgent(),
        make_adapter=lambda config, context: MemoryAdapter(config.options, context),
    ) as gateway:
        for number, content in enumerate(media):
            far_side.files[f"f{number}"] = content
        for update in _updates(media):
            for arrival in parse(update, account="default"):
                await gateway.accept(arrival)
        if setting == "local":
            await gateway.read_ahead.catch_up()
        where = ConversationKey(platform="memory", account="default", channel=CHANNEL)
        return [await ScriptedSearch(toolbox=gateway.toolbox(where), question=question).run() for question in QUESTIONS]


def _updates(media: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    """The posts in order, a few at a time, between those of people who talk about other things."""
    others = iter(made(1)[0].said)
    sent, roots = BEGUN, dict[str, str]()
    for number, (post, content) in enumerate(zip(POSTS, media, strict=True)):
        if number % TOGETHER == 0:
            for one in islice(others, ELSEWHERE):
                sent += timedelta(minutes=3)
                yield _update(f"o{one.id}", one.author, sent, text=one.text)
            sent += timedelta(hours=3)
        sent += timedelta(minutes=2)
        own = f"p{number}"
        root = roots.setdefault(post.thread, own) if post.thread else own
        thread = {"thread": root} if root != own else {}
        file = {"file": f"f{number}", "mime": _MIMES[post.kind], "size": len(content)}
        if post.name:
            file |= {"name": post.name, "mime": _mime(post)}
        files = {"files": [file]} if post.kind is not PostKind.TEXT else {}
        yield _update(own, post.author, sent, text=post.text) | thread | files


def _update(own: str, author: str, sent: datetime, *, text: str) -> dict[str, Any]:
    return {
        "id": own, "channel": CHANNEL, "from": {"id": author.lower(), "name": author}, "date": int(sent.timestamp()),
        "direct": False, "text": text,
    }  # fmt: skip


_MIMES = {
    PostKind.TEXT: "",
    PostKind.PHOTO: "image/jpeg",
    PostKind.VOICE: "audio/wav",
    PostKind.SCAN: "application/pdf",
    PostKind.DOCUMENT: "application/octet-stream",
    PostKind.VIDEO: "video/mp4",
}
_SUFFIXES = {
    "pdf": "application/pdf",
    "csv": "text/csv",
    "txt": "text/plain",
    "mp4": "video/mp4",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
}


def _mime(post: Post) -> str:
    return _SUFFIXES[post.name.rpartition(".")[2]]


def _media(folder: Path) -> list[bytes]:
    """The bytes of each post, made once."""
    return [_content(post, folder / "spoken.wav") for post in POSTS]


def _content(post: Post, sound: Path) -> bytes:
    match post.kind:
        case PostKind.TEXT:
            return b""
        case PostKind.PHOTO:
            return written_photo(post.content)
        case PostKind.SCAN:
            return scan([("NOTES", "This page is left blank."), post.content])
        case PostKind.VOICE:
            espeak.speak(" ".join(post.content), sound)
            return sound.read_bytes()
        case PostKind.VIDEO:
            spoken, *shown = post.content
            espeak.speak(spoken, sound)
            return talk(sound, shown)
    if post.name.endswith((".csv", ".txt")):
        return "\n".join(post.content).encode()
    beside = make_prose(PAGES_BESIDE)
    half = len(beside) // 2
    prose = [*beside[:half], *post.content, *beside[half:]]
    return make_docx(prose) if post.name.endswith(".docx") else make_report(prose)


def _rows(ahead: Sequence[AnsweredQuestion], lazy: Sequence[AnsweredQuestion]) -> list[Row]:
    asked = Counter(found.question.about for found in ahead)
    rows = [
        Row(
            metric=f"evidence in text within {CALLS} calls and {TOKENS:,} tokens, of {len(ahead)} questions",
            ours=_share(ahead), beside_name="read_ahead off", beside=_share(lazy), goal=f"≥ {GOAL:g}",
            ok=_share(ahead) >= GOAL,
        )
    ]  # fmt: skip
    for about, count in asked.items():
        ours, beside = ([one for one in each if one.question.about == about] for each in (ahead, lazy))
        rows.append(
            Row(metric=f"  about a {about}, of {count}", ours=_share(ours), beside_name="read_ahead off",
                beside=_share(beside))
        )  # fmt: skip
    for metric, figure in (("calls", _calls), ("tokens", _tokens)):
        rows.append(
            Row(metric=f"{metric} of a question, mean", ours=figure(ahead), beside_name="read_ahead off",
                beside=figure(lazy))
        )  # fmt: skip
    return rows


def _share(found: Sequence[AnsweredQuestion]) -> float:
    return sum(one.is_shown for one in found) / len(found)


def _calls(found: Sequence[AnsweredQuestion]) -> float:
    return sum(one.calls for one in found) / len(found)


def _tokens(found: Sequence[AnsweredQuestion]) -> float:
    return sum(one.tokens for one in found) / len(found)
