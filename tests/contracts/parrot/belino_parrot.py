"""A third party's adapter: the imaginary platform Parrot calls us by webhook and takes messages over HTTP."""

import asyncio
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar

from belino.domain.errors import MediaExpired
from belino.domain.limits import Limits, Once
from belino.domain.media import MediaRef, kind_of
from belino.domain.message import Arrival, Author, ConversationKey, Message, Unsupported
from belino.domain.ports import Accept, AdapterContext, Hook, HookAnswer
from belino.domain.reply import Parcel, Receipt
from belino.net.client import error_for
from belino.net.guard import host_of
from belino.net.redact import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """How to reach Parrot."""

    url: str = field(metadata={"says": "Where Parrot listens."})
    token: Secret = field(metadata={"says": "What Parrot knows us by, and we know Parrot by."})


def hosts(config: Config) -> tuple[str, ...]:
    """Whom our token may be told, and which private address may be called because the operator named it."""
    return (host_of(config.url),)


def parse(raw: dict[str, Any], *, account: str) -> tuple[Arrival, ...]:
    """One call of Parrot as arrivals."""
    where = ConversationKey(platform="parrot", account=account, channel=raw["channel"])
    author = Author(id=raw["who"], name=raw["who"])
    sent = datetime.fromtimestamp(raw["time"], UTC)
    if "says" not in raw:
        return (Unsupported(conversation=where, id=raw["id"], author=author, sent=sent, what="something else"),)
    media = tuple(
        MediaRef(
            platform="parrot",
            account=account,
            channel_id=raw["channel"],
            message_id=raw["id"],
            item=item["file"],
            kind=kind_of(item["type"]),
            mime=item["type"],
            created=sent,
            locator={"file": item["file"]},
        )
        for item in raw.get("files", ())
    )
    return (Message(conversation=where, id=raw["id"], author=author, sent=sent, text=raw["says"], media=media),)


class Adapter:
    """Parrot."""

    platform: ClassVar[str] = "parrot"
    limits = Limits(text_chars=500, once=Once.KEY)

    def __init__(self, config: Config, context: AdapterContext) -> None:
        self._config = config
        self._context = context
        self._accept: Accept | None = None

    async def run(self, accept: Accept, cursor: str | None) -> None:
        self._accept = accept
        try:
            await asyncio.Event().wait()
        finally:
            self._accept = None

    async def take_hook(self, hook: Hook) -> HookAnswer:
        if not hmac.compare_digest(hook.headers.get("x-parrot", ""), self._config.token.reveal()):
            return HookAnswer(status=403)
        if self._accept is None:
            return HookAnswer(status=503)
        for arrival in parse(json.loads(hook.body), account=self._context.account):
            await self._accept(arrival)
        return HookAnswer(status=200)

    async def send(self, parcel: Parcel) -> Receipt:
        wish = {"key": parcel.key, "channel": parcel.conversation.channel, "says": parcel.text}
        headers = {"X-Parrot": self._config.token.reveal()}
        async with self._context.http.request("POST", f"{self._config.url}/say", headers=headers, json=wish) as answer:
            error = error_for(answer.status, answer.headers, now=self._context.clock.now())
            if error is not None:
                raise error
            said = json.loads(await answer.read(10_000))
        return Receipt(message_id=said["id"], sent=self._context.clock.now())

    @asynccontextmanager
    async def open_media(self, ref: MediaRef) -> AsyncIterator[AsyncIterator[bytes]]:
        url = f"{self._config.url}/file/{ref.locator['file']}"
        async with self._context.http.request("GET", url) as answer:
            if answer.status == 404:
                raise MediaExpired(f"Parrot no longer has {ref.id}")
            error = error_for(answer.status, answer.headers, now=self._context.clock.now())
            if error is not None:
                raise error
            yield answer.chunks()
