"""Containers without network: refs and answers through files, and a container that puts anything there."""

import asyncio
import base64
import io
import json
import os
import sys
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Literal

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from belino.cli.mcp_ipc import IpcServer
from belino.config import AdapterConfig, AgentConfig, Config
from belino.domain.limits import FileLimit, SendAs
from belino.domain.message import ConversationKey
from belino.domain.ports import Adapter, AdapterContext
from belino.domain.turn import Accepted, Final, ReplyPart, Turn
from belino.gateway.gateway import Gateway
from belino.media.fetch import MediaConfig
from belino.testing import make_png
from belino.testing.fakes import ScriptedAgent
from belino.tools import ipc
from gateway.house import ANN, House, until
from gateway.test_maintenance import gone, picture, quiet

DM = ConversationKey(platform="memory", account="default", channel="dm")
TEAM = replace(DM, channel="team")
SECRET = "nothing of this leaves the machine"
EXAMPLE = Path(__file__).parents[2] / "examples" / "container"


def noisy_png(width: int, height: int) -> bytes:
    """A picture that does not compress."""
    rows, noise = [], Random(1)
    for _ in range(height):
        rows.append(b"\0" + noise.randbytes(3 * width))
    plain = make_png(width, height)
    head, tail = plain[:33], plain[-12:]
    packed = zlib.compress(b"".join(rows))
    chunk = b"IDAT" + packed
    return head + len(packed).to_bytes(4, "big") + chunk + zlib.crc32(chunk).to_bytes(4, "big") + tail


class Dock(House):
    """A house whose agents live in containers."""

    media = MediaConfig()

    def config(self) -> Config:
        return replace(super().config(), agent=AgentConfig(options=None, ipc=True), media=self.media)

    def make_adapter(self, config: AdapterConfig, desk: AdapterContext) -> Adapter:
        adapter = super().make_adapter(config, desk)
        forms = {form: FileLimit(max_bytes=1_000_000) for form in (SendAs.PHOTO, SendAs.DOCUMENT)}
        self.wire.limits = replace(self.wire.limits, files=forms)
        return adapter

    def folder(self, where: ConversationKey = DM) -> Path:
        return self.home.bridged(where) / "ipc"

    def request(
        self, own: str, tool: str, arguments: Mapping[str, object] = MappingProxyType({}), where: ConversationKey = DM
    ) -> None:
        """What `belino mcp --ipc` writes."""
        written = self.folder(where) / "requests" / f".{own}.tmp"
        written.write_text(json.dumps({"id": own, "tool": tool, "arguments": dict(arguments)}))
        written.rename(written.with_name(f"{own}.json"))

    async def look(self, gateway: Gateway) -> None:
        """Let the bridge look once; a running call keeps the clock where it is."""
        exports = gateway._bridge._exports.values()
        if not any(export.busy for export in exports) and self.clock.sleeps_for(ipc.POLL_SECONDS):
            await self.clock.advance(ipc.POLL_SECONDS)
        await asyncio.sleep(0.001)

    async def response(self, gateway: Gateway, own: str, where: ConversationKey = DM) -> dict[str, object]:
        file = self.folder(where) / "responses" / f"{own}.json"
        async with asyncio.timeout(60):
            while not file.exists():
                await self.look(gateway)
        told: dict[str, object] = json.loads(file.read_bytes())
        file.unlink()
        return told

    async def ask_tool(self, gateway: Gateway, own: str, tool: str, **arguments: object) -> dict[str, object]:
        self.request(own, tool, arguments)
        return await self.response(gateway, own)

    def refs(self, where: ConversationKey = DM) -> list[str]:
        told = json.loads((self.folder(where) / "media_refs.json").read_bytes())
        assert (told["version"], told["conversation"]) == (1, str(where))
        return [each["artifact_id"] for each in told["refs"]]


@pytest.fixture
def dock(tmp_path: Path) -> Dock:
    (tmp_path / "secret.txt").write_text(SECRET)
    return Dock(tmp_path / "home")


@asynccontextmanager
async def working(dock: Dock) -> AsyncIterator[Gateway]:
    async with dock.at_work() as gateway:
        await dock.ask(gateway, dock.say())
        yield gateway


async def test_without_the_setting_there_is_no_folder(house: House) -> None:
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        assert not (house.home.folder(DM) / "ipc").exists()


async def test_a_ref_is_exported_before_the_turn_and_holds_no_locator(dock: Dock) -> None:
    async with dock.at_work() as gateway:
        _, ref = await picture(dock, gateway)
        assert dock.refs() == [ref]
        assert "locator" not in (dock.folder() / "media_refs.json").read_text()
        assert (dock.folder() / "media_refs.json").stat().st_mode & 0o777 == 0o600


async def test_a_picture_comes_as_content_and_a_large_one_shrunk_with_the_path_of_the_original(dock: Dock) -> None:
    dock.media = MediaConfig(image_block_bytes=2_000_000)
    large = noisy_png(700, 600)
    assert len(large) > 1024 * 1024
    async with dock.at_work() as gateway:
        _, small = await picture(dock, gateway)
        _, big = await picture(dock, gateway, item="f2", content=large)
        content = (await dock.ask_tool(gateway, "a", "fetch_media", ref=small))["content"]
        assert isinstance(content, list)
        assert [item["type"] for item in content if item["type"] != "text"] == ["image"]
        content = (await dock.ask_tool(gateway, "b", "fetch_media", ref=big))["content"]
        assert isinstance(content, list)
        shown = next(item for item in content if item["type"] == "image")
        file = next(item for item in content if item["type"] == "file")
        assert len(base64.b64decode(shown["data"])) <= 1024 * 1024
        assert (dock.folder() / file["path"]).read_bytes() == large
        assert str(dock.home.path) not in json.dumps(content)


async def test_another_file_comes_as_a_path_and_a_written_one_is_sent(dock: Dock) -> None:
    async with dock.at_work() as gateway:
        _, ref = await picture(dock, gateway, content=b"\x00\x01binary")
        content = (await dock.ask_tool(gateway, "a", "fetch_media", ref=ref))["content"]
        assert isinstance(content, list)
        (file,) = (item for item in content if item["type"] == "file")
        assert (dock.folder() / file["path"]).read_bytes() == b"\x00\x01binary"
        (dock.folder() / "media" / "chart.png").write_bytes(make_png(5, 5))
        told = await dock.ask_tool(gateway, "b", "send_media", path="media/chart.png")
        assert told["ok"], told
        await until(lambda: any(parcel.files for parcel in dock.wire.seen))


async def test_a_ref_expires_from_the_export_and_is_answered_as_expired(dock: Dock) -> None:
    async with dock.at_work() as gateway:
        _, ref = await picture(dock, gateway)
        await dock.clock.advance(30 * 60 + 2)
        while dock.refs():
            await dock.look(gateway)
        told = await dock.ask_tool(gateway, "a", "fetch_media", ref=ref)
        assert not told["ok"]
        assert f"{ref} has expired" in str(told["error"])
        assert ref not in str(await dock.ask_tool(gateway, "b", "list_media"))


async def test_two_containers_do_not_see_each_others_refs(dock: Dock) -> None:
    async with dock.at_work() as gateway:
        _, own = await picture(dock, gateway)
        _, other = await picture(dock, gateway, channel="open", item="f2")
        assert dock.refs() == [own]
        assert dock.refs(replace(DM, channel="open")) == [other]
        told = await dock.ask_tool(gateway, "a", "fetch_media", ref=other)
        unknown = await dock.ask_tool(gateway, "b", "fetch_media", ref="mem_000000000000")
        assert (told["ok"], told["error"]) == (unknown["ok"], unknown["error"])


async def test_a_request_survives_a_restart_and_what_acts_is_not_done_twice(dock: Dock) -> None:
    async with dock.at_work() as gateway:
        await picture(dock, gateway)
    dock.request("reads", "list_media")
    (dock.folder() / "requests" / "acts.begun").write_text("{}")
    async with dock.at_work() as gateway:
        assert (await dock.response(gateway, "reads"))["ok"]
        told = await dock.response(gateway, "acts")
        assert "look whether it was done" in str(told["error"])
        assert not list((dock.folder() / "requests").iterdir())


async def test_what_is_deleted_leaves_the_export_its_copies_and_unread_answers(dock: Dock) -> None:
    async with dock.at_work() as gateway:
        message, ref = await picture(dock, gateway)
        content = (await dock.ask_tool(gateway, "a", "fetch_media", ref=ref, **{"as": "file"}))["content"]
        assert isinstance(content, list)
        copy = dock.folder() / next(item["path"] for item in content if item["type"] == "file")
        dock.request("unread", "list_media")
        unread = dock.folder() / "responses" / "unread.json"
        while not unread.exists():
            await dock.look(gateway)
        assert ref in unread.read_text()
        await gateway.accept(gone(message))
        await quiet(gateway)
        await until(lambda: not copy.exists())
        while not (dock.folder() / "media_refs.json").exists() or dock.refs():
            await dock.look(gateway)
        assert "ask again" in unread.read_text()
        left = [file for file in dock.folder().rglob("*") if file.is_file() and ref.encode() in file.read_bytes()]
        assert not left


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "a request is"),
        (b'{"id": "other", "tool": "list_media"}', "a request is"),
        (b'{"id": "x", "tool": 7}', "a request is"),
        (b'{"id": "x", "tool": "list_media", "arguments": []}', "a request is"),
        (b'{"id": "x", "tool": "no_such_tool"}', "there is no such tool"),
        (b" " * (ipc.REQUEST_BYTES + 1), "larger than"),
    ],
)
async def test_a_broken_request_is_answered_with_an_error(dock: Dock, content: bytes, says: str) -> None:
    async with working(dock) as gateway:
        (dock.folder() / "requests" / "x.json").write_bytes(content)
        told = await dock.response(gateway, "x")
        assert not told["ok"]
        assert says in str(told["error"])


async def test_links_pipes_and_odd_names_give_errors_and_nothing_else_is_read_or_written(dock: Dock) -> None:
    secret = dock.home.path.parent / "secret.txt"
    secret.write_text(json.dumps({"id": "link", "tool": "list_media", "arguments": {}}))
    async with working(dock) as gateway:
        requests = dock.folder() / "requests"
        (requests / "link.json").symlink_to(secret)
        os.link(secret, requests / "hard.json")
        os.mkfifo(requests / "pipe.json")
        (requests / "folder.json").mkdir()
        (requests / "..json").write_text("{}")
        (requests / "a b.json").write_text("{}")
        (requests / f"{'x' * 200}.json").write_text("{}")
        for own in ("link", "hard", "pipe", "folder"):
            assert not (await dock.response(gateway, own))["ok"]
        assert (await dock.ask_tool(gateway, "after", "list_media"))["ok"]
        assert json.loads(secret.read_text())["id"] == "link"


@pytest.mark.parametrize("name", ["requests", "responses", "media", "media_refs.json"])
async def test_a_folder_that_is_a_link_leads_nowhere(dock: Dock, name: str) -> None:
    outside = dock.home.path.parent / "outside"
    outside.mkdir()
    (outside / "x.json").write_text(json.dumps({"id": "x", "tool": "list_media", "arguments": {}}))
    async with dock.at_work() as gateway:
        _, ref = await picture(dock, gateway)
        place = dock.folder() / name
        place.rename(place.with_name("aside"))
        place.symlink_to(outside)
        if name in ("media", "media_refs.json"):
            told = await dock.ask_tool(gateway, "z", "fetch_media", ref=ref, **{"as": "file"})
            assert told["ok"] is (name != "media")
        for _ in range(5):
            await dock.clock.wake(ipc.POLL_SECONDS)
        assert [file.name for file in outside.iterdir()] == ["x.json"]
        await dock.ask(gateway, dock.say("still there?", author=ANN))


async def test_a_flood_is_looked_at_a_bounded_number_at_a_time_and_others_are_answered(dock: Dock) -> None:
    async with working(dock) as gateway:
        await dock.ask(gateway, dock.say(channel="team"))
        for number in range(2 * ipc.LOOKED_AT):
            dock.request(f"n{number}", "list_media")
        dock.request("mine", "list_media", where=TEAM)
        assert (await dock.response(gateway, "mine", TEAM))["ok"]
        unread = dock.folder() / "responses"
        while len(list(unread.iterdir())) <= ipc.UNREAD:
            await dock.look(gateway)
        for _ in range(5):
            await dock.clock.wake(ipc.POLL_SECONDS)
        assert len(list(unread.iterdir())) <= ipc.UNREAD + ipc.AT_ONCE


async def test_a_huge_file_is_refused_without_being_read(dock: Dock) -> None:
    async with dock.at_work() as gateway:
        _, ref = await picture(dock, gateway)
        with (dock.folder() / "requests" / "huge.json").open("wb") as file:
            file.truncate(1 << 40)
        assert "larger than" in str((await dock.response(gateway, "huge"))["error"])
        with (dock.folder() / "media" / "huge.bin").open("wb") as file:
            file.truncate(1 << 40)
        assert not (await dock.ask_tool(gateway, "send", "send_media", path="media/huge.bin"))["ok"]
        assert (await dock.ask_tool(gateway, "after", "fetch_media", ref=ref))["ok"]


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "folder", "device"])
async def test_what_is_no_file_of_its_own_is_not_sent(dock: Dock, kind: str) -> None:
    secret = dock.home.path.parent / "secret.txt"
    async with working(dock) as gateway:
        put = dock.folder() / "media" / "x.txt"
        match kind:
            case "link":
                put.symlink_to(secret)
            case "hard link":
                os.link(secret, put)
            case "pipe":
                os.mkfifo(put)
            case "folder":
                put.mkdir()
            case _:
                put.symlink_to("/dev/zero")
        assert not (await dock.ask_tool(gateway, "a", "send_media", path="media/x.txt"))["ok"]
        assert not any(parcel.files for parcel in dock.wire.seen)


@pytest.mark.parametrize("kind", ["folder", "full folder", "pipe", "link"])
async def test_what_lies_where_an_answer_belongs_is_replaced_or_costs_that_answer_only(dock: Dock, kind: str) -> None:
    secret = dock.home.path.parent / "secret.txt"
    async with working(dock) as gateway:
        place = dock.folder() / "responses" / "x.json"
        match kind:
            case "folder":
                place.mkdir()
            case "full folder":
                place.mkdir()
                (place / "y").write_text("y")
            case "pipe":
                os.mkfifo(place)
            case _:
                place.symlink_to(secret)
        dock.request("x", "list_media")
        assert (await dock.ask_tool(gateway, "z", "list_media"))["ok"]
        assert secret.read_text() == SECRET
        await dock.ask(gateway, dock.say("still there?", author=ANN))


async def test_a_pipe_in_place_of_the_refs_is_replaced_and_never_opened(dock: Dock) -> None:
    async with dock.at_work() as gateway:
        _, ref = await picture(dock, gateway)
        refs = dock.folder() / "media_refs.json"
        refs.unlink()
        os.mkfifo(refs)
        await dock.ask(gateway, dock.say("again", author=ANN))
        assert dock.refs() == [ref]


class Patient:
    """An agent that runs elsewhere: its turn lasts until a test ends it."""

    remembers = True
    sees_images = True

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.ends = asyncio.Event()

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        yield Accepted()
        self.begun.set()
        await self.ends.wait()
        yield Final(text="done")


async def test_a_call_while_a_turn_runs_is_part_of_it_and_its_file_goes_with_the_answer(dock: Dock) -> None:
    agent = dock.agent = Patient()
    async with dock.at_work() as gateway:
        message = dock.say("draw")
        await gateway.accept(message)
        await agent.begun.wait()
        (dock.folder() / "media" / "chart.png").write_bytes(make_png(5, 5))
        told = await dock.ask_tool(gateway, "a", "send_media", path="media/chart.png")
        assert "with your answer" in str(told)
        agent.ends.set()
        await until(lambda: any(parcel.files for parcel in dock.wire.seen))
        story = await gateway.store.story(DM, message.id)
        assert story is not None
        assert any(step.subject == "send_media" for step in story.steps)


async def test_a_path_of_the_machine_is_not_sent(dock: Dock) -> None:
    async with working(dock) as gateway:
        for number, path in enumerate(("/etc/passwd", "../../key", "media/../../../key", "media/../media_refs.json")):
            told = await dock.ask_tool(gateway, f"p{number}", "send_media", path=path)
            assert not told["ok"]
        (dock.folder() / "media" / "link").symlink_to(dock.home.key_file)
        assert not (await dock.ask_tool(gateway, "q", "send_media", path="media/link"))["ok"]
        assert not any(parcel.files for parcel in dock.wire.offered)


async def test_an_agent_without_network_fetches_a_picture_and_sends_a_file(dock: Dock) -> None:
    """The runner of the example, with `unshare -n` for a container: no network, and no package but belino itself."""
    dock.agent = ScriptedAgent()
    async with dock.at_work() as gateway:
        _, ref = await picture(dock, gateway)
        (dock.folder() / "media" / "chart.png").write_bytes(make_png(5, 5))
        source = Path(ipc.__file__).parents[2]
        process = await asyncio.create_subprocess_exec(
            "unshare", "-rn", sys.executable, "-S", "-c",
            "import socket, sys; sys.path.insert(0, sys.argv[1]);\n"
            "try: socket.create_connection(('127.0.0.1', 80), 1)\n"
            "except OSError: pass\n"
            "else: raise SystemExit('there is a network')\n"
            "from belino.cli import main; sys.exit(main(sys.argv[2:]))",
            str(source), "mcp", "--ipc", str(dock.folder()),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env={"LANG": "C.UTF-8"}, limit=1 << 24,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        calls: tuple[tuple[str, dict[str, object]], ...] = (
            ("initialize", {"protocolVersion": "2025-06-18"}),
            ("tools/list", {}),
            ("tools/call", {"name": "fetch_media", "arguments": {"ref": ref}}),
            ("tools/call", {"name": "fetch_media", "arguments": {"ref": ref, "as": "file"}}),
            ("tools/call", {"name": "send_media", "arguments": {"path": f"{dock.folder()}/media/chart.png"}}),
        )
        results = []
        for number, (method, params) in enumerate(calls):
            asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            line = asyncio.ensure_future(process.stdout.readline())
            while not line.done():
                await dock.look(gateway)
            results.append(json.loads(line.result())["result"])
        process.stdin.close()
        assert await process.wait() == 0
    begun, tools, shown, file, sent = results
    assert begun["serverInfo"]["name"] == "belino"
    assert {"fetch_media", "list_media", "channel_context"} <= {tool["name"] for tool in tools["tools"]}
    assert any(item["type"] == "image" for item in shown["content"])
    assert any(f"File: {dock.folder()}/media/" in item.get("text", "") for item in file["content"])
    assert "isError" not in sent, sent


async def test_the_agent_of_the_example_sees_a_picture_without_network(dock: Dock) -> None:
    async with dock.at_work() as gateway:
        await picture(dock, gateway)
        process = await asyncio.create_subprocess_exec(
            "unshare", "-rn", sys.executable, "-S", str(EXAMPLE / "agent.py"), str(dock.folder()),
            stdout=asyncio.subprocess.PIPE, env={"PYTHONPATH": str(Path(ipc.__file__).parents[2])},
        )  # fmt: skip
        said = asyncio.ensure_future(process.communicate())
        while not said.done():
            await dock.look(gateway)
    assert process.returncode == 0
    assert "got: image (image/png)" in said.result()[0].decode()
    assert "--network none" in (EXAMPLE / "run").read_text()


def test_the_server_inside_says_that_no_gateway_answers(tmp_path: Path) -> None:
    for name in ("requests", "responses"):
        (tmp_path / name).mkdir()
    out = io.StringIO()
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_media"}}
    IpcServer(tmp_path, out, seconds=0).serve(io.StringIO(f"{json.dumps(asked)}\n"))
    result = json.loads(out.getvalue())["result"]
    assert result["isError"]
    assert "did not answer" in result["content"][0]["text"]
    assert not list((tmp_path / "requests").iterdir())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_real_client_uses_the_server_inside(dock: Dock, mode: Literal["auto", "legacy"]) -> None:
    async with dock.at_work() as gateway:
        _, ref = await picture(dock, gateway)

        async def use() -> list[str]:
            command = ["-m", "belino", "mcp", "--ipc", str(dock.folder())]
            async with Client(StdioServerParameters(command=sys.executable, args=command), mode=mode) as client:
                tools = {tool.name: tool for tool in (await client.list_tools()).tools}
                assert tools["fetch_media"].title == "Fetch media"
                hints = {name: tool.annotations.read_only_hint for name, tool in tools.items() if tool.annotations}
                assert hints["fetch_media"] and hints["send_media"] is False
                refused = await client.call_tool("fetch_media", {"ref": "mem_000000000000"})
                assert refused.is_error
                return [block.type for block in (await client.call_tool("fetch_media", {"ref": ref})).content]

        using = asyncio.ensure_future(use())
        while not using.done():
            await dock.look(gateway)
        assert "image" in using.result()
