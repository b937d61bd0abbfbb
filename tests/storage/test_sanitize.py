"""A lone surrogate is replaced wherever it hides in a value, and a clean value stays the same object."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from belino.storage.text import sanitized


class Colour(StrEnum):
    RED = "red"


class Pair(NamedTuple):
    first: str
    second: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    said: str = "hello"


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    text: str = "hello"
    inner: Inner = Inner()
    items: tuple[Inner, ...] = (Inner(),)
    pair: Pair | None = None
    names: Any = field(default_factory=dict)
    colour: Colour = Colour.RED
    content: bytes = b"\xff"
    number: int = 1 << 40


BAD = {
    "a text": Value(text="a\ud800"),
    "a pair of surrogates": Value(text="\ud83d\ude00"),
    "a value in a value": Value(inner=Inner(said="\udfff")),
    "a value in a tuple": Value(items=(Inner(), Inner(said="\udfff"))),
    "a named tuple": Value(pair=Pair("a", "\ud800")),
    "a dict": Value(names={"a": "\ud800"}),
    "a key": Value(names={"\ud800": "a"}),
}


@pytest.mark.parametrize("where", BAD)
def test_a_lone_surrogate_is_replaced_in(where: str) -> None:
    clean = sanitized(BAD[where])
    repr(clean).encode()
    assert "?" in repr(clean)
    assert sanitized(clean) is clean


def test_a_clean_value_is_the_same_object() -> None:
    for clean in (Value(), (Value(), "x"), Value(names={"a": "b"}), Value(names=MappingProxyType({"a": "b"}))):
        assert sanitized(clean) is clean


def test_what_json_cannot_say_is_left_as_it_is() -> None:
    large = replace(Value(), number=1 << 80)
    assert sanitized(large) == large
