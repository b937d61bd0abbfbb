"""Speaker: text to a voice message, made once for each text and voice."""

import asyncio
import hmac
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

from belino.aio.deadline import deadline
from belino.domain.errors import (
    AdapterError,
    MediaError,
    MediaRefused,
    ProviderError,
    RateLimited,
    StoreError,
    Unauthorized,
)
from belino.domain.limits import SendAs
from belino.domain.media import Blob, OpenBlob, open_files
from belino.domain.message import ConversationKey
from belino.domain.outcome import Finding
from belino.domain.ports import Clock, HttpClient
from belino.domain.reading import Spent
from belino.domain.reply import Offer
from belino.domain.units import format_duration
from belino.media.audio import VOICE_CODEC, VOICE_MIME, Sounds
from belino.net.guard import parse_url
from belino.net.redact import Secret
from belino.understanding.speech import SERVICES, SpeechConfig
from belino.understanding.speech_api import SpeechApi, base_url, model_of
from belino.understanding.speech_command import speak_by_command

if TYPE_CHECKING:
    from belino.media.image.images import Runs

RAW_BYTES = 16 * 1024 * 1024
"""The most that a service or program may return: almost six minutes of plain samples."""
VOICE_BYTES = 8 * 1024 * 1024
AT_ONCE = 2
POINTS = 64
PIECE = 256 * 1024
FASTEST_CHARS = 60.0
"""Letters and digits a second; no voice speaks half as fast, so the sound was cut off."""
SLOWEST_SECONDS, PAUSE_SECONDS = 2.0, 10.0
"""Seconds for each character, and for all of them: a longer sound is not this text."""
FILE_NAME = "voice.ogg"
SAMPLE = "This is how I sound."

_SOURCE, _MADE = "source", "made"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """A voice message, and what it took."""

    blob: Blob
    """Ogg with Opus, 48 kHz, mono, encoded by the sandbox."""
    seconds: float
    chars: int
    provider: str
    model: str
    cached: bool = False
    """Whether it was made before: nothing was sent, and nothing is charged."""
    milliseconds: int = 0
    usd: float | None = None
    sent_to: str = ""
    """The host that the text was sent to; empty for a local program."""

    def offer(self) -> Offer:
        """The file to send, as a voice message where the platform has them."""
        return Offer(
            name=FILE_NAME,
            mime=self.blob.mime,
            size=self.blob.size,
            sha256=self.blob.sha256,
            wanted=SendAs.VOICE,
            seconds=self.seconds,
            codec=VOICE_CODEC,
        )

    def __str__(self) -> str:
        """The text about it in `explain` and for the agent."""
        told = [f"{self.provider} {self.model}".strip(), f"{self.chars} characters", format_duration(self.seconds)]
        told += ["spoken before"] if self.cached else [f"{self.milliseconds} ms", price_words(self.usd)]
        return ", ".join(told + ([f"sent to {self.sent_to}"] if self.sent_to and not self.cached else []))


class KeepsSpeech(Protocol):
    """The part of the store in which voice messages are kept."""

    @property
    def scratch(self) -> Path: ...

    @property
    def local(self) -> OpenBlob: ...

    async def keep(self, chunks: AsyncIterator[bytes], *, mime: str, limit: int) -> Blob: ...

    async def speech(self, key: str) -> Blob | None: ...

    async def keep_speech(self, key: str, blob: Blob) -> None: ...

    async def spent_on_readings(self, channel: ConversationKey, since: datetime) -> Spent: ...

    async def note_speech_cost(self, channel: ConversationKey, usd: float) -> None: ...


class Speaker:
    """Speaks with the configured voice; whatever a service or program returns is decoded and re-encoded."""

    def __init__(
        self,
        config: SpeechConfig,
        keys: Sequence[Secret],
        *,
        http: HttpClient | None,
        store: KeepsSpeech,
        sandbox: "Runs",
        clock: Clock,
        secret: bytes,
        usd_per_day: float | None = None,
    ) -> None:
        """`keys` are used in order, the next one when one is refused; `secret` hides the texts in the cache's keys.

        A program needs no `http`. `usd_per_day` limits what a channel spends on readings and speech.
        """
        self.config = config
        self._keys: Sequence[Secret | None] = keys or (None,)
        self._context = None if http is None else _Context(http=http, clock=clock)
        self._store = store
        self._sandbox = sandbox
        self._clock = clock
        self._secret = hmac.digest(secret, b"belino speech", "sha256")
        self._usd_per_day = usd_per_day
        self._room = asyncio.Semaphore(AT_ONCE)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def model(self) -> str:
        """The model that speaks; of a program, its voice."""
        config = self.config
        return model_of(config) if config.provider else config.voice or config.model or ""

    @property
    def host(self) -> str:
        """Where texts are sent to; empty if nothing leaves this machine."""
        return parse_url(base_url(self.config)).host if self.config.provider else ""

    async def speak(self, text: str, channel: ConversationKey) -> Spoken:
        """The voice message of a text for a channel, from the cache or made now. ProviderError says why that fails."""
        key = self._key(text)
        lock = self._locks.setdefault(key, asyncio.Lock())
        begun = self._clock.monotonic()
        async with self._within_limits(), lock:
            found = await self._store.speech(key)
            if found is not None:
                return self._spoken(found, text, await self._seconds(found), cached=True)
            await self._check_limit(text, channel)
            async with self._room, self._recorded(text, channel) as made:
                blob = await self._store.keep(_pieces(made.path), mime=VOICE_MIME, limit=VOICE_BYTES)
            await self._store.keep_speech(key, blob)
        took = round((self._clock.monotonic() - begun) * 1000)
        return self._spoken(blob, text, made.seconds, milliseconds=took)

    async def check(self) -> Sequence[Finding]:
        """Try it for the doctor, without the cache."""
        begun = self._clock.monotonic()
        name = f"speech {self.config.name}"
        try:
            async with self._within_limits(), self._recorded(SAMPLE) as made:
                took = self._clock.monotonic() - begun
        except ProviderError as error:
            return (Finding(name=name, ok=False, says=str(error), cure="Check tools.media.speech in belino.toml."),)
        told = [f"it speaks: {format_duration(made.seconds)} of sound in {took:.1f} s", price_words(self._usd(SAMPLE))]
        told += [f"texts are sent to {self.host}"] if self.host else ["nothing leaves this machine"]
        return (Finding(name=name, ok=True, says=", ".join(told)),)

    def _key(self, text: str) -> str:
        config = self.config
        voice = (config.name, self.model, config.model, config.voice, config.language, config.command, config.args)
        named = json.dumps((text, voice, config.base_url, config.format))
        return hmac.digest(self._secret, named.encode(), "sha256").hex()

    async def _check_limit(self, text: str, channel: ConversationKey) -> None:
        """ProviderError if the channel may not spend so much today."""
        usd, limit = self._usd(text), self._usd_per_day
        if limit is None or usd == 0:
            return
        if usd is None:
            raise ProviderError(f"{self.config.name} has no price (usd_per_mchar), and usd_per_day limits the costs")
        spent = await self._store.spent_on_readings(channel.whole_channel, self._clock.now() - timedelta(days=1))
        if spent.usd + usd > limit:
            raise ProviderError(f"over daily limit: ${spent.usd:.2f} of ${limit:.2f} are spent (usd_per_day)")

    def _usd(self, text: str) -> float | None:
        return self.config.price(len(text))

    def _spoken(self, blob: Blob, text: str, seconds: float, *, cached: bool = False, milliseconds: int = 0) -> Spoken:
        return Spoken(
            blob=blob,
            seconds=seconds,
            chars=len(text),
            provider=self.config.name,
            model=self.model,
            cached=cached,
            milliseconds=milliseconds,
            usd=0.0 if cached else self._usd(text),
            sent_to="" if cached else self.host,
        )

    async def _seconds(self, blob: Blob) -> float:
        facts = await Sounds(self._sandbox, self._store.scratch, self._store.local).facts(blob)
        return facts.seconds or 0.0

    @asynccontextmanager
    async def _within_limits(self) -> AsyncIterator[None]:
        """A time limit for all of it, and every failure as a ProviderError."""
        name, limit = self.config.name, self.config.timeout_seconds
        try:
            async with deadline(self._clock, limit):
                yield
        except TimeoutError:
            raise ProviderError(f"{name} did not speak within {limit:g} s (timeout_seconds)") from None
        except MediaError as error:
            raise ProviderError(f"what {name} returned is no voice message: {error}") from error
        except AdapterError as error:
            raise ProviderError(str(error)) from error
        except StoreError as error:
            raise ProviderError(f"the voice message cannot be kept: {error}") from error
        except OSError as error:
            raise ProviderError(f"the voice message cannot be written: {error.strerror}") from error

    @asynccontextmanager
    async def _recorded(self, text: str, channel: ConversationKey | None = None) -> AsyncIterator["_Recorded"]:
        """The voice message of a text, checked, in a file that exists as long as the context; the channel pays it."""
        scratch = self._store.scratch
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        source = scratch / f"speech-{os.urandom(8).hex()}"
        try:
            await asyncio.to_thread(source.write_bytes, await self._said(text))
            if channel is not None and (usd := self._usd(text)):
                await self._store.note_speech_cost(channel.whole_channel, usd)
            blob = Blob(sha256=_SOURCE, mime=await asyncio.to_thread(_type_of, source), size=source.stat().st_size)
            raw = Sounds(self._sandbox, scratch, open_files({_SOURCE: source}))
            async with raw.voice(blob, max_bytes=VOICE_BYTES) as path:
                yield _Recorded(path=path, seconds=await self._checked(path, text))
        finally:
            source.unlink(missing_ok=True)

    async def _said(self, text: str) -> bytes:
        """The sound of a text, with the next key where one is refused or used up."""
        config = self.config
        if config.command is not None:
            return await speak_by_command(config, text, self._store.scratch, most_bytes=RAW_BYTES)
        known = SERVICES.get(config.name)
        if known is not None and config.base_url is None and self._keys == (None,):
            raise ProviderError(f"{config.name} has no key; set {known.variable}, or profile and its key")
        refused: AdapterError | None = None
        for key in self._keys:
            assert self._context is not None
            try:
                return await SpeechApi(config, key, self._context).speak(text, most_bytes=RAW_BYTES)
            except (Unauthorized, RateLimited) as error:
                refused = error
        raise refused or ProviderError(f"{config.name} has no key")

    async def _checked(self, path: Path, text: str) -> float:
        """The length of a voice message; MediaRefused if it is silent or cannot be this text."""
        made = Sounds(self._sandbox, self._store.scratch, open_files({_MADE: path}))
        blob = Blob(sha256=_MADE, mime=VOICE_MIME, size=path.stat().st_size)
        seconds = (await made.facts(blob)).seconds or 0.0
        letters = sum(letter.isalnum() for letter in text)
        if seconds < letters / FASTEST_CHARS:
            raise MediaRefused(f"{seconds:.1f} s of sound for {letters} letters: it was cut off")
        if seconds > PAUSE_SECONDS + SLOWEST_SECONDS * len(text):
            raise MediaRefused(f"{seconds:.0f} s of sound for {len(text)} characters: it is not this text")
        if not any(await made.waveform(blob, points=POINTS)):
            raise MediaRefused("it is silent")
        return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """What calls of a service need."""

    http: HttpClient
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recorded:
    """A voice message in a file."""

    path: Path
    seconds: float


def price_words(usd: float | None) -> str:
    """A price for people."""
    if usd is None:
        return "price unknown"
    return f"${usd:.4f}" if usd else "no charge"


def _type_of(path: Path) -> str:
    """The type of a sound by its bytes; whatever a service claims does not count."""
    from belino.media.sniff import HEAD_BYTES, sniff  # imported with the first sound: it costs 50 ms

    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not head:
        raise MediaRefused("it is empty")
    mime = sniff(head, whole=path.stat().st_size <= len(head)).mime
    if not mime.startswith(("audio/", "video/")):
        raise MediaRefused(f"it is {mime}, not sound")
    return mime


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece
