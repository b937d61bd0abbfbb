"""`belino setup agent` against a model API that lives on this machine."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belino.testing.models.openai import OpenAIServer
from cli.shell import Belino, Done, read

pytestmark = pytest.mark.slow

KEY = "sk-test-0123456789abcdef"


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer(key=KEY) as server:
        yield server


async def setup(belino: Belino, server: OpenAIServer, *more: str, key: str = KEY) -> Done:
    given = ("setup", "agent", "--kind", "llm", "--token-env", "MODEL_KEY", "--set", "model=openai:gpt-5-mini")
    return await asyncio.to_thread(belino, *given, "--set", f"base_url={server.url}/v1", *more, MODEL_KEY=key)


async def test_a_good_key_is_tried_and_its_name_written_down(belino: Belino, home: Path, server: OpenAIServer) -> None:
    answer = read(await setup(belino, server, "--json"))
    assert answer["ok"] and answer["table"] == "agent"
    text = (home / "belino.toml").read_text(encoding="utf-8")
    assert 'kind = "llm"' in text and 'api_key = "env:MODEL_KEY"' in text and KEY not in text


async def test_a_bad_key_changes_nothing_and_is_told(belino: Belino, home: Path, server: OpenAIServer) -> None:
    done = await setup(belino, server, "--yes", key="sk-wrong-key")
    assert done.returncode == 1 and "Nothing was changed." in done.stdout
    assert "sk-wrong-key" not in done.stdout + done.stderr
    assert not (home / "belino.toml").exists()


async def test_an_address_where_nobody_answers_is_told(belino: Belino, home: Path, server: OpenAIServer) -> None:
    done = await setup(belino, server, "--yes", "--set", "base_url=http://127.0.0.1:9/v1")
    assert done.returncode == 1 and not (home / "belino.toml").exists()


async def test_another_kind_takes_the_place_of_the_one_before_without_its_keys(
    belino: Belino, home: Path, server: OpenAIServer
) -> None:
    home.mkdir(mode=0o700, exist_ok=True)
    before = '[agent]\nkind = "claude"\nname = "Ada"\nidle_seconds = 60\n\n[logs]\nlevel = "info"\n'
    (home / "belino.toml").write_text(before, encoding="utf-8")
    read(await setup(belino, server, "--json"))
    text = (home / "belino.toml").read_text(encoding="utf-8")
    assert 'name = "Ada"' in text and "idle_seconds" not in text and '[logs]\nlevel = "info"' in text


async def test_the_doctor_finds_a_key_that_is_bad(belino: Belino, home: Path, server: OpenAIServer) -> None:
    read(await setup(belino, server, "--json"))
    for key, well in ((KEY, True), ("sk-wrong-key", False)):
        done = await asyncio.to_thread(belino, "doctor", "--json", MODEL_KEY=key)
        (finding,) = [found for found in json.loads(done.stdout)["findings"] if found["name"].startswith("agent")][:1]
        assert finding["ok"] is well
        assert key not in done.stdout


async def test_a_channel_is_set_up_without_questions_and_the_doctor_says_how_a_client_connects(
    belino: Belino, home: Path
) -> None:
    answer = read(await asyncio.to_thread(belino, "setup", "agent", "--kind", "channel", "--yes", "--json"))
    assert answer["ok"]
    assert 'kind = "channel"' in (home / "belino.toml").read_text(encoding="utf-8")
    told = await asyncio.to_thread(belino, "doctor")
    assert "belino mcp --channel --conversation" in told.stdout
