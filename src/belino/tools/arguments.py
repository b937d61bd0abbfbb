"""Arguments of a tool call: read each once, as models send them, and report a mistake in one sentence."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TypeGuard

from belino.domain.errors import ToolError
from belino.domain.media import Block, TextBlock
from belino.search.dates import asked_days, span

TEXT_CHARS = 256
REF_CHARS = 1_000
"""A ref may come in its whole placeholder."""
LIST_ITEMS = 50
NUMBER_CHARS = 12

_REF = re.compile(r"(?<![a-z0-9_])[a-z0-9]{1,8}_[a-z0-9]{12}(?![a-z0-9_])")
_MARKED_REF = re.compile(rf"(?:ref:|belino:(?://media/)?)({_REF.pattern})")
_RELATIVE = re.compile(
    r"([0-9]{1,6})\s*(?:(m)(?:in(?:ute)?s?)?|(h)(?:(?:ou)?rs?)?|(d)(?:ays?)?|(w)(?:(?:ee)?ks?)?)(?:\s+ago)?"
)
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.0+)?")
_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Arguments:
    """A tool's arguments; an unknown one is refused at once, and the error lists the known ones."""

    def __init__(self, given: Mapping[str, object], known: Sequence[str]) -> None:
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ToolError(f"unknown argument {_shown(unknown[0])}; known ones: {', '.join(known)}")
        # Models send null, an empty text or an empty list for what they leave out; with strict schemas they must.
        self._given = {name: value for name, value in given.items() if not _is_left_out(value)}
        self._notes: list[str] = []

    def has(self, name: str) -> bool:
        """Whether it was given."""
        return name in self._given

    def reported(self, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        """A result, with what was changed in the arguments after it."""
        return (*blocks, TextBlock(text=f"({'; '.join(self._notes)})")) if self._notes else blocks

    def ref(self, name: str) -> str | None:
        """A ref: alone, with `ref:` before it, or in its placeholder; None if it was not given."""
        value = self._given.get(name)
        if value is None:
            return None
        if not isinstance(value, str) or len(value) > REF_CHARS:
            raise ToolError(f"{name} must be one ref, like tg_k3v9d0q2m7xa")
        found = set(_MARKED_REF.findall(value)) or set(_REF.findall(value))
        if len(found) > 1:
            raise ToolError(f"{name} names {len(found)} refs; give one at a time")
        return found.pop() if found else value.strip()[:TEXT_CHARS]

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
        said = value.strip().lower() if isinstance(value, str) else ""
        if said not in options:
            raise ToolError(f"{name} must be one of: {', '.join(options)}")
        return said

    def flag(self, name: str) -> bool:
        """True or false; false if it was not given."""
        value = self._given.get(name, False)
        if isinstance(value, str) and value.strip().lower() in ("true", "false"):
            value = value.strip().lower() == "true"
        if not isinstance(value, bool):
            raise ToolError(f"{name} must be true or false")
        return value

    def number(self, name: str, *, default: int, most: int) -> int:
        """A whole number from 1 to `most`."""
        value = self.number_or_none(name, least=1, most=most)
        return default if value is None else value

    def number_or_none(self, name: str, *, least: int, most: int) -> int | None:
        """A whole number, moved to the nearest limit if it is beyond; None if it was not given, or 0."""
        value = self._given.get(name)
        if isinstance(value, str) and len(value) <= NUMBER_CHARS and _NUMBER.fullmatch(value.strip()):
            value = float(value)
        if isinstance(value, float) and math.isfinite(value) and value.is_integer():
            value = int(value)
        if value is None or (value == 0 and not isinstance(value, bool)):
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ToolError(f"{name} must be a whole number from {least} to {most}")
        if not least <= value <= most:
            self._notes.append(f"{name} is from {least} to {most}; {min(max(value, least), most)} was taken")
        return min(max(value, least), most)

    def texts(self, name: str) -> tuple[str, ...] | None:
        """A list of short texts without duplicates, in the order given; a single text is a list of one."""
        value = self._given.get(name)
        if value is None:
            return None
        value = _listed(value) if isinstance(value, str) else value
        wrong = ToolError(f"{name} must be a list of 1 to {LIST_ITEMS} texts of at most {TEXT_CHARS} characters")
        if not isinstance(value, Sequence) or isinstance(value, str | bytes) or not 1 <= len(value) <= LIST_ITEMS:
            raise wrong
        texts: dict[str, None] = {}
        for item in value:
            if not _plain(item):
                raise wrong
            texts[item] = None
        return tuple(texts)

    def since(self, name: str, now: datetime, zone: tzinfo = UTC) -> datetime | None:
        """A moment: ISO 8601, how long ago (`30m`, `2h`, `3 days ago`), or the day that words name (`yesterday`)."""
        value = self.text(name)
        if value is None:
            return None
        try:
            if ago := _RELATIVE.fullmatch(value.lower()):
                return now - timedelta(**{_UNITS[ago[ago.lastindex or 2]]: int(ago[1])})
            moment = _moment(value, now, zone)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise ToolError(f"{name} must be an ISO 8601 time or how long ago, like 2h or 3d") from error


def _is_left_out(value: object) -> bool:
    """Whether a value stands for an argument that is not given."""
    return value is None or (isinstance(value, str) and not value.strip()) or value in ([], {})


def _listed(text: str) -> Sequence[object]:
    """A list that was written as JSON in a text, else the text alone."""
    if text.startswith("[") and len(text) <= LIST_ITEMS * TEXT_CHARS:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return [text]
        return found if isinstance(found, list) else [text]
    return [text]


def _moment(value: str, now: datetime, zone: tzinfo) -> datetime:
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        days = asked_days(value, now.astimezone(zone).date())
        if len(days) != 1:
            raise
        return span(days[0], zone)[0]


def _plain(value: object) -> TypeGuard[str]:
    """Whether a value is a short text that can be stored, quoted and written as JSON."""
    return isinstance(value, str) and 1 <= len(value) <= TEXT_CHARS and value.isprintable()


def _shown(name: object) -> str:
    """A name as the agent wrote it, if it can be quoted."""
    return repr(name) if isinstance(name, str) and len(name) <= 40 and name.isprintable() else "name"
