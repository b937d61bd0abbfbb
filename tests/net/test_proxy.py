"""The proxy of an account, against real proxies on loopback: for its own hosts, and for no others."""

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from belino.domain.errors import AddressRefused, ConfigError, Unreached
from belino.net.client import Client
from belino.net.guard import Guard
from belino.net.proxy import ProxyConfig
from belino.net.redact import Secret
from belino.testing.platform_server import Loopback
from net.proxies import LoopbackProxy

LOGIN = "ada:canary-password"
SCHEMES = pytest.mark.parametrize("scheme", ["socks5", "http"])


async def _answer(request: web.Request) -> web.StreamResponse:
    if request.headers.get("Upgrade") == "websocket":
        line = web.WebSocketResponse()
        await line.prepare(request)
        await line.send_str("hello")
        await line.close()
        return line
    return web.Response(text=f"{request.path} {request.headers.get('Authorization', '')}")


@pytest.fixture
async def platform() -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", _answer)
    async with Loopback(app) as server:
        yield server.urls[0]


def through(proxy: LoopbackProxy, scheme: str, url: str, *, login: str | None = None) -> Client:
    secret = None if login is None else Secret("PROXY_LOGIN", login)
    config = ProxyConfig(proxy=f"{scheme}://127.0.0.1:{proxy.port}", proxy_login=secret)
    return Client(hosts=[urlsplit(url).netloc], proxy=config)


async def text_of(client: Client, url: str) -> str:
    async with client.request("GET", url, headers={"Authorization": "token"}) as answer:
        return (await answer.read(10_000)).decode()


@SCHEMES
@pytest.mark.parametrize("login", [None, LOGIN])
async def test_the_accounts_own_host_is_reached_through_the_proxy(
    platform: str, scheme: str, login: str | None
) -> None:
    async with LoopbackProxy(login=login) as proxy:
        client = through(proxy, scheme, platform, login=login)
        assert await text_of(client, f"{platform}/me") == "/me token"
        async with client.socket(platform.replace("http", "ws", 1)) as line:
            assert (await line.receive()).data == "hello"
        await client.close()
    where = urlsplit(platform)
    assert set(proxy.asked) == {(where.hostname, where.port)}


@SCHEMES
async def test_another_host_is_not_reached_through_the_proxy_and_not_past_the_guard(platform: str, scheme: str) -> None:
    async with LoopbackProxy() as proxy:
        client = through(proxy, scheme, "http://127.0.0.1:9")
        with pytest.raises(AddressRefused):
            await text_of(client, platform)
        await client.close()
        config = ProxyConfig(proxy=f"{scheme}://127.0.0.1:{proxy.port}")
        direct = Client(hosts=["127.0.0.1:9"], guard=Guard(["127.0.0.0/8"]), proxy=config)
        assert await text_of(direct, f"{platform}/file") == "/file "
        await direct.close()
    assert proxy.asked == []


@SCHEMES
async def test_a_host_of_the_platforms_domain_is_reached_through_the_proxy_by_its_name(scheme: str) -> None:
    async with LoopbackProxy(refuses=2) as proxy:
        config = ProxyConfig(proxy=f"{scheme}://127.0.0.1:{proxy.port}")
        client = Client(hosts=["api.telegram.test"], proxy=config, sites=["telegram.test"])
        for name in ("api.telegram.test", "files.telegram.test"):
            with pytest.raises(Unreached, match="the proxy opened no connection"):
                await text_of(client, f"https://{name}/")
        await client.close()
    assert proxy.asked == [("api.telegram.test", 443), ("files.telegram.test", 443)]


@SCHEMES
async def test_a_wrong_login_is_named_and_never_shown(platform: str, scheme: str) -> None:
    async with LoopbackProxy(login="ada:another") as proxy:
        client = through(proxy, scheme, platform, login=LOGIN)
        with pytest.raises(Unreached, match="the proxy refused the login") as failed:
            await text_of(client, platform)
        await client.close()
    assert "canary" not in str(failed.value) + repr(client)


@SCHEMES
async def test_a_proxy_that_is_down_is_named_and_nothing_goes_past_it(platform: str, scheme: str) -> None:
    async with LoopbackProxy() as proxy:
        pass
    client = through(proxy, scheme, platform)
    with pytest.raises(Unreached, match="the proxy cannot be reached"):
        await text_of(client, platform)
    await client.close()


@pytest.mark.parametrize(
    "url",
    ["socks4://127.0.0.1:1080", "127.0.0.1:1080", "socks5://127.0.0.1", "http://ada:pw@host:1", "http://host:1/path"],
)
def test_a_proxy_that_cannot_be_used_is_refused_in_a_sentence(url: str) -> None:
    with pytest.raises(ConfigError, match=r"write socks5://HOST:PORT or http://HOST:PORT"):
        ProxyConfig(proxy=url)


def test_a_login_without_a_password_is_refused() -> None:
    with pytest.raises(ConfigError, match="NAME:PASSWORD"):
        ProxyConfig(proxy="http://host:1", proxy_login=Secret("PROXY_LOGIN", "ada"))
