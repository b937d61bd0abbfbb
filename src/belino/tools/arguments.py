"""Arguments of a tool call: read each once, strictly, and report a mistake in one sentence."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeGuard

from belino.domain.errors import ToolError

TEXT_CHARS = 256
LIST_ITEMS = 50

_RELATIVE = re.compile(r"([0-9]{1,6})\s*([mhdw])")
_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Arguments:
    """A tool's arguments; an unknown one is refused at once, and the error lists the known ones."""

    def __init__(self, given: Mapping[str, object], known: Sequence[str]) -> None:
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ToolError(f"unknown argument {_shown(unknown[0])}; known ones: {', '.join(known)}")
        # Models use null and a missing argument interchangeably.
        self._given = {name: value for name, value in given.items() if value is not None}

    def text(self, name: str) -> str | None:
        """A short text, or None if it was not given."""
        value = self._given.get(name)
        if value is None:
            return None
        if not _plain(value) or not value.strip():
            raise ToolError(f"{name} must be a text of 1 to {TEXT_CHARS} characters")
        return value.strip()

    def words(self, name: str, *, most: int) -> str:
        """A required text, of any number of lines."""
        value = self._given.get(name)
        if not isinstance(value, str) or not value.strip() or len(value) > most or _UNREADABLE.search(value):
            raise ToolError(f"{name} must be a text of 1 to {most} characters")
        return value.strip()

    def words_or_several(self, name: str, *, most: int, several: int) -> tuple[str, ...]:
        """A required text, or a list of up to `several` of them."""
        value = self._given.get(name)
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, Sequence) or not 1 <= len(texts) <= several:
            raise ToolError(f"{name} must be a text of 1 to {most} characters, or a list of 2 to {several} of them")
        return tuple(Arguments({name: text}, (name,)).words(name, most=most) for text in texts)

    def choice(self, name: str, options: Sequence[str], default: str) -> str:
        """One of a closed set of values."""
        if name not in self._given:
            return default
        value = self._given[name]
        if not isinstance(value, str) or value not in options:
            raise ToolError(f"{name} must be one of: {', '.join(options)}")
        return value

    def flag(self, name: str) -> bool:
        """True or false; false if it was not given."""
        value = self._given.get(name, False)
        if not isinstance(value, bool):
            raise ToolError(f"{name} must be true or false")
        return value

    def number(self, name: str, *, default: int, most: int) -> int:
        """A whole number from 1 to `most`."""
        value = self.number_or_none(name, least=1, most=most)
        return default if value is None else value

    def number_or_none(self, name: str, *, least: int, most: int) -> int | None:
        """A whole number within the limits, or None if it was not given."""
        value = self._given.get(name)
        if value is None:
            return None
        if isinstance(value, float) and math.isfinite(value) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ToolError(f"{name} must be a whole number from {least} to {most}")
        return value

    def texts(self, name: str) -> tuple[str, ...] | None:
        """A list of short texts without duplicates, in the order given."""
        value = self._given.get(name)
        if value is None:
            return None
        wrong = ToolError(f"{name} must be a list of 1 to {LIST_ITEMS} texts of at most {TEXT_CHARS} characters")
        if not isinstance(value, Sequence) or isinstance(value, str | bytes) or not 1 <= len(value) <= LIST_ITEMS:
            raise wrong
        texts: dict[str, None] = {}
        for item in value:
            if not _plain(item):
                raise wrong
            texts[item] = None
        return tuple(texts)

    def since(self, name: str, now: datetime) -> datetime | None:
        """A moment: ISO 8601, or how long ago (`30m`, `2h`, `3d`, `1w`)."""
        value = self.text(name)
        if value is None:
            return None
        try:
            if ago := _RELATIVE.fullmatch(value.lower()):
                return now - timedelta(**{_UNITS[ago.group(2)]: int(ago.group(1))})
            moment = datetime.fromisoformat(value)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise ToolError(f"{name} must be an ISO 8601 time or how long ago, like 2h or 3d") from error


def _plain(value: object) -> TypeGuard[str]:
    """Whether a value is a short text that can be stored, quoted and written as JSON."""
    return isinstance(value, str) and 1 <= len(value) <= TEXT_CHARS and value.isprintable()


def _shown(name: object) -> str:
    """A name as the agent wrote it, if it can be quoted."""
    return repr(name) if isinstance(name, str) and len(name) <= 40 and name.isprintable() else "name"
