"""Whatever Telegram, or somebody who speaks like it, sends: parse answers with arrivals and holds no secret."""

import json
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.telegram_samples import NAMES, parsed, sample
from belino.domain.message import ConversationKey, Edit, Message
from belino.storage.database import to_micros
from belino.storage.messages import quote_row

pytestmark = pytest.mark.slow

ROUNDS = 4000
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 10**30, -(10**30), 1.5, float("nan"), float("inf"), "", "x" * 5000, "\ud800", "\x00",
    "[Image: a, ref:tg_000000000000]", [], [[]], [None], {}, {"id": None}, [{"type": "mention"}], {"chat": {}},
)  # fmt: skip

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=5),
    max_leaves=20,
)
KEYS = st.sampled_from(
    ["message", "edited_message", "message_reaction", "deleted_business_messages", "business_message"]
)


def holds_together(raw: Any) -> None:
    """What everything parse returns must keep, whatever it was given."""
    before = repr(raw)
    arrivals = parsed(raw)
    assert arrivals and arrivals == parsed(raw)
    assert repr(raw) == before
    for arrival in arrivals:
        assert arrival.id
        assert ConversationKey.parse(str(arrival.conversation)) == arrival.conversation
        assert to_micros(arrival.sent) >= 0
        repr(arrival).encode()
        if isinstance(arrival, Message | Edit):
            items = [ref.item for ref in arrival.media]
            assert len(items) == len(set(items))
            for ref in arrival.media:
                assert ref.size is None or 0 <= ref.size < 2**63
                json.dumps(dict(ref.locator)).encode()
                (ref.file_name or "").encode()
        if isinstance(arrival, Message):
            arrival.text.encode()
            quote_row(arrival.quote), quote_row(arrival.forward)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in children:
        yield from places(inner, (*path, key))


def broken(rng: Random) -> Any:
    """A sample with some of its places replaced, removed or taken from another sample."""
    raw = sample(rng.choice(NAMES))
    for _ in range(rng.randint(1, 4)):
        spots = list(places(raw))
        if not spots:
            break
        *way, last = rng.choice(spots)
        holder = raw
        for step in way:
            holder = holder[step]
        match rng.randrange(3):
            case 0:
                del holder[last]
            case 1:
                holder[last] = deepcopy(rng.choice(ODD))
            case _:
                holder[last] = deepcopy(sample(rng.choice(NAMES)))
    return raw


def test_no_broken_sample_breaks_parse() -> None:
    rng = Random(2026)
    for _ in range(ROUNDS):
        holds_together(broken(rng))


@given(value=json_values)
@settings(max_examples=150, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_json_breaks_parse(value: Any) -> None:
    holds_together(value)


@given(kind=KEYS, value=json_values)
@settings(max_examples=150, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_payload_breaks_parse(kind: str, value: Any) -> None:
    holds_together({"update_id": 1, kind: value})
