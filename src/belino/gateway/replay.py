"""Replay a cassette offline, through a whole gateway in its own folder, and report the differences."""

import asyncio
import re
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any, get_args, get_type_hints

from belino import registry
from belino.cassette.file import Cassette, Unreadable, read_arrival
from belino.cassette.journal import Wishes
from belino.config import AccessConfig, AdapterConfig, AgentConfig, ChannelAccess, Config, from_table
from belino.domain.errors import ConfigError
from belino.domain.media import MediaRef
from belino.domain.message import Arrival, Deletion, Edit, Message, Reaction
from belino.domain.outcome import MessageOutcome
from belino.domain.ports import Adapter, AdapterContext, Reparses
from belino.domain.reply import ParcelState
from belino.gateway.accounts import from_registry
from belino.gateway.cassettes import HOME, SETTINGS, UNSET, is_plain
from belino.gateway.compare import Difference, compare
from belino.gateway.gateway import Gateway
from belino.gateway.recorded import (
    RecordedAgent,
    RecordedClient,
    RecordedClock,
    RecordedContext,
    Tape,
    silenced,
)
from belino.gateway.recorded_readings import RecordedAnswers, RecordedEntries, reading_table
from belino.gateway.understanding import understanding_of
from belino.net.redact import PLACEHOLDER, Secret
from belino.net.tap import TappedClient
from belino.storage.home import Home
from belino.understanding.read import Hold, Understanding

TURN_SECONDS = 120.0
SENDING_SECONDS = 30.0
POLL_SECONDS = 0.02
UNLIMITED = 1_000
_UNDER_WAY = frozenset({ParcelState.READY, ParcelState.SENDING})
_PLACEHOLDER = re.compile(rf"(?:[a-z]{{1,8}}-)?{PLACEHOLDER}")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The result of a replay."""

    counts: Mapping[str, int]
    """How many arrivals, exchanges, calls and turns were compared."""
    differences: tuple[Difference, ...]
    left_out: Mapping[str, str]
    """Media that the cassette lacks, by hash, each with the reason."""


async def replay(cassette: Cassette, agent: AgentConfig | None = None) -> Replayed:
    """Replay a cassette with the recorded agent, or with another agent."""
    with tempfile.TemporaryDirectory(prefix="belino-replay-") as folder:
        stage = _Stage(cassette, Path(folder), agent)
        replayed = await stage.run()
    older = _texts(cassette.header.get("older"))
    differences = compare(cassette.records, replayed, older=older, without=_unstored(cassette))
    counts = Counter(str(record.get("record")) for record in cassette.records)
    return Replayed(counts=dict(counts), differences=tuple(differences), left_out=cassette.left_out)


def _unstored(cassette: Cassette) -> Iterator[str]:
    """What a cassette lacks, so that it cannot be compared."""
    if cassette.header.get("without_text"):
        yield "prompt"
    if cassette.header.get("without_text") or cassette.left_out:
        yield "tool"
        yield "reading"
    if cassette.left_out and any(record.get("record") == "reading" for record in cassette.records):
        yield "prompt"


class _Stage:
    """One gateway, with recorded platforms around it."""

    def __init__(self, cassette: Cassette, folder: Path, agent: AgentConfig | None) -> None:
        self._cassette = cassette
        self._home = Home.at(folder / "home")
        self._clock = RecordedClock()
        self._tape = Tape()
        self._script = None if agent is not None else RecordedAgent(cassette)
        self._config = config_of(cassette.header, agent)
        self._entries, self._answers = RecordedEntries(cassette.header), RecordedAnswers(cassette.records)
        self._gateway = Gateway(
            self._config,
            self._home,
            clock=self._clock,
            agent=self._script,
            make_adapter=self._adapter,
            outside=RecordedClient(self._calls(":"), cassette.media),
            understanding=self._understanding,
        )
        self._gateway.recorder.journal = self._tape
        self._turns: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()
        """Messages that a turn will answer, by conversation."""

    async def run(self) -> list[Json]:
        """Replay every record in order; returns the new recording."""
        first = self._cassette.records[0] if self._cassette.records else {}
        self._clock.begin(_moment(first))
        async with self._working():
            self._gateway.recorder.start(Wishes(started=self._clock.now().isoformat()))
            for record in self._cassette.records:
                self._clock.set(_moment(record))
                if record.get("record") == "arrival":
                    await self._hand_in(record)
                elif record.get("record") == "turn":
                    await self._turn_ended(str(record.get("conversation")))
                elif record.get("record") == "parcel":
                    await self._sent()
            await self._sent()
        return [_at_home(record, self._home.path) for record in self._tape.written]

    @asynccontextmanager
    async def _working(self) -> AsyncIterator[None]:
        async with self._gateway, asyncio.TaskGroup() as group:
            group.create_task(self._gateway.run())
            try:
                yield
            finally:
                self._gateway.stop()

    def _understanding(self, gateway: Gateway, hold: Hold) -> Understanding:
        return understanding_of(gateway, hold, entries=self._entries, answers=self._answers)

    def _adapter(self, config: AdapterConfig, context: AdapterContext) -> Adapter:
        account = f"{config.platform}:{config.account}"
        client = RecordedClient(self._calls(account), self._cassette.media)
        http = TappedClient(client, self._gateway.recorder, (config.platform, config.account))
        adapter = from_registry(config, RecordedContext(config.account, self._clock, http))
        recalled = (record for record in self._cassette.records if record.get("record") == "recalled")
        return silenced(adapter, self._clock, recalled)

    def _calls(self, account: str) -> list[Json]:
        return [
            each for each in self._cassette.records if each.get("record") == "call" and each.get("account") == account
        ]

    async def _hand_in(self, record: Json) -> None:
        arrival = self._parsed(record)
        for ref in arrival.media if isinstance(arrival, Message | Edit) else ():
            await self._keep(ref)
        taken = await self._gateway.accept(arrival)
        self._waiting[str(arrival.conversation)] += taken.outcome is MessageOutcome.WAITING
        refs = record.get("refs")
        if self._script is not None and isinstance(refs, list):
            for old, new in zip(refs, taken.refs, strict=False):
                self._script.refs[str(old)] = new.id

    def _parsed(self, record: Json) -> Arrival:
        """The arrival, parsed again from its payload if its adapter can do that."""
        recorded = read_arrival(record.get("arrival"))
        where = recorded.conversation
        adapter = self._gateway.adapters.get((where.platform, where.account))
        if adapter is None:
            raise Unreadable(f"the cassette has an arrival of {where.platform}:{where.account}, which its header lacks")
        if record.get("payload") is None or not isinstance(adapter, Reparses):
            return recorded
        known = record.get("known")
        parsed = adapter.reparse(record["payload"], known if isinstance(known, dict) else {}, _moment(record))
        same = [each for each in parsed if (each.kind, _message_id(each)) == (recorded.kind, _message_id(recorded))]
        return (same or list(parsed) or [recorded])[0]

    async def _keep(self, ref: MediaRef) -> None:
        """Store bytes that came with a message before the message arrives."""
        content = self._cassette.media.get(ref.sha256 or "")
        if content is None:
            return

        async def chunks() -> AsyncIterator[bytes]:
            yield content

        await self._gateway.store.keep(chunks(), mime=ref.mime, limit=len(content))

    async def _turn_ended(self, conversation: str) -> None:
        self._turns[conversation] += 1
        try:
            async with asyncio.timeout(TURN_SECONDS):
                while self._is_awaited(conversation):
                    self._tape.news.clear()
                    await self._tape.news.wait()
        except TimeoutError:
            return  # the missing turn is reported as a difference

    def _is_awaited(self, conversation: str) -> bool:
        """Whether a turn that had ended by this point in the recording has not ended yet."""
        turns = [
            each for each in self._tape.written if each["record"] == "turn" and each["conversation"] == conversation
        ]
        answered = sum(len(turn["messages"]) for turn in turns)
        return len(turns) < self._turns[conversation] and answered < self._waiting[conversation]

    async def _sent(self) -> None:
        """Wait until no parcel is being sent."""
        try:
            async with asyncio.timeout(SENDING_SECONDS):
                while any(each.state in _UNDER_WAY for each in await self._gateway.store.parcels(unsent=True)):
                    await self._clock.sleep(POLL_SECONDS)
        except TimeoutError:
            return  # an unsent parcel is reported as a difference


def config_of(header: Json, agent: AgentConfig | None = None) -> Config:
    """The configuration of a cassette: booleans and numbers only, because a cassette may come from a stranger."""
    settings = header.get("settings")
    sections = {
        name: {key: value for key, value in section.items() if key not in UNSET}
        for name, section in (settings.items() if isinstance(settings, dict) else ())
        if name in SETTINGS and isinstance(section, dict)
    }
    try:
        config = from_table({**sections, "tools": {"media": reading_table(header)}})
        adapters = header.get("adapters")
        accounts = tuple(_account(each) for each in adapters) if isinstance(adapters, list) else ()
    except ConfigError as error:
        raise Unreadable(f"the cassette's configuration cannot be used: {error}") from None
    name = header.get("agent")
    named = AgentConfig(name=name) if isinstance(name, str) and 0 < len(name) <= 100 else AgentConfig()
    return replace(config, agent=agent or named, adapters=accounts)


def _account(told: object) -> AdapterConfig:
    if not isinstance(told, dict) or not isinstance(told.get("access"), dict):
        raise Unreadable("the cassette's header names an account without its access list; it is damaged")
    access = told["access"]
    channels = access.get("channels")
    plugin = registry.find("adapters", str(told.get("platform")))
    return AdapterConfig(
        platform=plugin.name,
        account=str(told.get("account"))[:64],
        access=AccessConfig(
            senders=_texts(access.get("senders")),
            direct="list" if access.get("direct") == "list" else "pairing",
            bot_turns=_number(access.get("bot_turns"), UNLIMITED),
            channels={
                str(each.get("id")): ChannelAccess(
                    senders=_texts(each.get("senders")),
                    mention=each.get("mention") is not False,
                    participation_minutes=_number(each.get("participation_minutes"), 0),
                    wake_words=_texts(each.get("wake_words")),
                )
                for each in (channels if isinstance(channels, list) else ())
                if isinstance(each, dict)
            },
        ),
        options=_options(plugin.config_type, told.get("options"), told.get("secrets")),
    )


def _number(told: object, unknown: int) -> int:
    """A number of a cassette; older ones do not have it."""
    return told if type(told) is int and told >= 0 else unknown


def _options(kind: type[Any], told: object, hidden: object) -> Any:
    """An adapter's own settings: choices and numbers from the cassette, placeholders for secrets, else defaults."""
    given = told if isinstance(told, dict) else {}
    hints = get_type_hints(kind)
    chosen = {
        each.name: given[each.name]
        for each in fields(kind)
        if each.name in given and is_plain(hints[each.name]) and _is_of(hints[each.name], given[each.name])
    }
    placeholders = hidden if isinstance(hidden, dict) else {}
    secrets = {
        each.name: Secret("CASSETTE", str(placeholders.get(each.name)))
        for each in fields(kind)
        if _holds_secret(hints[each.name]) and _PLACEHOLDER.fullmatch(str(placeholders.get(each.name)))
    }
    try:
        return kind(**chosen, **secrets)
    except TypeError as error:
        raise ConfigError(f"{kind.__module__} needs a setting that a cassette does not hold ({error})") from None


def _holds_secret(hint: Any) -> bool:
    return hint is Secret or Secret in get_args(hint)


def _is_of(hint: Any, value: object) -> bool:
    if hint in (bool, int, float):
        return type(value) is hint
    return value in [choice for choice in get_args(hint) if isinstance(choice, str)] or value is None


def _message_id(arrival: Arrival) -> str:
    return arrival.message_id if isinstance(arrival, Edit | Deletion | Reaction) else arrival.id


def _moment(record: Json) -> datetime:
    try:
        moment = datetime.fromisoformat(str(record.get("at")))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise Unreadable("the cassette has a record without a time; it is damaged or empty")
    return moment


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else ()


def _at_home(value: Any, path: Path) -> Any:
    """A record in which the replay's folder has the name it has in every cassette."""
    match value:
        case dict():
            return {key: _at_home(inner, path) for key, inner in value.items()}
        case list():
            return [_at_home(inner, path) for inner in value]
        case str():
            return value.replace(str(path), HOME)
        case _:
            return value
