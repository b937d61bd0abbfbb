"""Codec: domain values to JSON and back, by the fields of their dataclasses."""

import base64
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from belino.domain.errors import BelinoError
from belino.domain.message import Arrival, Deletion, DeliveryStatus, Edit, Message, Reaction, Unsupported
from belino.domain.turn import Accepted, Compacted, Final, Refused, ReplyPart, TextDelta, ToolNote, Usage

Json = dict[str, Any]

ARRIVALS: Mapping[str, type[Any]] = {
    kind.kind: kind for kind in (Message, Edit, Deletion, Reaction, DeliveryStatus, Unsupported)
}
PARTS: Mapping[str, type[Any]] = {
    kind.__name__: kind for kind in (TextDelta, ToolNote, Accepted, Compacted, Usage, Refused, Final)
}
UNWRITTEN = frozenset({"sealed", "chunks", "pending", "waveform"})
"""Keys of media, and what exists only in a running process."""


class Unreadable(BelinoError):
    """A part of a cassette is not valid."""


def as_json(value: Any) -> Any:
    """A value as JSON; fields that have their default are left out."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            each.name: as_json(held)
            for each in fields(value)
            if each.name not in UNWRITTEN and not _is_default(each, held := getattr(value, each.name))
        }
    match value:
        case Enum():
            return str(value)
        case datetime():
            return value.astimezone(UTC).isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case Path():
            return value.name
        case Mapping():
            return {str(key): as_json(inner) for key, inner in value.items()}
        case tuple() | list() | frozenset() | set():
            return [as_json(inner) for inner in value]
        case _:
            return value


def arrival_json(arrival: Arrival) -> Json:
    """An arrival with its kind."""
    return {"kind": arrival.kind, **as_json(arrival)}


def read_arrival(told: object) -> Arrival:
    """The arrival that was written."""
    return _tagged(told, "kind", ARRIVALS)  # type: ignore[no-any-return]


def part_json(part: ReplyPart) -> Json:
    """A part of an answer with its kind."""
    return {"part": type(part).__name__, **as_json(part)}


def read_part(told: object) -> ReplyPart:
    """The part that was written."""
    return _tagged(told, "part", PARTS)  # type: ignore[no-any-return]


def _tagged(told: object, tag: str, kinds: Mapping[str, type[Any]]) -> Any:
    if not isinstance(told, Mapping) or not isinstance(kind := told.get(tag), str) or kind not in kinds:
        raise Unreadable(f"the cassette has a record without a known {tag}; it is damaged or from another version")
    return read(kinds[kind], {key: value for key, value in told.items() if key != tag})


def read(kind: Any, told: object) -> Any:
    """A value of this type; Unreadable if it is anything else."""
    try:
        return _read(kind, told)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        name = getattr(kind, "__name__", str(kind))
        raise Unreadable(f"the cassette has a {name} that cannot be read ({type(error).__name__})") from None


def _read(kind: Any, told: Any) -> Any:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _read_union(get_args(kind), told)
    if origin in (tuple, frozenset):
        inner = get_args(kind)[0]
        return origin(_read(inner, each) for each in _list(told))
    if origin is not None and issubclass(origin, Mapping):
        return {str(key): _read(get_args(kind)[1], inner) for key, inner in dict(told).items()}
    if is_dataclass(kind):
        return _read_dataclass(kind, told)
    return _read_plain(kind, told)


def _read_union(kinds: tuple[Any, ...], told: Any) -> Any:
    if told is None:
        return None
    return _read(next(kind for kind in kinds if kind is not types.NoneType), told)


def _read_dataclass(kind: Any, told: Any) -> Any:
    hints = get_type_hints(kind)
    known = {each.name for each in fields(kind)}
    return kind(**{name: _read(hints[name], value) for name, value in dict(told).items() if name in known})


def _read_plain(kind: Any, told: Any) -> Any:
    if kind is datetime:
        return datetime.fromisoformat(told)
    if kind is bytes:
        return base64.b64decode(told, validate=True)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(told)
    if kind is float and isinstance(told, int) and not isinstance(told, bool):
        return float(told)
    if not isinstance(told, kind) or (kind is int and isinstance(told, bool)):
        raise TypeError(f"not a {kind.__name__}")
    return told


def _list(told: Any) -> list[Any]:
    if not isinstance(told, list):
        raise TypeError("not a list")
    return told


def _is_default(each: Any, held: Any) -> bool:
    if each.default is not MISSING:
        return bool(held == each.default)
    return each.default_factory is not MISSING and held == each.default_factory()
