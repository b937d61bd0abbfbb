"""What the tests of the Slack we test against share."""

from collections.abc import AsyncIterator

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from belino.testing import FakeClock
from belino.testing.slack import SlackServer
from testing.slack_app import web_client


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    async with SlackServer(clock=FakeClock()) as server:
        yield server


@pytest.fixture
def app(server: SlackServer) -> AsyncWebClient:
    return web_client(server)
