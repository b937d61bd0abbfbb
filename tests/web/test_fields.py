"""Whatever a client writes is read strictly."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.domain.message import ConversationKey
from belino.web.fields import DEPTH, Fields, parse_conversation, parse_json
from belino.web.responses import Refusal


@pytest.mark.parametrize(
    "raw",
    [b"", b"NaN", b"[Infinity]", b"-Infinity", b'"\\ud800"', b"{'a': 1}", b"[1,]", b"\xff\xfe", b"nul", b"[1e999]"],
)
def test_what_is_not_strict_json_is_refused(raw: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        parse_json(raw)
    assert refused.value.status == 400


def test_json_may_be_nested_to_the_limit_and_not_deeper() -> None:
    def nested(depth: int) -> str:
        return "[" * depth + "]" * depth

    assert parse_json(nested(DEPTH)) is not None
    for depth in (DEPTH + 1, 1_000, 10_000):
        with pytest.raises(Refusal):
            parse_json(nested(depth))
    with pytest.raises(Refusal):
        parse_json('{"a":' * 40 + "1" + "}" * 40)


def test_json_of_too_many_values_is_refused_without_walking_them_all() -> None:
    row = "[" + ",".join("1" * 5_000) + "]"
    with pytest.raises(Refusal, match="too many"):
        parse_json("[" + ",".join([row] * 300) + "]")
    assert parse_json("[" + ",".join("1" * 100_000) + "]") is not None


@pytest.mark.parametrize(
    "raw",
    [
        '{"a": 1, "a": 1}',
        '{"a": 1, "\\u0061": 2}',
        '{"b": [{"c": {"a": "x", "a": "y:z"}}]}',
        '{"a": ":", "a": "\\u003a", "b": "\\u003A"}',
        '{"a": "x\\\\u003a", "a": "y"}',
    ],
)
def test_json_that_names_a_key_twice_is_refused(raw: str) -> None:
    for given_ in (raw, raw.encode()):
        with pytest.raises(Refusal, match="names a key twice") as refused:
            parse_json(given_)
        assert refused.value.status == 400


def test_a_key_named_twice_is_found_in_a_long_text_too() -> None:
    for words in ("x" * 100_000, "a:b " * 50_000):
        assert parse_json(json.dumps({"a": words, "b": words})) == {"a": words, "b": words}
        with pytest.raises(Refusal, match="names a key twice"):
            parse_json(json.dumps({"a": words, "b": 1})[:-1] + ', "b": 2}')


JSON = st.recursive(
    st.none() | st.integers(-9, 9) | st.text(alphabet=':\\"u003aA,{}[]é'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet=':\\"u003aA'), inner),
    max_leaves=20,
)


def escaped(text: str) -> str:
    """JSON whose texts hold their colons as escapes."""
    return re.sub(r'"(?:[^"\\]|\\.)*"', lambda found: found.group().replace(":", r"\u003a"), text)


@given(JSON)
def test_json_that_names_every_key_once_is_read_however_its_colons_are_written(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), escaped(json.dumps(value))):
        assert parse_json(text) == parse_json(text.encode()) == value


@given(
    st.recursive(st.none() | st.booleans() | st.integers(0, 9) | st.text(), lambda inner: st.lists(inner, max_size=3))
)
def test_odd_json_is_refused_and_never_breaks_anything(value: object) -> None:
    with pytest.raises(Refusal):
        Fields(value, known=("a",)).text("a", most=10)


def test_camel_case_and_snake_case_name_the_same_field() -> None:
    assert Fields({"mimeType": "x/y"}, known=("mime_type",)).text("mime_type", most=10) == "x/y"
    with pytest.raises(Refusal):
        Fields({"mimeType": "x/y", "mime_type": "x/z"}, known=("mime_type",))


def test_an_unknown_field_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(Refusal, match="known fields are conversation, message"):
        Fields({"path": "/etc/passwd"}, known=("conversation", "message"))


@pytest.mark.parametrize("value", [True, 1.0, "1", -1, 11, [1], {}])
def test_a_number_is_a_whole_number_in_its_range(value: object) -> None:
    with pytest.raises(Refusal):
        Fields({"n": value}, known=("n",)).number("n", least=0, most=10)


def test_a_query_writes_numbers_as_digits() -> None:
    assert Fields({"n": "7"}, known=("n",), from_query=True).number("n", least=0, most=10) == 7
    for text in ("", "+7", "７", "7 ", "1e1", "9" * 30):
        with pytest.raises(Refusal):
            Fields({"n": text}, known=("n",), from_query=True).number("n", least=0, most=10)


def test_null_is_the_same_as_absent() -> None:
    assert not Fields({"n": None}, known=("n",)).has("n")


@pytest.mark.parametrize("text", ["", "web", "web:a", "a:b:c:d:e", "web::main", "web:default:%ff", "x" * 600])
def test_what_does_not_name_a_conversation_is_refused(text: str) -> None:
    with pytest.raises(Refusal) as refused:
        parse_conversation(text)
    assert refused.value.status == 400


def test_a_conversation_is_read_as_it_is_written() -> None:
    key = ConversationKey(platform="web", account="default", channel="a:b/ü", thread="1")
    assert parse_conversation(str(key)) == key
