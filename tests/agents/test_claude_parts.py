"""What Claude's agent decides without any process: settings, command line, environment, blocks, sentences."""

import asyncio
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.claude_room import KEY, REF, Box, document, picture
from belino.agents.claude import Agent, Config, Replay, child, hosts
from belino.agents.claude.child import INHERITED, Child, command, environment, leash
from belino.agents.claude.listen import blamed, blames_media, failure, why_refused
from belino.agents.claude.session import Mark, own_folder
from belino.agents.claude.wire import CUT, RESULT_CHARS, message_content, tool_content
from belino.config import from_table
from belino.domain.errors import ConfigError, ToolError
from belino.domain.media import FileBlock, TextBlock
from belino.domain.ports import Checks, Closes
from belino.net.redact import Secret


def config(**more: Any) -> Config:
    return Config(**{"api_key": Secret("KEY", KEY), **more})


def test_the_configuration_finds_it_and_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    table = {"agent": {"kind": "claude", "api_key": "env:ANTHROPIC_API_KEY", "model": "opus", "max_steps": 3}}
    options = from_table(table).agent.options
    assert (options.model, options.max_steps, options.api_key.reveal()) == ("opus", 3, KEY)
    assert KEY not in repr(options)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"api_key": None}, "api_key is needed"),
        ({"api_key": Secret("KEY", "no key at all")}, "api_key must be printable"),
        ({"base_url": "http://api.example.com"}, "must begin with https://"),
        ({"base_url": "https://me:pass@api.example.com"}, "without a name or password"),
        ({"base_url": "ftp://api.example.com"}, "must be https://"),
        ({"compact_tokens": 5}, "compact_tokens must be 0 or at least 100000"),
        ({"model": "--dangerously-skip-permissions"}, "model must be a name"),
    ],
    ids=["no key", "odd key", "plain", "password", "scheme", "window", "model"],
)
def test_a_wrong_setting_is_told_in_a_sentence(more: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config(**more)


def test_a_server_of_ones_own_needs_no_key_and_its_address_is_named() -> None:
    own = Config(base_url="http://127.0.0.1:4000/anthropic")
    assert hosts(own) == {"127.0.0.1:4000"} and hosts(config()) == {"api.anthropic.com"}
    assert environment(own, Path("agent"))["ANTHROPIC_API_KEY"] == "unneeded"


def test_a_short_key_of_a_proxy_is_accepted() -> None:
    key = config(api_key=Secret("KEY", "sk-good")).api_key
    assert key is not None and key.reveal() == "sk-good"


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'belino\[claude\]'"):
        Agent(config())


def test_it_can_be_checked_and_closed() -> None:
    agent: object = Agent(config())
    assert isinstance(agent, Checks)
    assert isinstance(agent, Closes)


def test_the_module_is_light() -> None:
    script = "import sys, belino.agents.claude; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"claude_agent_sdk", "mcp", "anyio", "aiohttp", "pydantic"} & set(told)


def test_the_environment_is_a_list_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELEGRAM_TOKEN", "leaked")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    told = environment(config(compact_tokens=200_000), Path("/agent"))
    ours = {name for name in told if name.startswith(("CLAUDE_", "ANTHROPIC_", "DISABLE_", "MCP_", "MAX_MCP_"))}
    assert told.keys() - ours <= {*INHERITED, "HOME", "TMPDIR", "ENABLE_TOOL_SEARCH"}
    assert told["LANG"] == "de_DE.UTF-8" and told["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] == "200000"


def test_the_command_line_allows_only_what_it_lists_and_holds_no_secret() -> None:
    words = command(config(instructions="Our words."), system_file=Path("s.md"), tools=["fetch_media"])
    assert words[words.index("--tools") + 1] == ""
    assert words[words.index("--allowedTools") + 1] == "mcp__belino__fetch_media"
    assert {"--bare", "--restricted", "--strict-mcp-config", "--setting-sources="} <= set(words)
    assert words[words.index("--permission-mode") + 1] == "dontAsk"
    assert not any("dangerously" in word or KEY in word or "Our words" in word for word in words)
    assert "--fork-session" not in words
    reading = command(config(read_files=True), system_file=Path("s.md"), tools=["fetch_media"])
    assert reading[reading.index("--tools") + 1] == "Read"
    resumed = command(config(), system_file=Path("s.md"), tools=[], resume="a-b", message="c-d")
    assert {"--resume=a-b", "--resume-session-at=c-d", "--fork-session"} <= set(resumed)


@pytest.mark.skipif(sys.platform != "linux", reason="there is no such leash elsewhere")
async def test_what_we_started_dies_with_us(tmp_path: Path) -> None:
    script = (
        "import asyncio, pathlib\n"
        "from belino.agents.claude.child import Child\n"
        "async def main():\n"
        "    child = Child(['/bin/sleep', '600'], {}, pathlib.Path('.'))\n"
        "    await child.connect()\n"
        "    print(child.pid, flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    ours = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE)
    assert ours.stdout is not None
    async with asyncio.timeout(60):
        pid = int(await ours.stdout.readline())
        while b"sleep" not in Path(f"/proc/{pid}/cmdline").read_bytes():
            await asyncio.sleep(0.01)
        ours.kill()
        await ours.wait()
        while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
            await asyncio.sleep(0.01)


async def test_a_process_that_will_not_go_is_made_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "CLOSING_SECONDS", 0.05)
    stubborn = Child(["/bin/sleep", "600"], {}, tmp_path)
    async with asyncio.timeout(60):
        await stubborn.connect()
        pid = stubborn.pid
        assert pid is not None
        await stubborn.close()
    assert not stubborn.is_ready() and stubborn.pid is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_turn_tried_again_hears_the_same_answers_and_reaches_nothing() -> None:
    box = Box((TextBlock(text="one"),), (TextBlock(text="two"),), "no such thing", (TextBlock(text="three"),))
    replay = Replay(box)
    first = [await replay.call("fetch_media", {"ref": "a"}) for _ in range(2)]
    with pytest.raises(ToolError):
        await replay.call("fetch_media", {"ref": "b"})
    replay.again()
    assert [await replay.call("fetch_media", {"ref": "a"}) for _ in range(2)] == first and len(box.calls) == 3
    assert await replay.call("fetch_media", {"ref": "a"}) == (TextBlock(text="three"),)
    assert replay.specs == box.specs


def test_blocks_become_content_and_refused_pictures_words() -> None:
    shown, bad = picture(b"good", ref="tg_aaaaaaaaaaaa"), picture(b"bad")
    content = message_content((TextBlock(text="hi"), shown, bad, TextBlock(text=" ")), {REF: "too odd"})
    assert [block["type"] for block in content] == ["text", "image", "text", "text"]
    assert content[1]["source"] == {"type": "base64", "media_type": "image/png", "data": "Z29vZA=="}
    assert content[2]["text"] == f"[The picture ref:{REF} cannot be shown: too odd]"
    assert content[3]["text"] == "(empty)"
    assert message_content((), {}) and tool_content((), {})


def test_a_tools_text_is_cut_where_the_cli_would_hide_it_in_a_file(tmp_path: Path) -> None:
    file = FileBlock(path=tmp_path / "a.ogg", mime="audio/ogg", ref=REF, sha256="0" * 64)
    long, told = tool_content((TextBlock(text="x" * (RESULT_CHARS + 1)), file), {})
    assert len(long["text"]) == RESULT_CHARS + len(CUT) and told["text"] == CUT
    assert tool_content((file,), {})[0]["text"] == f"[File: a.ogg, audio/ogg, ref:{REF}]"


@pytest.mark.parametrize(
    ("kind", "status", "reason", "words"),
    [
        ("authentication_failed", 401, "api_error", "refused the API key"),
        ("unknown", 403, "api_error", "refused the API key"),
        ("rate_limit", 429, "api_error", "rate limit"),
        ("server_error", 529, "api_error", "overloaded"),
        ("server_error", 503, "api_error", "trouble of its own (status 503)"),
        ("server_error", None, "api_error", "cannot be reached, or broke off"),
        ("invalid_request", 400, "prompt_too_long", "too long"),
        ("invalid_request", 413, "image_error", "too large"),
        ("billing_error", 400, "api_error", "no credit left"),
    ],
)
def test_trouble_becomes_a_sentence(kind: str, status: int | None, reason: str, words: str) -> None:
    assert words in str(failure(kind, status, reason))


def test_media_is_blamed_only_by_an_error_that_names_it() -> None:
    assert blames_media("invalid_request", "API Error: an image in the conversation could not be processed")
    assert blames_media("unknown", "API Error: 400 messages.2.content.1: image refused")
    assert blames_media("invalid_request", "API Error: a document in the conversation could not be processed")
    assert blames_media("invalid_request", "PDF is password protected")
    assert not blames_media("unknown", "API Error: 400 Output blocked by content filtering policy")
    assert not blames_media("server_error", "API Error: 500 image service down")


def test_a_refused_document_takes_no_picture_along_and_no_picture_a_document() -> None:
    seen, read = picture(b"1", ref="tg_aaaaaaaaaaaa"), document(b"%PDF-")
    sent = (TextBlock(text="hi"), seen, read)
    assert blamed("API Error: a document in the conversation could not be processed", sent, [seen, read]) == (read,)
    assert blamed("API Error: an image in the conversation could not be processed", sent, [seen, read]) == (seen,)


def test_a_document_goes_with_the_message_and_is_words_in_a_tools_result() -> None:
    (content,) = message_content((document(b"%PDF-"),), {})
    assert content["type"] == "document"
    assert content["source"] == {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    (words,) = tool_content((document(b"%PDF-"),), {})
    assert words["text"] == f"[The document ref:{REF} cannot be shown: this agent takes it only with a message]"
    (words,) = message_content((document(b"%PDF-"),), {REF: "it is broken"})
    assert words["text"] == f"[The document ref:{REF} cannot be shown: it is broken]"


def test_the_picture_the_error_points_at_is_dropped_and_no_other() -> None:
    one, two = picture(b"1", ref="tg_aaaaaaaaaaaa"), picture(b"2")
    sent = (TextBlock(text="hi"), one, two)
    assert blamed("API Error: 400 messages.4.content.2.image.source: bad image", sent, [one, two]) == (two,)
    assert blamed("an image could not be processed", sent, [one, two]) == (one, two)
    # Taken by the model already, or in a tool's result: the place says nothing about this message.
    assert blamed("messages.4.content.1: image", sent, [two]) == (two,)
    assert blamed("messages.6.content.1.tool_result.content.0.image: image", sent, [two]) == (two,)
    assert why_refused("API Error: 400 messages.2.content.1: image refused: policy.") == "image refused: policy"
    assert why_refused("an image was removed") == "it could not be processed"


@pytest.mark.parametrize("memory", [None, b"", b"{", b"[]", b'{"session": "a"}', b"\xff"], ids=repr)
def test_a_memory_that_cannot_be_read_is_none(memory: bytes | None) -> None:
    assert Mark.read(memory) is None


def test_a_mark_is_read_as_it_was_saved() -> None:
    mark = Mark(session="a", message="b", spent=0.1 + 0.2)
    assert Mark.read(mark.to_bytes()) == mark


def test_the_agents_folder_is_beside_what_it_may_open_and_send() -> None:
    assert own_folder(Path("media/here/incoming")) == Path("media/here/agent")
    assert sys.platform != "linux" or leash()[0] == sys.executable
