"""WhatsApp's samples, and parse as the tests call it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from belino.adapters.whatsapp.parse import CloudNumber, CloudParseContext, parse
from belino.domain.message import Arrival, Message
from belino.testing.whatsapp.shapes import NAME, NUMBER, NUMBER_ID

FOLDER = Path(__file__).parent.parent / "samples" / "whatsapp"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
RECEIVED = datetime(2026, 1, 2, tzinfo=UTC)
VIEW = CloudParseContext(
    account="default", me=CloudNumber(id=NUMBER_ID, digits=NUMBER, name=NAME), received=RECEIVED, texts=frozenset()
)
ADA = "16505551234"


def sample(name: str) -> dict[str, Any]:
    raw: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return raw


def parsed(raw: object) -> tuple[Arrival, ...]:
    return parse(raw, VIEW)


def one(name: str) -> Any:
    """The one arrival of a sample."""
    (arrival,) = parsed(sample(name))
    return arrival


def message(name: str) -> Message:
    arrival = one(name)
    assert isinstance(arrival, Message), arrival
    return arrival
