"""An adapter's desk: which hosts its account may talk to."""

from dataclasses import dataclass
from types import ModuleType

import pytest

from belino import registry
from belino.config import AdapterConfig
from belino.domain.errors import AddressRefused, ConfigError
from belino.gateway.adapter_context import AccountContext, own_hosts
from belino.net.guard import Guard, host_of
from belino.testing import FakeClock
from belino.testing.chaos import canary, chaos, whole


@dataclass(frozen=True)
class Options:
    url: str


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A plugin's module, found under any name."""
    made = ModuleType("belino_example")
    plugin = registry.Plugin(name="example", module=made, config_type=Options, make=lambda *_: None)
    monkeypatch.setattr(registry, "find", lambda group, name: plugin)
    return made


def config(url: str) -> AdapterConfig:
    return AdapterConfig(platform="example", account="default", options=Options(url))


async def ask(desk: AccountContext, url: str) -> bytes:
    try:
        async with desk.http.request("GET", url) as answer:
            return await answer.read(100)
    finally:
        await desk.http.close()


async def test_an_adapter_that_names_no_hosts_reaches_public_addresses_only(module: ModuleType) -> None:
    async with canary() as bird:
        url = f"http://127.0.0.1:{bird.port}/"
        assert own_hosts(config(url)) == ()
        with pytest.raises(AddressRefused):
            await ask(AccountContext(config(url), FakeClock(), Guard()), url)
        assert bird.touched == 0


async def test_a_base_url_the_operator_wrote_may_be_private(module: ModuleType) -> None:
    vars(module)["hosts"] = lambda options: [host_of(options.url)]
    async with chaos(whole(b"hello")) as server, canary() as other:
        desk = AccountContext(config(server.url), FakeClock(), Guard())
        assert await ask(desk, server.url) == b"hello"
        with pytest.raises(AddressRefused):
            await ask(desk, f"http://127.0.0.1:{other.port}/")
        assert other.touched == 0


async def test_a_network_the_operator_opened_is_open_to_every_account(module: ModuleType) -> None:
    async with chaos(whole(b"hello")) as server:
        desk = AccountContext(config(server.url), FakeClock(), Guard(["127.0.0.0/8"]))
        assert await ask(desk, server.url) == b"hello"


@pytest.mark.parametrize("url", ["", "example.com", "ftp://example.com", "https://user:pass@example.com", "http://a b"])
def test_a_base_url_that_cannot_be_used_is_a_mistake_in_the_configuration(module: ModuleType, url: str) -> None:
    vars(module)["hosts"] = lambda options: [host_of(options.url)]
    with pytest.raises(ConfigError, match=r"adapters\.example names a URL") as caught:
        own_hosts(config(url))
    assert not url or url not in str(caught.value)


def test_a_platform_that_nobody_offers_has_no_hosts() -> None:
    assert own_hosts(AdapterConfig(platform="nobodys")) == ()
