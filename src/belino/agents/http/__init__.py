"""HTTP agent: a server of your own answers a signed POST, as JSON or server-sent events."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from time import time
from typing import Any
from urllib.parse import SplitResult, urlsplit

from belino.agents.http.wire import EVENT_BYTES, NO_EVENT, files_in, read_object, server_sent, signature, turn_body
from belino.aio.retry import backoff
from belino.domain.errors import AdapterError, AgentError, ConfigError, MediaError, Unanswered, Unreached
from belino.domain.media import AcceptedMedia, AudioFormats, DocumentFormats
from belino.domain.outcome import Finding
from belino.domain.ports import HttpAnswer, Question
from belino.domain.turn import Accepted, Final, ReplyPart, TextDelta, ToolNote, Turn
from belino.net.agent_events import AgentFault, AgentSession, read_event
from belino.net.client import Client, retry_after
from belino.net.clock import SystemClock
from belino.net.redact import Secret, redact

__all__ = ["SETUP", "Agent", "Config", "hosts"]

NAME = "agent http"
CHECK_SECONDS = 10.0
LONGEST_RETRY_AFTER = 60.0
BUSY = frozenset({429, 502, 503, 504})
"""The server has not begun: it may be asked again."""
SECRET_CHARS = 16
REASON_CHARS = 300
BROKEN = "the server behind me failed; its operator has been told"

# What the models of the large providers all take; the server is not asked what its model does.
DOCUMENTS = DocumentFormats(
    mimes=frozenset({"application/pdf"}), max_bytes=10_000_000, max_pages=100, page_tokens=1_600, charges_text=True
)
AUDIO = AudioFormats(
    mimes=frozenset({"audio/wav", "audio/mpeg"}), max_bytes=10_000_000, max_seconds=3_600, second_tokens=32
)

SETUP = (
    Question(key="url", ask="Which URL takes the turns?"),
    Question(key="secret", ask=f"Which secret signs them? (at least {SECRET_CHARS} characters)", secret=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A server of your own."""

    url: str = field(default="", metadata={"says": "The URL that each turn is posted to."})
    secret: Secret | None = field(
        default=None, metadata={"says": "The secret that signs each request; the server has the same."}
    )
    remembers: bool = field(
        default=False,
        metadata={"says": "Whether the server keeps the conversation; otherwise it gets the context every turn."},
    )
    sees_images: bool = field(default=True, metadata={"says": "Whether its model sees pictures."})
    reads_documents: bool = field(default=False, metadata={"says": "Whether its model takes PDFs as they are."})
    hears_audio: bool = field(default=False, metadata={"says": "Whether its model takes sounds (WAV, MP3)."})
    silence_seconds: int = field(
        default=300, metadata={"says": "The most seconds without a byte of the answer.", "least": 1}
    )
    retries: int = field(
        default=2,
        metadata={"says": "How often a request is repeated of which no byte was answered.", "least": 0, "most": 10},
    )
    max_running: int = field(
        default=8, metadata={"says": "How many turns the server gets at once; others wait.", "least": 1}
    )

    def __post_init__(self) -> None:
        url = urlsplit(self.url)
        _check_url(url)
        if self.secret is None or len(self.secret.reveal()) < SECRET_CHARS:
            raise ConfigError(f"the agent 'http' needs a secret of at least {SECRET_CHARS} characters")


def hosts(config: Config) -> frozenset[str]:
    """The server's host and port; it may be private."""
    url = urlsplit(config.url)
    name = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
    return frozenset({f"{name}:{url.port or (443 if url.scheme == 'https' else 80)}"})


class Agent:
    """Answers with what a server says."""

    calls_over_mcp = True

    def __init__(self, config: Config) -> None:
        self._config = config
        self.remembers = config.remembers
        self.sees_images = config.sees_images
        # Another machine cannot open a file by its path.
        self.accepts = AcceptedMedia(
            files=False,
            documents=DOCUMENTS if config.reads_documents else None,
            audio=AUDIO if config.hears_audio else None,
        )
        self._client = Client(hosts=hosts(config))
        self._room = asyncio.Semaphore(config.max_running)

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        """Post the turn and read the answer."""
        if self._room.locked():
            yield ToolNote(tool="", text="waiting until another conversation is answered")
        async with self._room:
            session = _session(await turn.memory.load())
            with turn.tools_at() as address:
                body = turn_body(turn, session, address)
                try:
                    async with aclosing(self._answer(turn, body)) as parts:
                        async for part in parts:
                            yield part
                except (AdapterError, MediaError) as error:
                    why = str(error).replace("the platform", "the server")
                    raise AgentError(why, says=BROKEN) from None

    async def check(self) -> Sequence[Finding]:
        """Check that the server is reached; it is not asked for an answer."""
        try:
            async with asyncio.timeout(CHECK_SECONDS), self._client.request("OPTIONS", self._config.url) as answer:
                return (Finding(name=NAME, ok=True, says=f"the server is reached (status {answer.status})"),)
        except (AdapterError, MediaError, TimeoutError):
            cure = "Start the server, and check url in [agent]."
            return (Finding(name=NAME, ok=False, says="the server cannot be reached", cure=cure),)

    async def close(self) -> None:
        await self._client.close()

    async def _answer(self, turn: Turn, body: bytes) -> AsyncGenerator[ReplyPart]:
        texts: list[str] = []
        async with self._asked(body) as answer:
            yield Accepted()
            async with aclosing(self._events(answer)) as events:
                async for event in events:
                    async for part in self._said(turn, event):
                        if isinstance(part, Final):
                            yield Accepted()
                            yield part if part.text or part.silent else Final(text="".join(texts))
                            return
                        if isinstance(part, TextDelta):
                            texts.append(part.text)
                        yield part
        raise AgentError("the server's answer ended without `final`", says=BROKEN)

    async def _said(self, turn: Turn, event: Mapping[str, Any]) -> AsyncGenerator[ReplyPart]:
        try:
            said = list(read_event(event))
        except ValueError as error:
            raise AgentError(f"{NO_EVENT}: {error}", says=BROKEN) from None
        for each in said:
            match each:
                case AgentFault():
                    raise AgentError(f"the server says: {redact(each.why)[:REASON_CHARS]}", says=BROKEN)
                case AgentSession():
                    await turn.memory.save(json.dumps({"session": each.id}).encode())
                case Final():
                    if (files := files_in(event)) and turn.outgoing is not None:
                        await asyncio.to_thread(_put, turn.outgoing, files)
                    yield each
                case _:
                    yield each

    @asynccontextmanager
    async def _asked(self, body: bytes) -> AsyncIterator[HttpAnswer]:
        """The answer of the server, asked again as long as it has not answered a byte."""
        for attempt in range(self._config.retries + 1):
            is_last, begun = attempt == self._config.retries, asyncio.get_running_loop().time()
            request = self._client.request(
                "POST", self._config.url, headers=self._headers(body), body=body, timeout=self._config.silence_seconds
            )
            try:
                answer = await request.__aenter__()
            except (Unreached, Unanswered) as error:
                waited = asyncio.get_running_loop().time() - begun
                # One that is only slow may still be at work.
                if is_last or (isinstance(error, Unanswered) and waited >= self._config.silence_seconds):
                    raise
                wait = backoff(attempt)
            else:
                try:
                    if is_last or answer.status not in BUSY:
                        _check_status(answer.status)
                        yield answer
                        return
                    asked = retry_after(answer.headers, now=SystemClock().now())
                    wait = backoff(attempt) if asked is None else min(asked, LONGEST_RETRY_AFTER)
                finally:
                    await request.__aexit__(None, None, None)
            await asyncio.sleep(wait)

    def _headers(self, body: bytes) -> dict[str, str]:
        assert self._config.secret is not None
        timestamp = str(int(time()))
        return {
            "Content-Type": "application/json",
            "Accept": "text/event-stream, application/json",
            "X-Belino-Timestamp": timestamp,
            "X-Belino-Signature": signature(self._config.secret.reveal(), timestamp, body),
        }

    async def _events(self, answer: HttpAnswer) -> AsyncGenerator[Mapping[str, Any]]:
        kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind != "text/event-stream":
            yield {**read_object(await answer.read(EVENT_BYTES)), "type": "final"}
            return
        async with aclosing(server_sent(answer.chunks())) as events:
            async for event in events:
                yield event


def _check_status(status: int) -> None:
    if status in (401, 403):
        raise AgentError(f"the server refuses the signature (status {status}); check secret in [agent]", says=BROKEN)
    if not 200 <= status < 300:
        raise AgentError(f"the server answered with status {status}", says=BROKEN)


def _check_url(url: SplitResult) -> None:
    if url.scheme not in ("https", "http") or not url.hostname or url.username is not None or url.fragment:
        raise ConfigError("url must be https://host[:port]/path, without a name or password in it")
    if url.scheme == "http" and not _is_near(url.hostname):
        raise ConfigError("url must begin with https://, or people's words would be sent unencrypted")


def _is_near(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_private
    except ValueError:
        return False


def _session(memory: bytes | None) -> str:
    """The saved session id; empty if there is none, or it cannot be read."""
    try:
        saved = json.loads(memory or b"{}")
    except ValueError:
        return ""
    found = saved.get("session", "") if isinstance(saved, dict) else ""
    return found if isinstance(found, str) else ""


def _put(folder: Path, files: Sequence[tuple[str, bytes]]) -> None:
    """Write the files where they are sent from; a name that exists gets a number."""
    for name, content in files:
        stem, dot, ending = name.partition(".")
        path, number = folder / name, 1
        while path.exists() or path.is_symlink():
            number += 1
            path = folder / f"{re.sub(r'-[0-9]+$', '', stem)}-{number}{dot}{ending}"
        with path.open("xb") as file:
            file.write(content)
