"""Faults of a fake platform: how the next calls and downloads go wrong."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FILE = "file"
"""The key of a fault for the next file request."""
ANY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class CannedAnswer:
    """This status and description as the answer; with `body` exactly these bytes."""

    status: int
    description: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """The connection breaks; with `done` only after the call took effect, so that the caller cannot know."""

    done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang:
    """No answer until the server's clock has advanced this far, or ever."""

    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """An upload that the platform stops reading after so many bytes."""

    after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate:
    """A download whose connection breaks after this many bytes."""

    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Endless:
    """A download without a length and without an end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trickle:
    """A download that stops after this many bytes, the connection open."""

    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongLength:
    """A wrong Content-Length for a body of the real length."""

    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NoLength:
    """A download without a Content-Length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """Other bytes under the same link, with another ETag."""

    content: bytes


Fault = CannedAnswer | Reset | Hang | Stall | Truncate | Endless | Trickle | WrongLength | NoLength | Changed


class Faults:
    """Pending faults, by method, each used by one call."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, list[Fault]] = defaultdict(list)

    def add(self, method: str, fault: Fault, times: int) -> None:
        self._waiting[method.lower()].extend([fault] * times)

    def take(self, method: str) -> Fault | None:
        for name in (method.lower(), ANY):
            if self._waiting[name]:
                return self._waiting[name].pop(0)
        return None

    def clear(self) -> None:
        self._waiting.clear()
