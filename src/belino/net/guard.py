"""Guard: which addresses belino connects to: public ones, and others only if configured.

The decision is about the address a socket is about to be opened to, never about a name. Python's `is_global` is not
used: up to 3.11 it takes NAT64, 6to4, site-local and multicast addresses for public ones.
"""

import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urljoin

from belino.domain.errors import AddressRefused, ConfigError

# One text for every refusal: it reveals nothing about the network.
REFUSED = "the address was refused: it is not a public one, and the configuration does not name it with its port"

_V4_SPECIAL = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network, RFC 1122
        "10.0.0.0/8",  # private, RFC 1918
        "100.64.0.0/10",  # shared by providers, RFC 6598; metadata of one cloud
        "127.0.0.0/8",  # loopback, RFC 1122
        "168.63.129.16/32",  # looks public, but is the host of every virtual machine in one cloud
        "169.254.0.0/16",  # link-local and cloud metadata, RFC 3927
        "172.16.0.0/12",  # private, RFC 1918
        "192.0.0.0/24",  # protocol assignments, RFC 6890; metadata of one cloud
        "192.0.2.0/24",  # documentation, RFC 5737
        "192.88.99.0/24",  # 6to4 relays, given up, RFC 7526
        "192.168.0.0/16",  # private, RFC 1918
        "198.18.0.0/15",  # benchmarks, RFC 2544; invented addresses of some proxies
        "198.51.100.0/24",  # documentation, RFC 5737
        "203.0.113.0/24",  # documentation, RFC 5737
        "224.0.0.0/4",  # multicast, RFC 5771
        "240.0.0.0/4",  # reserved, RFC 1112, and broadcast, RFC 919
    )
)
# What is not global unicast is refused whole: ::1, ::, mapped (::ffff:0:0/96, RFC 4291), compatible (::/96) and
# translated IPv4 (64:ff9b::/96, RFC 6052; 64:ff9b:1::/48, RFC 8215), unique local (fc00::/7, RFC 4193), link-local
# (fe80::/10), site-local (fec0::/10, RFC 3879), multicast (ff00::/8), SRv6 (5f00::/16, RFC 9602).
_V6_GLOBAL = IPv6Network("2000::/3")  # RFC 4291
_V6_SPECIAL = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, RFC 2928: Teredo (RFC 4380) and ORCHID (RFC 7343) among them
        "2001:db8::/32",  # documentation, RFC 3849
        "2002::/16",  # 6to4, RFC 3056: an IPv4 address in disguise
        "3fff::/20",  # documentation, RFC 9637
    )
)

_URL = re.compile(r"(https?)://([^/?#]*)([^#]*)(?:#.*)?", re.IGNORECASE | re.DOTALL)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::([0-9]{1,5}))?")
_NAME = re.compile(
    r"(?=.{1,253}\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
)
# Resolvers take a name whose last label is a number for an IPv4 address, in any of its old spellings.
_NUMERIC = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
# Parsers may disagree on what these mean; a URL that contains one is refused.
_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f\\]")
_WEB_SOCKET = re.compile(r"ws(s?)://", re.IGNORECASE)
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class NetConfig:
    """Allowed destinations beyond public addresses."""

    allow: tuple[str, ...] = field(
        default=(),
        metadata={
            "says": "Addresses that may be reached although they are not public, also by `send_media(url)`: networks, "
            "or `host:port`."
        },
    )

    def __post_init__(self) -> None:
        Guard(self.allow)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedUrl:
    """A URL as belino parsed it: the host to connect to, and the request target."""

    scheme: str
    host: str
    """A name in lower case without its last dot, or an address in its one canonical spelling."""
    port: int
    rest: str
    """Path and query."""

    @property
    def address(self) -> IPv4Address | IPv6Address | None:
        """The host, where it is an address and not a name."""
        return _as_address(self.host)

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port

    @property
    def host_port(self) -> str:
        return f"{_bracketed(self.host)}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host_port}{self.rest}"


def is_public(address: str | IPv4Address | IPv6Address) -> bool:
    """Whether an address is publicly reachable."""
    found = _as_address(address) if isinstance(address, str) else address
    match found:
        case IPv4Address():
            return not any(found in network for network in _V4_SPECIAL)
        case IPv6Address():
            unscoped = found.scope_id is None
            return unscoped and found in _V6_GLOBAL and not any(found in network for network in _V6_SPECIAL)
        case _:
            return False


def parse_url(url: str) -> CheckedUrl:
    """Parse a URL; AddressRefused for any that another program could parse differently."""
    whole = None if _AMBIGUOUS.search(url) else _URL.fullmatch(url)
    if whole is None:
        raise AddressRefused(REFUSED)
    scheme, authority, rest = whole[1].lower(), whole[2], whole[3]
    # "@" in an authority is userinfo: credentials do not belong there, and people take it for the host.
    parts = _AUTHORITY.fullmatch(authority) if authority.isascii() and "@" not in authority else None
    if parts is None:
        raise AddressRefused(REFUSED)
    port = int(parts[2]) if parts[2] else _DEFAULT_PORTS[scheme]
    if not 0 < port < 65536:
        raise AddressRefused(REFUSED)
    return CheckedUrl(scheme=scheme, host=_host(parts[1]), port=port, rest=rest if rest.startswith("/") else f"/{rest}")


def redirected(place: CheckedUrl, location: str) -> CheckedUrl:
    """The target of a redirect; never from HTTPS back to plain HTTP."""
    # Checked before joining: the standard library silently drops tabs and newlines.
    if _AMBIGUOUS.search(location):
        raise AddressRefused(REFUSED)
    try:
        target = parse_url(urljoin(str(place), location))
    except ValueError:
        raise AddressRefused(REFUSED) from None
    if place.scheme == "https" and target.scheme != "https":
        raise AddressRefused(REFUSED)
    return target


def as_http(url: str) -> str:
    """The URL of a web socket as the one of its first HTTP request."""
    return _WEB_SOCKET.sub(r"http\1://", url, count=1)


def host_of(url: str) -> str:
    """What an adapter's `hosts(config)` lists for a base URL of its configuration.

    Without a port it means HTTPS at a public address. A URL that names its port, or is not HTTPS, stands for that exact
    place: `host:port`, which may be a private one.
    """
    place = parse_url(url)
    named = place.scheme != "https" or url.partition("://")[2].partition("/")[0].endswith(f":{place.port}")
    return place.host_port if named else _bracketed(place.host)


class Guard:
    """Allows public addresses, and the networks and places the operator named."""

    def __init__(self, allow: Iterable[str] = ()) -> None:
        self._networks: list[IPv4Network | IPv6Network] = []
        self._places: set[str] = set()
        for entry in allow:
            try:
                self._networks.append(ip_network(entry))
            except ValueError:
                self._places.add(_exact(entry))

    def lets(self, address: str) -> bool:
        """Whether a socket may be opened to this address."""
        found = _as_address(address)
        return found is not None and (is_public(found) or any(found in network for network in self._networks))

    def names(self, place: CheckedUrl) -> bool:
        """Whether the operator named this exact host and port, whatever its address."""
        return place.host_port in self._places

    def check(self, place: CheckedUrl) -> None:
        """Refuse a literal address in the URL, before anything is opened."""
        if place.address is not None and not self.names(place) and not self.lets(place.host):
            raise AddressRefused(REFUSED)

    def naming(self, places: Iterable[str]) -> "Guard":
        """The same guard with further places, each `host:port`."""
        wider = Guard()
        wider._networks = self._networks
        wider._places = self._places | {_exact(place) for place in places}
        return wider


def _exact(entry: str) -> str:
    try:
        place = parse_url(f"http://{entry}")
    except AddressRefused:
        place = None
    if place is None or place.rest != "/" or not entry.lower().endswith(f":{place.port}"):
        raise ConfigError(f"allow holds {entry!r}; write a network like 10.1.0.0/16, or a host with its port")
    return place.host_port


def _host(text: str) -> str:
    if text.startswith("["):
        address = _as_address(text[1:-1])
        if not isinstance(address, IPv6Address):
            raise AddressRefused(REFUSED)
        return str(address)
    name = text.lower().removesuffix(".")
    if _NUMERIC.fullmatch(name):
        try:
            return str(IPv4Address(socket.inet_aton(name)))
        except OSError:
            raise AddressRefused(REFUSED) from None
    if not _NAME.fullmatch(name):
        raise AddressRefused(REFUSED)
    return name


def _as_address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
