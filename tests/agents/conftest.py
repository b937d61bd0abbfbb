"""A town for every test that asks for one, and model servers in every wire format."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tools.town import Town, settled

if TYPE_CHECKING:
    from agents.llm_room import Wire
    from belino.testing.models import ModelServer

# The rest costs an import more, or speaks a format that is tried already.
QUICK, SLOW = ("anthropic", "chat", "responses"), ("gemini", "groq", "ollama")


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with settled(tmp_path / "home") as found:
        yield found


@pytest.fixture(params=[*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)], ids=str)
def wire(request: pytest.FixtureRequest) -> "Wire":
    from agents.llm_room import WIRES  # imports the SDKs, which takes seconds

    return WIRES[request.param]


@pytest.fixture
async def server(wire: "Wire") -> "AsyncIterator[ModelServer]":
    from agents.llm_room import KEY

    async with wire.server(key=KEY) as server:
        yield server


@pytest.fixture
async def chat() -> "AsyncIterator[ModelServer]":
    from agents.llm_room import WIRES

    async with WIRES["chat"].server() as server:
        yield server
