"""Edit one table of a belino.toml or belino.json; the rest of the file stays unchanged."""

import json
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from belino.config.read import read_table
from belino.config.secrets import write_private
from belino.domain.errors import ConfigError

_HEADER = re.compile(r"\s*\[[^\[].*")
_ANY_HEADER = re.compile(r"\s*\[")


def edited(
    file: Path, path: Sequence[str], values: Mapping[str, Any], *, without: Collection[str] = ()
) -> tuple[dict[str, Any], str]:
    """The file with some keys of one table set and others removed: parsed, and as text.

    Nothing is written.
    """
    before = read_table(file) if file.exists() else {}
    meant = deepcopy(before)
    inner = meant
    for step in path:
        inner = inner.setdefault(step, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{file.name}: {step} must be a table")
    for key in without:
        inner.pop(key, None)
    inner.update(values)
    if file.suffix == ".json":
        return meant, json.dumps(meant, indent=2, ensure_ascii=False) + "\n"
    text = _with_values(file.read_text(encoding="utf-8") if file.exists() else "", path, values, without)
    try:
        if tomllib.loads(text) == meant:
            return meant, text
    except tomllib.TOMLDecodeError:
        pass
    # The file uses syntax that only a person should edit: dotted keys, inline tables, multi-line strings.
    raise ConfigError(f"{file} cannot be changed safely; write this into it yourself:\n{_as_table(path, values)}")


def with_entry(
    file: Path, meant: Mapping[str, Any], text: str, path: Sequence[str], entry: Mapping[str, Any]
) -> tuple[dict[str, Any], str]:
    """A configuration, parsed and as text, with one more table at the end of a list of tables. Nothing is written."""
    more = deepcopy(dict(meant))
    inner: Any = more
    for step in path[:-1]:
        inner = inner.setdefault(step, {}) if isinstance(inner, dict) else None
    entries = inner.setdefault(path[-1], []) if isinstance(inner, dict) else None
    if not isinstance(entries, list):
        raise ConfigError(f"{file.name}: {'.'.join(path)} must be a list of tables")
    entries.append(dict(entry))
    if file.suffix == ".json":
        return more, json.dumps(more, indent=2, ensure_ascii=False) + "\n"
    table = _as_table(path, entry).replace("[", "[[", 1).replace("]", "]]", 1)
    written = f"{text.rstrip()}\n\n{table}\n".lstrip("\n")
    try:
        if tomllib.loads(written) == more:
            return more, written
    except tomllib.TOMLDecodeError:
        pass
    raise ConfigError(f"{file} cannot be changed safely; write this into it yourself:\n{table}")


def write_config(file: Path, text: str) -> None:
    """Write the configuration file atomically."""
    try:
        write_private(file, text)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from None


def _with_values(text: str, path: Sequence[str], values: Mapping[str, Any], without: Collection[str]) -> str:
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if _names(line, path)), None)
    if start is None:
        gap = "\n" if text.strip() else ""
        return f"{text.rstrip()}{gap and chr(10)}{gap}{_as_table(path, values)}\n".lstrip("\n")
    end = next((n for n in range(start + 1, len(lines)) if _ANY_HEADER.match(lines[n])), len(lines))
    body = [line for line in lines[start + 1 : end] if not any(_sets(line, key) for key in without)]
    new = []
    for key, value in values.items():
        line = f"{_key(key)} = {_value(value)}"
        at = next((n for n, old in enumerate(body) if _sets(old, key)), None)
        if at is None:
            new.append(line)
        else:
            body[at] = line
    return "\n".join([*lines[: start + 1], *new, *body, *lines[end:]]) + "\n"


def _sets(line: str, key: str) -> bool:
    return re.match(rf"""\s*(["']?){re.escape(key)}\1\s*=""", line) is not None


def _names(line: str, path: Sequence[str]) -> bool:
    """Whether a line is the header of the table at this path, in any quoting and spacing."""
    if not _HEADER.match(line):
        return False
    try:
        named: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return False
    for step in path:
        if not isinstance(named, dict) or step not in named:
            return False
        named = named[step]
    return isinstance(named, dict) and not named


def _as_table(path: Sequence[str], values: Mapping[str, Any]) -> str:
    lines = [f"[{'.'.join(_key(step) for step in path)}]", *(f"{_key(k)} = {_value(v)}" for k, v in values.items())]
    return "\n".join(lines)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
