"""Media tools: read the tables `tools.media` and `profiles`, also with keys in camelCase."""

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from belino import registry
from belino.config.validate import build, unknown, what
from belino.domain.errors import ConfigError
from belino.domain.reading import MediaCapability
from belino.understanding.config import CapabilityTools, MediaTools, ModelEntry, Profile
from belino.understanding.speech import SpeechConfig

PATH = "tools.media"
COMMAND = "cli"
"""The provider that runs a command."""
ENTRY_KEYS = tuple(f.name for f in fields(ModelEntry) if f.name != "options")

_HUMP = re.compile(r"(?<=[a-z0-9])[A-Z]")


def read_tools(table: object, profiles: Mapping[str, Profile]) -> MediaTools:
    """The settings of `[tools.media]`, from the table `[tools]`."""
    if not isinstance(table, Mapping):
        raise ConfigError("tools must be a table; write [tools.media]")
    for name in table:
        if name != "media":
            raise ConfigError(unknown("tools", name, ("media",)))
    own = _snake(table.get("media", {}), PATH)
    kinds: dict[str, Any] = {
        kind.value: _capability(own.pop(kind.value, {}), kind, profiles) for kind in MediaCapability
    }
    models = _entries(own.pop("models", []), f"{PATH}.models", profiles)
    speech = build(SpeechConfig, own.pop("speech", {}), f"{PATH}.speech")
    _check_profile(speech.profile, f"{PATH}.speech", profiles)
    _flatten_rules(own, PATH)
    return replace(build(MediaTools, own, PATH), models=models, speech=speech, **kinds)


def read_profiles(table: object) -> Mapping[str, Profile]:
    """The profiles by name."""
    if not isinstance(table, Mapping):
        raise ConfigError("profiles must be a table; write [profiles.NAME]")
    return {name: build(Profile, own, f"profiles.{name}") for name, own in table.items()}


def _capability(table: object, kind: MediaCapability, profiles: Mapping[str, Profile]) -> CapabilityTools:
    path = f"{PATH}.{kind}"
    own = _snake(table, path)
    models = _entries(own.pop("models", []), f"{path}.models", profiles)
    _flatten_rules(own, path)
    return replace(build(CapabilityTools, own, path), models=models)


def _entries(tables: object, path: str, profiles: Mapping[str, Profile]) -> tuple[ModelEntry, ...]:
    if not isinstance(tables, list | tuple):
        raise ConfigError(f"{path} must be a list of tables, not {what(tables)}; write [[{path}]]")
    return tuple(_entry(table, f"{path}[{number}]", profiles) for number, table in enumerate(tables))


def _entry(table: object, path: str, profiles: Mapping[str, Profile]) -> ModelEntry:
    whole = _snake(table, path)
    own = {key: value for key, value in whole.items() if key in ENTRY_KEYS}
    options = {key: value for key, value in whole.items() if key not in ENTRY_KEYS}
    # A provider may have a command of its own: the program that it runs.
    own.setdefault("type", COMMAND if "command" in options and own.get("provider", COMMAND) == COMMAND else "provider")
    if own["type"] == COMMAND:
        own.setdefault("provider", COMMAND)
    entry = build(ModelEntry, own, path)
    _check_profile(entry.profile, path, profiles)
    name = COMMAND if entry.type == COMMAND else entry.provider
    try:
        plugin = registry.find("providers", name)
    except ConfigError as error:
        raise ConfigError(f"{path}.provider: {error}") from None
    return replace(entry, options=build(plugin.config_type, options, path, also=ENTRY_KEYS))


def _check_profile(name: str | None, path: str, profiles: Mapping[str, Profile]) -> None:
    if name is not None and name not in profiles:
        raise ConfigError(f"{path}.profile names {name!r}, which is not there; write [profiles.NAME]")


def _flatten_rules(own: dict[str, Any], path: str) -> None:
    """Write the rules of a scope without `match`, and `channel`, which elsewhere names the platform, as `platform`."""
    scope = own.get("scope")
    if not isinstance(scope, dict) or not isinstance(scope.get("rules"), list):
        return
    flat = []
    for number, rule in enumerate(scope["rules"]):
        inner = rule.pop("match", {}) if isinstance(rule, dict) else {}
        if not isinstance(inner, dict):
            raise ConfigError(f"{path}.scope.rules[{number}].match must be a table, not {what(inner)}")
        if isinstance(rule, dict):
            rule = {"platform" if key == "channel" else key: value for key, value in (rule | inner).items()}
        flat.append(rule)
    scope["rules"] = flat


def _snake(table: object, path: str) -> dict[str, Any]:
    """A table with its keys in snake_case, and those of the tables in it."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{path} must be a table, not {what(table)}; write [{path}]")
    written: dict[str, Any] = {}
    for key, value in table.items():
        name = _HUMP.sub(lambda hump: f"_{hump[0].lower()}", key)
        if name in written:
            raise ConfigError(f"{path}.{name} is set twice, in two spellings; keep one")
        written[name] = _snake_inside(value, f"{path}.{name}")
    return written


def _snake_inside(value: object, path: str) -> Any:
    if isinstance(value, Mapping):
        return _snake(value, path)
    if isinstance(value, list):
        return [_snake_inside(inner, f"{path}[{number}]") for number, inner in enumerate(value)]
    return value
