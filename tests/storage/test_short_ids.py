"""Short ids: a few characters name a message of a channel, for as long as it is stored."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.domain.message import ConversationKey, Deletion, Message, Unsupported
from belino.domain.outcome import Standing
from belino.domain.stored import Verdict
from belino.storage.encryption import MESSAGE_CODES, Keys
from belino.storage.short_ids import codes_named, short_id
from belino.storage.store import Store
from belino.testing.clock import FakeClock
from storage.conftest import ANNA, MAIN
from storage.engines import Engine

OBSERVE = Verdict(standing=Standing.OBSERVED, reason="")
OTHER = ConversationKey(platform="web", account="default", channel="other")
Say = Callable[..., Message]


@pytest.fixture
def alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes that are chosen by the ids of messages: `x12` and `x17` begin alike."""

    def code(self: Keys, platform: str, account: str, channel: str, message: str) -> int:
        return int(f"{message.lstrip('ax'):0<15}")

    monkeypatch.setattr(Keys, "message_code", code)


async def short_of(store: Store, message_id: str, channel: ConversationKey = MAIN) -> str:
    (message,) = await store.messages(channel, [message_id])
    return message.short_id


async def named(store: Store, name: str, channel: ConversationKey = MAIN) -> list[str]:
    return [message.id for message in (await store.messages_named(channel, [name]))[name]]


async def test_a_short_id_names_its_message_and_is_the_same_after_a_restart(engine: Engine, say: Say) -> None:
    store = await engine.open()
    for number in range(20):
        await store.take_in(say(f"m-{number}"), OBSERVE)
    before = {message.id: message.short_id for message in await store.history(MAIN)}
    await store.close()
    store = await engine.open()
    assert {message.id: message.short_id for message in await store.history(MAIN)} == before
    assert len(set(before.values())) == 20
    for message_id, short in before.items():
        assert re.fullmatch(r"[a-z]{2}[0-9]{3,4}", short)
        assert await named(store, short) == await named(store, message_id) == [message_id]
    await store.close()


async def test_a_short_id_is_of_one_channel_and_of_one_key(store: Store, say: Say) -> None:
    await store.take_in(say("1"), OBSERVE)
    await store.take_in(say("1", conversation=OTHER), OBSERVE)
    here, there = await short_of(store, "1"), await short_of(store, "1", OTHER)
    assert here != there
    assert await named(store, there) == await named(store, here, OTHER) == []
    assert Keys(b"a" * 32).message_code("web", "default", "main", "1") != Keys(b"b" * 32).message_code(
        "web", "default", "main", "1"
    )


@pytest.mark.usefixtures("alike")
async def test_messages_that_begin_alike_get_longer_ids_and_the_short_one_names_both(store: Store, say: Say) -> None:
    for message_id in ("x305", "x999"):
        await store.take_in(say(message_id), OBSERVE)
    assert [await short_of(store, "x305"), await short_of(store, "x999")] == ["aa305", "aa999"]
    await store.take_in(say("x30512"), OBSERVE)
    await store.take_in(say("x30517"), OBSERVE)
    shorts = {message.id: message.short_id for message in await store.history(MAIN)}
    assert shorts == {"x305": "aa3050", "x999": "aa999", "x30512": "aa30512", "x30517": "aa30517"}
    assert await named(store, "aa305") == ["x305", "x30512", "x30517"]
    assert await named(store, "aa3051") == ["x30512", "x30517"]
    for message_id, short in shorts.items():
        assert await named(store, short) == [message_id]
        assert [message.id for message in await store.find_messages(short)] == [message_id]


@pytest.mark.usefixtures("alike")
async def test_a_message_whose_own_id_looks_short_makes_a_name_ambiguous_and_hides_no_other(
    store: Store, say: Say
) -> None:
    await store.take_in(say("x305"), OBSERVE)
    await store.take_in(say("aa305"), OBSERVE)
    assert await named(store, "aa305") == ["x305", "aa305"]


async def test_an_unsupported_message_and_a_deleted_one_have_ids_too(store: Store, say: Say, clock: FakeClock) -> None:
    poll = Unsupported(conversation=MAIN, id="p", author=ANNA, sent=clock.now(), what="a poll")
    await store.take_in(poll, OBSERVE)
    await store.take_in(say("1"), OBSERVE)
    short = await short_of(store, "1")
    await store.take_in(Deletion(conversation=MAIN, id="d", message_id="1", author=None, sent=clock.now()), OBSERVE)
    assert await named(store, short) == ["1"]
    assert await named(store, await short_of(store, "p")) == ["p"]


async def test_a_message_that_arrives_after_its_imported_copy_keeps_its_short_id(store: Store, say: Say) -> None:
    await store.take_history(MAIN, [say("1")])
    recalled = await short_of(store, "1")
    await store.take_in(say("1"), OBSERVE)
    assert await named(store, recalled) == ["1"]


async def test_a_message_that_is_forgotten_leaves_no_short_id(store: Store, say: Say, clock: FakeClock) -> None:
    await store.take_in(say("1"), OBSERVE)
    short = await short_of(store, "1")
    assert await store.expire_messages(clock.now() + timedelta(seconds=1)) == 1
    assert await named(store, short) == []
    assert await store.find_messages(short) == ()


async def test_messages_of_an_older_version_get_their_short_ids_when_the_store_is_opened(
    engine: Engine, say: Say
) -> None:
    store = await engine.open()
    for number in range(5):
        await store.take_in(say(f"m-{number}"), OBSERVE)
    made = {message.id: message.short_id for message in await store.history(MAIN)}
    await store._database.write(lambda tx: tx.execute("UPDATE messages SET short = NULL"))
    assert await short_of(store, "m-1") == ""
    await store.close()
    store = await engine.open()
    assert {message.id: message.short_id for message in await store.history(MAIN)} == made
    await store.close()


@given(st.integers(0, MESSAGE_CODES - 1), st.integers(5, 17))
def test_a_code_is_between_those_that_its_short_id_names(code: int, chars: int) -> None:
    first, last = codes_named(short_id(code, chars))
    assert first <= code <= last
    assert short_id(first, chars) == short_id(last, chars) == short_id(code, chars)
    assert chars == 17 or short_id(first - 1, chars) != short_id(code, chars) if first else True


@pytest.mark.parametrize("name", ["", "kv30", "305", "12345", "kv305x", "KV305", "lo305", "kv305\n", "kv" + "1" * 16])
def test_what_is_no_short_id_names_no_code(name: str) -> None:
    first, last = codes_named(name)
    assert first > last
