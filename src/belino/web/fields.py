"""Read a client's fields strictly: valid JSON, bounded depth, known fields of the right type."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import AnyStr

import orjson

from belino.domain.errors import BelinoError
from belino.domain.message import ConversationKey
from belino.web.responses import Refusal, bad_request

DEPTH = 32
CONVERSATION_CHARS = 512
# Only a byte array may be longer; it is checked item by item when it is decoded.
_LONGEST_WALKED = 10_000
_WALKED = 1_000_000
_LONG_CHARS, _FEW = 4_096, 100

_ESCAPED_COLON = re.compile(r"(?<!\\)(?:\\\\)*\\u003[aA]")
_ESCAPED_COLON_BYTES = re.compile(_ESCAPED_COLON.pattern.encode())
_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")


def parse_json(raw: bytes | str) -> object:
    """A JSON value. NaN, lone surrogates and anything nested deeper than 32 are refused."""
    try:
        value: object = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise bad_request("This is not JSON.") from error
    layer = [value] if isinstance(value, dict | list) else []
    walked = colons = 0
    for _ in range(DEPTH):
        if not layer:
            break
        walked += sum(len(outer) for outer in layer if len(outer) <= _LONGEST_WALKED)
        if walked > _WALKED:
            raise bad_request("This JSON holds too many values.")
        colons += sum(_colons(outer) for outer in layer)
        layer = [inner for outer in layer for inner in _inside(outer)]
    if layer:
        raise bad_request(f"This JSON is nested deeper than {DEPTH}.")
    if isinstance(value, dict | list) and colons != _written_colons(raw):
        raise bad_request("This JSON names a key twice in one object.")
    return value


def parse_conversation(text: str) -> ConversationKey:
    """A conversation named by a person or program."""
    if len(text) > CONVERSATION_CHARS:
        raise bad_request(f"conversation must be at most {CONVERSATION_CHARS} characters.")
    try:
        return ConversationKey.parse(text)
    except (BelinoError, UnicodeDecodeError) as error:
        raise bad_request("conversation must be platform:account:channel[:thread].") from error


class Fields:
    """The fields of one object, each read once and checked; snake_case and camelCase are the same name."""

    def __init__(
        self, value: object, *, known: Sequence[str], what: str = "The body", from_query: bool = False
    ) -> None:
        if not isinstance(value, Mapping):
            raise bad_request(f"{what} must be an object.")
        self._what = what
        self._from_query = from_query
        self._values: dict[str, object] = {}
        for name, field in value.items():
            snake = _CAMEL.sub(r"_\1", str(name)).lower()
            if snake not in known or snake in self._values:
                raise bad_request(f"{what} has unknown or repeated fields; known fields are {', '.join(known)}.")
            if field is not None:
                self._values[snake] = field

    def has(self, name: str) -> bool:
        return name in self._values

    def raw(self, name: str) -> object:
        """A raw field, for a parser of its own."""
        return self._values.get(name)

    def text(self, name: str, *, most: int, default: str | None = None) -> str:
        value = self._values.get(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, "text")
        if len(value) > most:
            raise self._wrong(name, f"at most {most} characters")
        return value

    def number(self, name: str, *, least: int, most: int) -> int | None:
        value = self._values.get(name)
        if value is None:
            return None
        if self._from_query and isinstance(value, str) and re.fullmatch(r"[0-9]{1,19}", value):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self._wrong(name, f"a number from {least} to {most}")
        return value

    def flag(self, name: str) -> bool:
        """True or false; false without the field."""
        value = self._values.get(name, False)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def items(self, name: str, *, most: int) -> Sequence[object]:
        value = self._values.get(name, [])
        if not isinstance(value, list):
            raise self._wrong(name, "a list")
        if len(value) > most:
            raise self._wrong(name, f"a list of at most {most}")
        return value

    def conversation(self, name: str = "conversation") -> ConversationKey:
        return parse_conversation(self.text(name, most=CONVERSATION_CHARS))

    def _wrong(self, name: str, wanted: str) -> Refusal:
        return bad_request(f"{self._what}: {name} must be {wanted}.")


def _colons(value: dict[str, object] | list[object]) -> int:
    """The colons that a value's own members and texts account for.

    The parser keeps the last of two equal keys, and only then are these fewer than the colons in the text. Counting
    costs less than a second parser that reports every pair.
    """
    if len(value) > _LONGEST_WALKED:
        if isinstance(value, dict) or not isinstance(value[0], int):
            raise bad_request("This JSON holds too many values.")
        return 0
    if isinstance(value, list):
        return sum(_count(item, ":") for item in value if isinstance(item, str))
    texts = (item for item in value.values() if isinstance(item, str))
    return len(value) + sum(key.count(":") for key in value) + sum(_count(text, ":") for text in texts)


def _written_colons(raw: bytes | str) -> int:
    """The colons in JSON text, whether written as such or as an escape."""
    if isinstance(raw, str):
        return _count(raw, ":") + (len(_ESCAPED_COLON.findall(raw)) if "\\" in raw else 0)
    return _count(raw, b":") + (len(_ESCAPED_COLON_BYTES.findall(raw)) if b"\\" in raw else 0)


def _count(text: AnyStr, mark: AnyStr) -> int:
    """Occurrences of one character; in a long text with few of them, searching is fifty times as fast as counting."""
    found, at = 0, -1
    while len(text) > _LONG_CHARS and found < _FEW:
        at = text.find(mark, at + 1)
        if at < 0:
            return found
        found += 1
    return found + text.count(mark, at + 1)


def _inside(value: dict[str, object] | list[object]) -> Iterator[dict[str, object] | list[object]]:
    if len(value) <= _LONGEST_WALKED:
        items = value.values() if isinstance(value, dict) else value
        yield from (item for item in items if isinstance(item, dict | list))
