"""belino.toml → each room's own dataclass, every mistake told in one sentence; the only module that knows pydantic."""

import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from enum import Enum
from ipaddress import ip_address, ip_network
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from belino import registry
from belino.domain.errors import ConfigError
from belino.media.fetch import MediaConfig
from belino.net.redact import Secret

if TYPE_CHECKING:
    from pydantic_core import CoreSchema, ErrorDetails

    from belino.storage.home import Home

T = TypeVar("T")

UNSET = "unset"


def setting(default: T, says: str, *, least: float = 0, most: float | None = None) -> T:
    """A field with the sentence that documents it and the range it must keep."""
    return field(default=default, metadata={"says": says, "least": least, "most": most})


# --- the tables of belino.toml -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Where belino listens, and whom it believes."""

    bind: str = setting("127.0.0.1", "The address to listen on. Beyond this machine it needs TLS or a trusted proxy.")
    port: int = setting(8787, "The port to listen on; 0 takes any free one.", most=65535)
    allowed_hosts: tuple[str, ...] = setting((), "Further `Host` names to answer to, with their port if it is unusual.")
    trusted_proxies: tuple[str, ...] = setting(
        (), "Addresses of reverse proxies whose `X-Forwarded-*` headers are believed."
    )
    tls_cert: Path | None = setting(None, "The certificate chain to serve HTTPS with, as a PEM file.")  # noqa: RUF009
    tls_key: Path | None = setting(None, "The certificate's private key, as a PEM file.")  # noqa: RUF009
    public_url: str | None = setting(None, "The address people and platforms reach belino under, if it is another.")
    login_minutes: int = setting(10, "How long a login link may be used, once.", least=1)
    session_hours: int = setting(12, "How long a browser stays logged in.", least=1)
    frame_attachment_bytes: int = setting(
        8 * 1024 * 1024, "The most bytes of attachments in one WebSocket frame; more goes by upload.", least=1
    )
    open_uploads: int = setting(32, "How many unfinished uploads may be open at once.", least=1)

    def __post_init__(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigError("tls_cert and tls_key belong together; set both or none")
        if not is_loopback(self.bind) and self.tls_cert is None and not self.trusted_proxies:
            raise ConfigError(
                f"bind = {self.bind!r} reaches beyond this machine without encryption; "
                "set tls_cert and tls_key, or trusted_proxies, or bind to 127.0.0.1"
            )
        for proxy in self.trusted_proxies:
            if not _is_network(proxy):
                raise ConfigError(
                    f"trusted_proxies holds {proxy!r}, which is no address; write an IP address or network"
                )
        if self.public_url is not None and not self.public_url.startswith(("https://", "http://")):
            raise ConfigError("public_url must begin with https:// or http://")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsConfig:
    """How many turns run and wait, and for how long."""

    max_running: int = setting(16, "How many conversations are answered at the same time.", least=1)
    max_waiting: int = setting(10_000, "How many turns may wait before platforms are asked to be patient.", least=1)
    attempts: int = setting(3, "How often a turn that takes the process down with it is tried.", least=1)
    turn_seconds: int = setting(600, "How long an agent may take for one turn.", least=1)
    album_window_ms: int = setting(1500, "How long a turn waits for the next item of an album.")
    album_max_ms: int = setting(10_000, "How long a turn waits for an album in all.")
    max_text_chars: int = setting(200_000, "The longest message that is taken in.", least=1)
    shutdown_seconds: int = setting(5, "How long running turns may go on when belino stops.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsConfig:
    """What is logged."""

    level: Literal["debug", "info", "warning", "error"] = setting("info", "The least important lines to log.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelAccess:
    """Who may command the agent in one channel."""

    senders: tuple[str, ...] = setting((), "The senders who may command the agent here, by id; `*` means everybody.")
    mention: bool = setting(True, "Whether the agent answers only when it is addressed.")

    def __post_init__(self) -> None:
        _check_ids(self.senders, "senders")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessConfig:
    """Who may command the agent; nobody, unless named."""

    senders: tuple[str, ...] = setting(
        (), "The senders who may command the agent in direct messages, by id; `*` means everybody."
    )
    channels: Mapping[str, ChannelAccess] = field(
        default_factory=dict, metadata={"says": "The channels the agent listens in, by id; no other is kept."}
    )

    def __post_init__(self) -> None:
        _check_ids(self.senders, "senders")
        _check_ids(tuple(self.channels), "channels")


def _demo_options() -> Any:
    return registry.find("agents", "demo").config_type()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """Who answers."""

    kind: str = setting("demo", "The kind of agent that answers.")
    name: str = setting("belino", "The name the agent answers under.")
    options: Any = field(default_factory=_demo_options)
    """The agent's own Config, read from the same table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterConfig:
    """One account on one platform."""

    platform: str
    account: str = "default"
    access: AccessConfig = field(default_factory=AccessConfig)
    options: Any = None
    """The adapter's own Config, read from the same table."""


def _web_alone() -> tuple[AdapterConfig, ...]:
    return (AdapterConfig(platform="web", options=registry.find("adapters", "web").config_type()),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything an operator may set; without a word from them, the web chat and the demo agent."""

    server: ServerConfig = field(default_factory=ServerConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    sessions: SessionsConfig = field(default_factory=SessionsConfig)
    media: MediaConfig = field(default_factory=MediaConfig)
    logs: LogsConfig = field(default_factory=LogsConfig)
    adapters: tuple[AdapterConfig, ...] = field(default_factory=_web_alone)


_SECTIONS: Mapping[str, type[Any]] = {
    "server": ServerConfig,
    "sessions": SessionsConfig,
    "media": MediaConfig,
    "logs": LogsConfig,
}


# --- reading -------------------------------------------------------------------------------------------------------


def load(home: "Home", path: Path | None = None) -> Config:
    """The configuration of this state folder, or of exactly the file named; no file means every default."""
    file = path or home.config_file
    if not file.exists():
        if path is not None:
            raise ConfigError(f"{path} does not exist; `belino config init` writes a file with every default")
        return Config()
    try:
        return from_table(_read(file))
    except ConfigError as error:
        raise ConfigError(f"{file.name}: {error}") from None


def from_table(table: Mapping[str, Any]) -> Config:
    """The configuration a parsed belino.toml means."""
    known = ("server", "agent", "sessions", "media", "logs", "adapters")
    for name in table:
        if name not in known:
            raise ConfigError(_unknown("", name, known))
    sections = {name: _build(kind, table.get(name, {}), name) for name, kind in _SECTIONS.items()}
    return Config(agent=_agent(table.get("agent", {})), adapters=_adapters(table.get("adapters", {})), **sections)


def _read(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
        table = json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
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


def _agent(table: object) -> AgentConfig:
    own, options = _split(table, "agent", ("kind", "name"))
    kind, name = own.get("kind", "demo"), own.get("name", "belino")
    for key, value in (("kind", kind), ("name", name)):
        if not isinstance(value, str) or not value.strip():
            raise ConfigError(f"agent.{key} must be a string, not {_what(value)}")
    plugin = registry.find("agents", kind)
    built = _build(plugin.config_type, options, "agent", also=("kind", "name"))
    return AgentConfig(kind=kind, name=name, options=built)


def _adapters(table: object) -> tuple[AdapterConfig, ...]:
    if not isinstance(table, Mapping):
        raise ConfigError("adapters must be a table; write [adapters.NAME]")
    # The web chat is there until it is turned off: it is how a person gets in.
    platforms = {"web": {}, **table}
    return tuple(adapter for platform, own in platforms.items() for adapter in _accounts(platform, own))


def _accounts(platform: str, table: object) -> Iterator[AdapterConfig]:
    path = f"adapters.{platform}"
    own, options = _split(table, path, ("enabled", "access", "accounts"))
    plugin = registry.find("adapters", platform)
    if not _enabled(own, path):
        return
    accounts = own.get("accounts", {})
    if not isinstance(accounts, Mapping):
        raise ConfigError(f"{path}.accounts must be a table; write [{path}.accounts.NAME]")
    if options or "access" in own or not accounts:
        yield _account(plugin, "default", own, options, path, also=("enabled", "access", "accounts"))
    for account, inner in accounts.items():
        inner_path = f"{path}.accounts.{account}"
        if account == "default" and (options or "access" in own):
            raise ConfigError(f"{inner_path} is already [{path}]; give the account another name")
        own_inner, inner_options = _split(inner, inner_path, ("enabled", "access"))
        if _enabled(own_inner, inner_path):
            yield _account(plugin, account, own_inner, inner_options, inner_path, also=("enabled", "access"))


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
    access = _build(AccessConfig, own.get("access", {}), f"{path}.access")
    built = _build(plugin.config_type, options, path, also=also)
    return AdapterConfig(platform=plugin.name, account=account, access=access, options=built)


def _split(table: object, path: str, ours: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What belino itself reads in a plugin's table, and what the plugin's own Config reads."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{path} must be a table; write [{path}]")
    return {k: v for k, v in table.items() if k in ours}, {k: v for k, v in table.items() if k not in ours}


def _enabled(own: Mapping[str, Any], path: str) -> bool:
    enabled = own.get("enabled", True)
    if not isinstance(enabled, bool):
        raise ConfigError(f"{path}.enabled must be true or false, not {_what(enabled)}")
    return enabled


def is_loopback(bind: str) -> bool:
    """Whether only this machine can reach an address."""
    if bind == "localhost":
        return True
    try:
        return ip_address(bind).is_loopback
    except ValueError:
        return False


def _is_network(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _check_ids(ids: tuple[str, ...], key: str) -> None:
    for entry in ids:
        if entry != "*" and (entry.startswith("@") or not entry or any(c.isspace() for c in entry)):
            raise ConfigError(
                f"{key} holds {entry!r}, which is a name anybody may take; "
                "write the platform's id, which never changes, as a string"
            )


# --- validation, and what it says ----------------------------------------------------------------------------------


def _build(kind: type[T], table: object, path: str, *, also: tuple[str, ...] = ()) -> T:
    """One dataclass from one table. `also` are keys of the same table that somebody else reads."""
    from pydantic import PydanticUserError, TypeAdapter, ValidationError

    if not isinstance(table, Mapping):
        raise ConfigError(f"{path} must be a table; write [{path}]")
    clash = sorted({f.name for f in fields(_prepared(kind))} & set(also))
    if clash:
        raise ConfigError(f"{path}.{clash[0]} belongs to belino; {kind.__module__} must name its own key otherwise")
    try:
        # By way of JSON, whose strict mode takes a list for a tuple but never "8787" for a number.
        built = TypeAdapter(kind).validate_json(json.dumps(table, default=str), strict=True)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise ConfigError(_sentence(kind, table, path, problems[0], also) + more) from None
    except PydanticUserError as error:
        raise ConfigError(f"{path} cannot be read: the Config of {kind.__module__} is wrong ({error.code})") from None
    except ConfigError as error:
        raise ConfigError(f"{path}.{error}") from None
    _check_ranges(built, path)
    return built


def _prepared(kind: type[Any]) -> type[Any]:
    """The dataclass, taught to refuse unknown keys, with every dataclass inside it; and pydantic taught our secrets."""
    from pydantic import ConfigDict, with_config

    if not is_dataclass(kind):
        raise ConfigError(f"the Config of {kind.__module__} must be a dataclass")
    # Set from here, so that an adapter's Config may use Secret without knowing what validates it.
    Secret.__get_pydantic_core_schema__ = _secret_schema  # type: ignore[attr-defined]
    if "__pydantic_config__" not in vars(kind):
        with_config(ConfigDict(extra="forbid", allow_inf_nan=False))(kind)
        for hint in get_type_hints(kind).values():
            for inner in _dataclasses_in(hint):
                _prepared(inner)
    return kind


def _dataclasses_in(hint: Any) -> Iterator[type[Any]]:
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint
    for inner in get_args(hint):
        yield from _dataclasses_in(inner)


def _secret_schema(_source: object, _handler: Callable[..., object]) -> "CoreSchema":
    from pydantic_core import core_schema

    return core_schema.no_info_plain_validator_function(_open_secret)


def _open_secret(value: object) -> Secret:
    if not isinstance(value, str) or not value.startswith("env:") or len(value) == len("env:"):
        raise ValueError('must be written "env:NAME", with the secret itself in the environment variable NAME')
    name = value.removeprefix("env:")
    held = os.environ.get(name, "")
    if not held:
        raise ValueError(f"names the environment variable {name}, which is not set; set it and start again")
    return Secret(name, held)


def _check_ranges(built: object, path: str) -> None:
    for f in fields(built):  # type: ignore[arg-type]
        value = getattr(built, f.name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        least, most = f.metadata.get("least", 0), f.metadata.get("most")
        if value < least or (most is not None and value > most):
            allowed = f"at least {least}" if most is None else f"from {least} to {most}"
            raise ConfigError(f"{path}.{f.name} must be {allowed}, not {value}{_default_of(f)}")


def _sentence(
    kind: type[Any], table: Mapping[str, Any], path: str, problem: "ErrorDetails", also: tuple[str, ...]
) -> str:
    where = problem["loc"]
    name = path + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in where)
    if problem["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        parent = name.rpartition(".")[0]
        within = _type_at(kind, where[:-1])
        names = tuple(f.name for f in fields(within)) if is_dataclass(within) else ()
        return _unknown(parent, str(where[-1]), (*names, *(also if len(where) == 1 else ())))
    says = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    if problem["type"] == "missing":
        return f"{name} is missing; it has no default"
    if problem["type"] == "value_error":
        return f"{name} {says}"
    default = next((_default_of(f) for f in fields(kind) if where == (f.name,)), "")
    return f"{name} {says}, not {_what(_value_at(table, where))}{default}"


def _unknown(parent: str, name: str, known: tuple[str, ...]) -> str:
    full = f"{parent}.{name}" if parent else name
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"{full} is not a key belino knows; {hint}Known keys here: {', '.join(sorted(known)) or 'none'}"


def _type_at(kind: Any, steps: tuple[int | str, ...]) -> Any:
    for step in steps:
        if is_dataclass(kind) and isinstance(kind, type):
            kind = get_type_hints(kind).get(str(step), object)
            kind = next((a for a in get_args(kind) if a is not NoneType), kind) if _is_union(kind) else kind
        else:
            kind = next((a for a in reversed(get_args(kind)) if a is not Ellipsis), object)
    return kind


def _value_at(table: object, steps: tuple[int | str, ...]) -> object:
    for step in steps:
        if isinstance(table, Mapping):
            table = table.get(step)
        elif isinstance(table, list) and isinstance(step, int):
            table = table[step]
    return table


def _what(value: object) -> str:
    """What a value is, never the value: somebody may have written a secret there."""
    names = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "a table",
    }
    return names.get(type(value), "something else")


def _default_of(f: Any) -> str:
    return f"; the default is {_shown(f.default)}" if f.default is not MISSING else ""


# --- the reference -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of belino.toml, as the documentation lists it."""

    name: str
    type: str
    default: str
    """As it would be written; `unset` if there is none."""
    says: str


def reference() -> tuple[Key, ...]:
    """Every key of belino.toml, the built-in agents' and adapters' own included."""
    keys = [key for name in ("server", "sessions", "media", "logs") for key in _keys(_SECTIONS[name], name)]
    keys += _keys(AgentConfig, "agent")
    for kind in registry.built_in("agents"):
        keys += _keys(registry.find("agents", kind).config_type, "agent")
    anywhere = "adapters.NAME"
    keys.append(
        Key(name=f"{anywhere}.enabled", type="boolean", default="true", says="Whether the platform is connected.")
    )
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


def template() -> str:
    """A belino.toml in which every key is explained and none is set, so that it means exactly the defaults."""
    lines = ["# belino's settings. Every key stands here with its default; remove the # before a key to change it.", ""]
    section = ""
    for key in reference():
        parent, _, name = key.name.rpartition(".")
        if parent.startswith("adapters.NAME"):
            continue
        if parent != section:
            section = parent
            lines += [f"[{section}]"]
        lines += [f"# {key.says}"]
        lines += [f"# {name} is {key.default}." if key.default == UNSET else f"#{name} = {key.default}"]
    lines += ["", "# One table per platform, for example:", "# [adapters.NAME.access]", '# senders = ["ID"]', ""]
    return "\n".join(lines).replace("\n[", "\n\n[").replace("\n\n\n", "\n\n")


def as_table(value: object) -> Any:
    """A configuration as plain JSON values; a secret is its `env:NAME`."""
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
            name=f"{path}.{f.name}",
            type=_words(hints[f.name]),
            default=UNSET if f.default is MISSING else _shown(f.default),
            says=f.metadata.get("says", ""),
        )
        for f in fields(kind)
        if f.name != "options"
    ]


def _shown(value: object) -> str:
    if value is None:
        return UNSET
    if isinstance(value, tuple):
        return "[" + ", ".join(_shown(inner) for inner in value) + "]"
    return json.dumps(value) if isinstance(value, bool | int | float) else json.dumps(str(value), ensure_ascii=False)


def _is_union(hint: object) -> bool:
    return get_origin(hint) in (Union, UnionType)


def _words(hint: Any) -> str:
    plain = {int: "integer", float: "number", str: "string", bool: "boolean", Path: "path", Secret: "secret"}
    if hint in plain:
        return plain[hint]
    if _is_union(hint):
        return " or ".join(_words(inner) for inner in get_args(hint) if inner is not NoneType)
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(json.dumps(choice) for choice in get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return "one of " + ", ".join(json.dumps(str(choice.value)) for choice in hint)
    if get_origin(hint) is tuple:
        return f"list of {_words(get_args(hint)[0])}s"
    return "table"
