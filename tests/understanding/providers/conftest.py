"""Servers on loopback, and rooms with providers that reach them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belino.testing.models.anthropic import MessagesServer
from belino.testing.models.gemini import GeminiServer
from belino.testing.models.openai import OpenAIServer
from belino.testing.models.speech import DeepgramServer
from understanding.providers.remote import KEY, Room


@pytest.fixture
async def openai(tmp_path: Path) -> AsyncIterator[Room]:
    async with OpenAIServer(key=KEY) as server:
        room = Room("openai", server, f"{server.url}/v1", tmp_path)
        yield room
        await room.close()


@pytest.fixture
async def groq(tmp_path: Path) -> AsyncIterator[Room]:
    async with OpenAIServer(key=KEY) as server:
        room = Room("groq", server, f"{server.url}/v1", tmp_path)
        yield room
        await room.close()


@pytest.fixture
async def minimax(tmp_path: Path) -> AsyncIterator[Room]:
    async with OpenAIServer(key=KEY) as server:
        room = Room("minimax", server, f"{server.url}/v1", tmp_path)
        yield room
        await room.close()


@pytest.fixture
async def anthropic(tmp_path: Path) -> AsyncIterator[Room]:
    async with MessagesServer(key=KEY) as server:
        room = Room("anthropic", server, server.url, tmp_path)
        yield room
        await room.close()


@pytest.fixture
async def google(tmp_path: Path) -> AsyncIterator[Room]:
    async with GeminiServer(key=KEY) as server:
        room = Room("google", server, server.url, tmp_path)
        yield room
        await room.close()


@pytest.fixture
async def deepgram(tmp_path: Path) -> AsyncIterator[Room]:
    async with DeepgramServer(key=KEY) as server:
        room = Room("deepgram", server, server.url, tmp_path)
        yield room
        await room.close()
