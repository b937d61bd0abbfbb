"""The fake signal-cli daemon keeps the documented protocol of the real one."""

import asyncio
import base64
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from belino.testing import FakeUpload, SignalServer
from belino.testing.signal.request import STRING_CHARS


@pytest.fixture
async def daemon() -> AsyncIterator[SignalServer]:
    async with SignalServer() as server:
        yield server


async def rpc(server: SignalServer, method: str, **params: Any) -> Any:
    body = io.BytesIO(json.dumps({"jsonrpc": "2.0", "id": "1", "method": method, "params": params}).encode())
    headers = {"Content-Type": "application/json"}
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{server.url}/api/v1/rpc", data=body, headers=headers) as answer,
    ):
        assert answer.status == 200
        told = await answer.json()
        return told.get("result", told.get("error"))


async def test_only_posts_of_json_under_a_name_of_this_machine_are_calls(daemon: SignalServer) -> None:
    url = f"{daemon.url}/api/v1/rpc"
    async with aiohttp.ClientSession() as http:
        for given, status in (
            ({"data": b"{}", "headers": {"Content-Type": "text/plain"}}, 415),
            ({"json": {}, "headers": {"Host": "evil.example"}}, 421),
        ):
            async with http.post(url, **given) as answer:
                assert answer.status == status
        async with http.get(url) as answer:
            assert answer.status == 405
        async with http.get(f"{daemon.url}/api/v1/events?account=%2B1") as answer:
            assert answer.status == 400


async def test_errors_have_the_codes_of_json_rpc_and_of_signal_cli(daemon: SignalServer) -> None:
    ann = daemon.user("Ann")
    assert (await rpc(daemon, "nothing"))["code"] == -32601
    assert (await rpc(daemon, "listGroups", account="+1"))["code"] == -32602
    assert (await rpc(daemon, "send", recipient=[ann["number"]]))["code"] == -1
    assert (await rpc(daemon, "send", message="x"))["message"] == "No recipients given"
    assert "Group not found" in (await rpc(daemon, "send", groupId="x", message="x"))["message"]
    ann["trust"] = "UNTRUSTED"
    refused = await rpc(daemon, "send", recipient=[ann["number"]], message="x")
    assert refused["code"] == -4
    assert refused["data"]["response"]["results"][0]["type"] == "IDENTITY_FAILURE"


async def test_a_send_returns_its_time_and_a_result_for_each_recipient(daemon: SignalServer) -> None:
    ann, bob = daemon.user("Ann"), daemon.user("Bob")
    bob["left"] = True
    told = await rpc(daemon, "send", groupId=daemon.group("Hikers", ann, bob)["id"], message="hello")
    assert told["timestamp"] == daemon.sent[0]["timestamp"]
    assert [result["type"] for result in told["results"]] == ["SUCCESS", "UNREGISTERED_FAILURE"]


async def test_a_text_over_the_limit_of_the_json_library_is_an_internal_error(daemon: SignalServer) -> None:
    ann = daemon.user("Ann")
    told = await rpc(daemon, "send", recipient=[ann["number"]], attachments=["x" * (STRING_CHARS + 1)])
    assert told == {"code": -32603, "message": "An internal server error has occurred.", "data": None}


async def test_attachments_are_data_uris_or_paths_outside_the_daemons_own_folder(daemon: SignalServer) -> None:
    ann = daemon.user("Ann")
    uri = f"data:text/plain;filename=a%20b.txt;base64,{base64.b64encode(b'hello').decode()}"
    own = daemon.folder / "account.db"
    own.write_bytes(b"keys")
    await rpc(daemon, "send", recipient=[ann["number"]], attachments=[uri])
    assert [(each.name, each.mime, each.content) for each in daemon.received] == [("a b.txt", "text/plain", b"hello")]
    refused = await rpc(daemon, "send", recipient=[ann["number"]], attachments=[str(own)])
    assert "AttachmentInvalidException" in refused["message"]


async def test_attachments_are_handed_out_as_base64_to_who_names_a_place(daemon: SignalServer) -> None:
    told = daemon.attachment(FakeUpload(content=b"hello", name="a.txt", mime="text/plain"))
    assert await rpc(daemon, "getAttachment", id=told["id"], recipient="+1") == {"data": "aGVsbG8="}
    assert "is required" in (await rpc(daemon, "getAttachment", id=told["id"]))["message"]
    assert "Could not find" in (await rpc(daemon, "getAttachment", id="x", recipient="+1"))["message"]


@pytest.mark.parametrize(("always", "kept"), [(False, True), (True, False)])
async def test_what_comes_while_no_stream_is_open_is_kept_only_on_connection(always: bool, kept: bool) -> None:
    async with SignalServer(receives_always=always) as daemon:
        ann = daemon.user("Ann")
        daemon.say(ann, ann, "before")
        url = f"{daemon.url}/api/v1/events"
        async with aiohttp.ClientSession() as http, http.get(url) as stream:
            daemon.say(ann, ann, "after")
            texts: list[str] = []
            async with asyncio.timeout(30):
                while "after" not in texts:
                    line = await stream.content.readline()
                    if line.startswith(b"data:"):
                        texts.append(json.loads(line[5:])["envelope"]["dataMessage"]["message"])
        assert ("before" in texts) is kept


async def test_a_device_is_linked_once_the_phone_has_scanned_the_last_code() -> None:
    async with SignalServer(linked=False) as daemon:
        assert await rpc(daemon, "listAccounts") == []
        old = (await rpc(daemon, "startLink"))["deviceLinkUri"]
        code = (await rpc(daemon, "startLink"))["deviceLinkUri"]
        assert "Unknown device link uri" in (await rpc(daemon, "finishLink", deviceLinkUri=old))["message"]
        daemon.scan()
        assert await rpc(daemon, "finishLink", deviceLinkUri=code) == {"number": daemon.number}
        assert await rpc(daemon, "listAccounts") == [{"number": daemon.number}]


async def test_a_daemon_for_one_account_has_no_calls_for_several() -> None:
    async with SignalServer(single=True) as daemon:
        for method in ("listAccounts", "startLink", "finishLink"):
            assert (await rpc(daemon, method))["code"] == -32601
