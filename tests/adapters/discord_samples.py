"""Discord's samples, and parse as the tests call it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from belino.adapters.discord.authors import DiscordBot, GuildCache
from belino.adapters.discord.parse import DiscordParseContext, parse
from belino.domain.message import Arrival, Edit, Message, Reaction, Unsupported
from belino.testing.discord import BOT_ID

FOLDER = Path(__file__).parent.parent / "samples" / "discord"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
RECEIVED = datetime(2026, 1, 2, tzinfo=UTC)


def sample(name: str) -> dict[str, Any]:
    raw: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return raw


def town() -> GuildCache:
    """What a bot knows that heard of the samples' server and its threads."""
    known = GuildCache(DiscordBot(id=BOT_ID, name="belino"), {})
    for name in ("guild_create", "thread_create", "thread_list_sync", "forum_thread_create"):
        known.learn(sample(name))
    return known


GUILDS = town()


def parsed(raw: object, *, account: str = "default") -> tuple[Arrival, ...]:
    return parse(raw, DiscordParseContext(account=account, me=GUILDS.me, channels=GUILDS.channels, received=RECEIVED))


def only(name: str, /, **changes: Any) -> Arrival:
    """The one arrival of a sample, with fields of its raw content changed."""
    raw = sample(name)
    raw["d"] |= changes
    (arrival,) = parsed(raw)
    return arrival


def message(name: str, /, **changes: Any) -> Message:
    arrival = only(name, **changes)
    assert isinstance(arrival, Message), arrival
    return arrival


def edit(name: str) -> Edit:
    arrival = only(name)
    assert isinstance(arrival, Edit)
    return arrival


def reaction(name: str) -> Reaction:
    arrival = only(name)
    assert isinstance(arrival, Reaction)
    return arrival


def unsupported(name: str) -> Unsupported:
    arrival = only(name)
    assert isinstance(arrival, Unsupported)
    return arrival
