"""Cassettes from recordings: the header, the names to replace, and the media to include."""

import asyncio
import re
import secrets
import types
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args, get_origin, get_type_hints

from belino import __version__
from belino.cassette.file import ENDING, media_record, write_cassette
from belino.cassette.journal import Wishes
from belino.cassette.pseudonyms import Pseudonyms, Secrets
from belino.config import AccessConfig, AdapterConfig, Config
from belino.domain.errors import StoreError
from belino.domain.media import Blob
from belino.domain.message import SERVER, ConversationKey
from belino.domain.ports import Clock
from belino.gateway.recorded_readings import reading_header
from belino.gateway.recorder import Recorder, Recording
from belino.net.redact import Secret, stand_in
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.understanding.read import Understanding

MEDIA_BYTES = 8 * 1024 * 1024
ALL_MEDIA_BYTES = 32 * 1024 * 1024
SETTINGS = ("sessions", "media", "context", "delivery")
"""The sections that determine an agent's prompt and how an answer is sent."""
UNSET = frozenset({"sandbox"})
HOME = "/state"
HASH = re.compile(r"[0-9a-f]{64}")
ADDRESS = re.compile(r"(?:https?|wss?)://\S+")

Json = dict[str, Any]


class CassetteBlobs(Protocol):
    """Where the bytes of media are stored."""

    async def blob(self, sha256: str) -> Blob | None: ...

    def local(self, sha256: str) -> AbstractAsyncContextManager[Path]: ...


class Recordable(Protocol):
    """The part of a gateway that a recording needs."""

    @property
    def config(self) -> Config: ...

    @property
    def effective_config(self) -> Config: ...

    @property
    def home(self) -> Home: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def recorder(self) -> Recorder: ...

    @property
    def store(self) -> Any: ...

    @property
    def understanding(self) -> "Understanding": ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCassette:
    """A cassette on disk."""

    path: Path
    bytes: int
    records: int
    media: int
    left_out: Mapping[str, str]
    """Media that are not included, by hash, each with the reason."""
    ended: str = ""
    """Why the recording stopped by itself, if it did."""


async def begin(
    gateway: Recordable, conversation: ConversationKey | None, *, without_text: bool, without_media: bool
) -> Recording:
    """Start a recording."""
    older = [str(summary.conversation) for summary in await gateway.store.conversations()]
    return gateway.recorder.start(
        Wishes(
            started=gateway.clock.now().isoformat(),
            conversation=None if conversation is None else str(conversation),
            without_text=without_text,
            without_media=without_media,
            older=tuple(older),
        )
    )


async def finish(gateway: Recordable) -> WrittenCassette:
    """Stop the recording and write its cassette."""
    recorder = gateway.recorder
    reading = reading_header(gateway.config.tools.media, gateway.understanding)
    wishes = recorder.take()
    records = await asyncio.to_thread(lambda: list(recorder.journal.records()))
    media, left_out = await _media(gateway.store, records, wishes)
    stamp = gateway.clock.now().strftime("%Y%m%d-%H%M%S")
    path = gateway.home.cassettes / f"cassette-{stamp}-{secrets.token_hex(3)}{ENDING}"
    try:
        size = await asyncio.to_thread(_write, path, gateway, wishes, records, [*media, *_left(left_out)], reading)
    except OSError as error:
        recorder.resume()  # nothing is lost: it can be stopped again
        raise StoreError(f"the cassette {path} cannot be written: {error.strerror}") from error
    recorder.journal.discard()
    return WrittenCassette(
        path=path, bytes=size, records=len(records), media=len(media), left_out=left_out, ended=wishes.ended
    )


def secrets_of(value: object) -> Iterator[str]:
    """Yield every secret in a configuration."""
    if isinstance(value, Secret):
        yield value.reveal()
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from secrets_of(inner)
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from secrets_of(inner)
    elif is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            yield from secrets_of(getattr(value, each.name))


def _write(
    path: Path, gateway: Recordable, wishes: Wishes, records: list[Json], media: list[Json], reading: Json
) -> int:
    config = gateway.effective_config
    names = Pseudonyms(
        secrets.token_bytes(32),
        secrets=Secrets(secrets_of(config)),
        places={str(gateway.home.path): HOME, **_places(config)},
    )
    learn_all(names, config, records)
    shown = [_written(names, record, wishes) for record in records]
    header = names.value(
        {
            "belino": __version__,
            "started": wishes.started,
            "ended": wishes.ended,
            "conversation": wishes.conversation,
            "older": [each for each in wishes.older if each in {record["conversation"] for record in records}],
            "without_text": wishes.without_text,
            "without_media": wishes.without_media,
            "agent": config.agent.name,
            "adapters": [_adapter(each, records) for each in config.adapters],
            "reading": reading,
            "settings": {name: _plain(getattr(config, name)) for name in SETTINGS},
        }
    )
    return write_cassette(path, header, [*shown, *media])


def learn_all(names: Pseudonyms, config: Config, records: Iterable[Json]) -> None:
    """Add every person, channel and other name in the records to `names`."""
    names.learn_name(config.agent.name)
    for adapter in config.adapters:
        names.learn_id(adapter.account)
    for record in records:
        where = ConversationKey.parse(record["conversation"])
        names.learn_id(where.channel)
        names.learn_id(where.thread or "")
        names.learn({key: value for key, value in record.items() if key != "conversation"})


def _written(names: Pseudonyms, record: Json, wishes: Wishes) -> Json:
    if wishes.without_text and record["record"] == "exchange":
        record = {**record, "blocks": None}  # prompts also contain our own text, which cannot be separated from it
    return names.value(record, fill=wishes.without_text)  # type: ignore[no-any-return]


def _adapter(config: AdapterConfig, records: list[Json]) -> Json:
    """An account without secrets and addresses; its access lists contain only those in the recording."""
    said = _known_in(records)
    access: AccessConfig = config.access
    return {
        "platform": config.platform,
        "account": config.account,
        "options": _plain(config.options),
        "secrets": {
            each.name: stand_in(secret.reveal())
            for each in fields(config.options)
            if isinstance(secret := getattr(config.options, each.name), Secret)
        },
        "access": {
            "senders": [each for each in access.senders if each in said],
            "direct": access.direct,
            "bot_turns": access.bot_turns,
            "channels": [
                {
                    "id": own,
                    "senders": [each for each in rule.senders if each in said],
                    "mention": rule.mention,
                    "participation_minutes": access.minutes(rule),
                    "wake_words": list(access.words(rule)),
                }
                for own, rule in access.channels.items()
                if own in said or own.startswith(SERVER)
            ],
        },
    }


def _known_in(records: list[Json]) -> set[str]:
    """The senders and channels of a recording."""
    said = {"*"}
    for record in records:
        where = ConversationKey.parse(record["conversation"])
        said |= {where.channel, where.thread or ""}
        author = record.get("arrival", {}).get("author") or {}
        said.add(str(author.get("id", "")))
    return said


def _plain(value: object) -> Json:
    """The booleans, numbers and choices of a dataclass; nothing that could name a place or contain a secret."""
    hints = get_type_hints(type(value))
    return {
        each.name: getattr(value, each.name)
        for each in fields(value)  # type: ignore[arg-type]
        if each.name not in UNSET and is_plain(hints[each.name])
    }


def is_plain(hint: Any) -> bool:
    """Whether a setting of this type is a boolean, a number or one of a few words."""
    if get_origin(hint) in (types.UnionType,):
        return all(inner is types.NoneType or is_plain(inner) for inner in get_args(hint))
    return hint in (bool, int, float) or get_origin(hint) is Literal


def _places(config: Config) -> dict[str, str]:
    """Self-hosted servers, each with the name of its platform's usual server."""
    found: dict[str, str] = {}
    for adapter in config.adapters:
        for each in fields(adapter.options):
            own, usual = getattr(adapter.options, each.name), each.default
            if isinstance(own, str) and ADDRESS.fullmatch(own) and own != usual:
                known = isinstance(usual, str) and ADDRESS.fullmatch(usual)
                found[own.rstrip("/")] = str(usual).rstrip("/") if known else "https://host.invalid"
    for own, usual in list(found.items()):
        found.setdefault(_origin(own), _origin(usual))
    return found


def _origin(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])


async def _media(blobs: CassetteBlobs, records: list[Json], wishes: Wishes) -> tuple[list[Json], dict[str, str]]:
    found: list[Json] = []
    left_out: dict[str, str] = {}
    total = 0
    for sha256 in dict.fromkeys(each for record in records for each in _hashes(record)):
        blob = await blobs.blob(sha256)
        if wishes.without_media:
            left_out[sha256] = "the recording was made without media"
        elif blob is None:
            left_out[sha256] = "its bytes are not held here"
        elif blob.size > MEDIA_BYTES:
            left_out[sha256] = f"it is over {MEDIA_BYTES} bytes"
        elif total + blob.size > ALL_MEDIA_BYTES:
            left_out[sha256] = f"all media together are over {ALL_MEDIA_BYTES} bytes"
        else:
            total += blob.size
            async with blobs.local(sha256) as path:
                found.append(media_record(sha256, await asyncio.to_thread(path.read_bytes)))
    return found, left_out


def _left(left_out: Mapping[str, str]) -> list[Json]:
    return [{"record": "media", "sha256": sha256, "left_out": why} for sha256, why in left_out.items()]


def _hashes(value: object) -> Iterator[str]:
    """The hashes of bytes that a replay needs: downloads, and files that came with an upload."""
    if isinstance(value, Mapping):
        if isinstance(sha256 := value.get("sha256"), str) and HASH.fullmatch(sha256):
            yield sha256
        for inner in value.values():
            yield from _hashes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _hashes(inner)
