"""Understanding of media: made of the configuration, with what providers get; for a gateway, or for one command."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino import registry
from belino.config import Config
from belino.domain.errors import AddressRefused, ConfigError, MediaNotFound
from belino.domain.media import Blob, open_files
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock, HttpClient
from belino.domain.provider import LocalWorker
from belino.domain.stored import RefRecord
from belino.net.client import Client
from belino.net.clock import SystemClock
from belino.net.guard import Guard, host_of
from belino.storage.home import Home
from belino.turns.agents import agent_at
from belino.understanding.config import DailyReadingLimits, ModelEntry
from belino.understanding.entries import Entries
from belino.understanding.pieces import Answers
from belino.understanding.read import Hold, ReadingRoom, Understanding
from belino.understanding.worker import ModelWorker

if TYPE_CHECKING:
    from belino.gateway.gateway import Gateway

AGENTS: Mapping[str, str] = {"claude": "anthropic"}
"""The provider of media understanding behind a kind of agent; that of `llm` is in its model's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingContext:
    """What a provider gets; implements ProviderContext."""

    http: HttpClient
    clock: Clock
    worker: LocalWorker
    scratch: Path
    models: Path


class ProviderContexts:
    """Makes the context of each provider, and closes what it has opened."""

    def __init__(self, config: Config, clock: Clock, *, scratch: Path, models: Path) -> None:
        self._guard = Guard(config.net.allow)
        self._clock = clock
        self._scratch = scratch
        self._models = models
        self._worker = ModelWorker(idle_seconds=config.tools.media.worker_idle_seconds)
        self._clients: list[Client] = []

    def make(self, plugin: registry.Plugin, config: Any) -> ReadingContext:
        """The context of one provider: its HTTP client may reach the address that the operator names."""
        client = Client(guard=self._guard, hosts=_hosts(plugin, config))
        self._clients.append(client)
        return ReadingContext(
            http=client, clock=self._clock, worker=self._worker, scratch=self._scratch, models=self._models
        )

    async def close(self) -> None:
        """Close every connection, and end local models."""
        await asyncio.gather(self._worker.close(), *(client.close() for client in self._clients))


def understanding_of(
    gateway: "Gateway", hold: Hold, *, entries: Entries | None = None, answers: Answers | None = None
) -> Understanding:
    """Media understanding for a gateway; what is read is stored.

    A replay brings its entries, and answers in place of providers.
    """
    contexts = ProviderContexts(
        gateway.config, gateway.clock, scratch=gateway.store.scratch, models=gateway.home.models
    )
    room = ReadingRoom(
        store=gateway.store,
        sandbox=gateway.sandbox,
        scratch=gateway.store.scratch,
        renderer=lambda: gateway.renderer,
        images=lambda: gateway.images,
        hold=hold,
        clock=gateway.clock,
        make_context=contexts.make,
        agent=agent_entries(gateway.config),
        listen=gateway.recorder.read,
        answers=answers,
        closes=(contexts.close,),
    )
    return Understanding(gateway.config.tools.media, gateway.config.profiles, room, entries=entries)


@asynccontextmanager
async def opened_understanding(config: Config, home: Home) -> AsyncIterator[Understanding]:
    """Media understanding for local files: no store, no limits of channels; nothing is kept."""
    from belino.media.image.images import Images
    from belino.media.render import Renderer, make_makers
    from belino.media.sandbox.sandbox import Sandbox

    clock = SystemClock()
    with tempfile.TemporaryDirectory(prefix="belino-") as folder:
        scratch, nothing = Path(folder), open_files({})
        async with AsyncExitStack() as opening:
            sandbox = await opening.enter_async_context(Sandbox(config.media.sandbox))
            contexts = ProviderContexts(config, clock, scratch=scratch, models=home.models)
            room = ReadingRoom(
                store=None,
                sandbox=sandbox,
                scratch=scratch,
                renderer=lambda: Renderer(make_makers(sandbox, scratch, nothing)),
                images=lambda: Images(sandbox, scratch, nothing),
                hold=_hold_nothing,
                clock=clock,
                make_context=contexts.make,
                agent=agent_entries(config),
                closes=(contexts.close,),
            )
            own = replace(config.tools.media, limits=DailyReadingLimits())
            understanding = Understanding(own, config.profiles, room)
            opening.push_async_callback(understanding.close)
            yield understanding


def agent_entries(config: Config) -> Callable[[ConversationKey | None], Sequence[ModelEntry]]:
    """For each conversation, the provider that its agent uses itself, with the agent's own key."""

    def entries(conversation: ConversationKey | None) -> Sequence[ModelEntry]:
        agent = config.agent if conversation is None else agent_at(config.agent, conversation)
        options: Any = agent.options
        name = AGENTS.get(agent.kind) or str(getattr(options, "model", "")).partition(":")[0]
        if name not in registry.known("providers"):
            return ()
        key = getattr(options, "api_key", None)
        given = {"key": key} if key is not None else {}
        if base_url := getattr(options, "base_url", None):
            given["base_url"] = base_url
        try:
            return (ModelEntry(provider=name, options=registry.find("providers", name).config_type(**given)),)
        except (ConfigError, TypeError):
            return ()

    return entries


@asynccontextmanager
async def _hold_nothing(record: RefRecord) -> AsyncIterator[Blob]:
    raise MediaNotFound(f"{record.ref.id} is not here")
    yield  # pragma: no cover


def _hosts(plugin: registry.Plugin, config: Any) -> tuple[str, ...]:
    """The host of the provider's address; one that the operator names may be private."""
    url = getattr(config, "base_url", None)
    try:
        return (host_of(url),) if url else ()
    except AddressRefused:
        raise ConfigError(f"{plugin.name}: base_url must be http(s)://host[:port]/path") from None
