"""Check of the Claude API for the doctor: whether it answers and accepts our key."""

import asyncio

from belino.agents.claude.config import Config, hosts
from belino.domain.errors import AdapterError, MediaError
from belino.domain.outcome import Finding
from belino.net.client import Client

NAME = "agent claude"
VERSION = "2023-06-01"
CHECK_SECONDS = 10.0
ANSWER_BYTES = 1024 * 1024


async def check_api(config: Config) -> tuple[Finding, ...]:
    """Check the API with one call that costs nothing."""
    client = Client(hosts=hosts(config))
    headers = {"anthropic-version": VERSION, "x-api-key": config.api_key.reveal() if config.api_key else "unneeded"}
    url = f"{config.base_url.rstrip('/')}/v1/models?limit=1"
    try:
        async with asyncio.timeout(CHECK_SECONDS), client.request("GET", url, headers=headers) as answer:
            await answer.read(ANSWER_BYTES)
            status = answer.status
    except (AdapterError, MediaError, TimeoutError):
        cure = "See whether this machine reaches the address, and whether base_url in [agent] is right."
        return (Finding(name=f"{NAME} api", ok=False, says="the API cannot be reached", cure=cure),)
    finally:
        await client.close()
    return (_finding(status),)


def _finding(status: int) -> Finding:
    if status in (401, 403):
        cure = "Make a key at platform.claude.com and run `belino setup agent` with it."
        return Finding(name=f"{NAME} key", ok=False, says=f"the API refuses the key (status {status})", cure=cure)
    if status == 200:
        return Finding(name=f"{NAME} key", ok=True, says="the API takes the key")
    if status == 404:
        says = "the API is there; it lists no models, so the key shows itself with the first answer"
        return Finding(name=f"{NAME} key", ok=True, says=says)
    return Finding(name=f"{NAME} api", ok=False, says=f"the API answers with status {status}", cure="Try again later.")
