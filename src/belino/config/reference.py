"""Reference of every key: the documentation, the file that `belino config init` writes, and the values in force."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from belino import registry
from belino.config.tables import SECTIONS, AccessConfig, AgentConfig, ChannelAccess, Config
from belino.net.proxy import ProxyConfig
from belino.net.redact import Secret
from belino.understanding.config import CapabilityTools, MediaTools, ModelEntry, Profile

UNSET = "unset"
KIND = "KIND"
"""Stands for `image`, `audio`, `video` or `document`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of belino.toml, as the documentation lists it."""

    name: str
    type: str
    default: str
    """As it is written in the file; `unset` if there is none."""
    says: str
    agent: str = ""
    """The kind of agent that the key belongs to; another kind may have a key of the same name."""


def reference() -> tuple[Key, ...]:
    """Every key of belino.toml, including those of the built-in agents and adapters."""
    keys = [key for key in _keys(Config, "") if key.says]  # the other fields are the tables themselves
    keys += [key for name in SECTIONS for key in _keys(SECTIONS[name], name)]
    keys += _keys(AgentConfig, "agent")
    for kind in registry.built_in("agents"):
        keys += [replace(key, agent=kind) for key in _keys(registry.find("agents", kind).config_type, "agent")]
    keys.append(
        Key(
            name="agent.places.PLACE",
            type="table",
            default=UNSET,
            says="The agent of one platform, account, channel or conversation, with the keys of `[agent]`.",
        )
    )
    keys += _media_keys()
    anywhere = "adapters.NAME"
    keys.append(
        Key(name=f"{anywhere}.enabled", type="boolean", default="true", says="Whether the platform is connected.")
    )
    keys += _keys(ProxyConfig, anywhere)
    keys += [key for key in _keys(AccessConfig, f"{anywhere}.access") if not key.name.endswith(".channels")]
    keys += _keys(ChannelAccess, f"{anywhere}.access.channels.ID")
    keys.append(
        Key(
            name=f"{anywhere}.accounts.ACCOUNT",
            type="table",
            default=UNSET,
            says="A further account on the platform, with the same keys as `[adapters.NAME]`.",
        )
    )
    for platform in registry.built_in("adapters"):
        keys += _keys(registry.find("adapters", platform).config_type, f"adapters.{platform}")
    return tuple(keys)


def _media_keys() -> list[Key]:
    """The keys of media understanding: tables in tables, and lists of tables."""
    kinds = {f.name for f in fields(MediaTools) if get_type_hints(MediaTools)[f.name] is CapabilityTools}
    path = "tools.media"
    keys = [key for key in _deep_keys(MediaTools, path) if key.name.split(".")[2] not in kinds]
    keys += _keys(CapabilityTools, f"{path}.{KIND}")
    keys += _keys(ModelEntry, f"{path}.{KIND}.models")
    return [*keys, *_keys(Profile, "profiles.NAME")]


def _deep_keys(kind: type[Any], path: str) -> list[Key]:
    """The keys of a table, then those of the tables in it; of the lists in it, all but the entries of providers."""
    own, tables = [], []
    for key, hint in zip(_keys(kind, path), get_type_hints(kind).values(), strict=True):
        inner = next((each for each in (hint, *get_args(hint)) if is_dataclass(each) and isinstance(each, type)), None)
        if inner is None or get_origin(hint) is tuple:
            own.append(key)
        if inner is not None and inner is not ModelEntry:
            tables += _deep_keys(inner, key.name)
    return own + tables


def template() -> str:
    """A belino.toml in which every key is explained and none is set, so that it is equivalent to the defaults."""
    lines = ["# belino's settings. Every key stands here with its default; remove the # before a key to change it."]
    section = agent = ""
    lists = {key.name for key in reference() if key.type == "list of tables"}
    for key in reference():
        parent, _, name = key.name.rpartition(".")
        if parent.startswith(("adapters.NAME", "agent.places")):
            continue
        told = "# " if key.agent or parent in lists or _is_only_told(parent) else ""
        if parent != section:
            section = parent
            lines += ["", f"{told}[[{section}]]" if section in lists else f"{told}[{section}]"]
        if key.agent != agent:
            agent = key.agent
            lines += [f'# For kind = "{agent}":'] if agent else []
        lines += [f"# {key.says}"]
        lines += [f"# {name} is {key.default}." if key.default == UNSET else f"{told or '#'}{name} = {key.default}"]
    lines += ["", "# One table per platform, for example:", "# [adapters.NAME.access]", '# senders = ["ID"]', ""]
    return "\n".join(lines)


def _is_only_told(table: str) -> bool:
    """Whether a table is commented out as a whole: it names no real one, or connects a platform.

    The web chat is connected by default.
    """
    if table.startswith("adapters."):
        return table != "adapters.web"
    return KIND in table.split(".") or table == "profiles.NAME"


def as_table(value: object) -> Any:
    """A configuration as plain JSON values; a secret is shown as its `env:NAME`."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: as_table(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_table(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [as_table(inner) for inner in value]
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _keys(kind: type[Any], path: str) -> list[Key]:
    hints = get_type_hints(kind)
    return [
        Key(
            name=f"{path}.{f.name}" if path else f.name,
            type=in_words(hints[f.name]),
            default=UNSET if f.default is MISSING else shown(f.default),
            says=f.metadata.get("says", ""),
        )
        for f in fields(kind)
        if f.name not in ("options", "places")
    ]


def default_of(f: Any) -> str:
    return f"; the default is {shown(f.default)}" if f.default is not MISSING else ""


def shown(value: object) -> str:
    if value is None:
        return UNSET
    if isinstance(value, tuple):
        return "[" + ", ".join(shown(inner) for inner in value) + "]"
    return json.dumps(value) if isinstance(value, bool | int | float) else json.dumps(str(value), ensure_ascii=False)


def is_union(hint: object) -> bool:
    return get_origin(hint) in (Union, UnionType)


def in_words(hint: Any) -> str:
    plain = {int: "integer", float: "number", str: "string", bool: "boolean", Path: "path", Secret: "secret"}
    if hint in plain:
        return plain[hint]
    if is_union(hint):
        return " or ".join(in_words(inner) for inner in get_args(hint) if inner is not NoneType)
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(json.dumps(choice) for choice in get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return "one of " + ", ".join(json.dumps(str(choice.value)) for choice in hint)
    if get_origin(hint) is tuple:
        return f"list of {in_words(get_args(hint)[0])}s"
    return "table"
