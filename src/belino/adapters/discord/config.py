"""The settings of one bot, and where its token may go."""

import re
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

from belino.domain.errors import ConfigError
from belino.net.guard import host_of
from belino.net.redact import Secret

OFFICIAL_HOST = "discord.com"
OFFICIAL_URL = f"https://{OFFICIAL_HOST}/api/v10"
CDN_URL = "https://cdn.discordapp.com"
GATEWAY_HOST = "gateway.discord.gg"
GATEWAY_ENDING = ".discord.gg"

_TOKEN = re.compile(r"[\w.+/=-]{1,256}", re.ASCII)
_WEB_SOCKET = re.compile(r"ws(s?)://", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One bot."""

    token: Secret = field(metadata={"says": "The bot's token, from the developer portal, page Bot."})
    api_url: str = field(
        default=OFFICIAL_URL, metadata={"says": "Where the API is; another one for a server of your own."}
    )
    gateway_url: str | None = field(
        default=None, metadata={"says": "Where the gateway is; if not set, the API is asked for it."}
    )
    cdn_url: str = field(default=CDN_URL, metadata={"says": "Where files are; another one for a server of your own."})
    upload_mb: int = field(
        default=10,
        metadata={
            "says": "How large a file may be that is sent, in MB: 10, or more where all its servers are boosted.",
            "least": 1,
            "most": 500,
        },
    )
    drafts: Literal["direct", "always", "never"] = field(
        default="direct",
        metadata={"says": "Where an answer is shown while it is written: in direct messages, everywhere, or nowhere."},
    )

    def __post_init__(self) -> None:
        if not _TOKEN.fullmatch(self.token.reveal()):
            raise ConfigError(
                "token is not a bot token; it has three parts with dots between, and comes from the developer portal"
            )
        _check_url("api_url", self.api_url)
        _check_url("cdn_url", self.cdn_url)
        if self.gateway_url is not None:
            _check_url("gateway_url", as_http(self.gateway_url))

    @property
    def is_official(self) -> bool:
        """Whether it is Discord itself, in whatever version: then its files and gateways are nowhere else."""
        name = (urlsplit(self.api_url).hostname or "").lower()
        return name == OFFICIAL_HOST or name.endswith(f".{OFFICIAL_HOST}")


def hosts(config: Config) -> frozenset[str]:
    """Where credentials may go; a server the operator names may be a private one."""
    named = {host_of(config.api_url)}
    if config.gateway_url is not None:
        named.add(host_of(as_http(config.gateway_url)))
    if config.cdn_url.rstrip("/") != CDN_URL:
        named.add(host_of(config.cdn_url))
    return frozenset(named)


def may_resume_at(config: Config, url: str) -> bool:
    """Whether the token may be said where the gateway wants us back: at Discord's own, or at a place we know."""
    try:
        parts = urlsplit(url)
        name = (parts.hostname or "").lower()
        if parts.scheme not in ("ws", "wss") or not name or "@" in parts.netloc:
            return False
        if not config.is_official or parts.netloc == urlsplit(config.gateway_url or "").netloc:
            return True
        ours = name == GATEWAY_HOST or name.endswith(GATEWAY_ENDING)
        return parts.scheme == "wss" and ours and parts.port in (None, 443)
    except ValueError:
        return False


def as_http(url: str) -> str:
    """A web socket's address as the one its first request goes to."""
    return _WEB_SOCKET.sub(r"http\1://", url, count=1)


def _check_url(key: str, text: str) -> None:
    """Refuse an address that would say the token in the clear, or hide another one in it."""
    try:
        url = urlsplit(text)
        name, _ = url.hostname or "", url.port
    except ValueError:
        raise ConfigError(f"{key} is not a URL; write https://host") from None
    if url.scheme not in ("https", "http") or not name or "@" in url.netloc or url.query or url.fragment:
        raise ConfigError(f"{key} must be https://host[:port][/path] (the gateway's wss://), without a login, ? or #")
    if url.scheme == "http" and not _is_at_home(name):
        raise ConfigError(
            f"{key} must be encrypted (https, wss); plain http is for a server on this machine or network"
        )


def _is_at_home(name: str) -> bool:
    """Whether a name can only mean a machine nearby: a private address, or a name without a dot."""
    try:
        return not ip_address(name).is_global
    except ValueError:
        return "." not in name or name.endswith((".local", ".localhost", ".internal"))
