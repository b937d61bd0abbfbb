"""The cassette's file: gzipped JSON Lines, a header first, then records in chronological order.

Domain values are written by the fields of their dataclasses. A cassette is untrusted: its size, its unpacked size and
its nesting are limited before it is parsed, and media are checked against their hashes.
"""

import base64
import binascii
import gzip
import hashlib
import json
import os
import types
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from belino.domain.choice import Choice
from belino.domain.errors import BelinoError
from belino.domain.message import Arrival, Deletion, DeliveryStatus, Edit, Message, Reaction, Unsupported
from belino.domain.turn import Accepted, Compacted, Final, Mishap, Refused, ReplyPart, TextDelta, ToolNote, Usage

VERSION = 1
FORMAT = "belino cassette"
ENDING = ".jsonl.gz"
FILE_BYTES = 128 * 1024 * 1024
UNPACKED_BYTES = 512 * 1024 * 1024
LINE_BYTES = 64 * 1024 * 1024
RECORDS = 200_000
DEPTH = 64

Json = dict[str, Any]

ARRIVALS: Mapping[str, type[Any]] = {
    kind.kind: kind for kind in (Message, Edit, Deletion, Reaction, DeliveryStatus, Unsupported)
}
PARTS: Mapping[str, type[Any]] = {
    kind.__name__: kind for kind in (TextDelta, ToolNote, Accepted, Compacted, Usage, Refused, Choice, Mishap, Final)
}
UNWRITTEN = frozenset({"sealed", "chunks", "pending", "waveform", "other_names"})
"""Keys of media, what exists only in a running process, and names that only searches use."""


class Unreadable(BelinoError):
    """A part of a cassette is not valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cassette:
    """A cassette that was read."""

    header: Json
    records: tuple[Json, ...]
    media: dict[str, bytes] = field(repr=False)
    """Bytes by their SHA-256."""
    left_out: dict[str, str]
    """Media that were not stored, each with the reason."""


def write_cassette(path: Path, header: Json, records: Iterable[Json]) -> int:
    """Write a cassette atomically, readable by its owner only; returns its size in bytes."""
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
            for record in ({"format": FORMAT, "version": VERSION, **header}, *records):
                packed.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"))
                packed.write(b"\n")
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    return path.stat().st_size


def media_record(sha256: str, content: bytes) -> Json:
    """The bytes of one media item."""
    return {"record": "media", "sha256": sha256, "base64": base64.b64encode(content).decode()}


def read_cassette(path: Path) -> Cassette:
    """Read a cassette; Unreadable names the problem."""
    lines = _lines(path)
    header = _header(next(lines, b""), path)
    records: list[Json] = []
    media: dict[str, bytes] = {}
    left_out: dict[str, str] = {}
    for line in lines:
        record = _parsed(line)
        if record.get("record") != "media":
            records.append(record)
        elif "left_out" in record:
            left_out[str(record.get("sha256"))] = str(record["left_out"])
        else:
            media.update([_media(record)])
        if len(records) + len(media) > RECORDS:
            raise Unreadable(f"{path.name} has over {RECORDS} records, more than belino writes into a cassette")
    return Cassette(header=header, records=tuple(records), media=media, left_out=left_out)


def _header(line: bytes, path: Path) -> Json:
    try:
        header = _parsed(line)
    except Unreadable:
        header = {}
    if header.get("format") != FORMAT:
        raise Unreadable(f"{path.name} is not a cassette; `belino record stop` writes one")
    version = header.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise Unreadable(f"{path.name} was written by a newer belino (format {version}); update belino to replay it")
    return header


def _lines(path: Path) -> Iterator[bytes]:
    try:
        if path.stat().st_size > FILE_BYTES:
            raise Unreadable(f"{path.name} is over {FILE_BYTES} bytes, larger than belino writes a cassette")
        unpacked = 0
        with gzip.open(path, "rb") as file:
            while line := file.readline(LINE_BYTES + 1):
                unpacked += len(line)
                if len(line) > LINE_BYTES or unpacked > UNPACKED_BYTES:
                    raise Unreadable(f"{path.name} unpacks to more than {UNPACKED_BYTES} bytes; it is not replayed")
                yield line
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise Unreadable(f"{path.name} is damaged or not a cassette: it cannot be unpacked to its end") from None
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror or error}") from None


def _parsed(line: bytes) -> Json:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise Unreadable("the cassette has a line that is not JSON; it is damaged") from None
    if not isinstance(record, dict) or _depth(record) > DEPTH:
        raise Unreadable("the cassette has a line that is not one record; it is damaged")
    return record


def _depth(value: object) -> int:
    """The nesting depth of lists and objects, counted without recursion."""
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        each, depth = waiting.pop()
        deepest = max(deepest, depth)
        inner = each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
        waiting.extend((one, depth + 1) for one in inner if isinstance(one, dict | list))
    return deepest


def _media(record: Json) -> tuple[str, bytes]:
    try:
        content = base64.b64decode(record.get("base64", ""), validate=True)
    except (binascii.Error, TypeError, ValueError):
        content = b""
    if hashlib.sha256(content).hexdigest() != record.get("sha256"):
        raise Unreadable("the cassette has media that do not match their hash; it is damaged")
    return str(record["sha256"]), content


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
