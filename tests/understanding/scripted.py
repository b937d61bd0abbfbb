"""Providers that do what a test tells them, found under any name as if a package had brought them."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from belino import registry
from belino.domain.provider import ProviderContext
from belino.domain.reading import Material, Read, ReadingOptions, Skill
from belino.net.redact import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteConfig:
    """What every remote provider has."""

    model: str | None = None
    base_url: str = "https://reader.test/v1"
    key: Secret | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalConfig:
    """What every local provider has."""

    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandConfig:
    """What a command has."""

    command: str
    args: tuple[str, ...] = ()
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a provider."""

    provider: str
    key: str
    skill: Skill
    material: tuple[Material, ...]
    options: ReadingOptions
    data: tuple[bytes, ...] = field(repr=False)


Answer = Callable[[Call], Awaitable[Read] | Any]


@dataclass(slots=True, kw_only=True)
class Script:
    """A provider in a test, and the calls that it got."""

    name: str
    skills: frozenset[Skill]
    local: bool = False
    languages: frozenset[str] | None = None
    answer: Answer | None = None
    fails_to_start: Exception | None = None
    missing: str = ""
    needs_key: bool = True
    calls: list[Call] = field(default_factory=list)
    made: int = 0
    closed: int = 0
    close: Callable[[], Awaitable[None]] | None = None

    @property
    def config_type(self) -> type[Any]:
        if self.name == "cli":
            return CommandConfig
        return LocalConfig if self.local else RemoteConfig


class ScriptedProvider:
    """Records its calls, and answers as its script says."""

    def __init__(self, script: Script, config: Any) -> None:
        if script.fails_to_start is not None:
            raise script.fails_to_start
        script.made += 1
        self._script = script
        self._config = config
        self.skills = script.skills
        self.local = script.local
        self.languages = script.languages

    def model(self, skill: Skill) -> str:
        return self._config.model or f"{self._script.name}-{skill}"

    async def read(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        key = getattr(self._config, "key", None)
        call = Call(
            provider=self._script.name,
            key="" if key is None else key.reveal(),
            skill=skill,
            material=tuple(material),
            options=options,
            data=tuple(Path(each.path).read_bytes() for each in material),
        )
        self._script.calls.append(call)
        answer = self._script.answer
        if answer is None:
            return Read(text=f"{self._script.name} read it", model=self.model(skill))
        said = answer(call)
        return await said if isinstance(said, Awaitable) else said

    async def close(self) -> None:
        self._script.closed += 1
        if self._script.close is not None:
            await self._script.close()


class Shelf:
    """The providers of a test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scripts: dict[str, Script] = {}
        found, known = registry.find, registry.known

        def find(group: registry.Group, name: str) -> registry.Plugin:
            script = self.scripts.get(name)
            if group != "providers" or script is None:
                return found(group, name)
            module = ModuleType(f"scripted.{name}")
            module.missing = lambda config: script.missing  # type: ignore[attr-defined]
            if not script.local and script.needs_key:
                module.KEY_VARIABLE = f"{name.upper()}_API_KEY"  # type: ignore[attr-defined]

            def make(config: Any, context: ProviderContext) -> ScriptedProvider:
                return ScriptedProvider(script, config)

            return registry.Plugin(name=name, module=module, config_type=script.config_type, make=make)

        def names(group: registry.Group) -> tuple[str, ...]:
            return tuple(self.scripts) if group == "providers" else known(group)

        monkeypatch.setattr(registry, "find", find)
        monkeypatch.setattr(registry, "known", names)

    def add(self, name: str, *skills: Skill, **facts: Any) -> Script:
        """A provider of this name; one that begins with `local_` is local."""
        script = Script(name=name, skills=frozenset(skills), local=name.startswith("local_"))
        self.scripts[name] = replace(script, **facts) if facts else script
        return self.scripts[name]
