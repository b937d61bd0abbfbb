"""Read belino.toml or belino.json into a Config."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from belino import registry
from belino.config.media_tools import read_profiles, read_tools
from belino.config.secrets import SECRETS, write_private
from belino.config.tables import SECTIONS, AccessConfig, AdapterConfig, AgentConfig, Config, ToolsConfig
from belino.config.validate import build, unknown, what
from belino.domain.errors import ConfigError
from belino.net.proxy import ProxyConfig

if TYPE_CHECKING:
    from belino.storage.home import Home

AGENT_KEYS = ("kind", "name", "models", "ipc", "places")


def load(home: "Home", path: Path | None = None) -> Config:
    """The configuration of this state folder, or of the given file; without a file, the defaults."""
    file = path or home.config_file
    if not file.exists():
        if path is not None:
            raise ConfigError(f"{path} does not exist; `belino config init` writes a file with every default")
        return Config()
    try:
        return from_table(read_table(file), secrets=home.secrets)
    except ConfigError as error:
        raise ConfigError(f"{file.name}: {error}") from None


def keep_good(home: "Home", path: Path | None = None) -> None:
    """Keep a copy of the configuration file, which works: the same bytes, readable by its owner only."""
    file = path or home.config_file
    good = home.good_config_file(file)
    try:
        if file.exists():
            text = file.read_text(encoding="utf-8")
            if not good.exists() or good.read_text(encoding="utf-8") != text:
                write_private(good, text)
        for stale in {home.good_config_file(Path(f"x{end}")) for end in (".toml", ".json")} - {good}:
            stale.unlink(missing_ok=True)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"no copy of {file} can be kept: {type(error).__name__}") from None


def load_good(home: "Home", path: Path | None = None) -> Config | None:
    """The configuration that worked last; None if there is none, or it no longer works either."""
    good = home.good_config_file(path or home.config_file)
    if not good.exists():
        return None
    try:
        return from_table(read_table(good), secrets=home.secrets)
    except ConfigError:
        return None


def from_table(table: Mapping[str, Any], *, secrets: Path | None = None) -> Config:
    """The configuration in a parsed belino.toml; `secrets` is the folder of the secrets it names as `file:NAME`."""
    looked_in = SECRETS.set(secrets)
    try:
        return _config(table)
    finally:
        SECRETS.reset(looked_in)


def _config(table: Mapping[str, Any]) -> Config:
    known = (*SECTIONS, "agent", "adapters", "tools", "profiles", "retention_days")
    for name in table:
        if name not in known:
            raise ConfigError(unknown("", name, known))
    sections = {name: build(kind, table.get(name, {}), name) for name, kind in SECTIONS.items()}
    profiles = read_profiles(table.get("profiles", {}))
    return Config(
        tools=ToolsConfig(media=read_tools(table.get("tools", {}), profiles)),
        profiles=profiles,
        agent=_agent(table.get("agent", {})),
        adapters=_adapters(table.get("adapters", {})),
        retention_days=_days(table.get("retention_days", 0)),
        **sections,
    )


def read_table(file: Path) -> dict[str, Any]:
    """The contents of a belino.toml or belino.json, parsed but not validated."""
    try:
        text = file.read_text(encoding="utf-8-sig")  # some editors begin a file with a byte order mark
        table = json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
    except RecursionError:
        raise ConfigError("it is nested too deeply") from None
    except OSError as error:
        raise ConfigError(f"it cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError("it is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise ConfigError(f"it is not valid JSON: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"it is not valid TOML: {error}") from None
    if not isinstance(table, dict):
        raise ConfigError("it must hold one JSON object, with the same keys as belino.toml")
    return table


def _days(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"retention_days must be a whole number of days, not {what(value)}; the default is 0")
    return value


def _agent(table: object) -> AgentConfig:
    own, options = _split(table, "agent", AGENT_KEYS)
    places = own.pop("places", {})
    if not isinstance(places, Mapping):
        raise ConfigError("agent.places must be a table; write [agent.places.PLATFORM]")
    default = _one_agent({**own, **options}, "agent")
    return replace(default, places={_place(name): _agent_at(name, inner, table) for name, inner in places.items()})


def _agent_at(place: str, table: object, default: object) -> AgentConfig:
    """The agent of one place; keys missing from its table have the default agent's values, if the kind is the same."""
    path = f'agent.places."{place}"'
    if not isinstance(table, Mapping) or "places" in table:
        raise ConfigError(f"{path} must be a table with the keys of [agent]; write [{path}]")
    assert isinstance(default, Mapping)
    same = table.get("kind", default.get("kind")) == default.get("kind")
    common = {key: value for key, value in default.items() if key != "places" and (same or key == "name")}
    return _one_agent({**common, **table}, path)


def _one_agent(table: Mapping[str, Any], path: str) -> AgentConfig:
    own, options = _split(table, path, AGENT_KEYS)
    kind, name = own.get("kind", "demo"), own.get("name", "belino")
    for key, value in (("kind", kind), ("name", name)):
        if not isinstance(value, str) or not value.strip():
            raise ConfigError(f"{path}.{key} must be a string, not {what(value)}")
    models = own.get("models", [])
    if not isinstance(models, list) or not all(isinstance(model, str) and model.strip() for model in models):
        raise ConfigError(f"{path}.models must be a list of names, not {what(models)}")
    ipc = own.get("ipc", False)
    if not isinstance(ipc, bool):
        raise ConfigError(f"{path}.ipc must be true or false, not {what(ipc)}")
    plugin = registry.find("agents", kind)
    built = build(plugin.config_type, options, path, also=AGENT_KEYS)
    return AgentConfig(kind=kind, name=name, models=tuple(models), ipc=ipc, options=built)


def _place(name: str) -> str:
    """A place in the text form of conversations, so that it can be looked up."""
    parts = name.split(":")
    if not 1 <= len(parts) <= 4 or not all(parts):
        raise ConfigError(
            f'agent.places."{name}" names no place; write "platform", "platform:account", '
            '"platform:account:channel" or a conversation'
        )
    return ":".join(quote(unquote(part), safe="") for part in parts)


_PROXY_KEYS = ("proxy", "proxy_login")
_OWN_KEYS = ("enabled", "access", *_PROXY_KEYS)


def _adapters(table: object) -> tuple[AdapterConfig, ...]:
    if not isinstance(table, Mapping):
        raise ConfigError("adapters must be a table; write [adapters.NAME]")
    # The web chat is on by default: it is how a person gets in.
    platforms = {"web": {}, **table}
    return tuple(adapter for platform, own in platforms.items() for adapter in _accounts(platform, own))


def _accounts(platform: str, table: object) -> Iterator[AdapterConfig]:
    path = f"adapters.{platform}"
    own, options = _split(table, path, (*_OWN_KEYS, "accounts"))
    plugin = registry.find("adapters", platform)
    if not _enabled(own, path):
        return
    accounts = own.get("accounts", {})
    if not isinstance(accounts, Mapping):
        raise ConfigError(f"{path}.accounts must be a table; write [{path}.accounts.NAME]")
    if options or "access" in own or not accounts:
        yield _account(plugin, "default", own, options, path, also=(*_OWN_KEYS, "accounts"))
    for account, inner in accounts.items():
        inner_path = f"{path}.accounts.{account}"
        if account == "default" and (options or "access" in own):
            raise ConfigError(f"{inner_path} is already [{path}]; give the account another name")
        own_inner, inner_options = _split(inner, inner_path, _OWN_KEYS)
        if _enabled(own_inner, inner_path):
            yield _account(plugin, account, own_inner, inner_options, inner_path, also=_OWN_KEYS)


def _account(
    plugin: registry.Plugin,
    account: str,
    own: Mapping[str, Any],
    options: Mapping[str, Any],
    path: str,
    *,
    also: tuple[str, ...],
) -> AdapterConfig:
    if not account.strip() or len(account) > 64:
        raise ConfigError(f"{path} must name its account in 1 to 64 characters")
    access = build(AccessConfig, own.get("access", {}), f"{path}.access")
    built = build(plugin.config_type, options, path, also=also)
    proxy = build(ProxyConfig, {key: own[key] for key in _PROXY_KEYS if key in own}, path)
    return AdapterConfig(platform=plugin.name, account=account, access=access, proxy=proxy, options=built)


def _split(table: object, path: str, ours: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split a plugin's table into belino's own keys and those of the plugin's Config."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{path} must be a table; write [{path}]")
    return {k: v for k, v in table.items() if k in ours}, {k: v for k, v in table.items() if k not in ours}


def _enabled(own: Mapping[str, Any], path: str) -> bool:
    enabled = own.get("enabled", True)
    if not isinstance(enabled, bool):
        raise ConfigError(f"{path}.enabled must be true or false, not {what(enabled)}")
    return enabled
