"""Telegram's samples, and parse as the tests call it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from belino.adapters.telegram.authors import TelegramBot
from belino.adapters.telegram.media import FETCH_BYTES
from belino.adapters.telegram.parse import parse
from belino.domain.message import Arrival, Edit, Message, Unsupported

FOLDER = Path(__file__).parent.parent / "samples" / "telegram"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
ME = TelegramBot(id=4242, username="belino_bot")
RECEIVED = datetime(2026, 1, 2, tzinfo=UTC)


def sample(name: str) -> dict[str, Any]:
    raw: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return raw


def parsed(raw: object, *, account: str = "default", most: int = FETCH_BYTES) -> tuple[Arrival, ...]:
    return parse(raw, account=account, me=ME, received=RECEIVED, most=most)


def message(name: str, /, **changes: Any) -> Message:
    """The one message of a sample, with fields of its raw message changed."""
    raw = sample(name)
    kind = next(key for key in raw if key != "update_id")
    raw[kind] |= changes
    (arrival,) = parsed(raw)
    assert isinstance(arrival, Message)
    return arrival


def edit(name: str) -> Edit:
    (arrival,) = parsed(sample(name))
    assert isinstance(arrival, Edit)
    return arrival


def unsupported(name: str) -> Unsupported:
    (arrival,) = parsed(sample(name))
    assert isinstance(arrival, Unsupported)
    return arrival
