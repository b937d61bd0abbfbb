"""The cassette's file: gzipped JSON Lines, a header first, then records in chronological order.

A cassette is untrusted: its size, its unpacked size and its nesting are limited before it is parsed, and media are
checked against their hashes.
"""

import base64
import binascii
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from belino.cassette.codec import Unreadable

VERSION = 1
FORMAT = "belino cassette"
ENDING = ".jsonl.gz"
FILE_BYTES = 128 * 1024 * 1024
UNPACKED_BYTES = 512 * 1024 * 1024
LINE_BYTES = 64 * 1024 * 1024
RECORDS = 200_000
DEPTH = 64

Json = dict[str, Any]


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
