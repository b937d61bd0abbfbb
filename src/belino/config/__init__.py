"""Configuration: belino.toml to one dataclass per package."""

from belino.config.read import from_table, keep_good, load, load_good
from belino.config.reference import Key, as_table, reference, template
from belino.config.tables import (
    AccessConfig,
    AdapterConfig,
    AgentConfig,
    ChannelAccess,
    Config,
    LogsConfig,
    OwnersConfig,
    ServerConfig,
    SessionsConfig,
    ToolsConfig,
    is_loopback,
)

__all__ = [
    "AccessConfig",
    "AdapterConfig",
    "AgentConfig",
    "ChannelAccess",
    "Config",
    "Key",
    "LogsConfig",
    "OwnersConfig",
    "ServerConfig",
    "SessionsConfig",
    "ToolsConfig",
    "as_table",
    "from_table",
    "is_loopback",
    "keep_good",
    "load",
    "load_good",
    "reference",
    "template",
]
