"""The accounting check: 0 on a store that is whole, and every kind of damage is named with what it is about."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from datetime import timedelta

import pytest

from belino.domain.audit import Balance
from belino.domain.errors import StoreError, StoreTooNew
from belino.domain.media import Blob, MediaRef
from belino.domain.message import Author, ChatType, ConversationKey, Edit, Message, Unsupported
from belino.domain.outcome import MediaOutcome, MessageOutcome, Standing, TurnState
from belino.domain.reply import OutgoingFile, Parcel, Receipt
from belino.domain.stored import ClaimedTurn, TurnEnd, Verdict
from belino.storage.audit import audit_home, audit_rows
from belino.storage.audit_rules import RULES
from belino.storage.database import Tx
from belino.storage.deletions import note_deletion
from belino.storage.home import Home
from belino.storage.migrations import STEPS
from belino.storage.sqlite import SqliteTx, connect, migrate
from belino.storage.store import Store
from belino.testing.clock import FakeClock
from blob_files import path_of
from storage.pieces import chunks, keep, read_aloud

ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True)
OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
DENY = Verdict(standing=Standing.DENIED, reason="not on the list")
MAIN = ConversationKey(platform="web", account="default", channel="main")
ANNA = Author(id="u-anna", name="Anna")
AGENT = Author(id="belino", name="belino", is_agent=True)
AGED = timedelta(days=40)

Say = Callable[..., Message]
Photo = Callable[..., MediaRef]


async def answer(store: Store, clock: FakeClock, end: TurnEnd) -> None:
    turn = await store.claim_turn(MAIN, clock.now())
    assert isinstance(turn, ClaimedTurn), turn
    await store.finish_turn(turn.id, end)


def parcel(key: str, blob: Blob | None = None) -> Parcel:
    files = () if blob is None else (OutgoingFile(name="a", mime=blob.mime, size=blob.size, sha256=blob.sha256),)
    return Parcel(key=key, conversation=MAIN, text="hi", files=files)


async def fill(store: Store, clock: FakeClock, say: Say, photo: Photo) -> None:
    """One of everything: each outcome of an arrival, attachments had and not had, parcels sent and on their way."""
    picture, sent = await keep(store, b"picture"), await keep(store, b"sent")
    media = (photo("1", sha256=picture.sha256), photo("1", "1"), photo("1", "2"))
    taken = await store.take_in(say("1", media=media), ANSWER)
    await store.end_media(taken.refs[2].id, MediaOutcome.EXPIRED, "too old")
    await store.keep_rendition(picture.sha256, "small", b"made", "a/b")
    await read_aloud(store, taken.refs[0])
    await answer(store, clock, TurnEnd(state=TurnState.ANSWERED, parcels=(parcel("p1"), parcel("p2", sent))))
    await store.claim_parcel(MAIN, clock.now())
    await store.confirm_parcel("p1", Receipt(message_id="own", sent=clock.now()), AGENT)
    await store.take_in(say("2"), ANSWER)
    await answer(store, clock, TurnEnd(state=TurnState.FAILED, reason="no model"))
    await store.take_in(say("3"), OBSERVE)
    await store.take_in(say("3"), OBSERVE)
    await store.take_in(say("4"), DENY)
    await store.take_in(say("5"), ANSWER)
    what = Unsupported(
        conversation=MAIN, id="6", author=ANNA, sent=clock.now(), what="a poll", chat_type=ChatType.DIRECT
    )
    await store.take_in(what, OBSERVE)
    change = Edit(conversation=MAIN, id="3@1", message_id="3", author=ANNA, sent=clock.now(), text="otherwise")
    await store.take_in(change, OBSERVE)
    await store.take_history(MAIN, [say("0")])
    upload = await store.start_upload(MAIN, file_name="f", mime="a/b", size=6, sha256=None)
    await store.extend_upload(upload.id, 0, chunks(b"upload"))


async def test_a_whole_store_balances_and_every_outcome_is_counted(
    store: Store, home: Home, clock: FakeClock, say: Say, photo: Photo
) -> None:
    await fill(store, clock, say, photo)
    found = await store.audit()
    assert found.is_balanced, found
    (arrivals,) = found.arrivals
    assert (arrivals.taken, arrivals.difference) == (9, 0)
    assert {outcome: times for outcome, times in arrivals.outcomes.items() if times} == {
        "answered": 1, "failed": 1, "observed": 1, "duplicate": 1, "denied": 1, "waiting": 1, "unsupported": 1,
        "noted": 1, "recalled": 1,
    }  # fmt: skip
    assert set(arrivals.outcomes) == set(MessageOutcome)
    assert (found.attachments.outcomes["held"], found.attachments.taken) == (1, 3)
    assert {outcome: times for outcome, times in found.readings.outcomes.items() if times} == {
        "failed": 1,
        "success": 1,
    }
    assert (found.parcels.outcomes["sent"], found.parcels.outcomes["ready"]) == (1, 1)
    assert found.blobs == {"files": 4, "rows": 4, "unused": 0, "aside": 0}
    assert audit_home(home) == found


DAMAGE = (
    ("DELETE FROM messages WHERE platform_id = '3'", "difference in web:default"),
    ("DELETE FROM changes", "difference in web:default"),
    ("UPDATE denied SET times = 0", "difference in web:default"),
    ("UPDATE messages SET outcome = 'vanished' WHERE platform_id = '3'", "message outcome unknown"),
    ("UPDATE messages SET outcome = 'waiting' WHERE platform_id = '3'", "message without turn"),
    ("DELETE FROM turns WHERE state = 'waiting'", "message without turn"),
    ("UPDATE messages SET outcome = 'observed' WHERE platform_id = '5'", "message and turn disagree"),
    ("UPDATE messages SET reason = '' WHERE outcome = 'unsupported'", "message without reason"),
    ("UPDATE messages SET outcome = 'command', reason = '' WHERE platform_id = '3'", "command without reason"),
    ("UPDATE messages SET trace = '' WHERE platform_id = '3'", "message misplaced"),
    ("UPDATE messages SET outcome = 'answered' WHERE platform_id = '3'", "answer not ours"),
    ("UPDATE messages SET joined = 'whim' WHERE platform_id = '5'", "join unknown"),
    ("UPDATE denied SET reason = ''", "denial without reason"),
    ("UPDATE turns SET state = 'lost' WHERE state = 'waiting'", "turn state unknown"),
    ("UPDATE turns SET message = 1 WHERE state = 'waiting'", "turn without message"),
    ("UPDATE turns SET number = 1", "turn number repeated"),
    ("UPDATE turns SET state = 'running'", "turns at once"),
    ("UPDATE turns SET reason = ''", "turn without reason"),
    ("UPDATE turns SET ended = NULL", "turn without end"),
    ("UPDATE parcels SET turn = 0", "answer without parcel"),
    ("UPDATE parcels SET state = 'lost' WHERE key = 'p2'", "parcel state unknown"),
    ("UPDATE parcels SET turn = 99", "parcel without turn"),
    ("UPDATE parcels SET state = 'dead' WHERE key = 'p2'", "parcel without reason"),
    ("UPDATE parcels SET message_id = NULL", "parcel without receipt"),
    ("DELETE FROM messages WHERE platform_id = 'own'", "parcel without message"),
    ("UPDATE parcels SET state = 'sent', message_id = 'own'", "message sent twice"),
    ("UPDATE refs SET outcome = 'lost' WHERE outcome = 'held'", "attachment outcome unknown"),
    ("UPDATE refs SET reason = ''", "attachment without reason"),
    ("UPDATE refs SET outcome = 'held' WHERE outcome = 'referenced'", "attachment without bytes"),
    ("DELETE FROM message_refs", "attachment without message"),
    ("DELETE FROM refs WHERE outcome = 'referenced'", "message without attachment"),
    ("DELETE FROM refs WHERE outcome = 'referenced'", "difference in attachments"),
    ("UPDATE parcels SET state = 'lost' WHERE key = 'p2'", "difference in parcels"),
    ("DELETE FROM blobs WHERE sha256 IN (SELECT blob FROM renditions)", "blob row missing"),
    ("DELETE FROM blobs WHERE sha256 IN (SELECT sha256 FROM uploads)", "blob row missing"),
    ("DELETE FROM blobs WHERE sha256 IN (SELECT sha256 FROM blob_uses WHERE owner = 'parcel:p2')",
     "parcel without bytes"),
    ("DELETE FROM renditions", "blob without owner"),
    ("DELETE FROM refs WHERE outcome = 'held'", "reading without attachment"),
    ("DELETE FROM readings", "text without reading"),
    ("UPDATE reading_attempts SET ref = 'web_000000000000'", "attempt without attachment"),
    ("UPDATE reading_attempts SET reason = ''", "attempt without reason"),
    ("UPDATE reading_attempts SET outcome = 'lost'", "difference in readings"),
    ("DELETE FROM uploads", "blob without owner"),
)  # fmt: skip


async def test_damage_to_rows_is_found_and_says_what_it_is_about(
    store: Store, home: Home, clock: FakeClock, say: Say, photo: Photo
) -> None:
    await fill(store, clock, say, photo)
    with closing(connect(home.database)) as connection:
        for sql, kind in DAMAGE:
            connection.execute("BEGIN")
            assert connection.execute(sql).rowcount, sql
            found = audit_rows(SqliteTx(connection))
            connection.execute("ROLLBACK")
            assert not found.is_balanced, sql
            kinds = {each.kind for each in found.discrepancies}
            assert kind in kinds | {f"difference in {each.name}" for each in found.balances if each.difference}, sql
            assert all(each.subjects and each.cure for each in found.discrepancies)


def test_every_rule_is_broken_by_some_damage() -> None:
    assert {rule.kind for rule in RULES} <= {kind for _, kind in DAMAGE}


async def test_a_file_that_is_gone_shorter_or_unknown_is_found_by_its_name(store: Store, home: Home) -> None:
    gone, short = await keep(store, b"gone"), await keep(store, b"short")
    path_of(store, gone).unlink()
    path_of(store, short).write_bytes(b"s")
    stray = home.blobs / "ab" / "cd" / ("abcd" * 16)
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"?")
    (home.blobs / "aside").mkdir(exist_ok=True)
    (home.blobs / "aside" / ("cd" * 32)).write_bytes(b"old")
    found = await store.audit()
    assert {each.kind: each.subjects for each in found.discrepancies} == {
        "file without row": (stray.name,),
        "row without file": (gone.sha256,),
        "file of wrong size": (short.sha256,),
    }
    assert found.blobs["aside"] == 1
    assert audit_home(home) == found


async def test_what_ages_is_counted_as_forgotten(store: Store, clock: FakeClock, say: Say, photo: Photo) -> None:
    await fill(store, clock, say, photo)
    await store.claim_parcel(MAIN, clock.now())
    await store.confirm_parcel("p2", Receipt(message_id="own 2", sent=clock.now()), AGENT)
    await clock.advance(AGED.total_seconds())
    await store.expire_messages(clock.now())
    found = await store.audit()
    assert found.is_balanced, found
    assert found.arrivals[0].forgotten == 6  # all but the denied one, the duplicate and the one that waits


async def test_a_recalled_message_that_is_heard_and_an_echo_of_our_own_are_counted_once(
    store: Store, clock: FakeClock, say: Say
) -> None:
    await store.take_history(MAIN, [say("1")])
    await store.take_in(say("1"), ANSWER)
    await answer(store, clock, TurnEnd(state=TurnState.ANSWERED, parcels=(parcel("p1"),)))
    await store.claim_parcel(MAIN, clock.now())
    await store.take_in(say("own", author=AGENT), OBSERVE)
    await store.confirm_parcel("p1", Receipt(message_id="own", sent=clock.now()), AGENT)
    found = await store.audit()
    assert found.is_balanced, found
    (arrivals,) = found.arrivals
    assert (arrivals.taken, arrivals.forgotten) == (3, 1)
    assert (arrivals.outcomes["answered"], arrivals.outcomes["duplicate"]) == (1, 1)


async def test_arrivals_that_share_a_transaction_with_work_that_fails_are_counted_once(
    store: Store, say: Say, held_up: Callable[[], AbstractAsyncContextManager[None]]
) -> None:
    def fails(connection: Tx) -> None:
        raise StoreError("no")

    async with held_up():
        offered = [asyncio.ensure_future(store.take_in(say(name), OBSERVE)) for name in "12"]
        offered.insert(1, asyncio.ensure_future(store._database.write(fails)))  # type: ignore[arg-type]
        offered.append(asyncio.ensure_future(store.take_in(say("3", "\ud800"), OBSERVE)))
    await asyncio.gather(*offered, return_exceptions=True)
    found = await store.audit()
    assert found.is_balanced, found
    assert found.arrivals[0].taken == 3


async def test_a_store_of_an_older_version_is_audited_and_left_as_it_is(home: Home) -> None:
    with closing(sqlite3.connect(home.database, isolation_level=None)) as connection:
        migrate(connection, STEPS[:12])
        connection.execute("INSERT INTO denied VALUES ('web', 'default', 'stranger', 3)")
    found = audit_home(home)
    assert found.is_balanced
    assert found.arrivals[0].outcomes["denied"] == 3
    with closing(sqlite3.connect(home.database)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (12,)


def test_a_store_that_is_newer_or_missing_is_refused_in_a_sentence(home: Home) -> None:
    with pytest.raises(StoreError, match="there is no state in"):
        audit_home(home)
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreTooNew):
        audit_home(home)


def test_an_outcome_added_later_is_part_of_the_sum() -> None:
    balance = Balance(name="a", taken=7, forgotten=1, outcomes={"answered": 3, "added later": 2})
    assert balance.difference == 1


async def test_a_file_that_is_about_to_be_deleted_is_no_discrepancy(store: Store, home: Home) -> None:
    blob = await keep(store, b"withdrawn")

    def withdraw(tx: Tx) -> None:
        tx.execute("DELETE FROM blobs WHERE sha256 = ?", (blob.sha256,))
        note_deletion(tx, (blob.sha256,), 0)

    await store._database.write(withdraw)
    assert path_of(store, blob).exists()
    assert (await store.audit()).is_balanced
    assert audit_home(home).is_balanced
