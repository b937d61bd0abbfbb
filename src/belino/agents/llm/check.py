"""Check of a model for the doctor, with one call that costs nothing."""

import json
from collections.abc import Sequence
from urllib.parse import quote

from belino.agents.llm.providers import Chosen
from belino.domain.errors import AdapterError, MediaTooLarge
from belino.domain.outcome import Finding
from belino.net.client import Client
from belino.net.guard import parse_url

ANSWER_BYTES = 1024 * 1024
SECONDS = 10.0
ANTHROPIC_VERSION = "2023-06-01"


async def check_model(chosen: Chosen, key: str | None) -> Sequence[Finding]:
    """Check that the address answers, the key is accepted and the model exists."""
    url, headers = _question(chosen, key)
    client = Client(hosts=(parse_url(url).host_port,))
    try:
        async with client.request("GET", url, headers=headers, timeout=SECONDS) as answer:
            status, body = answer.status, await answer.read(ANSWER_BYTES)
    except (AdapterError, MediaTooLarge) as error:
        cure = "See whether this machine reaches the provider, and whether base_url is right."
        return (Finding(name="agent model", ok=False, says=f"{chosen.provider} cannot be reached: {error}", cure=cure),)
    finally:
        await client.close()
    return (_finding(chosen, status, body),)


def _question(chosen: Chosen, key: str | None) -> tuple[str, dict[str, str]]:
    name = quote(chosen.name, safe="/:")
    match chosen.wire:
        case "messages":
            return f"{chosen.url}/v1/models/{name}", {"x-api-key": key or "", "anthropic-version": ANTHROPIC_VERSION}
        case "gemini":
            return f"{chosen.url}/v1/models/{name}", {"x-goog-api-key": key or ""}
        case _:
            return f"{chosen.url}/models/{name}", {"Authorization": f"Bearer {key}"} if key else {}


def _finding(chosen: Chosen, status: int, body: bytes) -> Finding:
    cure = "Run `belino setup agent` with a key of this provider."
    if status in (401, 403) or (status == 400 and b"API_KEY_INVALID" in body):
        return Finding(
            name="agent model", ok=False, says=f"{chosen.provider} refuses the API key (status {status})", cure=cure
        )
    if status == 200 and _is_json(body):
        return Finding(name="agent model", ok=True, says=f"{chosen.provider} has {chosen.name}")
    if status == 404 and chosen.official:
        says = f"{chosen.provider} knows no model {chosen.name!r}"
        return Finding(name="agent model", ok=False, says=says, cure="See the provider's list of models.")
    if status == 404:
        says = f"{chosen.provider} answers at base_url, but does not say whether it has {chosen.name}"
        return Finding(name="agent model", ok=True, says=says)
    return Finding(
        name="agent model", ok=False, says=f"{chosen.provider} answered with status {status}", cure="Try again later."
    )


def _is_json(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False
