"""The complete example of each page of docs/agents, and of the agent in docs/plugins.md, run as it is written."""

import asyncio
import json
import re
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from agents.http_server import SECRET
from belino import registry
from belino.agents.http.wire import turn_body
from belino.config import from_table
from belino.domain.turn import ToolAddress
from belino.net.agent_events import EVENTS
from belino.testing import AgentTrial, ScriptedAgent, check_agent, make_png
from belino.testing.agent_contract import check_a_turn_ends_with_one_final, make_turn
from belino.testing.models import ModelServer
from belino.testing.models.anthropic import MessagesServer
from belino.testing.models.openai import OpenAIServer
from journeys.agent_kinds import MAIN, ChannelMessages
from journeys.test_agent_kinds import answers, say, started

DOCS = Path(__file__).parents[2] / "docs"
PAGES = DOCS / "agents"
KEY = "sk-ant-test-0123456789"


def blocks(page: str, language: str) -> list[str]:
    text = (PAGES / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.mark.slow
async def test_the_program_on_its_page_answers(tmp_path: Path) -> None:
    program = tmp_path / "answer.py"
    program.write_text(blocks("command.md", "python")[0])
    table = tomllib.loads(blocks("command.md", "toml")[-1])["agent"]
    command = [sys.executable, str(program), *table["command"][2:]]
    async with started(tmp_path, {**table, "command": command}, {}) as gateway:
        await say(gateway, "three short words", ("p.png", "image/png", make_png(40, 30)))
        (said,) = await answers(gateway, 1)
        assert re.fullmatch(
            r"Session [0-9a-f]{4}: 3 words\. The picture has [0-9]+ characters of base64\.", said["text"]
        )
        assert said["usage"]["model"] == "counting"


@pytest.mark.slow
async def test_the_server_on_its_page_answers_signed_turns_only(tmp_path: Path) -> None:
    from aiohttp import ClientSession

    code = blocks("http.md", "python")[0]
    assert '("127.0.0.1", 8000)' in code
    served = code.replace(
        'ThreadingHTTPServer(("127.0.0.1", 8000), Turns).serve_forever()',
        'server = ThreadingHTTPServer(("127.0.0.1", 0), Turns)\n'
        "print(server.server_address[1], flush=True)\nserver.serve_forever()",
    )
    (tmp_path / "server.py").write_text(served)
    server = await asyncio.create_subprocess_exec(
        sys.executable,
        str(tmp_path / "server.py"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={"TURN_SECRET": SECRET},
    )
    assert server.stdout is not None
    try:
        url = f"http://127.0.0.1:{int(await server.stdout.readline())}/turn"
        table = tomllib.loads(blocks("http.md", "toml")[0])["agent"]
        async with started(tmp_path, {**table, "url": url}, {"TURN_SECRET": SECRET}) as gateway:
            await say(gateway, "hello there")
            (said,) = await answers(gateway, 1)
            assert (said["text"], said["usage"]["model"]) == ("You said: hello there", "echo")
        old = {"X-Belino-Timestamp": "1", "X-Belino-Signature": "sha256=0"}
        async with ClientSession() as session, session.post(url, data=b"{}", headers=old) as refused:
            assert refused.status == 401
    finally:
        server.kill()
        await server.wait()


def test_every_kind_of_agent_has_a_page_with_an_example() -> None:
    """The container's example is in examples/, and test_ipc runs it."""
    kinds = {path.stem for path in PAGES.glob("*.md")}
    assert {*registry.built_in("agents"), "container"} == kinds
    assert all(blocks(f"{kind}.md", "toml") for kind in kinds)


@pytest.mark.parametrize(("kind", "variable"), [("claude", "ANTHROPIC_API_KEY"), ("llm", "OPENAI_API_KEY")])
async def test_the_table_on_a_models_page_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, variable: str
) -> None:
    monkeypatch.setenv(variable, KEY)
    table = from_table(tomllib.loads(blocks(f"{kind}.md", "toml")[0])).agent
    server: ModelServer = MessagesServer(key=KEY) if kind == "claude" else OpenAIServer(key=KEY)
    async with server:
        base = server.url if kind == "claude" else f"{server.url}/v1"
        options: Any = replace(table.options, base_url=base)
        trial = AgentTrial(make=lambda: registry.find("agents", kind).make(options), folder=tmp_path)
        await check_a_turn_ends_with_one_final(trial)
        assert options.instructions in json.dumps(server.asked[-1].body)


async def test_the_demo_of_its_page_answers(tmp_path: Path) -> None:
    table = from_table(tomllib.loads(blocks("demo.md", "toml")[0])).agent
    plugin = registry.find("agents", table.kind)
    await check_a_turn_ends_with_one_final(AgentTrial(make=lambda: plugin.make(table.options), folder=tmp_path))


async def test_the_agent_in_python_on_its_page_keeps_the_contract(tmp_path: Path) -> None:
    (code,) = [block for block in blocks("../plugins.md", "python") if "class Agent:" in block and "Turn" in block]
    module: dict[str, Any] = {}
    exec(code, module)
    await check_agent(AgentTrial(make=module["Agent"], folder=tmp_path))


@pytest.mark.slow
async def test_the_client_on_the_channels_page_gets_a_message_and_answers(tmp_path: Path) -> None:
    """Its table and its `.mcp.json`, for a conversation of the web page."""
    place = "telegram:default:12345"
    table = tomllib.loads(blocks("channel.md", "toml")[0])["agent"]["places"][place]
    written = json.loads(blocks("channel.md", "json")[0])["mcpServers"]["belino"]
    assert written["command"] == "belino"
    own = [str(MAIN) if word == place else word for word in written["args"]]
    messages = ChannelMessages()
    async with started(tmp_path, table, {}) as gateway:
        await say(gateway, "hello there")
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "belino", *own, "--home", str(tmp_path / "home")]
        )
        async with Client(server, mode="legacy", extensions=[messages]) as client:
            told = await messages.queue.get()
            assert told.content == "hello there"
            await client.call_tool("reply", {"text": "I am at my desk.", "reply_to": told.meta["message_id"]})
            assert [message["text"] for message in await answers(gateway, 1)] == ["I am at my desk."]


def test_the_openapi_page_describes_the_turn_that_is_posted(tmp_path: Path) -> None:
    page: dict[str, Any] = json.loads((PAGES / "http.openapi.json").read_text(encoding="utf-8"))
    schema = page["components"]["schemas"]
    turn = make_turn(AgentTrial(make=lambda: ScriptedAgent([]), folder=tmp_path), "hello")
    posted = json.loads(turn_body(turn, "s", ToolAddress(url="u", public_url="p", token="t")))
    assert set(posted) == set(schema["Turn"]["properties"]) == set(schema["Turn"]["required"])
    assert set(posted["messages"][0]) == set(schema["Message"]["properties"])
    assert set(posted["messages"][0]) == set(schema["Message"]["required"])
    assert set(posted["mcp"]) == set(schema["Turn"]["properties"]["mcp"]["properties"])
    streamed = page["paths"]["/turn"]["post"]["responses"]["200"]["content"]["text/event-stream"]["schema"]["oneOf"]
    assert [one["$ref"].rpartition("/")[2].lower() for one in streamed] == list(EVENTS)
