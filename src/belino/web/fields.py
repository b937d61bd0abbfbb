"""Read what a client wrote, strictly: real JSON, bounded depth, known fields of the right type."""

import re
from collections.abc import Iterator, Mapping, Sequence

import orjson

from belino.domain.errors import BelinoError
from belino.domain.message import ConversationKey
from belino.web.answers import Refusal, bad_request

DEPTH = 32
CONVERSATION_CHARS = 512
# Only a byte array may be longer; it is checked item by item where it becomes bytes.
_LONGEST_WALKED = 10_000
_WALKED = 1_000_000

_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")


def parse_json(raw: bytes | str) -> object:
    """A JSON value. NaN, lone surrogates and anything nested deeper than 32 are refused."""
    try:
        value: object = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise bad_request("This is not JSON.") from error
    layer = [value] if isinstance(value, dict | list) else []
    walked = 0
    for _ in range(DEPTH):
        if not layer:
            return value
        walked += sum(len(outer) for outer in layer if len(outer) <= _LONGEST_WALKED)
        if walked > _WALKED:
            raise bad_request("This JSON holds too many values.")
        layer = [inner for outer in layer for inner in _inside(outer)]
    if layer:
        raise bad_request(f"This JSON is nested deeper than {DEPTH}.")
    return value


def parse_conversation(text: str) -> ConversationKey:
    """A conversation as a person or program names it."""
    if len(text) > CONVERSATION_CHARS:
        raise bad_request("conversation is too long to be one.")
    try:
        return ConversationKey.parse(text)
    except (BelinoError, UnicodeDecodeError) as error:
        raise bad_request("conversation must read platform:account:channel[:thread].") from error


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
                raise bad_request(f"{what} has fields that are unknown or double; known are {', '.join(known)}.")
            if field is not None:
                self._values[snake] = field

    def has(self, name: str) -> bool:
        return name in self._values

    def raw(self, name: str) -> object:
        """A field as it came, for a reader of its own."""
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


def _inside(value: dict[str, object] | list[object]) -> Iterator[dict[str, object] | list[object]]:
    if len(value) <= _LONGEST_WALKED:
        items = value.values() if isinstance(value, dict) else value
        yield from (item for item in items if isinstance(item, dict | list))
