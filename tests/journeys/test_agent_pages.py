"""The complete examples of docs/agents/command.md and docs/agents/http.md, run as they are written."""

import asyncio
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from agents.http_server import SECRET
from belino.agents.http.wire import turn_body
from belino.domain.turn import ToolAddress
from belino.testing import AgentTrial, ScriptedAgent, make_png
from belino.testing.agent_contract import make_turn
from journeys.test_agent_kinds import answers, say, started

PAGES = Path(__file__).parents[2] / "docs" / "agents"


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


def test_the_openapi_page_describes_the_turn_that_is_posted(tmp_path: Path) -> None:
    page: dict[str, Any] = json.loads((PAGES / "http.openapi.json").read_text(encoding="utf-8"))
    schema = page["components"]["schemas"]
    turn = make_turn(AgentTrial(make=lambda: ScriptedAgent([]), folder=tmp_path), "hello")
    posted = json.loads(turn_body(turn, "s", ToolAddress(url="u", public_url="p", token="t")))
    assert set(posted) == set(schema["Turn"]["properties"]) == set(schema["Turn"]["required"])
    assert set(posted["messages"][0]) == set(schema["Message"]["properties"])
    assert set(posted["mcp"]) == set(schema["Turn"]["properties"]["mcp"]["properties"])
