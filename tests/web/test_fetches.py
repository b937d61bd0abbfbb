"""A person asks the gateway for the bytes of a ref, and may watch them come."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from belino.config import AccessConfig, AdapterConfig, ChannelAccess, Config
from belino.domain.ports import Adapter, Desk
from belino.gateway.gateway import from_registry
from belino.testing.files import make_png
from belino.testing.memory import Config as MemoryConfig
from belino.testing.memory import MemoryAdapter, MemoryPlatform
from web.conftest import Site

PNG = make_png(64, 48)
RunSite = Callable[..., AbstractAsyncContextManager[Site]]


def make_adapter(config: AdapterConfig, desk: Desk) -> Adapter:
    return MemoryAdapter(config.options, desk) if config.platform == "memory" else from_registry(config, desk)


@pytest.fixture
def platform() -> MemoryPlatform:
    return MemoryPlatform()


@pytest.fixture
async def site(run_site: RunSite, platform: MemoryPlatform) -> AsyncIterator[Site]:
    memory = AdapterConfig(
        platform="memory",
        access=AccessConfig(channels={"team": ChannelAccess()}),
        options=MemoryConfig(far_side=platform),
    )
    async with run_site(Config(adapters=(*Config().adapters, memory)), make_adapter=make_adapter) as site:
        yield site


async def sent(site: Site, platform: MemoryPlatform, content: bytes | None) -> str:
    """Ann sends a file where the agent only listens; its ref."""
    number = len(platform.updates) + 1
    if content is not None:
        platform.files[f"f{number}"] = content
    item = {"file": f"f{number}", "mime": "image/png", "name": "p.png", "size": len(content or b"x")}
    ann = {"id": "ann", "name": "Ann"}
    said = {"id": number, "channel": "team", "direct": False, "from": ann, "date": 1_700_000_000}
    platform.offer({**said, "files": [item]})
    await platform.until_acknowledged(number)
    (record,) = await site.gateway.store.refs(None, limit=1)
    return record.ref.id


async def test_a_ref_is_fetched_and_then_served(site: Site, platform: MemoryPlatform) -> None:
    ref = await sent(site, platform, PNG)
    status, media, _ = await site.ask("POST", "/api/media/fetch", json={"ref": ref})
    assert (status, media["ref"], media["outcome"]) == (200, ref, "held")
    assert (await site.ask("GET", media["url"]))[1] == PNG


async def test_who_wants_to_watch_is_told_how_far_it_is_and_how_it_ended(site: Site, platform: MemoryPlatform) -> None:
    ref = await sent(site, platform, PNG)
    headers = {**site.program, "Accept": "application/x-ndjson"}
    _, body, _ = await site.ask("POST", "/api/media/fetch", headers=headers, json={"ref": ref})
    lines: list[dict[str, Any]] = [json.loads(line) for line in body.splitlines()]
    assert lines[-1]["media"]["ref"] == ref and lines[-1]["media"]["url"]
    assert lines[:-1] and all(line.keys() == {"bytes", "total"} for line in lines[:-1])
    assert lines[-2] == {"bytes": len(PNG), "total": len(PNG)}


async def test_what_cannot_be_had_is_told_with_the_reason(site: Site, platform: MemoryPlatform) -> None:
    ref = await sent(site, platform, None)
    status, told, _ = await site.ask("POST", "/api/media/fetch", json={"ref": ref})
    assert status == 409 and told["error"]["code"] == "conflict"
    assert told["error"]["message"].startswith(f"{ref} cannot be had: the platform no longer has")
    headers = {**site.program, "Accept": "application/x-ndjson"}
    _, body, _ = await site.ask("POST", "/api/media/fetch", headers=headers, json={"ref": ref})
    assert json.loads(body.splitlines()[-1])["error"]["code"] == "conflict"


@pytest.mark.parametrize("ref", ["memory_000000000000", "nonsense", "../x", ""])
async def test_an_unknown_ref_is_nowhere(site: Site, ref: str) -> None:
    assert (await site.ask("POST", "/api/media/fetch", json={"ref": ref}))[0] == 404


async def test_a_conversations_token_fetches_nothing_by_this_door(site: Site, platform: MemoryPlatform) -> None:
    ref = await sent(site, platform, PNG)
    for headers, refused in ((await site.token(), {403, 404}), ({}, {401})):
        assert (await site.ask("POST", "/api/media/fetch", headers=headers, json={"ref": ref}))[0] in refused
    record = await site.gateway.store.find_ref(ref)
    assert record is not None and record.outcome == "referenced"
