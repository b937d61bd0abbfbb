"""Group session of ten turns: what every request to a model holds, and how much of it a prompt cache has not seen."""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from belino.agents.llm import Config as ModelConfig
from belino.bench import Row
from belino.bench._group import File, Talk, TalkGroup
from belino.config import AgentConfig
from belino.domain.tokens import estimate_image_tokens, estimate_tokens
from belino.media.image.header import image_size
from belino.net.redact import Secret
from belino.testing.files import make_png
from belino.testing.models import ModelAnswer, ModelRequest, ModelToolCall
from belino.testing.models.anthropic import MessagesServer
from belino.testing.models.files import decoded

TURNS = 10
OVERHEARD = 49
"""Messages of others before each question."""
SHOWN = (2, 4, 6)
"""Turns whose question is about a picture that comes with it."""
PICTURE = (1200, 900)
MESSAGES = TURNS * (OVERHEARD + 2)
"""A talk needs so many: what is overheard, the questions, and the answers."""
GOAL_ALL, GOAL_NEW = 110_000, 20_000

_REF = re.compile(r"ref:(memory_[a-z0-9]{12})\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSession:
    """The requests of one session."""

    requests: int
    text: int
    """Tokens of text in all requests."""
    pictures: int
    """Tokens of pictures in all requests."""
    uncached: int
    """Tokens of text that come after the first difference from the request before."""


def rows(talks: Sequence[Talk]) -> list[Row]:
    """Sessions in these talks, on average."""
    sessions = [asyncio.run(_session(talk)) for talk in talks]
    requests, text, pictures, uncached = (
        sum(figures) / len(sessions) for figures in zip(*(astuple(one) for one in sessions), strict=True)
    )
    name = f"a group session of {TURNS} turns, {OVERHEARD} messages overheard before each"
    return [
        Row(
            metric=f"requests of {name}, {len(SHOWN)} with a picture",
            ours=requests,
            goal=f"≤ {TURNS}",
            ok=requests <= TURNS,
        ),
        Row(metric=f"text tokens of {name}", ours=text, goal=f"≤ {GOAL_ALL:,}", ok=text <= GOAL_ALL),
        Row(
            metric="of these, not in the provider's prompt cache",
            ours=uncached,
            beside_name="without a cache",
            beside=text,
            ratio=uncached / text,
            goal=f"≤ {GOAL_NEW:,}",
            ok=uncached <= GOAL_NEW,
        ),
        Row(metric="picture tokens of the same session, cached after the first request", ours=pictures),
    ]


async def _session(talk: Talk) -> GroupSession:
    group = _Questions(talk)
    async with MessagesServer(group.answer) as server:
        with TemporaryDirectory(prefix="belino-bench-") as folder:
            await group.talk(Path(folder), server.url)
        requests = [list(_pieces(asked.body)) for asked in server.asked]
    news = [requests[0], *(after[_shared(before, after) :] for before, after in pairwise(requests))]
    return GroupSession(
        requests=len(requests),
        text=_tokens(requests, str),
        pictures=_tokens(requests, bytes),
        uncached=_tokens(news, str),
    )


class _Questions(TalkGroup):
    """A group, and a model that looks at what it is asked about."""

    def answer(self, asked: ModelRequest) -> ModelAnswer:
        """Fetch the picture of the question if it is not there, else answer with the next words of the talk."""
        last = asked.body["messages"][-1]["content"]
        wanted = _REF.search(json.dumps(last))
        if wanted and not any(block.get("type") in ("image", "tool_result") for block in last):
            return ModelAnswer(calls=(ModelToolCall(tool="fetch_media", arguments={"ref": wanted[1]}),))
        return ModelAnswer(text=self.hear()[1])

    async def talk(self, folder: Path, url: str) -> None:
        """Overhear and ask, turn by turn."""
        model = ModelConfig(model="anthropic:claude-haiku-4-5", base_url=url, api_key=Secret("KEY", "bench-0123456789"))
        async with self.gateway(folder, AgentConfig(kind="llm", options=model)) as gateway:
            for turn in range(1, TURNS + 1):
                for _ in range(OVERHEARD):
                    self.offer(*self.hear())
                await self.ask(gateway, *self.hear(), files=[self._picture(turn)] if turn in SHOWN else ())

    def _picture(self, turn: int) -> File:
        width, height = PICTURE
        self.platform.files[f"p{turn}"] = make_png(width, height + turn)
        return {"file": f"p{turn}", "mime": "image/png", "name": f"p{turn}.png"}


def _pieces(body: Mapping[str, Any]) -> Iterator[str | bytes]:
    """A request in the order in which a cache compares it: tools, instructions, messages; a picture as its bytes."""
    yield json.dumps([{key: tool[key] for key in ("name", "description", "input_schema")} for tool in body["tools"]])
    for block in body["system"] if isinstance(body["system"], list) else [{"type": "text", "text": body["system"]}]:
        yield str(block["text"])
    for message in body["messages"]:
        content = message["content"]
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            yield from _block(block)


def _block(block: Mapping[str, Any]) -> Iterator[str | bytes]:
    match block["type"]:
        case "text":
            yield str(block["text"])
        case "image":
            yield decoded(block["source"]["data"]) or b""
        case "tool_use":
            yield json.dumps([block["name"], block["input"]])
        case "tool_result":
            inner = block["content"]
            for each in inner if isinstance(inner, list) else [{"type": "text", "text": inner}]:
                yield from _block(each)


def _shared(before: Sequence[str | bytes], after: Sequence[str | bytes]) -> int:
    """How many pieces two requests have in common at their beginning."""
    return next((at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), len(before))


def _tokens(requests: Sequence[Sequence[str | bytes]], kind: type[str] | type[bytes]) -> int:
    return sum(_cost(piece) for pieces in requests for piece in pieces if isinstance(piece, kind))


def _cost(piece: str | bytes) -> int:
    if isinstance(piece, str):
        return estimate_tokens(piece)
    found = image_size(piece)
    return estimate_image_tokens(*found[1:]) if found else 0
