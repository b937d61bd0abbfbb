"""The connection pool: who has not logged in can only displace others who have not."""

import logging

import pytest

from belino.testing import FakeClock
from belino.web.connections import (
    STATE_KEY,
    ClientConnection,
    ConnectionPool,
    EvictionQueue,
    count_as_known,
    peer_of,
    shares_of,
)
from belino.web.responses import Refusal

USUAL_LIMIT = 1_024


class Crowd:
    """Connections in a pool under the usual descriptor limit, and those it dropped."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.pool = ConnectionPool(shares_of(USUAL_LIMIT), self.clock)
        self.dropped: list[ClientConnection] = []

    def join(self, peer: str = "192.0.2.1") -> ClientConnection:
        connection = self.try_to_join(peer)
        assert connection is not None
        return connection

    def try_to_join(self, peer: str) -> ClientConnection | None:
        connection = self.pool.open(peer, lambda: None)
        if connection is not None:
            connection.drop = lambda: self.dropped.append(connection)
        return connection

    def fill(self) -> list[ClientConnection]:
        """Every anonymous place, each by another peer."""
        return [self.join(f"198.51.100.{number}") for number in range(self.pool.shares.anonymous)]


@pytest.mark.parametrize("open_files", [64, 256, 1_024, 4_096, 1_048_576])
def test_the_shares_leave_descriptors_for_everything_else(open_files: int) -> None:
    shares = shares_of(open_files)
    assert 0 < shares.per_peer <= shares.anonymous < shares.known
    assert shares.anonymous + shares.known <= open_files - min(256, open_files // 2)


def test_when_the_share_is_full_the_one_waited_for_longest_gives_way_to_the_next() -> None:
    crowd = Crowd()
    first, second, *_ = crowd.fill()
    newcomer = crowd.join("192.0.2.1")
    assert crowd.dropped == [first]
    crowd.join("192.0.2.2")
    assert crowd.dropped == [first, second]
    assert newcomer.is_open and not first.is_open


def test_a_peer_that_holds_most_gives_way_first() -> None:
    crowd = Crowd()
    early = crowd.join("192.0.2.1")
    many = [crowd.join("192.0.2.66") for _ in range(crowd.pool.shares.anonymous + 100)]
    crowd.join("192.0.2.2")
    assert early.is_open
    assert {connection.peer for connection in crowd.dropped} == {"192.0.2.66"}
    assert crowd.dropped == many[: len(crowd.dropped)]


def test_one_peer_never_holds_the_whole_share() -> None:
    crowd = Crowd()
    held = [crowd.join("192.0.2.66") for _ in range(crowd.pool.shares.anonymous)]
    assert sum(connection.is_open for connection in held) == crowd.pool.shares.per_peer


def test_a_client_that_waits_for_us_is_not_dropped() -> None:
    crowd = Crowd()
    answered, slow, *_ = crowd.fill()
    crowd.pool.set_turn(answered, client_turn=False)
    crowd.join()
    assert (answered.is_open, crowd.dropped) == (True, [slow])
    crowd.pool.set_turn(answered, client_turn=True)
    assert crowd.pool.open("192.0.2.9", lambda: None) is not None
    assert answered.is_open, "it has just been answered: others keep us waiting longer"


def test_when_every_client_waits_for_us_a_newcomer_is_refused() -> None:
    crowd = Crowd()
    everyone = crowd.fill()
    for connection in everyone:
        crowd.pool.set_turn(connection, client_turn=False)
    assert crowd.try_to_join("192.0.2.1") is None
    crowd.pool.close(everyone[0])
    assert crowd.try_to_join("192.0.2.1") is not None


def test_who_has_logged_in_is_never_dropped_and_leaves_room_before_login() -> None:
    crowd = Crowd()
    known = [crowd.join() for _ in range(crowd.pool.shares.per_peer)]
    assert all(crowd.pool.claim(connection) for connection in known)
    crowd.fill()
    assert not crowd.dropped
    crowd.fill()
    assert all(connection.is_open for connection in known)


def test_more_logged_in_connections_than_there_are_places_are_told_so() -> None:
    crowd = Crowd()
    for _ in range(crowd.pool.shares.known):
        count_as_known({"state": {STATE_KEY: crowd.join()}})
    last = crowd.join()
    with pytest.raises(Refusal) as refused:
        count_as_known({"state": {STATE_KEY: last}})
    assert (refused.value.status, refused.value.code) == (503, "busy")
    assert last.is_open and not last.is_known


def test_a_proxys_connection_is_counted_under_its_client_and_anonymous_again_with_its_next_request() -> None:
    crowd = Crowd()
    proxied = crowd.join("127.0.0.1")
    crowd.pool.set_peer(proxied, "203.0.113.7")
    many = [crowd.join("127.0.0.1") for _ in range(crowd.pool.shares.anonymous + 10)]
    assert proxied.is_open and not many[0].is_open
    assert crowd.pool.claim(proxied)
    crowd.pool.forget(proxied)
    crowd.dropped.clear()
    for number in range(crowd.pool.shares.anonymous):
        crowd.join(f"198.51.100.{number}")
    assert proxied in crowd.dropped


def test_a_closed_connection_gives_its_place_back_once() -> None:
    crowd = Crowd()
    connections = crowd.fill()
    for _ in range(2):
        crowd.pool.close(connections[0])
    crowd.join()
    assert not crowd.dropped
    crowd.join()
    assert len(crowd.dropped) == 1


def test_dropping_is_logged_at_most_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    crowd = Crowd()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            crowd.fill()
        assert len(caplog.records) == 1
        crowd.clock.shift(61)
        crowd.join("192.0.2.1")
        assert len(caplog.records) == 2


def test_an_item_is_queued_once_however_often_it_is_added() -> None:
    queue: EvictionQueue[str] = EvictionQueue()
    for item in ("a", "b", "a"):
        queue.add(item, "peer")
    assert (len(queue), queue.held_by("peer"), queue.oldest()) == (2, 2, "b")
    queue.discard("b")
    queue.discard("b")
    assert (queue.oldest(), queue.oldest("other")) == ("a", None)


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("unknown", "unknown"),
    ],
)
def test_a_peer_is_an_address_or_an_ipv6_customers_network(address: str, peer: str) -> None:
    assert peer_of(address) == peer
