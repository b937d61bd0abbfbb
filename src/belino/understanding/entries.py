"""Entries: the providers that are configured, or found, with one reader for each key."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from belino import registry
from belino.domain.errors import BelinoError, ConfigError, place_of
from belino.domain.message import ConversationKey
from belino.domain.provider import ClosesProvider, Provider, ProviderContext
from belino.domain.reading import MediaCapability
from belino.net.redact import Secret
from belino.understanding.config import MediaTools, ModelEntry, Profile
from belino.understanding.policy import SKILLS, Candidate

log = logging.getLogger(__name__)

MakeContext = Callable[[registry.Plugin, Any], ProviderContext]
"""The context of a provider with these settings."""
AgentEntries = Callable[[ConversationKey | None], Sequence[ModelEntry]]
"""Entries of the provider that a conversation's agent uses itself; none if there is no such provider."""

COMMAND = "cli"
LOCAL = "local_"
LOCAL_ORDER = ("local_whisper", "local_moonshine", "local_sherpa", "local_tesseract", "local_rapidocr")
REMOTE_ORDER = ("openai", "groq", "deepgram", "google", "anthropic", "minimax")


class Entries:
    """Makes providers on first use, once each."""

    def __init__(
        self, tools: MediaTools, profiles: Mapping[str, Profile], make_context: MakeContext, agent: AgentEntries
    ) -> None:
        self._tools = tools
        self._profiles = profiles
        self._make_context = make_context
        self._agent = agent
        self._made: dict[int, tuple[ModelEntry, Candidate]] = {}
        self._readers: list[Provider] = []
        self._local: tuple[Candidate, ...] | None = None
        self._found: tuple[Candidate, ...] | None = None

    def candidates(
        self, capability: MediaCapability, conversation: ConversationKey | None = None
    ) -> tuple[Candidate, ...]:
        """The entries that may read a kind of media, in order: its own, the shared ones, else those found here."""
        own = [self._candidate(entry) for entry in self._tools.of(capability).models]
        shared = [self._candidate(entry) for entry in self._tools.models]
        configured = (*own, *(each for each in shared if each.unusable or _reads(each, capability)))
        return configured or tuple(each for each in self._automatic(conversation) if _reads(each, capability))

    def configured(self) -> Iterator[tuple[str, Candidate]]:
        """Every entry of the configuration with its place in it; without any, the providers that are used anyway."""
        none = True
        for path, entries in self._lists():
            for number, entry in enumerate(entries):
                none = False
                yield f"{path}[{number}]", self._candidate(entry)
        if none:
            yield from ((candidate.entry.provider, candidate) for candidate in self._automatic(None))

    async def close(self) -> None:
        """Let every provider finish what it has to; a failure of one is logged."""
        async with asyncio.TaskGroup() as group:
            for reader in self._readers:
                if isinstance(reader, ClosesProvider):
                    group.create_task(_closed(reader))

    def _lists(self) -> Iterator[tuple[str, Sequence[ModelEntry]]]:
        for capability in MediaCapability:
            yield f"tools.media.{capability}.models", self._tools.of(capability).models
        yield "tools.media.models", self._tools.models

    def _automatic(self, conversation: ConversationKey | None) -> tuple[Candidate, ...]:
        if self._local is None:
            self._local = tuple(self._usable(_ranked(LOCAL_ORDER, local=True)))
        if self._tools.auto == "local":
            return self._local
        if self._found is None:
            self._found = tuple(self._usable(_ranked(REMOTE_ORDER, local=False)))
        agents = [self._candidate(entry) for entry in self._agent(conversation)]
        own = [each for each in agents if not each.unusable]
        known = {each.entry.provider for each in own}
        return (*self._local, *own, *(each for each in self._found if each.entry.provider not in known))

    def _usable(self, names: Sequence[str]) -> Iterator[Candidate]:
        """Those of these providers that work here without settings."""
        for name in names:
            try:
                entry = ModelEntry(provider=name, options=registry.find("providers", name).config_type())
            except (ConfigError, TypeError):
                continue
            candidate = self._make(entry)
            if not candidate.unusable:
                yield candidate

    def _candidate(self, entry: ModelEntry) -> Candidate:
        known = self._made.get(id(entry))
        if known is None or known[0] is not entry:
            known = self._made[id(entry)] = (entry, self._make(entry))
        return known[1]

    def _make(self, entry: ModelEntry) -> Candidate:
        try:
            plugin = registry.find("providers", COMMAND if entry.type == COMMAND else entry.provider)
            missing = getattr(plugin.module, "missing", None)
            lacking = (missing(entry.options) if missing is not None else "") or self._without_key(plugin, entry)
            if lacking:
                return Candidate(entry=entry, unusable=lacking)
            readers = tuple(self._reader(plugin, config) for config in self._configs(plugin, entry))
        except BelinoError as error:
            return Candidate(entry=entry, unusable=str(error))
        except Exception as error:  # noqa: BLE001 - a package's own code
            log.error("the provider %s cannot be made: %s", entry.provider, place_of(error))
            return Candidate(entry=entry, unusable=f"it cannot be started ({type(error).__name__})")
        first = readers[0]
        return Candidate(
            entry=entry, skills=first.skills, local=first.local, languages=first.languages, readers=readers
        )

    def _reader(self, plugin: registry.Plugin, config: Any) -> Provider:
        reader: Provider = plugin.make(config, self._make_context(plugin, config))
        self._readers.append(reader)
        return reader

    def _configs(self, plugin: registry.Plugin, entry: ModelEntry) -> Sequence[Any]:
        """The provider's settings, once for each key."""
        keys = self._keys(plugin, entry)
        return [replace(entry.options, key=key) for key in keys] if keys else [entry.options]

    def _keys(self, plugin: registry.Plugin, entry: ModelEntry) -> Sequence[Secret]:
        if not _takes_key(plugin):
            return ()
        if entry.profile is not None:
            return self._profiles[entry.profile].all_keys
        if entry.options.key is not None:
            return (entry.options.key,)
        name = getattr(plugin.module, "KEY_VARIABLE", "")
        held = os.environ.get(name, "") if name and _is_own_address(plugin, entry.options) else ""
        return (Secret(name, held),) if held else ()

    def _without_key(self, plugin: registry.Plugin, entry: ModelEntry) -> str:
        """How to give a key to a provider that needs one; a server of one's own may need none."""
        name = getattr(plugin.module, "KEY_VARIABLE", "")
        if not name or not _is_own_address(plugin, entry.options) or self._keys(plugin, entry):
            return ""
        return f"it has no key: set {name}, or name a profile"


async def _closed(reader: ClosesProvider) -> None:
    try:
        await reader.close()
    except Exception as error:  # noqa: BLE001 - a package's own code
        log.warning("the provider %s did not close: %s", type(reader).__module__, place_of(error))


def _reads(candidate: Candidate, capability: MediaCapability) -> bool:
    wanted = {skill for (kind, _), skills in SKILLS.items() if kind is capability for skill in skills}
    return bool(wanted & candidate.skills)


def _ranked(order: Sequence[str], *, local: bool) -> Sequence[str]:
    names = [name for name in registry.known("providers") if name.startswith(LOCAL) is local]
    if not local:
        names = [name for name in names if _has_key(name)]
    return sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))


def _has_key(name: str) -> bool:
    """Whether the environment has the usual key of a provider."""
    try:
        variable = getattr(registry.find("providers", name).module, "KEY_VARIABLE", "")
    except ConfigError:
        return False
    return bool(variable and os.environ.get(variable))


def _takes_key(plugin: registry.Plugin) -> bool:
    return any(field.name == "key" for field in fields(plugin.config_type))


def _is_own_address(plugin: registry.Plugin, options: Any) -> bool:
    """Whether the address is the provider's own: its usual key goes to no other."""
    default = next((field.default for field in fields(plugin.config_type) if field.name == "base_url"), None)
    return getattr(options, "base_url", None) == default
