"""Sanitize text: replace characters that SQLite cannot store."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

import orjson

T = TypeVar("T")

# An unpaired surrogate is valid JSON and not valid text: stored with a mark, it is not refused at every retry.
NOT_TEXT = (UnicodeEncodeError, orjson.JSONEncodeError)


def mended(value: T) -> T:
    """The value with every unpaired surrogate replaced."""
    if isinstance(value, str):
        return type(value)(value.encode("utf-8", "replace").decode())
    if isinstance(value, tuple):
        return type(value)(mended(item) for item in value)
    if isinstance(value, Mapping):
        return type(value)({mended(key): mended(item) for key, item in value.items()})  # type: ignore[call-arg]
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: mended(getattr(value, field.name)) for field in fields(value)})
    return value
