"""Bytes are served to be looked at, never to run."""

import asyncio
import base64
import io
from typing import Any

import pytest
from aiohttp.multipart import content_disposition_filename, parse_content_disposition
from hypothesis import given
from hypothesis import strategies as st

from belino.domain.message import ChatType, ConversationKey, Deletion
from belino.storage.folder import blob_path
from belino.testing import make_png
from belino.web.media import disposition, parse_range
from belino.web.responses import Refusal

MAIN = "web:default:main"
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80)


async def put(site: Any, content: bytes, *, mime: str = "image/png", name: str = "a.png") -> dict[str, Any]:
    attachment = {"content": base64.b64encode(content).decode(), "mime_type": mime, "file_name": name}
    async with site.socket() as chat:
        said = await chat.call("chat.send", conversation=MAIN, message="look", attachments=[attachment])
    (media,) = said["payload"]["message"]["media"]
    return dict(media)


@given(NAMES, st.booleans())
def test_a_file_name_survives_its_header(name: str, inline: bool) -> None:
    header = disposition(name, inline=inline)
    assert header.isascii()
    assert header.isprintable()
    kind, params = parse_content_disposition(header)
    assert kind == ("inline" if inline else "attachment")
    assert params["filename*"] == name
    assert content_disposition_filename({"filename*": params["filename*"]}) == name


@pytest.mark.parametrize(
    "name", ['a"; filename="b.html', "a\r\nX-Evil: 1", "a\\", "ü".encode().decode("latin-1"), "‮gpj.exe"]
)
def test_no_name_breaks_out_of_its_quotes(name: str) -> None:
    header = disposition(name, inline=False)
    assert header.count('"') == 2
    assert not set(header) & set("\r\n\\")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("bytes=0-0", (0, 0)),
        ("bytes=0-", (0, 99)),
        ("bytes=10-19", (10, 19)),
        ("bytes=90-1000", (90, 99)),
        ("bytes=-10", (90, 99)),
        ("bytes=-1000", (0, 99)),
    ],
)
def test_one_range_is_read(asked: str, expected: tuple[int, int]) -> None:
    assert parse_range([asked], 100) == expected


@pytest.mark.parametrize(
    "asked",
    [
        ["bytes=0-1,2-3"],
        ["bytes=0-1", "bytes=2-3"],
        ["bytes=" + ",".join("0-1" for _ in range(10_000))],
        ["bytes=100-"],
        ["bytes=5-4"],
        ["bytes=-0"],
        ["bytes=-"],
        ["bytes="],
        ["bytes=a-b"],
        ["lines=0-1"],
        ["bytes=٣-٤"],
        ["bytes=0-1;"],
        [""],
    ],
)
def test_several_ranges_or_none_cannot_be_satisfied(asked: list[str]) -> None:
    with pytest.raises(Refusal) as refused:
        parse_range(asked, 100)
    assert refused.value.status == 416
    assert refused.value.headers == {"Content-Range": "bytes */100"}


async def test_a_picture_is_shown_and_shut_in(site: Any) -> None:
    picture = make_png(31, 17)
    media = await put(site, picture, name="Bild ü.png")
    assert (media["width"], media["height"], media["size"]) == (31, 17, len(picture))
    assert (media["outcome"], media["mime"], media["kind"]) == ("held", "image/png", "image")
    status, body, headers = await site.ask("GET", media["url"])
    assert (status, body) == (200, picture)
    assert headers["Content-Type"] == "image/png"
    assert headers["Content-Disposition"] == "inline; filename=\"Bild _.png\"; filename*=UTF-8''Bild%20%C3%BC.png"
    assert headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "private, no-cache"  # what is deleted is not shown from a cache
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


async def test_what_the_browser_has_is_not_sent_again(site: Any) -> None:
    url = (await put(site, make_png(3, 3)))["url"]
    etag = (await site.ask("GET", url))[2]["ETag"]
    for wanted in (etag, f'"x", {etag}', "*"):
        status, body, headers = await site.ask("GET", url, headers={**site.program, "If-None-Match": wanted})
        assert (status, body, headers["ETag"]) == (304, b"", etag)
    assert (await site.ask("GET", url, headers={**site.program, "If-None-Match": '"other"'}))[0] == 200


async def test_one_range_of_a_file_is_served(site: Any) -> None:
    content = bytes(range(256)) * 10
    url = (await put(site, content, mime="audio/ogg", name="a.ogg"))["url"]
    status, body, headers = await site.ask("GET", url, headers={**site.program, "Range": "bytes=250-259"})
    assert (status, body) == (206, content[250:260])
    assert (headers["Content-Range"], headers["Content-Length"]) == ("bytes 250-259/2560", "10")
    status, _, headers = await site.ask("GET", url, headers={**site.program, "Range": "bytes=0-1,4-5"})
    assert (status, headers["Content-Range"]) == (416, "bytes */2560")
    changed = {**site.program, "Range": "bytes=0-1", "If-Range": '"older"'}
    assert (await site.ask("GET", url, headers=changed))[0] == 200


async def test_a_head_request_tells_the_size_and_sends_nothing(site: Any) -> None:
    url = (await put(site, b"x" * 1000, mime="text/plain", name="a.txt"))["url"]
    status, body, headers = await site.ask("HEAD", url)
    assert (status, body, headers["Content-Length"]) == (200, b"", "1000")
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    answer = await site.raw(
        f"HEAD {url} HTTP/1.1\r\nHost: {site.host}\r\nAuthorization: {site.program['Authorization']}\r\n"
        "Connection: close\r\n\r\n".encode()
    )
    assert answer.endswith(b"\r\n\r\n")


SCRIPT = b"<script>alert(1)</script>"


@pytest.mark.parametrize(
    "mime",
    [
        "text/html",
        "TEXT/HTML; charset=utf-8",
        "image/svg+xml",
        "application/pdf",
        "application/xhtml+xml",
        "text/xml",
        "text/javascript",
        "image/svg+xml;image/png",
        "nonsense",
        "",
    ],
)
async def test_what_could_run_is_a_download_of_unknown_bytes(site: Any, mime: str) -> None:
    media = await put(site, b'<svg xmlns="http://www.w3.org/2000/svg">' + SCRIPT + b"</svg>", mime=mime, name="x.svg")
    status, _, headers = await site.ask("GET", media["url"])
    assert status == 200
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["Content-Disposition"].startswith("attachment;")
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "head", [b"\x89PNG\r\n\x1a\n", b"GIF89a/*", b"\xff\xd8\xff\xe0", b"RIFF", b"%PDF-1.7", b"PK\x03\x04"]
)
async def test_a_polyglot_keeps_the_type_of_a_picture(site: Any, head: bytes) -> None:
    media = await put(site, head + SCRIPT, mime="image/png", name="x.html")
    _, _, headers = await site.ask("GET", media["url"])
    assert headers["Content-Type"] == "image/png"
    assert headers["Content-Security-Policy"] == "sandbox; default-src 'none'"


async def test_unknown_and_forbidden_media_are_one_answer(site: Any) -> None:
    url = (await put(site, make_png(2, 2)))["url"]
    other = ConversationKey(platform="web", account="default", channel="other")
    await site.gateway.store.open_conversation(other, "Other", ChatType.DIRECT)
    unknown = await site.ask("GET", "/api/media/" + "0" * 26 + ".png")
    assert unknown[0] == 404
    wrong = [url.removesuffix("png") + "html", url.removesuffix(".png"), url.upper(), url + ".png", url[:-1] + "%67"]
    answers = [await site.ask("GET", path) for path in wrong[:4]]
    answers.append(await site.ask("GET", url, headers=await site.token(other)))
    assert [(status, body) for status, body, _ in answers] == [unknown[:2]] * 5
    assert (await site.ask("GET", url, headers=await site.token()))[0] == 200


async def test_the_token_of_a_thread_does_not_list_the_media_of_its_channel(site: Any) -> None:
    await put(site, make_png(2, 2))
    thread = ConversationKey(platform="web", account="default", channel="main", thread="t1")
    for path in ("/api/media", f"/api/media?channel={MAIN}", f"/api/media?channel={thread}"):
        status, body, _ = await site.ask("GET", path, headers=await site.token(thread))
        assert (status, body["error"]["code"]) == (404, "not_found"), path
        status, body, _ = await site.ask("GET", path, headers=await site.token())
        assert (status, len(body["media"])) == (200, 1), path


async def test_a_file_whose_bytes_are_gone_is_not_there(site: Any) -> None:
    media = await put(site, make_png(2, 2))
    for blob in site.gateway.home.blobs.rglob("*"):
        if blob.is_file():
            blob.unlink()
    assert (await site.ask("GET", media["url"]))[0] == 404


async def test_a_large_file_comes_whole_and_a_client_that_leaves_is_forgotten(site: Any) -> None:
    content = bytes(range(256)) * 16 * 1024
    wish = {"conversation": MAIN, "file_name": "a.mp4", "mime_type": "video/mp4", "size": len(content)}
    _, begun, _ = await site.ask("POST", "/api/uploads", json=wish)
    upload = begun["upload_id"]
    headers = {**site.program, "Upload-Offset": "0"}
    await site.ask("PATCH", f"/api/uploads/{upload}", headers=headers, data=io.BytesIO(content))
    said = {"conversation": MAIN, "message": "", "attachments": [{"upload_id": upload}], "id": "film"}
    assert (await site.ask("POST", "/api/messages", json=said))[0] == 200
    _, page, _ = await site.ask("GET", f"/api/messages?conversation={MAIN}")
    url = page["messages"][0]["media"][0]["url"]
    assert (await site.ask("GET", url))[1] == content
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    secret = site.program["Authorization"]
    writer.write(f"GET {url} HTTP/1.1\r\nHost: {site.host}\r\nAuthorization: {secret}\r\n\r\n".encode())
    assert (await reader.read(100)).startswith(b"HTTP/1.1 200")
    writer.transport.abort()
    assert (await site.ask("GET", "/healthz", headers={}))[0] == 200


async def test_media_are_listed_newest_first_by_kind_and_page(site: Any) -> None:
    await put(site, make_png(2, 2), name="first.png")
    await put(site, b"text", mime="text/plain", name="second.txt")
    _, listed, _ = await site.ask("GET", "/api/media")
    assert [media["file_name"] for media in listed["media"]] == ["second.txt", "first.png"]
    _, pictures, _ = await site.ask("GET", f"/api/media?kind=image&channel={MAIN}")
    assert [media["file_name"] for media in pictures["media"]] == ["first.png"]
    _, older, _ = await site.ask("GET", f"/api/media?before={listed['media'][0]['seq']}")
    assert [media["file_name"] for media in older["media"]] == ["first.png"]
    assert (await site.ask("GET", "/api/media?kind=nonsense"))[0] == 400
    assert "locator" not in str(listed)


async def test_what_is_deleted_is_not_there_for_anybody(site: Any) -> None:
    media = await put(site, make_png(3, 3))
    etag = (await site.ask("GET", media["url"]))[2]["ETag"]
    key = ConversationKey.parse(MAIN)
    (message,) = [one for one in await site.gateway.store.history(key) if one.media]
    deletion = Deletion(conversation=key, id="d1", message_id=message.id, author=message.author, sent=message.sent)
    await site.gateway.accept(deletion)
    for headers in ({}, {"If-None-Match": etag}, {"Range": "bytes=0-1"}):
        assert (await site.ask("GET", media["url"], headers={**site.program, **headers}))[0] == 404
    assert (await site.ask("HEAD", media["url"]))[0] == 404
    assert (await site.ask("POST", "/api/media/fetch", json={"ref": media["ref"]}))[0] == 404
    assert (await site.ask("GET", "/api/media"))[1] == {"media": []}
    blob = blob_path(site.gateway.home.blobs, etag.strip('"'))
    async with asyncio.timeout(60):
        while blob.exists():
            await asyncio.sleep(0.001)


async def test_damaged_bytes_are_never_served(site: Any) -> None:
    media = await put(site, make_png(3, 3))
    (record,) = await site.gateway.store.refs(None)
    place = blob_path(site.gateway.home.blobs, record.ref.sha256)
    place.write_bytes(make_png(3, 3)[:-1] + b"?")
    assert (await site.ask("GET", media["url"]))[0] == 404
    (told,) = (await site.ask("GET", "/api/media"))[1]["media"]
    assert (told["outcome"], told["reason"]) == (
        "not found",
        "its bytes were damaged on disk, and only its sender has them",
    )


async def test_what_lies_around_is_counted_and_let_go(site: Any) -> None:
    async with asyncio.timeout(60):
        while "whole" not in site.gateway.soundness()[0].says:  # the sweep of the start comes before it
            await asyncio.sleep(0.001)
    stray = site.gateway.home.blobs / "ab" / "ab" / ("ab" * 32)
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"lost")
    status, told, _ = await site.ask("POST", "/api/media/gc", json={})
    assert (status, told["strays"], told["put_aside"], stray.exists()) == (200, 1, 0, True)
    for dry_run in (1, 0):
        status, told, _ = await site.ask("POST", "/api/media/gc", json={"dry_run": dry_run, "all_strays": 1})
        assert (status, told["strays"], told["put_aside"], told["freed"]) == (200, 0, 1, 0)
        assert stray.exists() == bool(dry_run)
