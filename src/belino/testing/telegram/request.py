"""One call of the Bot API as it came, and what Telegram answers instead of a result."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from belino.testing.telegram.shapes import FakeUpload


class TelegramRefusal(Exception):
    """What Telegram answers instead of a result."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.code = code
        self.parameters = parameters


@dataclass(slots=True, kw_only=True)
class TelegramCall:
    """One call of a method: its fields as strings or JSON values, and the files that came with it."""

    method: str
    fields: Mapping[str, Any]
    files: Mapping[str, FakeUpload] = field(default_factory=dict)

    def text(self, name: str) -> str:
        value = self.fields.get(name)
        return "" if value is None else str(value)

    def whole(self, name: str, default: int) -> int:
        """A number that may come as text; one that is none counts as not given, as with Telegram."""
        try:
            return int(str(self.fields.get(name, default)))
        except ValueError:
            return default

    def flag(self, name: str) -> bool:
        return self.text(name).lower() in ("true", "yes", "1")

    def value(self, name: str) -> Any:
        """A field that holds JSON, which a form sends as text."""
        raw = self.fields.get(name)
        if not isinstance(raw, str):
            return raw
        try:
            return json.loads(raw)
        except ValueError:
            raise TelegramRefusal(400, f"Bad Request: can't parse {name} JSON object") from None
