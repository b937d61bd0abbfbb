"""Voice of a gateway: the speaker that its configuration describes, with its keys and its HTTP client."""

import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from belino.config import Config
from belino.domain.outcome import Finding
from belino.domain.ports import Clock
from belino.media.sandbox.sandbox import Sandbox
from belino.net.client import Client
from belino.net.clock import SystemClock
from belino.net.guard import Guard, host_of
from belino.net.redact import Secret
from belino.storage.store import Store
from belino.understanding.speaker import Speaker
from belino.understanding.speech import SERVICES
from belino.understanding.speech_api import base_url

if TYPE_CHECKING:
    from belino.storage.home import Home


def make_speaker(
    config: Config, home: "Home", store: Store, *, sandbox: Sandbox, clock: Clock, opening: AsyncExitStack
) -> Speaker | None:
    """The configured voice; None if there is none. Its client is closed with `opening`."""
    speech = config.tools.media.speech
    if not speech.is_on:
        return None
    client = None
    if speech.provider is not None:
        client = Client(guard=Guard(config.net.allow), hosts=(host_of(base_url(speech)),))
        opening.push_async_callback(client.close)
    return Speaker(
        speech,
        keys_of(config),
        http=client,
        store=store,
        sandbox=sandbox,
        clock=clock,
        secret=home.key_file.read_bytes(),
        usd_per_day=config.tools.media.limits.usd_per_day,
    )


def keys_of(config: Config) -> tuple[Secret, ...]:
    """The keys of the voice: those of its profile, else the one in its provider's usual variable."""
    speech = config.tools.media.speech
    if speech.profile is not None:
        return config.profiles[speech.profile].all_keys
    known = SERVICES.get(speech.provider or "")
    held = os.environ.get(known.variable, "") if known is not None and speech.base_url is None else ""
    return (Secret(known.variable, held),) if known is not None and held else ()


async def examine_voice(config: Config, home: "Home", store: Store) -> tuple[Finding, ...]:
    """Try the configured voice, without a running gateway."""
    async with AsyncExitStack() as opening, Sandbox(config.media.sandbox) as sandbox:
        speaker = make_speaker(config, home, store, sandbox=sandbox, clock=SystemClock(), opening=opening)
        return tuple(await speaker.check()) if speaker is not None else ()
