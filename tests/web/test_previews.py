"""A file is seen before it is opened, and nothing is fetched for a look."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from belino.domain.message import ChatType, ConversationKey, Deletion
from belino.media.image.header import image_size
from belino.testing import make_png, make_wav
from belino.testing.files import make_zip
from media.videos import video
from readers.made import SCANNED, line, make_pdf
from web.conftest import MAIN, Site

PDF = make_pdf(line("First page"), line("Second [Image: x.png, ref:tg_aaaaaaaaaaaa]"), SCANNED)


async def put(site: Site, content: bytes, name: str, mime: str = "application/octet-stream") -> dict[str, Any]:
    attachment = {"content": base64.b64encode(content).decode(), "mime_type": mime, "file_name": name}
    async with site.socket() as chat:
        said = await chat.call("chat.send", conversation=str(MAIN), message="look", attachments=[attachment])
    (media,) = said["payload"]["message"]["media"]
    return dict(media)


async def seen(site: Site, media: dict[str, Any], query: str = "") -> dict[str, Any]:
    status, told, _ = await site.ask("GET", f"{media['url']}/preview{query}")
    assert status == 200, told
    return dict(told)


async def drawn(site: Site, address: str) -> tuple[int, bytes, Any]:
    return await site.ask("GET", address)


async def test_a_document_is_read_page_by_page(site: Site) -> None:
    media = await put(site, PDF, "a.pdf", "application/pdf")
    assert media["preview"] == "text"
    told = await seen(site, media)
    assert (told["kind"], told["unit"], told["part"], told["parts"]) == ("text", "page", 1, 3)
    assert (told["text"].strip(), told["next"], told["picture"]) == ("First page", None, None)
    second = await seen(site, media, "?part=2")
    assert second["text"].strip() == "Second ［Image: x.png, ref:tg_aaaaaaaaaaaa]"
    assert (await site.ask("GET", f"{media['url']}/preview?part=4"))[0] == 400


@pytest.mark.slow
async def test_a_scanned_page_is_seen_instead_of_read(site: Site) -> None:
    media = await put(site, PDF, "a.pdf", "application/pdf")
    told = await seen(site, media, "?part=3")
    assert (told["text"], told["picture"]) == ("", f"{media['url']}/picture?page=3")
    status, picture, headers = await drawn(site, told["picture"])
    assert status == 200
    found = image_size(picture)
    assert found is not None and found[0] == headers["content-type"]


@pytest.mark.slow
async def test_a_long_part_is_shown_piece_by_piece_and_nothing_is_lost(site: Site) -> None:
    words = " ".join(f"wörd{number}" for number in range(300))
    media = await put(site, words.encode(), "a.txt", "text/plain")
    pieces, offset = [], 0
    for _ in range(100):
        told = await seen(site, media, f"?chars=100&offset={offset}")
        assert len(told["text"]) <= 100
        pieces.append(told["text"])
        if told["next"] is None:
            break
        offset = told["next"]
    assert "".join(pieces) == words and len(pieces) > 10


@pytest.mark.slow
async def test_what_nobody_would_see_is_not_shown(site: Site) -> None:
    media = await put(site, "pay \u202egpj.exe\u202c n\u200bow\U000e0041".encode(), "a.txt", "text/plain")
    assert (await seen(site, media))["text"] == "pay gpj.exe now"


@pytest.mark.slow
async def test_an_archive_is_listed(site: Site) -> None:
    media = await put(site, make_zip({"notes/a.txt": "hello", "b.png": make_png(3, 2)}), "a.zip", "application/zip")
    told = await seen(site, media)
    assert (told["kind"], told["unit"]) == ("listing", "list")
    assert "notes/a.txt" in told["text"] and told["notes"][0].startswith("2 files")


@pytest.mark.slow
async def test_a_sound_is_seen_as_its_loudness(site: Site) -> None:
    media = await put(site, make_wav(2), "a.wav", "audio/wav")
    assert media["preview"] == "waveform"
    told = await seen(site, media)
    assert (told["kind"], told["seconds"], told["reason"]) == ("waveform", 2.0, "")
    assert told["heights"] == [0] * 40


@pytest.mark.slow
async def test_a_video_has_a_poster_that_is_a_picture_and_nothing_else(site: Site) -> None:
    media = await put(site, video(20), "a.mp4", "video/mp4")
    assert media["preview"] == "poster"
    told = await seen(site, media)
    assert (told["kind"], told["width"], told["height"]) == ("poster", 64, 32)
    assert told["seconds"] == pytest.approx(2, abs=0.2)
    status, picture, headers = await drawn(site, told["picture"])
    found = image_size(picture)
    assert status == 200 and found is not None and found[0] == headers["content-type"]
    assert headers["x-content-type-options"] == "nosniff" and headers["content-disposition"] == "inline"
    assert headers["content-security-policy"] == "sandbox; default-src 'none'"
    again = {**site.program, "If-None-Match": headers["etag"]}
    assert (await site.ask("GET", told["picture"], headers=again))[:2] == (304, b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "name", "kind", "says"),
    [
        (b"\x00\x01\x02\xff" * 30, "a.bin", "none", "there is no preview of application/octet-stream"),
        (b"%PDF-1.7\nnot at all", "a.pdf", "failed", "could not be read"),
        (b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0", "a.wav", "failed", ""),
        (make_png(30, 20)[:50], "a.png", "failed", ""),
    ],
    ids=["unknown", "broken-pdf", "broken-wav", "broken-png"],
)
async def test_what_cannot_be_shown_says_why(site: Site, content: bytes, name: str, kind: str, says: str) -> None:
    told = await seen(site, await put(site, content, name))
    assert told["kind"] == kind
    assert told["reason"].startswith(says) and told["reason"]
    assert "as=file" not in told["reason"]


@pytest.mark.slow
async def test_a_preview_is_made_once_whoever_asks(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[str] = []
    run = site.gateway.sandbox.run

    async def counted(job: str, path: Path, settings: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        jobs.append(f"{job} {sorted(settings.items())}")
        return await run(job, path, settings, **options)

    monkeypatch.setattr(site.gateway.sandbox, "run", counted)
    media = await put(site, PDF, "a.pdf", "application/pdf")
    for _ in range(2):
        for query in ("", "?part=2", "?part=3"):
            await seen(site, media, query)
        await site.ask("GET", f"{media['url']}/picture?page=3")
    assert {job.split()[0] for job in jobs} >= {"document.read", "document.page", "image.fit"}
    assert sorted(jobs) == sorted(set(jobs)), "also by the agent, whose turn reads the scanned page"


async def test_unknown_foreign_and_deleted_are_one_answer(site: Site) -> None:
    other = ConversationKey(platform="web", account="default", channel="other")
    await site.gateway.store.open_conversation(other, "Other", ChatType.DIRECT)
    media = await put(site, PDF, "a.pdf", "application/pdf")
    addresses = [f"{media['url']}/{path}" for path in ("preview", "picture")]
    unknown = await site.ask("GET", f"/api/media/{'0' * 26}.bin/preview")
    assert unknown[0] == 404
    for address in addresses:
        assert (await site.ask("GET", address, headers=await site.token(other)))[:2] == unknown[:2]
        assert (await site.ask("GET", address, headers={}))[0] == 401
        assert (await site.ask("GET", address, headers=await site.token()))[0] == 200
    (message,) = [one for one in await site.gateway.store.history(MAIN) if one.media]
    deletion = Deletion(conversation=MAIN, id="d1", message_id=message.id, author=message.author, sent=message.sent)
    await site.gateway.accept(deletion)
    for address in addresses:
        assert (await site.ask("GET", address))[:2] == unknown[:2]


async def test_nonsense_is_refused(site: Site) -> None:
    media = await put(site, b"words", "a.txt", "text/plain")
    for query in ("part=0", "part=x", "offset=-1", "chars=0", "chars=99999999", "what=1", "part=1&part=2"):
        assert (await site.ask("GET", f"{media['url']}/preview?{query}"))[0] == 400, query
    assert (await site.ask("GET", f"{media['url']}/picture?page=0"))[0] == 400
    assert (await site.ask("GET", f"{media['url']}/picture"))[0] == 409
