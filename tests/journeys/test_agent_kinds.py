"""The same journeys for every kind of agent outside the gateway: a program, and a server of one's own."""

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from belino.testing import GatewayProcess, make_pdf, make_png, make_wav

pytestmark = pytest.mark.slow

SECRET = "a-secret-of-the-journeys-0123456789"
MAIN = "web:default:main"
PATIENCE = 60.0

ANSWERS = '''
import base64, json, os, re, time, urllib.request

PNG = base64.b64decode("{png}")


def call(url, token, tool, arguments):
    body = {{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {{"name": tool, "arguments": arguments}}}}
    headers = {{
        "Authorization": "Bearer " + token,
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["result"]["content"]


def answer(prompt, session, url, token):
    """The text of an answer, and a file to send or None."""
    asked = prompt.rpartition("text:\\n")[2]
    ref = (re.findall(r"ref:([a-z0-9]+_[a-z0-9]{{12}})\\]", prompt) or [""])[-1]
    if "wait" in asked and not os.path.exists("{flag}"):
        open("{flag}", "w").write(token)
        time.sleep(600)
    if "picture" in asked:
        blocks = call(url, token, "fetch_media", {{"ref": ref}})
        return "I see " + " ".join(block["mimeType"] for block in blocks if block["type"] == "image"), None
    if "page" in asked:
        return " ".join(block["text"] for block in call(url, token, "fetch_media", {{"ref": ref, "as": "text"}})), None
    if "voice" in asked:
        got = call(url, token, "list_media", {{"kind": "audio"}})[0]["text"]
        return "heard of " + ("v.wav" if "v.wav" in got else got), None
    if "draw" in asked:
        return "Here it is.", PNG
    return "session " + session, None
'''

PROGRAM = """
import os, sys
prompt = sys.stdin.read()
text, file = answer(prompt, sys.argv[1], os.environ["BELINO_MCP_URL"], os.environ["BELINO_MCP_TOKEN"])
if file:
    with open(os.path.join(os.environ["BELINO_OUTGOING"], "drawing.png"), "wb") as drawing:
        drawing.write(file)
print(text)
"""

SERVER = """
import hashlib, hmac, http.server, sys

class Turns(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        signed = self.headers["X-Belino-Timestamp"].encode() + b"." + body
        expected = "sha256=" + hmac.new(b"{secret}", signed, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(expected, self.headers["X-Belino-Signature"]):
            self.send_error(401)
            return
        turn = json.loads(body)
        prompt = "\\n".join(part["text"] for part in turn["content"] if part["type"] == "text")
        session = turn["session"] or turn["id"]
        text, file = answer(prompt, session, turn["mcp"]["url"], turn["mcp"]["token"])
        said = {{"text": text, "session": session}}
        if file:
            said["files"] = [{{"name": "drawing.png", "data": base64.b64encode(file).decode()}}]
        told = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Turns)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


@asynccontextmanager
async def agent_table(kind: str, path: Path) -> AsyncIterator[dict[str, Any]]:
    """What an operator writes for such an agent; the server of one's own runs."""
    file = path / "agent.py"
    common = ANSWERS.format(png=base64.b64encode(make_png(20, 10)).decode(), flag=path / "waits")
    if kind == "command":
        file.write_text(common + PROGRAM)
        yield {"kind": "command", "command": [sys.executable, str(file), "{session}"]}
        return
    file.write_text(common + SERVER.format(secret=SECRET))
    server = await asyncio.create_subprocess_exec(sys.executable, str(file), stdout=asyncio.subprocess.PIPE)
    assert server.stdout is not None
    port = int(await server.stdout.readline())
    try:
        url = f"http://127.0.0.1:{port}/turn"
        yield {"kind": "http", "url": url, "secret": "env:TURN_SECRET", "remembers": True}
    finally:
        server.kill()
        await server.wait()


@asynccontextmanager
async def started(path: Path, table: Mapping[str, Any]) -> AsyncIterator[GatewayProcess]:
    home = path / "home"
    home.mkdir(mode=0o700)
    settings = {"agent": table, "context": {"attach_media": "never"}}
    (home / "belino.json").write_text(json.dumps(settings))
    gateway = GatewayProcess(home, environment={"TURN_SECRET": SECRET})
    await asyncio.to_thread(gateway.start)
    try:
        yield gateway
    finally:
        await asyncio.to_thread(gateway.stop)


async def say(gateway: GatewayProcess, text: str, *files: tuple[str, str, bytes]) -> None:
    attachments = [
        {"mime_type": mime, "file_name": name, "content": base64.b64encode(content).decode()}
        for name, mime, content in files
    ]
    body = {"conversation": MAIN, "message": text, "attachments": attachments}
    status, answer = await asyncio.to_thread(gateway.call, "POST", "/api/messages", body)
    assert status == 200, answer


async def answers(gateway: GatewayProcess, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(PATIENCE):
        while True:
            _, page = await asyncio.to_thread(gateway.call, "GET", f"/api/messages?conversation={MAIN}")
            said = [message for message in page["messages"] if message["author"]["is_agent"]]
            if len(said) >= count:
                return said
            await asyncio.sleep(0.05)


async def waits(path: Path) -> str:
    """The token of the turn in which the agent waits."""
    async with asyncio.timeout(PATIENCE):
        while not (path / "waits").exists() or not (token := (path / "waits").read_text()):
            await asyncio.sleep(0.02)
    return token


@pytest.mark.parametrize("kind", ["command", "http"])
async def test_an_agent_outside_sees_reads_and_sends(tmp_path: Path, kind: str) -> None:
    async with agent_table(kind, tmp_path) as table, started(tmp_path, table) as gateway:
        await say(gateway, "what is in the picture?", ("p.png", "image/png", make_png(40, 30)))
        assert (await answers(gateway, 1))[-1]["text"] == "I see image/png"
        await say(gateway, "read the page", ("p.pdf", "application/pdf", make_pdf("Invoice 4711")))
        assert "Invoice 4711" in (await answers(gateway, 2))[-1]["text"]
        await say(gateway, "the voice note", ("v.wav", "audio/wav", make_wav(1)))
        assert (await answers(gateway, 3))[-1]["text"] == "heard of v.wav"
        await say(gateway, "draw something")
        said = await answers(gateway, 4)
        sent = [media for message in said[3:] for media in message["media"]]
        assert [media["file_name"] for media in sent] == ["drawing.png"]
        await say(gateway, "which session?")
        before = (await answers(gateway, len(said) + 1))[-1]["text"]
        await asyncio.to_thread(gateway.restart)
        await say(gateway, "and now?")
        assert (await answers(gateway, len(said) + 2))[-1]["text"] == before


@pytest.mark.parametrize("kind", ["command", "http"])
async def test_a_gateway_killed_in_the_middle_answers_once_and_the_old_token_opens_nothing(
    tmp_path: Path, kind: str
) -> None:
    async with agent_table(kind, tmp_path) as table, started(tmp_path, table) as gateway:
        await say(gateway, "wait for it")
        token = await waits(tmp_path)
        gateway.kill()
        await asyncio.to_thread(gateway.start)
        await answers(gateway, 1)
        status, _ = await asyncio.to_thread(gateway.call, "POST", "/mcp/turn", {}, token=token)
        assert status == 401
        await say(gateway, "and now?")
        assert len(await answers(gateway, 2)) == 2


@pytest.mark.parametrize("kind", ["command", "http"])
async def test_a_stopped_turn_ends_without_an_answer_and_its_token_with_it(tmp_path: Path, kind: str) -> None:
    async with agent_table(kind, tmp_path) as table, started(tmp_path, table) as gateway:
        await say(gateway, "wait for it")
        token = await waits(tmp_path)
        await say(gateway, "/stop")
        await say(gateway, "and now?")
        said = [message["text"] for message in await answers(gateway, 2)]
        assert said[-1].startswith("session ") and len(said) == 2
        status, _ = await asyncio.to_thread(gateway.call, "POST", "/mcp/turn", {}, token=token)
        assert status == 401


async def given(gateway: GatewayProcess, wait: int) -> list[dict[str, Any]]:
    """What a client of the channel gets that connects now."""
    body = {"conversation": MAIN, "wait": wait}
    status, told = await asyncio.to_thread(gateway.call, "POST", "/api/channel/next", body)
    assert status == 200, told
    events: list[dict[str, Any]] = told["events"]
    return events


async def test_a_killed_gateway_gives_a_channel_what_it_has_not_acknowledged(tmp_path: Path) -> None:
    async with started(tmp_path, {"kind": "channel"}) as gateway:
        await say(gateway, "are you there?")
        (first,) = await given(gateway, 30)
        gateway.kill()
        await asyncio.to_thread(gateway.start)
        (again,) = await given(gateway, 30)
        assert again == first and again["message"]["content"] == "are you there?"
        body = {"conversation": MAIN, "seq": first["seq"]}
        status, _ = await asyncio.to_thread(gateway.call, "POST", "/api/channel/ack", body)
        assert status == 200
        gateway.kill()
        await asyncio.to_thread(gateway.start)
        assert await given(gateway, 0) == []


async def test_a_killed_gateway_answers_the_requests_that_a_container_wrote_before(tmp_path: Path) -> None:
    async with started(tmp_path, {"kind": "demo", "ipc": True}) as gateway:
        await say(gateway, "look", ("p.png", "image/png", make_png(4, 4)))
        await answers(gateway, 1)
        (folder,) = (tmp_path / "home" / "media").glob("*/ipc")
        gateway.kill()
        request = {"id": "before", "tool": "list_media", "arguments": {}}
        (folder / "requests" / "before.json").write_text(json.dumps(request))
        await asyncio.to_thread(gateway.start)
        response = folder / "responses" / "before.json"
        async with asyncio.timeout(PATIENCE):
            while not response.exists():
                await asyncio.sleep(0.02)
        told = json.loads(response.read_bytes())
        assert told["ok"] and "p.png" in str(told["content"])
