"""Slack's samples, and parse as the tests call it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from belino.adapters.slack.authors import Directory, SlackApp
from belino.adapters.slack.parse import SlackParseContext, parse
from belino.domain.message import Arrival, Message

FOLDER = Path(__file__).parent.parent / "samples" / "slack"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
RECEIVED = datetime(2026, 1, 2, tzinfo=UTC)
VIEW = SlackParseContext(
    account="default",
    me=SlackApp(user="U0BELINO01", bot="B0BELINO01", name="belino", teams=frozenset({"T0WORK0001"})),
    directory=Directory(users={"U0ADA00001": "Ada", "U0BOBOBO01": "Bo"}, channels={"C0GENERAL1": "general"}),
    received=RECEIVED,
)


def sample(name: str) -> dict[str, Any]:
    raw: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return raw


def parsed(raw: object) -> tuple[Arrival, ...]:
    return parse(raw, VIEW)


def one(name: str, /, **changes: Any) -> Any:
    """The one arrival of a sample, with fields of its event changed."""
    raw = sample(name)
    raw.get("event", raw).update(changes)
    (arrival,) = parsed(raw)
    return arrival


def message(name: str, /, **changes: Any) -> Message:
    arrival = one(name, **changes)
    assert isinstance(arrival, Message)
    return arrival
