"""HTTP to a model's API: a request as JSON, its answer as server-sent events, and errors as ours."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, suppress
from datetime import UTC, datetime

from belino.agents.llm.failures import Cut, Declined, ModelSilent, NotAnAnswer
from belino.agents.llm.messages import Json, pack, unpack
from belino.domain.errors import AdapterError, MediaTooLarge, Unanswered
from belino.net.client import Client, retry_after
from belino.net.guard import parse_url

# A reasoning model may be silent for minutes; the gateway limits the length of a turn.
SILENCE_SECONDS = 300.0
END_SECONDS = 0.5
"""The wait for the end of an answer whose last event came; its connection then serves the next request."""
EVENT_BYTES = 16 * 1024 * 1024
ERROR_BYTES = 256 * 1024
END = b"[DONE]"


class ModelHttp:
    """One address and key; no proxy of the environment is used and no redirect followed."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._headers = {
            **headers,
            "Accept": "text/event-stream, application/json",
            "Content-Type": "application/json",
            "User-Agent": "belino",
        }
        self._client = Client(hosts=(parse_url(url).host_port,))

    @staticmethod
    def load() -> None:
        """Import what the first request needs, which takes a moment."""
        import belino.net.connect  # noqa: F401

    async def events(self, body: Json) -> AsyncGenerator[Json]:
        """The events that answer a request, as they come."""
        begun = False
        try:
            async with self._client.request(
                "POST", self._url, headers=self._headers, body=pack(body), timeout=SILENCE_SECONDS
            ) as answer:
                if answer.status >= 300:
                    raise _declined(answer.status, answer.headers, await answer.read(ERROR_BYTES))
                begun = True
                chunks = answer.chunks()
                async with aclosing(server_sent(chunks)) as events:
                    async for data in events:
                        if data == END:
                            break
                        yield _event(data)
                with suppress(TimeoutError):
                    async with asyncio.timeout(END_SECONDS):
                        async for _ in chunks:
                            pass
        except MediaTooLarge:
            raise NotAnAnswer("an error over the limit") from None
        except AdapterError as error:
            if begun:
                raise Cut from None
            raise ModelSilent(late=isinstance(error, Unanswered) and "within" in str(error)) from None

    async def close(self) -> None:
        await self._client.close()


async def server_sent(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """The data of each event; an unfinished last one is dropped."""
    rest, data = bytearray(), list[bytes]()
    async for chunk in chunks:
        rest += chunk
        if len(rest) + sum(map(len, data)) > EVENT_BYTES:
            raise NotAnAnswer("an event over the limit")
        *lines, last = rest.split(b"\n")
        rest = bytearray(last)
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                data.append(bytes(line[5:].removeprefix(b" ")))
            elif not line and data:
                yield b"\n".join(data)
                data.clear()


def _event(data: bytes) -> Json:
    try:
        found = unpack(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise NotAnAnswer("an event that is no JSON object")
    return found


def _declined(status: int, headers: Mapping[str, str], raw: bytes) -> Declined | ModelSilent:
    if status < 400:
        # The key and every word would be sent along.
        return ModelSilent()
    try:
        body = unpack(raw)
    except ValueError:
        body = raw.decode(errors="replace")
    told = body.get("error", body) if isinstance(body, dict) else body
    code = str(told.get("code") or "") if isinstance(told, dict) else ""
    return Declined(status, body, code=code, retry_after=retry_after(headers, now=datetime.now(UTC)))


def count(table: object, key: str) -> int:
    """A number of tokens; 0 if there is none."""
    value = table.get(key) if isinstance(table, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
