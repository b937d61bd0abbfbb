"""A person asks the gateway for the bytes of a ref, and may watch them come."""

import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from belino.config import AccessConfig, AdapterConfig, ChannelAccess, Config
from belino.domain.ports import Adapter, AdapterContext
from belino.gateway.accounts import from_registry
from belino.media.image.header import image_size
from belino.testing.files import make_png
from belino.testing.memory import Config as MemoryConfig
from belino.testing.memory import MemoryAdapter, MemoryPlatform
from web.conftest import Site

PNG = make_png(64, 48)
RunSite = Callable[..., AbstractAsyncContextManager[Site]]


def make_adapter(config: AdapterConfig, desk: AdapterContext) -> Adapter:
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


async def sent(site: Site, platform: MemoryPlatform, content: bytes | None, name: str = "p.png") -> str:
    """Ann sends a file where the agent only listens; its ref."""
    number = len(platform.updates) + 1
    if content is not None:
        platform.files[f"f{number}"] = content
    item = {"file": f"f{number}", "mime": "image/png", "name": name, "size": len(content or b"x")}
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
    assert told["error"]["message"].startswith(f"{ref} is not available: the platform no longer has")
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


async def test_a_ref_comes_in_the_form_a_person_asks_for(site: Site, platform: MemoryPlatform) -> None:
    ref = await sent(site, platform, b"one\ntwo [Image: x.png, ref:tg_aaaaaaaaaaaa]\n", "notes.txt")
    _, media, _ = await site.ask("POST", "/api/media/fetch", json={"ref": ref, "as": "text"})
    rendered = media["rendered"]
    assert rendered["text"] == "one\ntwo ［Image: x.png, ref:tg_aaaaaaaaaaaa]"
    assert (rendered["next_cursor"], rendered["pictures"]) == (None, []) and "You read all of it." in rendered["about"]
    picture = await sent(site, platform, PNG)
    _, media, _ = await site.ask("POST", "/api/media/fetch", json={"ref": picture, "as": "thumb"})
    (thumb,) = media["rendered"]["pictures"]
    assert (thumb["mime"], thumb["width"], thumb["height"]) == ("image/png", 64, 48)
    assert image_size(base64.b64decode(thumb["content"])) == ("image/png", 64, 48)


@pytest.mark.parametrize(
    ("wish", "status", "says"),
    [
        ({"as": "transcript"}, 400, "as must be one of image, thumb, text, frames, sheet, file"),
        ({"as": "text", "pages": "x"}, 400, "pages must be a number or a range"),
        ({"as": "text", "max_tokens": 1}, 400, "max_tokens must be a number from 300"),
        ({"as": "text", "cursor": "x"}, 409, "cursor must be"),
        ({"as": "frames"}, 409, "is not available"),
    ],
    ids=["form", "pages", "tokens", "cursor", "frames"],
)
async def test_a_form_that_cannot_be_is_refused_with_the_reason(
    site: Site, platform: MemoryPlatform, wish: dict[str, object], status: int, says: str
) -> None:
    ref = await sent(site, platform, b"words", "notes.txt")
    found, body, _ = await site.ask("POST", "/api/media/fetch", json={"ref": ref, **wish})
    assert found == status and says in body["error"]["message"]
