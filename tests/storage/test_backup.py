"""Everything is in a backup, an enemy's backup is refused, and nothing is lost on the way back."""

import asyncio
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from belino.domain.errors import StoreError, StoreInUse, StoreTooNew
from belino.domain.media import MediaRef
from belino.domain.message import ConversationKey, Deletion, Message
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.reply import Parcel, ParcelState
from belino.domain.stored import ClaimedTurn, GrantKind, Verdict
from belino.storage.backup import BackedUp, back_up, hash_of
from belino.storage.home import Home
from belino.storage.restore import Restored, restore
from belino.storage.store import Store, open_store
from belino.testing.clock import START, FakeClock
from blob_files import content_of
from storage.pieces import chunks, raw, read_aloud

MAIN = ConversationKey(platform="web", account="default", channel="main")
OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
ANSWER = Verdict(standing=Standing.MAY_COMMAND, reason="on the list", answer=True)
NOW = datetime(2026, 1, 2, tzinfo=UTC)

Say = Callable[..., Message]
Photo = Callable[..., MediaRef]


def backed_up(home: Home, folder: Path, **more: Any) -> BackedUp:
    return back_up(home, folder, now=NOW, version="1", **more)


def restored(path: Path, folder: Path, **more: Any) -> Restored:
    return restore(Home.at(path), folder, now=NOW, **more)


async def put(store: Store, say: Say, photo: Photo, number: str, body: bytes) -> str:
    (ref,) = (await store.take_in(say(number, f"text {number}", media=(photo(number),)), OBSERVE)).refs
    blob = await store.keep(chunks(body), mime="image/png", limit=1000)
    await store.end_media(ref.id, MediaOutcome.HELD, blob=blob)
    return ref.id


@pytest.fixture
async def backup(store: Store, home: Home, say: Say, photo: Photo, tmp_path: Path) -> Path:
    """A backup of two pictures, made while the store is open."""
    for number, body in (("1", b"first"), ("2", b"second")):
        await put(store, say, photo, number, body)
    folder = tmp_path / "backup"
    backed_up(home, folder)
    return folder


def manifest(backup: Path) -> dict[str, Any]:
    return dict(json.loads((backup / "backup.json").read_text()))


def change(backup: Path, **values: object) -> None:
    (backup / "backup.json").write_text(json.dumps({**manifest(backup), **values}))


def change_database(backup: Path, *statements: str) -> None:
    """An enemy changes the database, and knows how to hash."""
    told = manifest(backup)["database"]
    path = backup / told["name"]
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)
    change(backup, database={**told, "sha256": hash_of(path), "size": path.stat().st_size})


async def test_what_was_there_is_there_again_and_goes_on(
    store: Store, home: Home, clock: FakeClock, say: Say, photo: Photo, tmp_path: Path
) -> None:
    refs = {number: await put(store, say, photo, number, f"body {number}".encode()) for number in "123"}
    (home.path / "belino.toml").write_text("[agent]\nname = 'x'\n")
    home.secrets.mkdir()
    (home.secrets / "telegram").write_text("s3cret")
    done = backed_up(home, tmp_path / "backup")
    assert (done.messages, done.blobs, done.copied, done.missing, done.damaged) == (3, 3, 3, 0, ())
    assert done.secrets == ("telegram",)
    back = restored(tmp_path / "new", tmp_path / "backup")
    assert (back.messages, back.blobs, back.lost, back.has_config, back.aside) == (3, 3, 0, True, None)
    assert back.secrets == ("telegram",)
    there = Home.at(tmp_path / "new")
    assert there.config_file.read_text() == "[agent]\nname = 'x'\n"
    assert not any("s3cret" in str(path.read_bytes()) for path in tmp_path.glob("[bn]*/**/*") if path.is_file())
    other = await open_store(there, clock=clock)
    try:
        for number, ref in refs.items():
            record = await other.ref(MAIN, ref)
            assert record is not None
            blob = await other.blob(record.ref.sha256 or "")
            assert blob is not None
            assert await content_of(store, blob) == f"body {number}".encode()
        await put(other, say, photo, "4", b"more")
        assert (await other.tidy()).total == 0
    finally:
        await other.close()


async def test_what_was_read_and_spoken_is_in_a_backup(
    store: Store, home: Home, clock: FakeClock, say: Say, photo: Photo, tmp_path: Path
) -> None:
    record = await store.find_ref(await put(store, say, photo, "1", b"voice"))
    assert record is not None
    await read_aloud(store, record.ref)
    backed_up(home, tmp_path / "backup")
    restored(tmp_path / "new", tmp_path / "backup")
    other = await open_store(Home.at(tmp_path / "new"), clock=clock)
    try:
        for table in ("readings", "reading_parts", "transcripts", "reading_attempts", "reading_costs", "speeches"):
            before, after = (
                [tuple(row) for row in raw(each).execute(f"SELECT * FROM {table}")] for each in (store, other)
            )
            assert before and before == after, table
        assert await other.speech("a keyed hash") is not None
        assert (await other.audit()).is_balanced
    finally:
        await other.close()


async def test_a_backup_is_one_moment_of_a_store_that_is_written_to_without_pause(
    store: Store, home: Home, say: Say, photo: Photo, tmp_path: Path
) -> None:
    done = asyncio.Event()

    async def talk() -> int:
        number = 0
        while not done.is_set():
            number += 1
            await put(store, say, photo, str(number), os.urandom(50))
        return number

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        talking = group.create_task(talk())
        for _ in range(3):
            told = await asyncio.to_thread(backed_up, home, tmp_path / "backup")
        done.set()
    assert (told.damaged, told.missing) == ((), 0)
    back = restored(tmp_path / "new", tmp_path / "backup")
    assert 0 < back.messages <= talking.result()
    assert (back.messages, back.blobs, back.lost) == (told.messages, told.blobs, 0)


async def test_what_was_deleted_is_not_in_the_next_backup(
    store: Store, home: Home, say: Say, photo: Photo, tmp_path: Path
) -> None:
    for number in range(50):
        await put(store, say, photo, str(number), f"body {number}".encode())
    await store.take_in(say("s", "the canary sings"), OBSERVE)
    folder = tmp_path / "backup"
    backed_up(home, folder)
    for name in ("s", "7"):
        gone = Deletion(conversation=MAIN, id=f"d{name}", message_id=name, author=None, sent=START)
        await store.take_in(gone, OBSERVE)
    await store.purge()
    again = backed_up(home, folder)
    assert (again.blobs, again.copied) == (49, 0)
    held = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert b"canary" not in held
    assert b"body 7" not in held
    assert len(list(folder.glob("belino-*.db"))) == 1


async def test_a_damaged_blob_is_not_backed_up_and_told(store: Store, home: Home, backup: Path, tmp_path: Path) -> None:
    (blob,) = [path for path in home.blobs.glob("??/??/*") if path.read_bytes() == b"first"]
    blob.write_bytes(b"FIRST")
    done = backed_up(home, tmp_path / "other")
    assert (done.damaged, done.blobs) == ((blob.name,), 1)
    blob.unlink()
    assert backed_up(home, tmp_path / "third").missing == 1
    assert restored(tmp_path / "new", tmp_path / "third").lost == 1


async def test_a_backup_takes_no_folder_that_is_not_its_own(store: Store, home: Home, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("dear")
    (tmp_path / "link").symlink_to(other)
    for folder in (other, home.path, home.path / "backup", tmp_path / "link", other / "letter.txt"):
        with pytest.raises(StoreError):
            backed_up(home, folder)
    assert [path.name for path in other.iterdir()] == ["letter.txt"]


async def test_without_its_key_a_backup_is_of_no_use(store: Store, home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    backed_up(home, folder)
    assert (folder / "key").stat().st_mode & 0o777 == 0o600
    backed_up(home, folder, with_key=False)
    assert not (folder / "key").exists()
    for key in (None, tmp_path / "wrong"):
        (tmp_path / "wrong").write_bytes(bytes(32))
        with pytest.raises(StoreError, match="key"):
            restored(tmp_path / "new", folder, key=key)
    assert not (tmp_path / "new" / "belino.db").exists()
    restored(tmp_path / "new", folder, key=home.key_file)
    assert (tmp_path / "new" / "key").read_bytes() == home.key_file.read_bytes()


async def test_nothing_is_restored_over_a_gateway_that_runs(store: Store, home: Home, backup: Path) -> None:
    with pytest.raises(StoreInUse):
        restored(home.path, backup)
    assert await store.history(MAIN)


async def test_what_was_here_is_put_aside_and_its_configuration_stays(
    store: Store, home: Home, clock: FakeClock, say: Say, photo: Photo, backup: Path
) -> None:
    await put(store, say, photo, "3", b"third")
    home.incoming(MAIN)
    (home.path / "belino.toml").write_text("mine = 1\n")
    await store.close()
    before = {path.name: path.read_bytes() for path in home.blobs.glob("??/??/*")}
    back = restored(home.path, backup)
    assert back.aside is not None
    assert {path.name: path.read_bytes() for path in (back.aside / "blobs").glob("??/??/*")} == before
    assert (back.aside / "media").is_dir()
    assert not back.has_config
    assert (home.path / "belino.toml").read_text() == "mine = 1\n"
    again = await open_store(home, clock=clock)
    try:
        assert [message.id for message in await again.history(MAIN)] == ["1", "2"]
    finally:
        await again.close()


async def test_no_old_login_opens_a_door_and_nothing_is_sent_a_second_time_by_itself(
    store: Store, home: Home, clock: FakeClock, tmp_path: Path
) -> None:
    _, secret = await store.grant(GrantKind.CHANNEL, conversation=MAIN, lifetime=timedelta(days=9))
    await store.put_parcels([Parcel(key=key, conversation=MAIN, text=key) for key in "cab"])
    await store.claim_parcel(MAIN, clock.now())
    await store.end_parcel("c", ParcelState.HELD, "once they write", window_closed=True)
    await store.claim_parcel(MAIN, clock.now())
    await store.start_upload(MAIN, file_name="a", mime="a/b", size=9, sha256=None)
    backed_up(home, tmp_path / "backup")
    assert restored(tmp_path / "new", tmp_path / "backup").held == 2
    other = await open_store(Home.at(tmp_path / "new"), clock=clock)
    try:
        assert await other.check(secret) is None
        states = {parcel.key: parcel.state for parcel in await other.parcels()}
        assert states == {"c": ParcelState.HELD, "a": ParcelState.UNCERTAIN, "b": ParcelState.HELD}
        assert await other.reopen_parcels(MAIN) == ()
        assert await other.ready_parcels() == ()
    finally:
        await other.close()


async def test_a_turn_that_ran_while_the_backup_was_made_is_no_suspect_of_a_crash(
    store: Store, home: Home, clock: FakeClock, say: Say, tmp_path: Path
) -> None:
    await store.take_in(say("1"), ANSWER)
    assert isinstance(await store.claim_turn(MAIN, clock.now()), ClaimedTurn)
    backed_up(home, tmp_path / "backup")
    restored(tmp_path / "new", tmp_path / "backup")
    other = await open_store(Home.at(tmp_path / "new"), clock=clock)
    try:
        assert await other.recover(begun=clock.now()) == 0
        turn = await other.claim_turn(MAIN, clock.now())
        assert isinstance(turn, ClaimedTurn)
        assert (turn.attempt, turn.suspect, turn.interruptions) == (1, False, 0)
    finally:
        await other.close()


BAD_MANIFESTS: dict[str, bytes | dict[str, object]] = {
    "not JSON": b"{",
    "a list": b"[]",
    "nested": b"[" * 100_000,
    "empty": b"",
    "huge": b" " * (2 << 20),
    "another name": {"database": {"name": "../belino.db", "sha256": "0" * 64, "size": 1}},
    "an absolute name": {"database": {"name": "/etc/passwd", "sha256": "0" * 64, "size": 1}},
    "no hash": {"database": {"name": "belino-0000000000000000.db", "sha256": 1, "size": 1}},
    "another hash": {"database": {"name": "belino-0000000000000000.db", "sha256": "0" * 64, "size": 1}},
    "no format": {"format": "1"},
}


async def test_a_manifest_that_is_none_is_refused_and_nothing_changes(
    store: Store, backup: Path, tmp_path: Path
) -> None:
    good = (backup / "backup.json").read_bytes()
    for bad in BAD_MANIFESTS.values():
        (backup / "backup.json").write_bytes(good)
        if isinstance(bad, bytes):
            (backup / "backup.json").write_bytes(bad)
        else:
            change(backup, **bad)
        refuses(tmp_path, backup)


def refuses(tmp_path: Path, backup: Path, error: type[StoreError] = StoreError) -> None:
    with pytest.raises(error):
        restored(tmp_path / "new", backup)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["belino.lock"]


async def test_a_database_that_belino_did_not_make_is_refused(store: Store, backup: Path, tmp_path: Path) -> None:
    for number, statement in enumerate(
        (
            "CREATE TRIGGER evil AFTER INSERT ON messages BEGIN DELETE FROM pairings; END",
            "CREATE VIEW evil AS SELECT load_extension('x')",
            "CREATE TABLE evil (x)",
            "DROP TABLE leases",
            "ALTER TABLE messages ADD COLUMN evil TEXT",
            "UPDATE blobs SET sha256 = '../../../../' || substr(sha256, 1, 52)",
            "PRAGMA user_version = 0",
        )
    ):
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(backup, copy)
        change_database(copy, statement)
        refuses(tmp_path, copy)


async def test_a_database_of_a_newer_belino_is_refused(store: Store, backup: Path, tmp_path: Path) -> None:
    change_database(backup, "PRAGMA user_version = 9999")
    refuses(tmp_path, backup, StoreTooNew)
    change(backup, schema=9999)
    refuses(tmp_path, backup, StoreTooNew)


async def test_a_damaged_database_is_refused(store: Store, backup: Path, tmp_path: Path) -> None:
    path = backup / manifest(backup)["database"]["name"]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    refuses(tmp_path, backup)


@pytest.mark.parametrize("name", ["key", "backup.json", "database", "blobs"])
async def test_no_link_in_a_backup_is_followed(store: Store, backup: Path, tmp_path: Path, name: str) -> None:
    path = backup / (manifest(backup)["database"]["name"] if name == "database" else name)
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    if name == "blobs":
        assert restored(tmp_path / "new", backup).lost == 2
    else:
        refuses(tmp_path, backup)


@pytest.mark.parametrize("what", ["a link", "a pipe", "a folder", "other bytes", "more bytes", "nothing"])
async def test_a_blob_that_is_not_what_its_name_says_does_not_come_back(
    store: Store, clock: FakeClock, backup: Path, tmp_path: Path, what: str
) -> None:
    blob = next(iter(sorted((backup / "blobs").glob("??/??/*"))))
    content = blob.read_bytes()
    blob.unlink()
    match what:
        case "a link":
            (tmp_path / "same").write_bytes(content)
            blob.symlink_to(tmp_path / "same")
        case "a pipe":
            os.mkfifo(blob)
        case "a folder":
            blob.mkdir()
        case "other bytes":
            blob.write_bytes(bytes(len(content)))
        case "more bytes":
            with blob.open("wb") as file:
                file.write(content)
                file.truncate(1 << 34)
    assert restored(tmp_path / "new", backup).lost == 1
    other = await open_store(Home.at(tmp_path / "new"), clock=clock)
    try:
        outcomes = {record.outcome for record in await other.refs(MAIN)}
        assert outcomes == {MediaOutcome.HELD, MediaOutcome.REFERENCED}
        assert (await other.tidy()).total == 0
    finally:
        await other.close()


class Killed(BaseException):
    """The process ended here."""


@pytest.mark.slow
async def test_however_often_it_is_killed_the_old_state_or_the_new_one_is_whole(
    store: Store, home: Home, clock: FakeClock, say: Say, photo: Photo, backup: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    await put(store, say, photo, "3", b"third")
    home.incoming(MAIN)
    await store.close()
    rename = Path.rename
    seen = set()
    for last in range(1, 30):
        path = tmp_path / f"home-{last}"
        shutil.copytree(home.path, path)
        left = last

        def dying(self: Path, target: Path) -> Path:
            nonlocal left
            left -= 1
            if not left:
                raise Killed
            return rename(self, target)

        monkeypatch.setattr(Path, "rename", dying)
        try:
            restored(path, backup)
            ended = True
        except Killed:
            ended = False
        monkeypatch.setattr(Path, "rename", rename)
        after = await open_store(Home.at(path), clock=clock)
        try:
            ids = tuple(message.id for message in await after.history(MAIN))
            for record in await after.refs(MAIN):
                assert await after.blob(record.ref.sha256 or "") is not None, (last, ids)
            assert (await after.tidy()).total == 0
        finally:
            await after.close()
        assert not list(path.glob(".restore-*"))
        seen.add(ids)
        if ended:
            break
    assert ended
    assert seen == {("1", "2", "3"), ("1", "2")}
