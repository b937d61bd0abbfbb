"""The pages about providers: their examples are valid, and every remote provider and its defaults are listed."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from belino.domain.reading import Skill
from belino.net.redact import Secret
from belino.registry import find
from belino.testing import FakeProviderContext

PAGES = Path(__file__).parents[3] / "docs" / "providers"
HEAVY = ("aiohttp", "httpx2", "PIL", "pyvips", "pydantic", "openai", "anthropic", "google", "groq", "numpy")
REMOTE = ("openai", "anthropic", "google", "groq", "minimax", "deepgram")
# The keys of an entry that are not the provider's own.
SHARED = {
    "provider", "type", "profile", "prompt", "max_chars", "max_bytes", "timeout_seconds", "language",
    "usd_per_minute", "usd_per_page", "usd_per_mtok",
}  # fmt: skip


def entries(page: str) -> Iterator[Mapping[str, Any]]:
    text = (PAGES / page).read_text(encoding="utf-8")
    for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL):
        media = tomllib.loads(block).get("tools", {}).get("media", {})
        for capability in media.values():
            yield from capability["models"]


@pytest.mark.parametrize("page", ["remote.md", "cli.md"])
def test_the_examples_are_valid_settings_of_their_providers(page: str) -> None:
    shown = list(entries(page))
    assert shown
    for entry in shown:
        own = {key: tuple(v) if isinstance(v, list) else v for key, v in entry.items() if key not in SHARED}
        find("providers", entry["provider"]).config_type(**own)


def test_every_remote_provider_is_shown_with_an_example() -> None:
    assert {entry["provider"] for entry in entries("remote.md")} == set(REMOTE)


@pytest.mark.parametrize("name", REMOTE)
def test_the_table_names_skills_models_and_the_key_of_a_provider(name: str) -> None:
    plugin = find("providers", name)
    (row,) = re.findall(rf"^\| `{name}` \|(.*)\|$", (PAGES / "remote.md").read_text(encoding="utf-8"), re.MULTILINE)
    speech, pictures, videos, models, key = (cell.strip() for cell in row.split("|"))
    provider = plugin.make(plugin.config_type(key=Secret("X", "xxxxxxxx")), Unused())
    skills = provider.skills
    assert (speech == "yes") == (Skill.TRANSCRIBE in skills)
    assert (pictures == "yes") == (Skill.DESCRIBE in skills) == (Skill.READ_TEXT in skills)
    assert (videos == "whole") == (Skill.DESCRIBE_VIDEO in skills)
    assert set(re.findall(r"`([^`]+)`", models)) == {provider.model(skill) for skill in skills}
    assert key == f"`{plugin.module.KEY_VARIABLE}`"


class Unused(FakeProviderContext):
    """A context whose client is never called."""

    @property
    def http(self) -> Any:
        return None


def test_no_provider_loads_a_library_when_it_is_imported() -> None:
    names = ", ".join(f"belino.understanding.providers.{name}" for name in (*REMOTE, "cli"))
    code = f"import sys, {names}; print(*sorted(m for m in sys.modules if m.partition('.')[0] in {HEAVY!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == []
