"""Who is let in: hosts, origins, proxies, attempts and what each grant sees."""

from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.requests import HTTPConnection

from belino.config import ServerConfig
from belino.domain.errors import ConfigError
from belino.domain.message import ConversationKey
from belino.domain.stored import Grant, GrantKind
from belino.testing import FakeClock
from belino.web.auth import Attempts, Origins, Visitor
from belino.web.responses import Refusal

MAIN = ConversationKey(platform="web", account="default", channel="main")


def connection(peer: str = "127.0.0.1", scheme: str = "http", **headers: str) -> HTTPConnection:
    named = {"host": "127.0.0.1:8787", **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope: dict[str, Any] = {
        "type": "http",
        "scheme": scheme,
        "server": ("127.0.0.1", 8787),
        "client": (peer, 5555),
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
    }
    return HTTPConnection(scope)


@pytest.mark.parametrize("host", ["127.0.0.1:8787", "localhost:8787", "LOCALHOST:8787", "[::1]:8787"])
def test_our_own_names_are_known(host: str) -> None:
    assert Origins(ServerConfig()).knows_host(connection(host=host))


@pytest.mark.parametrize(
    "host",
    [
        "evil.test",
        "evil.test:8787",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.0.0.1:8787.evil.test",
        "localhost.:8787",
        "user@127.0.0.1:8787",
        "127.0.0.1:8787, evil.test",
        "0x7f000001:8787",
        "",
    ],
)
def test_every_other_host_is_somebody_else(host: str) -> None:
    assert not Origins(ServerConfig()).knows_host(connection(host=host))


def test_names_that_were_allowed_are_known_with_and_without_the_port() -> None:
    origins = Origins(ServerConfig(allowed_hosts=("Chat.Example",), public_url="https://public.example"))
    for host in ("chat.example", "chat.example:8787", "public.example"):
        assert origins.knows_host(connection(host=host))
    assert not origins.knows_host(connection(host="other.example"))


def test_our_own_page_has_the_origin_of_the_host_it_asked() -> None:
    origins = Origins(ServerConfig())
    assert origins.is_ours(connection(), "http://127.0.0.1:8787")
    for other in (
        "http://localhost:8787",
        "https://127.0.0.1:8787",
        "http://127.0.0.1:8788",
        "null",
        "",
        "http://evil",
    ):
        assert not origins.is_ours(connection(), other)


def test_forwarded_headers_count_only_if_the_proxy_is_trusted() -> None:
    forwarded = {"x_forwarded_for": "1.1.1.1, 203.0.113.9", "x_forwarded_proto": "https"}
    alone = Origins(ServerConfig())
    assert alone.peer(connection(**forwarded)) == "127.0.0.1"
    assert not alone.is_secure(connection(**forwarded))
    behind = Origins(ServerConfig(trusted_proxies=("127.0.0.0/8",)))
    assert behind.peer(connection(**forwarded)) == "203.0.113.9"
    assert behind.is_secure(connection(**forwarded))
    assert behind.peer(connection("192.0.2.1", **forwarded)) == "192.0.2.1"
    assert not behind.is_secure(connection("192.0.2.1", **forwarded))


def test_the_addresses_of_one_ipv6_customer_count_as_one_peer() -> None:
    behind = Origins(ServerConfig(trusted_proxies=("127.0.0.0/8",)))
    peers = {behind.peer(connection(x_forwarded_for=f"2001:db8:1:2::{number:x}")) for number in range(1, 50)}
    assert peers == {"2001:db8:1:2::/64"}
    assert behind.peer(connection("2001:db8:1:3::1")) == "2001:db8:1:3::/64"


def test_behind_a_trusted_proxy_our_page_has_the_public_origin() -> None:
    origins = Origins(ServerConfig(trusted_proxies=("127.0.0.1",), public_url="https://chat.example/"))
    assert origins.is_ours(connection(host="chat.example", x_forwarded_proto="https"), "https://chat.example")
    assert not origins.is_ours(connection(host="chat.example", x_forwarded_proto="https"), "http://chat.example")


def test_a_proxy_that_is_no_address_is_an_error_of_the_configuration() -> None:
    with pytest.raises(ConfigError, match="trusted_proxies"):
        Origins(ServerConfig(trusted_proxies=("proxy.example",)))


def test_ten_failures_a_minute_and_then_a_pause() -> None:
    clock = FakeClock()
    attempts = Attempts(clock)
    for _ in range(10):
        attempts.begin("a")
    with pytest.raises(Refusal) as refused:
        attempts.begin("a")
    assert refused.value.status == 429
    assert refused.value.headers["Retry-After"] == "60"
    attempts.begin("b")
    clock.shift(61)
    attempts.begin("a")


def test_logins_that_succeed_do_not_count() -> None:
    attempts = Attempts(FakeClock())
    for _ in range(50):
        attempts.begin("a")
        attempts.succeeded("a")


def test_attempts_of_many_peers_take_bounded_room() -> None:
    attempts = Attempts(FakeClock(), peers=100)
    for number in range(10_000):
        attempts.begin(str(number))
    assert len(attempts._failed) == 100


def visitor(kind: GrantKind, conversation: ConversationKey | None = None) -> Visitor:
    created = datetime(2026, 1, 1, tzinfo=UTC)
    grant = Grant(id="g", kind=kind, conversation=conversation, note="", created=created, expires=None)
    return Visitor(grant=grant, secret="s")


def test_a_channels_token_sees_its_own_conversation_and_the_threads_in_it() -> None:
    thread = ConversationKey(platform="web", account="default", channel="main", thread="1")
    other = ConversationKey(platform="web", account="default", channel="other")
    whole = visitor(GrantKind.CHANNEL, MAIN)
    assert whole.may_see(MAIN)
    assert whole.may_see(thread)
    assert not whole.may_see(other)
    in_thread = visitor(GrantKind.CHANNEL, thread)
    assert in_thread.may_see(thread)
    assert not in_thread.may_see(MAIN)
    assert not visitor(GrantKind.CHANNEL, None).may_see(MAIN)
    assert visitor(GrantKind.BROWSER).may_see(other)


def test_a_visitors_secret_is_not_in_their_repr() -> None:
    assert "secret" not in repr(visitor(GrantKind.BROWSER))
