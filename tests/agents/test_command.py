"""Any local program as an agent: its command line, environment, output, session and end."""

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from belino.agents.command import Agent, Config
from belino.agents.command.config import fill
from belino.agents.command.dialects import DIALECTS
from belino.domain.errors import AgentError, ConfigError, MemoryLost
from belino.domain.turn import Accepted, Compacted, Final, ReplyPart, TextDelta, ToolAddress, ToolNote, Usage
from belino.net.agent_events import AgentFault, AgentSession
from belino.testing import AgentTrial, check_agent
from belino.testing.agent_contract import HeldMemory, make_turn
from belino.testing.models import ModelAnswer
from belino.testing.models.anthropic import MessagesServer

PROGRAM = """\
import json, os, subprocess, sys, time
asked = sys.stdin.read()
session = sys.argv[1] if len(sys.argv) > 1 else ""
if "fail" in asked:
    sys.exit("the key is used up")
if "children" in asked:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    print(child.pid, flush=True)
if "wait" in asked:
    time.sleep(600)
print("heard", len(asked) > 0, session, sorted(name for name in os.environ if name != "LC_CTYPE"), os.getcwd())
"""


def program(tmp_path: Path, text: str = PROGRAM) -> tuple[str, str]:
    file = tmp_path / "program.py"
    file.write_text(text)
    return (sys.executable, str(file))


def trial(tmp_path: Path, config: Config) -> AgentTrial:
    return AgentTrial(make=lambda: Agent(config), folder=tmp_path / "sessions")


async def answered(tried: AgentTrial, text: str, memory: HeldMemory | None = None) -> list[ReplyPart]:
    return [part async for part in tried.make().run_turn(make_turn(tried, text, memory=memory))]


def final(parts: list[ReplyPart]) -> str:
    assert isinstance(parts[-1], Final)
    return parts[-1].text


async def test_a_program_keeps_the_contract_of_an_agent(tmp_path: Path) -> None:
    config = Config(command=(*program(tmp_path), "{session}"))
    checked = await check_agent(
        AgentTrial(make=lambda: Agent(config), folder=tmp_path / "sessions", slow="wait", failing="fail")
    )
    assert "stopping is prompt" in checked and "a failure is an AgentError" in checked


async def test_a_program_gets_its_allow_list_of_variables_and_the_sessions_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_GATEWAY", "x")
    monkeypatch.setenv("WANTED", "y")
    for name in ("LANG", "LC_ALL", "TZ"):
        monkeypatch.delenv(name, raising=False)
    tried = trial(tmp_path, Config(command=program(tmp_path), environment=("WANTED",)))
    said = final(await answered(tried, "hello"))
    own = ["BELINO_CONVERSATION", "BELINO_FILES", "BELINO_OUTGOING", "HOME", "PATH", "WANTED"]
    assert said == f"heard True  {own} {tmp_path / 'sessions' / 'main' / 'incoming'}"


async def test_a_place_may_have_a_folder_of_the_operators_choice(tmp_path: Path) -> None:
    (tmp_path / "repository").mkdir()
    config = Config(command=program(tmp_path), folder=str(tmp_path / "repository"))
    assert final(await answered(trial(tmp_path, config), "hello")).endswith(str(tmp_path / "repository"))


async def test_a_stopped_program_is_killed_with_children_that_left_its_group(tmp_path: Path) -> None:
    tried = trial(tmp_path, Config(command=program(tmp_path)))
    parts = tried.make().run_turn(make_turn(tried, "children wait"))
    child = 0
    async for part in parts:
        if isinstance(part, TextDelta):
            child = int(part.text)
            break
    await parts.aclose()  # type: ignore[attr-defined]
    assert child and not Path(f"/proc/{child}").exists()


async def test_children_that_a_program_leaves_behind_are_killed_at_its_end(tmp_path: Path) -> None:
    said = final(await answered(trial(tmp_path, Config(command=program(tmp_path))), "children"))
    assert not Path(f"/proc/{said.split()[0]}").exists()


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_a_program_dies_with_its_gateway(tmp_path: Path) -> None:
    words = program(tmp_path, "import os, sys, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n")
    leash = Path(sys.modules["belino.agents.command.process"].__file__ or "").with_name("leash.py")
    gateway = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "import os, subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-I', '-S', sys.argv[1], str(os.getpid()), *sys.argv[2:]])\n"
        "time.sleep(600)",
        str(leash),
        *words,
        stdout=asyncio.subprocess.PIPE,
    )
    assert gateway.stdout is not None
    pid = int(await gateway.stdout.readline())
    gateway.kill()
    await gateway.wait()
    assert await gateway.stdout.read() == b""  # its output is closed: it ends
    while _runs(pid):
        await asyncio.sleep(0.01)


async def test_a_prompt_is_one_argument_whatever_it_holds_and_no_shell_reads_it(tmp_path: Path) -> None:
    words = program(tmp_path, "import sys\nprint(len(sys.argv), sys.argv[-1][-24:])")
    tried = trial(tmp_path, Config(command=(*words, "--", "{prompt}")))
    assert final(await answered(tried, "$(id); `id` {session} 'x")) == "3 $(id); `id` {session} 'x"


def test_a_prompt_too_long_for_an_argument_is_a_sentence_with_the_remedy() -> None:
    with pytest.raises(AgentError, match="standard input"):
        fill(("echo", "{prompt}"), {"prompt": "x" * 200_000}, ())


async def test_events_as_json_lines_become_parts_of_the_reply(tmp_path: Path) -> None:
    events = [
        {"type": "text", "text": "Let me "},
        {"type": "tool", "tool": "search", "text": "searching"},
        {"type": "usage", "input_tokens": 7, "output_tokens": 3, "cost_usd": 0.5, "model": "m"},
        {"type": "final", "text": "Done.", "session": "s1"},
    ]
    words = program(tmp_path, f"print({chr(10).join(map(json.dumps, events))!r})")
    memory = HeldMemory()
    parts = await answered(trial(tmp_path, Config(command=words, output="jsonl")), "hello", memory)
    assert parts == [
        Accepted(),
        TextDelta(text="Let me "),
        ToolNote(tool="search", text="searching"),
        Usage(input_tokens=7, output_tokens=3, cost_usd=0.5, model="m"),
        Accepted(),
        Final(text="Done."),
    ]
    assert memory.held == b'{"session": "s1"}'


async def test_a_program_that_shortens_its_memory_says_what_left_it(tmp_path: Path) -> None:
    events = [{"type": "compacted", "first_turn": 4, "kept": ["tg_1"]}, {"type": "compacted", "removed": ["tg_2"]}]
    words = program(tmp_path, f"print({chr(10).join(map(json.dumps, events))!r})")
    parts = await answered(trial(tmp_path, Config(command=(*words, "{session}"), output="jsonl")), "hello")
    assert parts[1:3] == [Compacted(first=4, kept=("tg_1",)), Compacted(only=("tg_2",))]


@pytest.mark.parametrize("event", [{"first_turn": "4"}, {"first_turn": 0}, {"kept": "tg_1"}, {"removed": [1]}], ids=str)
async def test_a_memory_that_is_shortened_in_no_known_way_is_an_error(tmp_path: Path, event: dict[str, object]) -> None:
    words = program(tmp_path, f"print({json.dumps({'type': 'compacted', **event})!r})")
    with pytest.raises(AgentError, match="no event"):
        await answered(trial(tmp_path, Config(command=words, output="jsonl")), "hello")


async def test_a_line_that_is_no_event_fails_the_turn_with_its_reason(tmp_path: Path) -> None:
    words = program(tmp_path, 'print("hello")')
    with pytest.raises(AgentError, match="no event"):
        await answered(trial(tmp_path, Config(command=words, output="jsonl")), "hello")


async def test_a_session_is_resumed_by_its_id_and_a_lost_one_begins_again(tmp_path: Path) -> None:
    text = 'import sys\nif sys.argv[1] == "new": print(sys.argv[2])\nelse: sys.exit("No conversation found")'
    words = program(tmp_path, text)
    config = Config(
        command=(*words, "new", "{session}"), resume=(*words, "go-on", "{session}"), session_lost="no conversation"
    )
    memory = HeldMemory()
    said = final(await answered(trial(tmp_path, config), "hello", memory))
    assert json.loads(memory.held or b"")["session"] == said
    with pytest.raises(MemoryLost):
        await answered(trial(tmp_path, config), "again", memory)


async def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="within 1 seconds"):
        await answered(trial(tmp_path, Config(command=program(tmp_path), timeout_seconds=1)), "wait")


async def test_the_tools_are_told_by_variables_and_a_private_file(tmp_path: Path) -> None:
    @contextmanager
    def tools_at() -> Iterator[ToolAddress]:
        yield ToolAddress(url="http://127.0.0.1:1/mcp/turn", public_url="", token="t0ken")

    text = (
        "import os, sys\nprint(os.environ['BELINO_MCP_URL'], os.environ['BELINO_MCP_TOKEN'], open(sys.argv[1]).read(),"
        " oct(os.stat(sys.argv[1]).st_mode)[-3:])"
    )
    config = Config(command=(*program(tmp_path, text), "{mcp_config}"))
    tried = AgentTrial(make=lambda: Agent(config), folder=tmp_path / "sessions", tools_at=tools_at)
    url, token, *file, mode = final(await answered(tried, "hello")).split(" ")
    assert (url, token, mode) == ("http://127.0.0.1:1/mcp/turn", "t0ken", "600")
    server = {"type": "http", "url": url, "headers": {"Authorization": "Bearer t0ken"}}
    assert json.loads(" ".join(file)) == {"mcpServers": {"belino": server}}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"preset": "codex", "command": ("codex",)},
        {"command": ("x", "{mcp_token}")},
        {"command": ("x", "{unknown}")},
        {"command": ("x",), "environment": ("A=b",)},
        {"command": ("x",), "folder": "relative"},
        {"command": ("x",), "session_lost": "("},
    ],
    ids=str,
)
def test_a_wrong_setting_is_refused_at_the_start(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Config(**settings)  # type: ignore[arg-type]


def test_the_lines_of_known_programs_are_understood() -> None:
    def read(dialect: str, event: Mapping[str, object]) -> list[object]:
        return list(DIALECTS[dialect](event))

    assert read("codex", {"type": "thread.started", "thread_id": "th"}) == [AgentSession(id="th")]
    message = {"type": "agent_message", "text": "Hi"}
    assert read("codex", {"type": "item.completed", "item": message}) == [TextDelta(text="Hi\n\n")]
    assert read("codex", {"type": "turn.failed", "error": {"message": "no"}}) == [AgentFault(why="no")]
    assert read("gemini", {"type": "message", "role": "assistant", "content": "Hi"}) == [TextDelta(text="Hi")]
    assert read("gemini", {"type": "message", "role": "user", "content": "Hi"}) == []
    text = {"type": "text", "sessionID": "ses", "part": {"text": "Hi"}}
    assert read("opencode", text) == [AgentSession(id="ses"), TextDelta(text="Hi\n\n")]
    assert read("codex", {"type": "item.completed", "item": {"type": "context_compaction"}}) == [Compacted()]
    assert read("claude", {"type": "system", "subtype": "compact_boundary", "session_id": "s"}) == [Compacted()]
    assert read("claude", {"type": "system", "subtype": "init", "session_id": "s"}) == []
    result = {"type": "result", "result": "Hi", "session_id": "s", "usage": {"input_tokens": 2, "output_tokens": 1}}
    assert read("claude", result)[-1] == Final(text="Hi")


PRESET = """\
#!{python}
import json, sys
if sys.argv[1:] == ["--version"]:
    print("codex-cli 1.2.3")
elif sys.argv[1:] == ["login", "status"]:
    sys.exit(1)
else:
    resumed = "resume" in sys.argv
    print("a notice")
    print(json.dumps({{"type": "thread.started", "thread_id": "th-1"}}))
    print(json.dumps({{"type": "item.completed", "item": {{"type": "agent_message", "text": "First I look."}}}}))
    print(json.dumps({{"type": "item.started", "item": {{"type": "mcp_tool_call", "tool": "fetch_media"}}}}))
    answer = "on " + sys.argv[-2] if resumed else "new, " + sys.argv[-3]
    print(json.dumps({{"type": "item.completed", "item": {{"type": "agent_message", "text": answer}}}}))
    used = {{"input_tokens": 300 if resumed else 200, "output_tokens": 60 if resumed else 40}}
    print(json.dumps({{"type": "turn.completed", "usage": used}}))
"""


async def test_a_preset_calls_its_program_resumes_it_and_is_checked_by_the_doctor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "CODEX_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    codex = tmp_path / "bin" / "codex"
    codex.parent.mkdir()
    codex.write_text(PRESET.format(python=sys.executable))
    codex.chmod(0o755)
    tried = trial(tmp_path, Config(preset="codex", arguments=("-m", "gpt")))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    memory = HeldMemory()
    first, second = [await answered(tried, "hello", memory) for _ in range(2)]
    assert (final(first), final(second)) == ("new, -m", "on th-1")
    assert Usage(input_tokens=200, output_tokens=40) in first
    assert Usage(input_tokens=100, output_tokens=20) in second  # codex counts its whole session
    version, login = await Agent(Config(preset="codex")).check()
    assert (version.ok, version.says) == (True, "version codex-cli 1.2.3")
    assert not login.ok and "codex login" in (login.cure or "")
    monkeypatch.setenv("PATH", str(tmp_path))
    (missing,) = await Agent(Config(preset="gemini")).check()
    assert not missing.ok and "not found" in missing.says


@contextmanager
def at_work() -> Iterator[ToolAddress]:
    yield ToolAddress(url="http://127.0.0.1:1/mcp/turn", public_url="", token="of-the-turn")


@pytest.mark.parametrize(
    ("preset", "wanted"),
    [
        ("codex", 'mcp_servers.belino.default_tools_approval_mode="approve"'),
        ("gemini", "GEMINI_CLI_TRUST_WORKSPACE=true"),
        ("opencode", "OPENCODE_CONFIG_CONTENT={"),
    ],
)
async def test_a_preset_may_use_the_tools_without_being_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, preset: str, wanted: str
) -> None:
    file = tmp_path / "bin" / preset
    file.parent.mkdir()
    file.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        "told = [*sys.argv, *(f'{name}={value}' for name, value in os.environ.items())]\n"
        "open('told', 'w').write('\\n'.join(told))\n"
    )
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{file.parent}:{os.environ['PATH']}")
    tried = AgentTrial(make=lambda: Agent(Config(preset=preset)), folder=tmp_path / "sessions", tools_at=at_work)  # type: ignore[arg-type]
    await answered(tried, "hello")
    told = (tmp_path / "sessions" / "main" / "incoming" / "told").read_text()
    assert wanted in told


@pytest.mark.slow
async def test_the_preset_claude_drives_the_real_program_and_resumes_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sdk = pytest.importorskip("claude_agent_sdk")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").symlink_to(Path(sdk.__file__).parent / "_bundled" / "claude")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    async with MessagesServer(lambda _: ModelAnswer(text="Hello from Claude.")) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789")
        tried, memory = trial(tmp_path, Config(preset="claude")), HeldMemory()
        parts = await answered(tried, "the first question", memory)
        assert final(parts) == "Hello from Claude."
        assert any(isinstance(part, Usage) and part.output_tokens for part in parts)
        assert final(await answered(tried, "the second question", memory)) == "Hello from Claude."
        assert "the first question" in server.asked[-1].raw.decode()
        gone = HeldMemory(json.dumps({"session": "00000000-0000-4000-8000-000000000000"}).encode())
        with pytest.raises(MemoryLost):
            await answered(tried, "hello", gone)
