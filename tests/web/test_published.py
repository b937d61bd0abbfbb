"""Files under a link are for everyone who has it, until it expires or the bytes are deleted."""

import base64
import hashlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from belino.config import AdapterConfig, Config, ServerConfig
from belino.domain.errors import ConfigError, MediaError
from belino.domain.message import Author, ConversationKey, Deletion
from belino.domain.ports import Adapter, AdapterContext
from belino.domain.reply import OutgoingFile
from belino.gateway.accounts import from_registry
from belino.media.image.header import image_size
from belino.testing import FakeClock, make_png
from belino.testing.scenes import film

MAIN = ConversationKey(platform="web", account="default", channel="main")
PUBLIC = Config(server=ServerConfig(public_url="https://bot.example"))
PICTURE = make_png(8, 8)


async def put(site: Any, content: bytes = PICTURE, *, mime: str = "image/png", name: str = "a.png") -> tuple[str, str]:
    """Send a file; the ids of its message and its ref."""
    attachment = {"content": base64.b64encode(content).decode(), "mime_type": mime, "file_name": name}
    async with site.socket() as chat:
        said = await chat.call("chat.send", conversation=str(MAIN), message="look", attachments=[attachment])
    message = said["payload"]["message"]
    return str(message["id"]), str(message["media"][0]["ref"])


async def link(site: Any, ref: str) -> str:
    """The path of a new link to a ref."""
    record = await site.gateway.store.ref(MAIN, ref)
    url = await site.gateway.publisher.media(record, await site.gateway.fetch(record))
    assert url.startswith("https://bot.example/files/")
    return str(url.removeprefix("https://bot.example"))


async def test_a_link_gives_the_bytes_and_their_type_without_a_login(run_site: Any) -> None:
    async with run_site(PUBLIC) as site:
        path = await link(site, (await put(site))[1])
        status, body, headers = await site.ask("GET", path, headers={})
        assert (status, body) == (200, PICTURE)
        assert headers["content-type"] == "image/png"
        assert headers["content-disposition"].startswith("inline")
        assert headers["cache-control"] == "no-store"
        status, body, headers = await site.ask("GET", path, headers={"Range": "bytes=1-3"})
        assert (status, body) == (206, PICTURE[1:4])
        assert headers["content-range"] == f"bytes 1-3/{len(PICTURE)}"
        status, body, headers = await site.ask("HEAD", path, headers={})
        assert (status, body, headers["content-length"]) == (200, b"", str(len(PICTURE)))
        assert (await site.ask("GET", path, headers={"Range": "bytes=999999-"}))[0] == 416
        assert (await site.ask("POST", path, headers={}))[0] == 405


@pytest.mark.parametrize("mime", ["text/html", "image/svg+xml", "application/pdf"])
async def test_what_could_carry_a_script_is_a_download_of_its_own_type(run_site: Any, mime: str) -> None:
    async with run_site(PUBLIC) as site:
        path = await link(site, (await put(site, b"<svg onload=alert(1)>", mime=mime, name="a.x"))[1])
        status, _, headers = await site.ask("GET", path, headers={})
        assert (status, headers["content-type"]) == (200, mime)
        assert headers["content-disposition"].startswith("attachment")
        assert headers["content-security-policy"].startswith("sandbox")
        assert headers["x-content-type-options"] == "nosniff"


async def test_a_link_ends_after_its_minutes(run_site: Any) -> None:
    clock = FakeClock()
    config = replace(PUBLIC, server=replace(PUBLIC.server, publish_minutes=5))
    async with run_site(config, clock=clock) as site:
        _, ref = await put(site)
        path = await link(site, ref)
        store, token = site.gateway.store, path.removeprefix("/files/")
        clock.turn(timedelta(minutes=5) - timedelta(microseconds=1))
        assert await store.published(token) is not None
        clock.turn(timedelta(microseconds=1))
        assert await store.published(token) is None
        assert (await site.ask("GET", path, headers={}))[0] == 404


async def test_a_link_ends_when_the_message_is_deleted_also_where_others_have_the_same_bytes(run_site: Any) -> None:
    async with run_site(PUBLIC) as site:
        (message, ref), (_, other) = await put(site), await put(site)
        path, stays = await link(site, ref), await link(site, other)
        author = Author(id="owner", name="You")
        sent = site.gateway.clock.now()
        await site.gateway.accept(Deletion(conversation=MAIN, id="d1", message_id=message, author=author, sent=sent))
        assert (await site.ask("GET", path, headers={}))[0] == 404
        assert (await site.ask("GET", stays, headers={}))[0] == 200


async def test_unknown_and_invented_links_are_not_found(run_site: Any) -> None:
    async with run_site(PUBLIC) as site:
        path = await link(site, (await put(site))[1])
        for wrong in (path[:-1], f"{path}x", "/files/x", f"/files/{'x' * 5000}", "/files/%F0%9F", "/files/"):
            assert (await site.ask("GET", wrong, headers={}))[0] == 404


async def test_no_link_is_made_without_a_public_address_over_https(run_site: Any) -> None:
    file = OutgoingFile(name="a.png", mime="image/png", size=1, sha256="0" * 64)
    for number, url in enumerate((None, "http://bot.example")):
        config = Config(server=ServerConfig(public_url=url))
        async with run_site(config, folder=str(number)) as site:
            with pytest.raises(ConfigError, match=r"set server\.public_url to its https:// address"):
                await site.gateway.publisher.file(file)


async def test_a_link_to_an_outgoing_file_ends_with_the_last_use_of_its_bytes(run_site: Any) -> None:
    async with run_site(PUBLIC) as site:
        message, ref = await put(site)
        record = await site.gateway.store.ref(MAIN, ref)
        blob = await site.gateway.fetch(record)
        file = OutgoingFile(name="a.png", mime="image/png", size=blob.size, sha256=blob.sha256)
        path = (await site.gateway.publisher.file(file)).removeprefix("https://bot.example")
        assert (await site.ask("GET", path, headers={}))[:2] == (200, PICTURE)
        author, sent = Author(id="owner", name="You"), site.gateway.clock.now()
        await site.gateway.accept(Deletion(conversation=MAIN, id="d1", message_id=message, author=author, sent=sent))
        assert (await site.ask("GET", path, headers={}))[0] == 404


async def test_an_adapter_publishes_a_file_by_its_context(run_site: Any) -> None:
    contexts: list[AdapterContext] = []

    def make(config: AdapterConfig, context: AdapterContext) -> Adapter:
        contexts.append(context)
        return from_registry(config, context)

    async with run_site(PUBLIC, make_adapter=make) as site:
        _, ref = await put(site)
        blob = await site.gateway.fetch(await site.gateway.store.ref(MAIN, ref))
        file = OutgoingFile(name="a.png", mime="image/png", size=blob.size, sha256=blob.sha256)
        url = await contexts[0].publish(file)
        assert url.startswith("https://bot.example/files/")
        assert (await site.ask("GET", url.removeprefix("https://bot.example"), headers={}))[:2] == (200, PICTURE)


def outgoing(content: bytes, mime: str) -> OutgoingFile:
    return OutgoingFile(name="a", mime=mime, size=len(content), sha256=hashlib.sha256(content).hexdigest())


@pytest.mark.slow
async def test_a_preview_of_a_picture_or_video_is_a_small_picture_that_ends_with_its_link(run_site: Any) -> None:
    clock = FakeClock()
    async with run_site(PUBLIC, clock=clock) as site:
        for content, mime in ((make_png(3000, 200), "image/png"), (film(30_000, 320, 240), "video/mp4")):
            await put(site, content, mime=mime, name="a")
            url = await site.gateway.publisher.preview(outgoing(content, mime))
            path = url.removeprefix("https://bot.example")
            status, body, headers = await site.ask("GET", path, headers={})
            found = image_size(body)
            assert status == 200 and found is not None and max(found[1:]) <= 1_024 and len(body) <= 1_000_000
            assert headers["content-type"] == found[0] in ("image/jpeg", "image/png")
            assert (await site.ask("GET", path.removesuffix("/preview"), headers={}))[1] == content
            clock.turn(timedelta(minutes=PUBLIC.server.publish_minutes))
            assert (await site.ask("GET", path, headers={}))[0] == 404


@pytest.mark.slow
async def test_what_cannot_be_shown_small_has_no_preview(run_site: Any) -> None:
    async with run_site(PUBLIC) as site:
        await put(site, b"no picture at all", mime="image/png", name="a")
        with pytest.raises(MediaError):
            await site.gateway.publisher.preview(outgoing(b"no picture at all", "image/png"))
        path = (await site.gateway.publisher.file(outgoing(b"no picture at all", "image/png"))).removeprefix(
            "https://bot.example"
        )
        assert (await site.ask("GET", f"{path}/preview", headers={}))[0] == 404
        assert (await site.ask("GET", "/files/unknown/preview", headers={}))[0] == 404
