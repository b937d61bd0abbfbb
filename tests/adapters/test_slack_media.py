"""Bytes from Slack and to Slack: on demand, by a fresh link, streamed, with the token told to nobody else."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from adapters.slack_harness import App, Apps, place
from adapters.slack_samples import VIEW
from belino.adapters.slack.parse import said
from belino.domain.errors import (
    AdapterError,
    AddressRefused,
    MediaError,
    MediaExpired,
    MediaRefused,
    RateLimited,
    Undeliverable,
    Unreached,
)
from belino.domain.limits import SendAs
from belino.domain.media import MediaRef
from belino.domain.message import Message
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind
from belino.testing import FakeClock, FakeUpload, SlackServer, make_jpeg, make_png
from belino.testing.faults import CannedAnswer, Reset, Truncate


def sent(slack: SlackServer, **fields: Any) -> MediaRef:
    """The ref of a file that somebody sends."""
    ada = slack.user("Ada")
    raw = slack.say(ada, ada, **fields)
    told = said(raw, raw["channel"], VIEW)
    assert isinstance(told, Message)
    return replace(told.media[0], id="sl_k3v9d0q2m7xa")


def outgoing(name: str, content: bytes, **more: Any) -> OutgoingFile:
    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(content), 1000):
            yield content[at : at + 1000]

    return OutgoingFile(name=name, mime="image/png", size=len(content), sha256="0" * 64, chunks=chunks, **more)


async def test_the_bytes_are_the_platforms_and_cost_one_link_and_one_download(slack: SlackServer, app: App) -> None:
    picture = make_jpeg(640, 480)
    assert await app.fetch(sent(slack, files=[picture])) == picture
    assert (slack.calls["files.info"], slack.calls["file"]) == (1, 1)
    assert [allowed for _, allowed in slack.downloads] == [True]


async def test_a_redirect_within_slack_takes_the_token_along(slack: SlackServer, app: App) -> None:
    slack.redirect_files = True
    assert await app.fetch(sent(slack, files=[make_png(8, 8)])) == make_png(8, 8)
    assert [allowed for _, allowed in slack.downloads] == [True, True]


async def test_a_login_page_is_no_picture_and_says_which_scope_is_missing(slack: SlackServer, app: App) -> None:
    ref = sent(slack, files=[make_png(8, 8)])
    slack.fail("file", CannedAnswer(status=200, headers={"Content-Type": "text/html"}, body=b"<html>Sign in</html>"))
    with pytest.raises(MediaRefused, match="files:read"):
        await app.fetch(ref)
    slack.scopes.discard("files:read")
    with pytest.raises(MediaRefused, match="files:read"):
        await app.fetch(ref)


async def test_a_link_that_does_not_hold_is_asked_for_again_once(slack: SlackServer, app: App) -> None:
    ref = sent(slack, files=[make_png(8, 8)])
    slack.fail("file", CannedAnswer(status=404, body=b"gone"))
    assert await app.fetch(ref) == make_png(8, 8)
    assert (slack.calls["files.info"], slack.calls["file"]) == (2, 2)
    slack.fail("file", CannedAnswer(status=404, body=b"gone"), times=2)
    with pytest.raises(MediaExpired, match="sl_k3v9d0q2m7xa"):
        await app.fetch(ref)


@pytest.mark.parametrize("where", ["file", "files.info"])
@pytest.mark.parametrize("status", [429, 500, 502, 503])
async def test_a_page_that_tells_of_trouble_is_no_login_and_the_file_is_asked_for_again(
    slack: SlackServer, apps: Apps, status: int, where: str
) -> None:
    clock = FakeClock(slack.clock.now())
    app = apps(clock=clock)
    ref = sent(slack, files=[make_png(8, 8)])
    headers = {"Content-Type": "text/html", "Retry-After": "1"}
    slack.fail(where, CannedAnswer(status=status, headers=headers, body=b"<html>Slack is having trouble</html>"))
    async with asyncio.TaskGroup() as group:
        fetching = group.create_task(app.fetch(ref))
        while not fetching.done():
            await clock.advance(1)
            await asyncio.sleep(0.002)
    assert fetching.result() == make_png(8, 8)


@pytest.mark.parametrize("status", [401, 403])
async def test_who_is_not_let_in_is_told_which_scope_may_be_missing(slack: SlackServer, app: App, status: int) -> None:
    ref = sent(slack, files=[make_png(8, 8)])
    slack.fail("file", CannedAnswer(status=status, body=b"no"), times=2)
    with pytest.raises(MediaRefused, match="files:read"):
        await app.fetch(ref)


async def test_a_deleted_file_has_expired_without_a_download(slack: SlackServer, app: App) -> None:
    ref = sent(slack, files=[make_png(8, 8)])
    slack.delete_file(ref.item)
    with pytest.raises(MediaExpired):
        await app.fetch(ref)
    assert slack.calls["file"] == 0


async def test_a_stream_that_breaks_off_goes_on_where_it_was(slack: SlackServer, app: App) -> None:
    content = bytes(range(256)) * 4096
    ref = sent(slack, files=[FakeUpload(content=content, name="film.bin")])
    slack.fail("file", Truncate(at=300_000))
    assert await app.fetch(ref) == content
    assert slack.bytes_served < 2 * len(content)


@pytest.mark.parametrize(
    "link",
    [
        "https://files.slack.com.evil.example/files-pri/T-F/x.png",
        "https://evil.example/files-pri/T-F/x.png",
        "{url}/api/api.test?files-pri",
        "{url}/files-pri/../api/api.test",
        "{url}/files-pri/%2e%2e/api/api.test",
        "{url}//api/api.test",
        "https://user@files.slack.com/files-pri/T-F/x.png",
        "",
    ],
)
async def test_the_token_is_shown_to_no_other_page(slack: SlackServer, app: App, link: str) -> None:
    ref = sent(slack, files=[make_png(8, 8)])
    body = f'{{"ok": true, "file": {{"id": "{ref.item}", "url_private": "{link.format(url=slack.url)}"}}}}'
    slack.fail("files.info", CannedAnswer(status=200, body=body.encode()))
    with pytest.raises((AddressRefused, MediaRefused)):
        await app.fetch(ref)
    assert slack.calls["file"] == slack.calls["api.test"] == 0


async def test_a_page_somebody_sent_is_a_file(slack: SlackServer, app: App) -> None:
    ref = sent(slack, files=[FakeUpload(content=b"<html>mine</html>", name="mine.html", mime="text/html")])
    page = CannedAnswer(
        status=200,
        headers={"Content-Type": "text/html", "Content-Disposition": "attachment"},
        body=b"<html>mine</html>",
    )
    slack.fail("file", page)
    assert await app.fetch(ref) == b"<html>mine</html>"


async def test_a_page_somebody_sent_is_known_by_its_length_where_slack_does_not_call_it_a_file(
    slack: SlackServer, app: App
) -> None:
    ref = sent(slack, files=[FakeUpload(content=b"<html>mine</html>", name="mine.html", mime="text/html")])
    html = {"Content-Type": "text/html; charset=utf-8"}
    slack.fail("file", CannedAnswer(status=200, headers=html, body=b"<html>mine</html>"))
    assert await app.fetch(ref) == b"<html>mine</html>"
    slack.fail("file", CannedAnswer(status=200, headers=html, body=b"<html>Sign in to Slack</html>"))
    with pytest.raises(MediaRefused, match="files:read"):
        await app.fetch(ref)


async def test_a_file_that_proves_to_be_kept_elsewhere_is_not_to_be_sent_again(slack: SlackServer, app: App) -> None:
    ref = sent(slack, files=[make_png(8, 8)])
    body = b'{"ok": true, "file": {"id": "F0GOOGLE01", "mode": "external", "is_external": true}}'
    slack.fail("files.info", CannedAnswer(status=200, body=body))
    with pytest.raises(MediaRefused, match="kept elsewhere"):
        await app.fetch(ref)


async def test_several_files_are_one_message_with_their_captions(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    files = (outgoing("one.png", make_png(8, 8), caption="the first"), outgoing("two.png", make_png(9, 9)))
    parcel = Parcel(key="k", conversation=place(slack.dm(ada)), kind=ParcelKind.FILES, files=files)
    receipt = await app.adapter.send(parcel)
    (shown,) = slack.sent
    assert shown["ts"] == receipt.message_id
    assert [file["name"] for file in shown["files"]] == ["one.png", "two.png"]
    assert shown["text"] == "the first"
    assert [upload.size for upload in slack.received] == [len(make_png(8, 8)), len(make_png(9, 9))]
    assert receipt.stored is not None
    # Slack is asked about the first file only, to learn where it is shown.
    assert [(stored.name, stored.size) for stored in receipt.stored] == [("one.png", files[0].size), (None, None)]
    found = await app.adapter.find_sent(parcel)
    assert found is not None
    assert found.message_id == receipt.message_id
    other = replace(parcel, files=(outgoing("three.png", make_png(8, 8)),))
    assert await app.adapter.find_sent(other) is None


async def test_files_are_found_again_although_slack_keeps_them_and_their_caption_otherwise(
    slack: SlackServer, app: App
) -> None:
    caption = "\N{SAILBOAT} from https://example.org/boats, ask ada@example.org"
    files = (outgoing("Our boat, 2.png", make_png(8, 8), caption=caption),)
    parcel = Parcel(key="k", conversation=place(slack.dm(slack.user("Ada"))), files=files)
    receipt = await app.adapter.send(parcel)
    (message,) = slack.messages[parcel.conversation.channel].values()
    message["text"] = ":boat: from <https://example.org/boats>, ask <mailto:ada@example.org|ada@example.org>"
    shape = slack.files.by_id[message["files"][0]].shape
    shape |= {"name": "our_boat__2.png", "size": shape["size"] - 9}  # where it was made is taken out
    found = await app.adapter.find_sent(parcel)
    assert found is not None
    assert found.message_id == receipt.message_id
    assert await app.adapter.find_sent(replace(parcel, files=(replace(files[0], caption="another boat"),))) is None


@pytest.mark.parametrize("status", [204, 302, 403, 500])
async def test_bytes_that_were_not_taken_are_not_shown(slack: SlackServer, app: App, status: int) -> None:
    parcel = Parcel(
        key="k", conversation=place(slack.dm(slack.user("Ada"))), files=(outgoing("one.png", make_png(8, 8)),)
    )
    slack.fail("upload", CannedAnswer(status=status, headers={"Location": f"{slack.url}/elsewhere"}, body=b""))
    with pytest.raises(AdapterError):
        await app.adapter.send(parcel)
    assert slack.calls["files.completeUploadExternal"] == 0


async def test_files_go_into_their_thread(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    general = slack.channel("general", ada)
    root = slack.say(general, ada, "show me")
    where = place(general, root["ts"])
    parcel = Parcel(key="k", conversation=where, files=(outgoing("one.png", make_png(8, 8)),))
    receipt = await app.adapter.send(parcel)
    assert slack.sent[0]["thread_ts"] == root["ts"]
    found = await app.adapter.find_sent(parcel)
    assert found is not None
    assert found.message_id == receipt.message_id


@pytest.mark.parametrize("step", ["files.getUploadURLExternal", "upload"])
async def test_an_upload_that_breaks_off_has_shown_nothing_and_may_be_begun_again(
    slack: SlackServer, app: App, step: str
) -> None:
    ada = slack.user("Ada")
    parcel = Parcel(key="k", conversation=place(slack.dm(ada)), files=(outgoing("one.png", make_png(8, 8)),))
    slack.fail(step, Reset())
    with pytest.raises(Unreached):
        await app.adapter.send(parcel)
    assert slack.sent == []
    await app.adapter.send(parcel)
    assert len(slack.sent) == 1


async def test_a_file_whose_message_slack_does_not_name_is_sent_all_the_same(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    parcel = Parcel(key="k", conversation=place(slack.dm(ada)), files=(outgoing("one.png", make_png(8, 8)),))
    slack.fail("files.info", CannedAnswer(status=429, headers={"Retry-After": "60"}), times=9)
    receipt = await app.adapter.send(parcel)
    assert receipt.message_id
    assert len(slack.sent) == 1


async def test_bytes_that_changed_or_cannot_be_read_are_not_sent(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")

    async def broken() -> AsyncIterator[bytes]:
        yield b"x"
        raise MediaError("the disk is sick")

    for file, says in (
        (replace(outgoing("one.png", b"xx"), size=5), "no longer the file"),
        (replace(outgoing("one.png", b"xx"), chunks=broken), "the disk is sick"),
    ):
        with pytest.raises(Undeliverable, match=says):
            await app.adapter.send(Parcel(key="k", conversation=place(slack.dm(ada)), files=(file,)))
    assert slack.sent == []


async def test_a_refused_upload_says_why(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    parcel = Parcel(key="k", conversation=place(slack.dm(ada)), files=(outgoing("one.png", make_png(8, 8)),))
    slack.scopes.discard("files:write")
    with pytest.raises(Undeliverable, match="files:write"):
        await app.adapter.send(parcel)
    slack.scopes.add("files:write")
    slack.fail("files.completeUploadExternal", CannedAnswer(status=429, headers={"Retry-After": "3"}))
    with pytest.raises(RateLimited):
        await app.adapter.send(parcel)


async def test_every_form_is_an_upload(app: App) -> None:
    assert SendAs.STICKER not in app.adapter.limits.files
    assert {SendAs.PHOTO, SendAs.VIDEO, SendAs.AUDIO, SendAs.VOICE, SendAs.DOCUMENT} <= set(app.adapter.limits.files)


async def test_a_picture_in_a_block_is_fetched_but_not_from_another_conversation(slack: SlackServer, app: App) -> None:
    picture, ada = make_png(8, 8), slack.user("Ada")
    shared = slack.say(slack.channel("private", ada, private=True), ada, files=[picture])["files"][0]["id"]
    own = slack.files.put("F0BLOCK001", FakeUpload(content=picture, name="a.png"), ada["id"], is_public=False).id

    def block(file: str) -> MediaRef:
        return sent(slack, blocks=[{"type": "image", "slack_file": {"id": file}, "alt_text": "a chart"}])

    assert await app.fetch(block(own)) == picture
    with pytest.raises(MediaRefused, match="in another conversation"):
        await app.fetch(block(shared))
