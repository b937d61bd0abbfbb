"""No socket is opened where it should not be: real listeners on loopback count who touches them."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from aiohttp import ClientConnectorError, TCPConnector

from belino.domain.errors import AdapterError, AddressRefused
from belino.net.client import Client
from belino.net.connect import open_session
from belino.net.guard import REFUSED, CheckedUrl, Guard
from belino.testing.chaos import Canary, ChaosRequest, ChaosServer, canary, chaos, says, whole
from net.test_guard import SPECIAL

LOOPBACK = "127.0.0.0/8"


class Names:
    """A resolver in a test's hand: each question takes the next answer, the last one stays."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self._answers = {name.replace("_", "."): list(sets) for name, sets in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, name: str, port: int) -> Sequence[str]:
        self.asked.append(name)
        sets = self._answers.get(name)
        if sets is None:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return sets.pop(0) if len(sets) > 1 else sets[0]


@asynccontextmanager
async def client(*allow: str, hosts: Sequence[str] = (), names: Names | None = None) -> AsyncIterator[Client]:
    made = Client(guard=Guard(allow), hosts=hosts, resolve=names or Names())
    try:
        async with asyncio.timeout(60):
            yield made
    finally:
        await made.close()


async def get(made: Client, url: str, **headers: str) -> bytes:
    async with made.request("GET", url, headers=headers, timeout=60) as answer:
        return await answer.read(10_000)


async def head_of(made: Client, method: str, url: str) -> int:
    async with made.request(method, url, body=b"secret") as answer:
        return answer.status


async def refused(made: Client, url: str) -> None:
    with pytest.raises(AddressRefused) as caught:
        await get(made, url)
    assert str(caught.value) == REFUSED
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def headers_of(server: ChaosServer) -> set[str]:
    return {name for asked in server.asked for name in asked.headers}


@asynccontextmanager
async def canaries() -> AsyncIterator[tuple[Canary, Canary]]:
    async with canary("127.0.0.1") as four, canary("::1") as six:
        yield four, six
        assert (four.touched, six.touched) == (0, 0)


SPELLINGS = (
    "http://127.0.0.1:{four}/",
    "http://127.1:{four}/",
    "http://127.0.0.1.:{four}/",
    "http://2130706433:{four}/",
    "http://0x7f000001:{four}/",
    "http://0177.0.0.1:{four}/",
    "http://0:{four}/",
    "http://[::ffff:127.0.0.1]:{four}/",
    "http://[::1]:{six}/",
    "http://[0:0::1]:{six}/",
    "http://localhost:{four}/",
    "http://LOCALHOST.:{six}/",
    "http://public.example:{four}/",
    "http://six.example:{six}/",
    "http://mapped.example:{four}/",
    "http://example.com@127.0.0.1:{four}/",
    "http://127.0.0.1:{four}\\@example.com/",
)


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_no_spelling_of_loopback_opens_a_socket(spelling: str) -> None:
    names = Names(
        localhost=[["127.0.0.1", "::1"]],
        public_example=[["127.0.0.1"]],
        six_example=[["::1"]],
        mapped_example=[["::ffff:127.0.0.1"]],
    )
    async with canaries() as (four, six), client(names=names) as made:
        await refused(made, spelling.format(four=four.port, six=six.port))


async def test_a_session_on_its_own_opens_no_socket_to_a_literal_address_that_is_not_public() -> None:
    """No resolver is asked for a literal address, and nobody called `Guard.check`: only the socket factory is left."""
    names = Names()
    async with canaries() as (four, six), open_session(Guard(), names) as session:
        for url in (
            f"http://127.0.0.1:{four.port}/",
            f"http://[::1]:{six.port}/",
            f"http://[::ffff:127.0.0.1]:{four.port}/",
        ):
            with pytest.raises(ClientConnectorError) as caught:
                await session.get(url)
            assert str(caught.value.os_error) == REFUSED
        assert names.asked == []


@pytest.mark.parametrize("address", SPECIAL)
async def test_the_socket_factory_makes_no_socket_for_an_address_that_is_not_public(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    async with open_session(Guard(), Names()) as session:
        assert isinstance(session.connector, TCPConnector)
        factory = session.connector._socket_factory
        assert factory is not None
        monkeypatch.setattr(socket, "socket", lambda *given: made.append(given))
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with pytest.raises(OSError, match=REFUSED):
            factory((family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, 80)))
        assert made == []
        factory((socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("8.8.8.8", 80)))
        assert made == [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)]


async def test_the_machines_own_resolver_is_looked_at_the_same_way() -> None:
    async with canaries() as (four, _):
        made = Client()
        await refused(made, f"http://localhost:{four.port}/")
        await made.close()


async def test_one_bad_address_among_good_ones_refuses_the_name() -> None:
    names = Names(mixed_example=[["127.0.0.1", "127.0.0.2"]])
    async with canary("127.0.0.1") as good, client("127.0.0.1/32", names=names) as made:
        await refused(made, f"http://mixed.example:{good.port}/")
        assert good.touched == 0


async def test_a_name_that_changes_its_mind_is_asked_once_and_judged_by_what_is_connected_to() -> None:
    """The attack: a good answer for whoever checks, a bad one for whoever connects."""
    names = Names(flip_example=[["127.0.0.1"], ["127.0.0.2"]])
    async with chaos(whole(b"good")) as server, client("127.0.0.1/32", names=names) as made:
        port = server.url.rpartition(":")[2]
        assert await get(made, f"http://flip.example:{port}/") == b"good"
        assert names.asked == ["flip.example"]
    async with canary("127.0.0.2") as bad, client("127.0.0.1/32", names=names) as made:
        await refused(made, f"http://flip.example:{bad.port}/")
        assert bad.touched == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("hops", [1, 2, 3])
async def test_every_hop_of_a_redirect_is_looked_at(status: int, hops: int) -> None:
    async with canaries() as (four, _), AsyncExitStack() as stack:
        made = await stack.enter_async_context(client("127.0.0.2/32"))
        url = f"http://127.0.0.1:{four.port}/"
        for _ in range(hops):
            server = await stack.enter_async_context(chaos(says(status, {"Location": url}), host="127.0.0.2"))
            url = server.url
        await refused(made, url)


async def test_three_redirects_are_followed_and_a_fourth_is_not() -> None:
    async with client(LOOPBACK) as made, AsyncExitStack() as stack:
        last = await stack.enter_async_context(chaos(whole(b"here")))
        url = last.url
        for _ in range(3):
            url = (await stack.enter_async_context(chaos(says(302, {"Location": url})))).url
        assert await get(made, url) == b"here"
        url = (await stack.enter_async_context(chaos(says(302, {"Location": url})))).url
        with pytest.raises(AdapterError, match="redirected more than 3 times"):
            await get(made, url)
        assert len(last.asked) == 1


async def test_a_redirect_without_a_location_is_an_answer() -> None:
    async with client(LOOPBACK) as made, chaos(says(302, {"Content-Length": "4"}, b"lost")) as server:
        assert await get(made, server.url) == b"lost"


async def test_a_place_the_operator_named_is_reached_and_its_neighbour_is_not() -> None:
    async with chaos(whole(b"yes")) as server, canary() as neighbour:
        port = server.url.rpartition(":")[2]
        names = Names(bot_api=[["127.0.0.1"]], evil_example=[["127.0.0.1"]])
        names._answers["bot-api"] = [["127.0.0.1"]]
        async with client(hosts=[f"bot-api:{port}"], names=names) as made:
            assert await get(made, f"http://bot-api:{port}/") == b"yes"
            await refused(made, f"http://127.0.0.1:{port}/")
            await refused(made, f"http://evil.example:{port}/")
            await refused(made, f"http://bot-api:{neighbour.port}/")
        assert neighbour.touched == 0 and len(server.asked) == 1


async def test_a_redirect_from_a_named_place_may_not_lead_to_its_neighbour() -> None:
    async with AsyncExitStack() as stack:
        neighbour = await stack.enter_async_context(canary())
        server = await stack.enter_async_context(chaos(says(302, {"Location": f"http://127.0.0.1:{neighbour.port}/"})))
        made = await stack.enter_async_context(client(hosts=[server.url.removeprefix("http://")]))
        await refused(made, server.url)
        assert neighbour.touched == 0


async def test_a_web_socket_follows_no_redirect() -> None:
    async with canary() as bird, chaos(says(307, {"Location": f"http://127.0.0.1:{bird.port}/"})) as server:
        async with client(hosts=[server.url.removeprefix("http://")]) as made:
            with pytest.raises(AddressRefused):
                async with made.socket(server.url.replace("http", "ws", 1), timeout=60):
                    pass
        assert len(server.asked) == 1
        assert bird.touched == 0


async def test_a_host_named_without_a_port_must_be_public() -> None:
    names = Names(api_example=[["127.0.0.1"]])
    async with client(hosts=["api.example"], names=names) as made:
        await refused(made, "https://api.example/")


CREDENTIALS = {"Authorization": "Bearer canary", "Cookie": "session=canary", "X-Api-Key": "canary"}


async def test_credentials_go_to_the_hosts_of_the_account_and_to_nobody_else() -> None:
    async with chaos(whole(b"")) as own, chaos(whole(b"")) as foreign:
        async with client(LOOPBACK, hosts=[own.url.removeprefix("http://")]) as made:
            await get(made, own.url, **CREDENTIALS, Range="bytes=1-")
            await get(made, foreign.url, **CREDENTIALS, Range="bytes=1-")
        assert {"authorization", "cookie", "x-api-key", "range"} <= headers_of(own)
        assert not {"authorization", "cookie", "x-api-key"} & headers_of(foreign)
        assert "range" in headers_of(foreign)


async def test_a_host_that_only_looks_like_ours_gets_no_credentials() -> None:
    names = Names()
    names._answers |= {name: [["127.0.0.1"]] for name in ("files.example.com.evil.test", "evilfiles.example.com")}
    async with chaos(whole(b"")) as server, client(LOOPBACK, hosts=["files.example.com"], names=names) as made:
        port = server.url.rpartition(":")[2]
        for name in names._answers:
            await get(made, f"http://{name}:{port}/files.example.com", **CREDENTIALS)
        assert len(server.asked) == 2
        assert not {"authorization", "cookie", "x-api-key"} & headers_of(server)


async def test_a_host_of_ours_gets_no_credentials_over_plain_http(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, set[str]] = {}

    async def note(_client: Client, _method: str, place: CheckedUrl, headers: Mapping[str, str], _body: object) -> None:
        told[place.scheme] = set(headers)
        raise AdapterError("noted")

    monkeypatch.setattr(Client, "_send", note)
    async with client(hosts=["files.example.com"]) as made:
        for scheme in ("http", "https"):
            with pytest.raises(AdapterError, match="noted"):
                await get(made, f"{scheme}://files.example.com:443/", **CREDENTIALS)
    assert told == {"http": set(), "https": set(CREDENTIALS)}


@pytest.mark.parametrize("listed", [True, False])
async def test_a_redirect_takes_credentials_only_where_they_may_go(listed: bool) -> None:
    async with chaos(whole(b"")) as second, chaos(whole(b"")) as stranger:
        async with chaos(says(302, {"Location": second.url}), says(302, {"Location": stranger.url})) as first:
            hosts = [server.url.removeprefix("http://") for server in (first, second)] if listed else []
            async with client(LOOPBACK, hosts=hosts) as made:
                await get(made, first.url, **CREDENTIALS)
                await get(made, first.url, **CREDENTIALS)
            assert "authorization" in headers_of(first)
        assert ("authorization" in headers_of(second)) is listed
        assert not {"authorization", "cookie", "x-api-key"} & headers_of(stranger)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_what_changes_something_is_said_once_and_to_nobody_else(method: str, status: int) -> None:
    async with canary() as elsewhere, client(LOOPBACK) as made:
        async with chaos(says(status, {"Location": f"http://127.0.0.1:{elsewhere.port}/"})) as server:
            answer = await head_of(made, method, server.url)
        assert (answer, elsewhere.touched) == (status, 0)


async def test_a_refusal_says_the_same_whatever_is_there() -> None:
    """Open port, closed port, nobody's address, unknown name: an attacker learns nothing from the words."""
    async with canaries() as (four, _), client(names=Names(inner_example=[["10.0.0.1"]])) as made:
        for url in (
            f"http://127.0.0.1:{four.port}/",
            "http://127.0.0.1:9/",
            "http://10.0.0.1/",
            "http://inner.example/",
        ):
            await refused(made, url)
        with pytest.raises(AdapterError) as unknown:
            await get(made, "http://unknown.example/")
        assert "example" not in str(unknown.value)


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"])
async def test_a_proxy_of_the_environment_takes_no_part(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with canary() as proxy, canary() as target:
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", "")
        async with client() as made:
            await refused(made, f"http://127.0.0.1:{target.port}/")
        async with chaos(whole(b"direct")) as server, client(LOOPBACK) as made:
            assert await get(made, server.url) == b"direct"
        assert (proxy.touched, target.touched) == (0, 0)


async def test_the_name_is_still_told_to_the_server() -> None:
    seen: list[ChaosRequest] = []
    async with chaos(whole(b"")) as server, client(LOOPBACK, names=Names(a_example=[["127.0.0.1"]])) as made:
        port = server.url.rpartition(":")[2]
        await get(made, f"http://A.example.:{port}/x?y=1#z")
        seen = server.asked
    assert (seen[0].target, seen[0].headers["host"]) == ("/x?y=1", f"a.example:{port}")
    assert seen[0].headers["accept-encoding"] == "identity"
