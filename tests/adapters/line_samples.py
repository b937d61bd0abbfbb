"""LINE's samples, and parse as the tests call it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from belino.adapters.line.authors import LineBot, NameBook
from belino.adapters.line.parse import LineParseContext, parse
from belino.domain.message import Arrival

FOLDER = Path(__file__).parent.parent / "samples" / "line"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
RECEIVED = datetime(2026, 1, 2, 3, 5, tzinfo=UTC)
ADA, BOT = "U09092762b8490c8ee88bf678ade9195a", "U22bfd7218d54b0c224ab3986ae2fa337"
GROUP = "C6be085e3292730399be5a243d7d53b4e"
OWN = "596000000000000077"
"""A message that the account sent."""


def view(**more: Any) -> LineParseContext:
    book = NameBook(names={GROUP: "Trip", ADA: "Ada"}, languages={ADA: "de-AT"})
    return LineParseContext(
        account="default", me=LineBot(user=BOT, name="belino"), book=book, own=(OWN,), received=RECEIVED, **more
    )


def sample(name: str) -> dict[str, Any]:
    raw: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return raw


def parsed(raw: object) -> tuple[Arrival, ...]:
    return parse(raw, view())


def one(name: str, /, **changes: Any) -> Any:
    """The one arrival of a sample, with fields changed."""
    (arrival,) = parsed({**sample(name), **changes})
    return arrival
