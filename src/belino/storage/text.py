"""Text that cannot be stored or sent as it is: NUL and lone surrogates, which are valid in a Python string.

An engine escapes them in what it writes and unescapes what it reads, so that every text is read as it was written. Each
such character, and each mark, becomes the mark and a code. A text that was not escaped may be read as another if it
contains the mark: an engine that does not escape every text from its first row on needs a mark that no earlier text can
contain.

In what platforms and agents say, lone surrogates are replaced instead: a text with one could never be sent as UTF-8 or
shown.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from enum import Enum
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeVar, get_type_hints

import orjson

MARK = "\x1a"
"""What each escape begins with; a longer mark begins with it, too, and does not contain it again."""
_ITSELF = "-"
T = TypeVar("T")
_WITHOUT_TEXT = (Enum, int, float, bytes, datetime)
_getters: dict[type, Callable[[object], object]] = {}
"""How to take the parts of a dataclass that may hold a text."""


def escape(text: str, mark: str = MARK) -> str:
    """The text without NUL and lone surrogates, from which `unescape` makes the same text."""
    return _refused(mark).sub(lambda found: mark + _code(found[0]), text)


def unescape(text: str, mark: str = MARK) -> str:
    """The text that was escaped."""
    return _escaped(mark).sub(lambda found: mark if found[1] == _ITSELF else chr(int(found[1], 16)), text)


def _code(refused: str) -> str:
    return f"{ord(refused):04x}" if refused == "\0" or "\ud800" <= refused <= "\udfff" else _ITSELF


@lru_cache
def _refused(mark: str) -> re.Pattern[str]:
    return re.compile(f"{re.escape(mark)}|[\0\ud800-\udfff]")


@lru_cache
def _escaped(mark: str) -> re.Pattern[str]:
    return re.compile(f"{re.escape(mark)}({_ITSELF}|[0-9a-f]{{4}})")


def sanitized(value: T) -> T:
    """The value, with every lone surrogate in its texts replaced; the same object if there is none."""
    try:
        # orjson refuses lone surrogates. It checks tuples much faster than dataclasses: an arrival in a microsecond.
        orjson.dumps(value, _parts, orjson.OPT_PASSTHROUGH_DATACLASS)
    except orjson.JSONEncodeError:
        return _replaced(value)
    return value


def _parts(value: object) -> object:
    """What orjson is to check of a value that it does not know."""
    getter = _getters.get(type(value))
    if getter is not None:
        return getter(value)
    if is_dataclass(value):
        names = tuple(_with_text(type(value)))
        getter = _getters[type(value)] = attrgetter(*names) if names else lambda _: None
        return getter(value)
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else None


def _with_text(kind: type[Any], within: str = "") -> Iterator[str]:
    """The fields of a dataclass that may hold a text, those of dataclasses in it included."""
    types = get_type_hints(kind)
    for field in fields(kind):
        declared = types[field.name]
        if not isinstance(declared, type):
            yield within + field.name
        elif is_dataclass(declared):
            yield from _with_text(declared, f"{within}{field.name}.")
        elif not issubclass(declared, _WITHOUT_TEXT):
            yield within + field.name


def _replaced(value: T) -> T:
    if isinstance(value, str):
        return type(value)(value.encode("utf-8", "replace").decode())
    if isinstance(value, tuple):
        return tuple.__new__(type(value), map(_replaced, value))
    if isinstance(value, Mapping):
        return type(value)({_replaced(key): _replaced(item) for key, item in value.items()})  # type: ignore[call-arg]
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _replaced(getattr(value, field.name)) for field in fields(value)})
    return value
