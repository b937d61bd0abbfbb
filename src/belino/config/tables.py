"""Tables of belino.toml as dataclasses: each key's type, help, default and range."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import unquote

from belino import registry
from belino.context.budget import ContextConfig
from belino.delivery.send import DeliveryConfig
from belino.domain.errors import ConfigError
from belino.domain.message import SERVER
from belino.media.fetch import MediaConfig
from belino.net.guard import NetConfig
from belino.net.proxy import ProxyConfig
from belino.net.rest import PaceConfig
from belino.storage.backup_config import BackupConfig
from belino.storage.static_vectors import SearchConfig
from belino.understanding.config import MediaTools, Profile

T = TypeVar("T")

EVERY_CHANNEL = "*"
MOST_MINUTES = 10_080
MOST_WORD_CHARS = 64


def setting(default: T, says: str, *, least: float = 0, most: float | None = None) -> T:
    """A field with its help sentence and its allowed range."""
    return field(default=default, metadata={"says": says, "least": least, "most": most})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Where belino listens, and which proxies and hosts it trusts."""

    bind: str = setting("127.0.0.1", "The address to listen on. Beyond this machine it needs TLS or a trusted proxy.")
    port: int = setting(8787, "The port to listen on; 0 takes any free one.", most=65535)
    allowed_hosts: tuple[str, ...] = setting((), "Further `Host` names to answer to, with their port if it is unusual.")
    trusted_proxies: tuple[str, ...] = setting(
        (), "Addresses of reverse proxies whose `X-Forwarded-*` headers are trusted."
    )
    tls_cert: Path | None = setting(None, "The certificate chain to serve HTTPS with, as a PEM file.")  # noqa: RUF009
    tls_key: Path | None = setting(None, "The certificate's private key, as a PEM file.")  # noqa: RUF009
    public_url: str | None = setting(
        None, "The URL at which people and platforms reach belino, if it differs from the bind address."
    )
    publish_minutes: int = setting(
        60, "How long a link to a file, made for a platform or an MCP client, is valid.", least=1
    )
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
    """How many turns run and are queued, and their time limits."""

    max_running: int = setting(16, "How many conversations are answered at the same time.", least=1)
    max_waiting: int = setting(
        10_000, "How many turns may be queued before back-pressure is applied to the platforms.", least=1
    )
    attempts: int = setting(
        3, "How often belino may stop unexpectedly while a turn runs alone, before the turn is given up.", least=1
    )
    turn_seconds: int = setting(600, "How long an agent may take for one turn.", least=1)
    album_window_ms: int = setting(1500, "How long a turn waits for the next item of an album.")
    album_max_ms: int = setting(10_000, "How long a turn waits for an album in all.")
    join_ms: int = setting(
        500, "How long a turn waits for the next piece of a text that fills the platform's limit, in milliseconds."
    )
    join_max_ms: int = setting(3_000, "How long a turn waits for such pieces in all, in milliseconds.")
    while_busy: Literal["queue", "join", "interrupt"] = setting(
        "queue",
        "What happens with a message that comes while a turn runs: `queue` answers it in its own turn, `join` answers "
        "all that wait in the next one, `interrupt` stops the turn.",
    )
    max_text_chars: int = setting(200_000, "The longest message that is accepted, in characters.", least=1)
    max_reply_chars: int = setting(
        200_000, "The longest answer of an agent, in characters; a longer one fails its turn.", least=1
    )
    shutdown_seconds: int = setting(5, "How long running turns may go on when belino stops.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsConfig:
    """What is logged."""

    level: Literal["debug", "info", "warning", "error"] = setting("info", "The lowest level that is logged.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelAccess:
    """Who may command the agent in one channel."""

    senders: tuple[str, ...] = setting((), "The senders who may command the agent here, by id; `*` means everybody.")
    mention: bool = setting(True, "Whether the agent answers only when it is addressed.")
    agent_may: tuple[Literal["react", "edit", "delete"], ...] = setting(
        ("react", "edit"), "What the agent may do to messages here: `react` to any, `edit` and `delete` its own."
    )
    participation_minutes: int | None = setting(
        None, "The account's `participation_minutes`, for this channel.", most=MOST_MINUTES
    )
    wake_words: tuple[str, ...] | None = setting(None, "The account's `wake_words`, for this channel.")

    def __post_init__(self) -> None:
        _check_ids(self.senders, "senders")
        _check_wake_words(self.wake_words or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessConfig:
    """Who may command the agent; by default, no sender."""

    senders: tuple[str, ...] = setting(
        (), "The senders who may command the agent in direct messages, by id; `*` means everybody."
    )
    direct: Literal["pairing", "list"] = setting(
        "pairing",
        "How others get access by direct message: `pairing`, with a code that you approve, or `list`, not at all.",
    )
    groups: Literal["ask", "list"] = setting(
        "ask",
        "What happens when the agent is added to a group or addressed in one that is not listed: `ask` asks the owner, "
        "`list` ignores it.",
    )
    participation_minutes: int = setting(
        60,
        "How long the agent counts as addressed, without a mention, in a thread, topic or chain of replies after it "
        "spoke there; 0 means not at all.",
        most=MOST_MINUTES,
    )
    wake_words: tuple[str, ...] = setting(
        (), "Words that address the agent in a channel like a mention, written or spoken; whole words, in any case."
    )
    bot_turns: int = setting(
        2, "How many messages of bots the agent answers in a conversation without a person in between.", most=1_000
    )
    channels: Mapping[str, ChannelAccess] = field(
        default_factory=dict,
        metadata={
            "says": "The channels the agent listens in, by id, `server:ID` for all of a server or workspace, `*` for "
            "all; the narrowest counts, and no other channel is kept."
        },
    )

    def __post_init__(self) -> None:
        _check_ids(self.senders, "senders")
        _check_ids(tuple(self.channels), "channels")
        _check_wake_words(self.wake_words)
        if SERVER in self.channels:
            raise ConfigError(f'channels holds "{SERVER}", which names no server; write "{SERVER}ID"')

    @property
    def is_broad(self) -> bool:
        """Whether a table counts for more than one channel."""
        return any(own == EVERY_CHANNEL or own.startswith(SERVER) for own in self.channels)

    def rules(self, channel: str, server: str = "") -> ChannelAccess | None:
        """The narrowest table for a channel: its own, that of its server, or that for all; None if there is none."""
        own = (channel, f"{SERVER}{server}", EVERY_CHANNEL) if server else (channel, EVERY_CHANNEL)
        return next((self.channels[each] for each in own if each in self.channels), None)

    def minutes(self, rules: ChannelAccess) -> int:
        """How long the agent takes part in a thread, under the rules of its channel."""
        return self.participation_minutes if rules.participation_minutes is None else rules.participation_minutes

    def words(self, rules: ChannelAccess) -> tuple[str, ...]:
        """The wake words under the rules of a channel."""
        return self.wake_words if rules.wake_words is None else rules.wake_words


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnersConfig:
    """Who runs belino, besides the people who are logged in to the page."""

    owners: tuple[str, ...] = setting(
        (),
        "The senders who may decide in direct messages and get notices there, the first first; each as "
        "`platform:account:sender`. They may command the agent in direct messages.",
    )

    def __post_init__(self) -> None:
        for entry in self.owners:
            if entry.count(":") != 2 or not all(entry.split(":")):
                raise ConfigError(
                    f'owners holds {entry!r}, which names no sender; write "platform:account:sender", with the '
                    "platform's id of the sender"
                )
            _check_ids((self._parts(entry)[2],), "owners")

    def senders(self) -> tuple[tuple[str, str, str], ...]:
        """Platform, account and id of every owner."""
        return tuple(self._parts(entry) for entry in self.owners)

    def of(self, platform: str, account: str) -> tuple[str, ...]:
        """The ids of the owners on one account."""
        return tuple(sender for *where, sender in self.senders() if where == [platform, account])

    @staticmethod
    def _parts(entry: str) -> tuple[str, str, str]:
        platform, account, sender = (unquote(part) for part in entry.split(":"))
        return platform, account, sender


def _demo_options() -> Any:
    return registry.find("agents", "demo").config_type()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """The agent that answers."""

    kind: str = setting("demo", "The kind of agent that answers.")
    name: str = setting("belino", "The name the agent answers under.")
    models: tuple[str, ...] = setting((), "The models that people may choose from by `/model NAME`.")
    ipc: bool = setting(
        False, "Whether an agent in a container calls its tools through files in `media/<conversation>/ipc/`."
    )
    options: Any = field(default_factory=_demo_options)
    """The agent's own Config, read from the same table."""
    places: Mapping[str, "AgentConfig"] = field(default_factory=dict)
    """Overrides by platform, account, channel or conversation: another agent, or the same with other settings.

    The narrowest one counts (`turns/agents.py`).
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterConfig:
    """One account on one platform."""

    platform: str
    account: str = "default"
    access: AccessConfig = field(default_factory=AccessConfig)
    proxy: ProxyConfig = field(default_factory=ProxyConfig)
    options: Any = None
    """The adapter's own Config, read from the same table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsConfig:
    """What belino does with media for its agents."""

    media: MediaTools = field(default_factory=MediaTools)


def _web_alone() -> tuple[AdapterConfig, ...]:
    return (AdapterConfig(platform="web", options=registry.find("adapters", "web").config_type()),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything an operator may set; by default, the web chat and the demo agent."""

    server: ServerConfig = field(default_factory=ServerConfig)
    access: OwnersConfig = field(default_factory=OwnersConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    sessions: SessionsConfig = field(default_factory=SessionsConfig)
    media: MediaConfig = field(default_factory=MediaConfig)
    context: ContextConfig = field(default_factory=ContextConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    delivery: DeliveryConfig = field(default_factory=DeliveryConfig)
    pace: PaceConfig = field(default_factory=PaceConfig)
    net: NetConfig = field(default_factory=NetConfig)
    logs: LogsConfig = field(default_factory=LogsConfig)
    backup: BackupConfig = field(default_factory=BackupConfig)
    tools: ToolsConfig = field(default_factory=ToolsConfig)
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    adapters: tuple[AdapterConfig, ...] = field(default_factory=_web_alone)
    retention_days: int = setting(0, "How many days messages are kept; 0 means for ever.")

    def __post_init__(self) -> None:
        if not 0 <= self.retention_days <= 36_500:
            raise ConfigError(f"retention_days must be from 0 to 36500, not {self.retention_days}; the default is 0")


SECTIONS: Mapping[str, type[Any]] = {
    "server": ServerConfig,
    "access": OwnersConfig,
    "sessions": SessionsConfig,
    "media": MediaConfig,
    "context": ContextConfig,
    "search": SearchConfig,
    "delivery": DeliveryConfig,
    "pace": PaceConfig,
    "net": NetConfig,
    "logs": LogsConfig,
    "backup": BackupConfig,
}


def is_loopback(bind: str) -> bool:
    """Whether an address is reachable from this machine only."""
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


def _check_wake_words(words: tuple[str, ...]) -> None:
    for word in words:
        if not any(sign.isalnum() for sign in word) or len(word) > MOST_WORD_CHARS:
            raise ConfigError(
                f"wake_words holds {word!r}; write a word or a few, with letters and at most {MOST_WORD_CHARS} "
                "characters"
            )


def _check_ids(ids: tuple[str, ...], key: str) -> None:
    for entry in ids:
        if entry != "*" and (entry.startswith("@") or not entry or any(c.isspace() for c in entry)):
            raise ConfigError(
                f"{key} holds {entry!r}, which is a name anybody may take; "
                "write the platform's id, which never changes, as a string"
            )
