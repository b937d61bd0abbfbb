"""What an agent remembers ends with its turn, and survives damage."""

import logging
from collections.abc import Callable

import pytest

from belino.domain.message import ConversationKey, Message
from belino.domain.outcome import Standing, TurnState
from belino.domain.stored import ClaimedTurn, ManifestEntry, ReadPosition, Session, TurnEnd, Verdict
from belino.storage.database import Tx
from belino.storage.store import Store
from belino.testing.clock import FakeClock
from storage.engines import Engine

ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True)
MAIN = ConversationKey(platform="web", account="default", channel="main")

Say = Callable[..., Message]


def shown(artifact: str, turn: int = 1, content: str = "f" * 64) -> ManifestEntry:
    return ManifestEntry(
        artifact_id=artifact, display_name="photo.png", media_type="image/png", content_hash=content,
        source_message_id="1", source_thread_id=None, included_at_turn=turn,
    )  # fmt: skip


async def end(store: Store, clock: FakeClock, message: Message, turn_end: TurnEnd) -> None:
    await store.take_in(message, ANSWER)
    turn = await store.claim_turn(message.conversation, clock.now())
    assert isinstance(turn, ClaimedTurn)
    await store.finish_turn(turn.id, turn_end)


async def test_a_new_session_remembers_nothing(store: Store) -> None:
    assert await store.session(MAIN) == Session(memory=None, turns=0, manifest=())


async def test_memory_and_manifest_are_there_after_a_restart(engine: Engine, clock: FakeClock, say: Say) -> None:
    store = await engine.open()
    await end(store, clock, say("1"), TurnEnd(state=TurnState.ANSWERED, memory=b"m\x00", shown=(shown("web_a"),)))
    await store.close()
    store = await engine.open()
    await end(store, clock, say("2"), TurnEnd(state=TurnState.FAILED))
    assert await store.session(MAIN) == Session(memory=b"m\x00", turns=2, manifest=(shown("web_a"),))
    await store.close()


async def test_a_thread_is_a_session_of_its_own(store: Store, clock: FakeClock, say: Say) -> None:
    thread = ConversationKey(platform="web", account="default", channel="main", thread="t")
    await end(store, clock, say("1", conversation=thread), TurnEnd(state=TurnState.ANSWERED, memory=b"t"))
    assert (await store.session(thread)).memory == b"t"
    assert (await store.session(MAIN)).memory is None


async def test_a_compacted_memory_has_lost_what_was_shown_before_and_keeps_what_was_shown_since(
    store: Store, clock: FakeClock, say: Say
) -> None:
    await end(store, clock, say("1"), TurnEnd(state=TurnState.ANSWERED, shown=(shown("web_a"), shown("web_b"))))
    again = shown("web_a", turn=2)
    ended = TurnEnd(state=TurnState.ANSWERED, shown=(again,), compacted=True, lost=("web_b",))
    await end(store, clock, say("2"), ended)
    session = await store.session(MAIN)
    assert session.manifest == (shown("web_b"), again)
    assert (session.lost, session.compacted) == (("web_b",), True)


async def test_what_was_attached_again_is_lost_no_longer_and_the_manifest_stays_as_it_was(
    store: Store, clock: FakeClock, say: Say
) -> None:
    entries = (shown("web_a"), shown("web_b", content="e" * 64))
    await end(store, clock, say("1"), TurnEnd(state=TurnState.ANSWERED, shown=entries))
    await end(store, clock, say("2"), TurnEnd(state=TurnState.ANSWERED, compacted=True, lost=("web_a", "web_b")))
    await end(store, clock, say("3"), TurnEnd(state=TurnState.FAILED))
    assert (await store.session(MAIN)).compacted
    await end(store, clock, say("4"), TurnEnd(state=TurnState.ANSWERED, recovered=("web_a",)))
    session = await store.session(MAIN)
    assert (session.manifest, session.lost, session.compacted) == (entries, ("web_b",), False)


async def test_single_items_that_went_from_memory_are_lost_and_ask_for_no_recovery(
    store: Store, clock: FakeClock, say: Say
) -> None:
    entries = (shown("web_a"), shown("web_b", content="e" * 64))
    await end(store, clock, say("1"), TurnEnd(state=TurnState.ANSWERED, shown=entries))
    await end(store, clock, say("2"), TurnEnd(state=TurnState.ANSWERED, lost=("web_b",)))
    session = await store.session(MAIN)
    assert (session.lost, session.compacted) == (("web_b",), False)
    await end(store, clock, say("3"), TurnEnd(state=TurnState.ANSWERED, shown=(shown("web_b", turn=3),)))
    assert (await store.session(MAIN)).lost == ()


async def test_the_manifest_keeps_the_thousand_that_were_shown_last(store: Store, clock: FakeClock, say: Say) -> None:
    many = tuple(shown(f"web_{number}", content=str(number)) for number in range(1005))
    await end(store, clock, say("1"), TurnEnd(state=TurnState.ANSWERED, shown=many))
    again = shown("web_7", turn=2, content="7")
    await end(store, clock, say("2"), TurnEnd(state=TurnState.ANSWERED, shown=(again,), lost=("web_3", "web_9")))
    session = await store.session(MAIN)
    assert session.manifest == (*(entry for entry in many[5:] if entry.artifact_id != "web_7"), again)
    assert session.lost == ("web_9",)


async def test_how_far_a_session_was_told_stays_until_it_is_told_more(
    engine: Engine, clock: FakeClock, say: Say
) -> None:
    store = await engine.open()
    await end(store, clock, say("1"), TurnEnd(state=TurnState.FAILED))
    assert (await store.session(MAIN)).told is None
    await end(store, clock, say("2"), TurnEnd(state=TurnState.ANSWERED, told=ReadPosition(seq=2, change=7)))
    await end(store, clock, say("3"), TurnEnd(state=TurnState.FAILED))
    await store.close()
    store = await engine.open()
    assert (await store.session(MAIN)).told == ReadPosition(seq=2, change=7)
    await store.close()


async def test_the_turn_that_has_the_context_stays_known_until_it_is_lost(
    store: Store, clock: FakeClock, say: Say
) -> None:
    assert (await store.session(MAIN)).context_turn == 0
    await end(store, clock, say("1"), TurnEnd(state=TurnState.ANSWERED, context_turn=1))
    await end(store, clock, say("2"), TurnEnd(state=TurnState.FAILED))
    assert (await store.session(MAIN)).context_turn == 1
    await end(store, clock, say("3"), TurnEnd(state=TurnState.ANSWERED, context_turn=0))
    assert (await store.session(MAIN)).context_turn == 0


@pytest.mark.parametrize("damage", [b"{", b"null", b"7", b"[1]", b'{"a": 1}'])
async def test_if_what_was_lost_cannot_be_read_all_counts_as_lost(
    store: Store, clock: FakeClock, say: Say, caplog: pytest.LogCaptureFixture, damage: bytes
) -> None:
    await end(store, clock, say("1"), TurnEnd(state=TurnState.ANSWERED, shown=(shown("web_a"),)))

    def spoil(connection: Tx) -> None:
        connection.execute("UPDATE sessions SET lost = ?", (damage,))

    await store._database.write(spoil)
    with caplog.at_level(logging.WARNING):
        assert (await store.session(MAIN)).lost == ("web_a",)
    assert "lost" in caplog.text


async def test_an_item_shown_again_is_in_the_manifest_once(store: Store, clock: FakeClock, say: Say) -> None:
    await end(store, clock, say("1"), TurnEnd(state=TurnState.ANSWERED, shown=(shown("web_a"),)))
    await end(store, clock, say("2"), TurnEnd(state=TurnState.ANSWERED, shown=(shown("web_a", turn=2),)))
    assert [entry.included_at_turn for entry in (await store.session(MAIN)).manifest] == [2]


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"\xff\xfe", b"null", b"7", b'"text"', b"[1]", b"[null]", b'[{"artifact_id": "web_a"}]', b"[[]]",
     b'{"a": 1}',
     b'[{"artifact_id": 1, "display_name": "", "media_type": "", "content_hash": "", "source_message_id": "", '
     b'"source_thread_id": null, "included_at_turn": "x"}]'],
)  # fmt: skip
async def test_a_damaged_manifest_is_empty_with_a_warning_and_the_session_goes_on(
    store: Store, clock: FakeClock, say: Say, caplog: pytest.LogCaptureFixture, damage: bytes
) -> None:
    await end(store, clock, say("1"), TurnEnd(state=TurnState.ANSWERED, memory=b"m", shown=(shown("web_a"),)))

    def spoil(connection: Tx) -> None:
        connection.execute("UPDATE sessions SET manifest = ?", (damage,))

    await store._database.write(spoil)
    with caplog.at_level(logging.WARNING):
        assert await store.session(MAIN) == Session(memory=b"m", turns=1, manifest=())
    assert "manifest" in caplog.text
    await end(store, clock, say("2"), TurnEnd(state=TurnState.ANSWERED, shown=(shown("web_b"),)))
    assert [entry.artifact_id for entry in (await store.session(MAIN)).manifest] == ["web_b"]


async def test_an_agent_of_another_kind_finds_no_memory_and_begins_anew(
    store: Store, clock: FakeClock, say: Say
) -> None:
    first = TurnEnd(
        state=TurnState.ANSWERED, memory=b"claude", shown=(shown("web_a"),), told=ReadPosition(seq=1), agent="claude"
    )
    await end(store, clock, say("1"), first)
    session = await store.session(MAIN)
    assert session.found_by("claude") == session
    other = session.found_by("llm")
    assert (other.memory, other.told, other.lost, other.turns) == (None, None, ("web_a",), 1)
    await end(store, clock, say("2"), TurnEnd(state=TurnState.FAILED))
    assert (await store.session(MAIN)).memory == b"claude"
    await end(store, clock, say("3"), TurnEnd(state=TurnState.ANSWERED, agent="llm"))
    session = await store.session(MAIN)
    assert (session.memory, session.agent, session.lost) == (None, "llm", ("web_a",))
