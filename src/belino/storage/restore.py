"""Restore a backup: verified as untrusted input, moved into place when it is complete."""

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from belino.domain.errors import StoreError, StoreFull, StoreTooNew
from belino.storage import garbage
from belino.storage.backup import CONFIGS, DATABASE, FORMAT, KEY, MANIFEST, PIECE, Progress, key_check
from belino.storage.database import Tx, to_micros
from belino.storage.disk import sync_folder
from belino.storage.encryption import KEY_BYTES
from belino.storage.folder import blob_path
from belino.storage.home import Home, lock_folder
from belino.storage.migrations import STEPS
from belino.storage.sqlite_files import change_database, prepare_database

MANIFEST_BYTES = 1 << 20
CONFIG_BYTES = 1 << 20
BLOBS_AT_MOST = 10_000_000
JOURNAL = "restore.json"
STAGED = ".restore-"
ASIDE = "before-restore-"
HELD = "restored from a backup: it may have been sent since; `belino outbox retry` sends it"
UNCERTAIN = "restored from a backup that was made while it was sent; it may have arrived"

_HASH = re.compile(r"[0-9a-f]{64}")
_UPLOAD = re.compile(r"[0-9a-f]{32}")
_OURS = re.compile(r"(\.restore-|before-restore-)[0-9a-z-]{1,40}")
# The side files go before the database: an old database without them is intact, but they would corrupt the new one.
_MOVED = ("belino.db-wal", "belino.db-shm", "belino.db", KEY, "blobs", "media", *CONFIGS)
FOLDER_ONLY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What was restored, and what was not."""

    messages: int
    blobs: int
    lost: int
    """Blobs that the backup lacks or has damaged; their refs are fetched again, or record that they cannot be."""
    held: int
    """Answers that wait for a person, because they may have been sent since the backup."""
    pairings: int
    has_config: bool
    """Whether the configuration was restored; an existing one is kept."""
    secrets: tuple[str, ...]
    """Secrets the configuration may need, which no backup holds."""
    created: str
    aside: Path | None
    """The folder of the previous state."""


def restore(
    home: Home, folder: Path, *, now: datetime, key: Path | None = None, progress: Progress = lambda done, total: None
) -> Restored:
    """Make a backup the state of this folder. StoreInUse while a gateway runs; the previous state is put aside."""
    with ExitStack() as opened:
        opened.callback(os.close, lock_folder(home))
        finish_restore(home)
        try:
            backup = os.open(folder, FOLDER_ONLY)
        except OSError as error:
            raise StoreError(f"{folder} is no folder with a backup: {error.strerror}") from error
        opened.callback(os.close, backup)
        manifest = read_manifest(backup)
        aside = home.path / f"{ASIDE}{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        staged = home.path / f"{STAGED}{secrets.token_hex(8)}"
        staged.mkdir(mode=0o700)
        with ExitStack() as unfinished:
            unfinished.callback(shutil.rmtree, staged, ignore_errors=True)
            _stage_key(backup, staged, manifest, key)
            _stage_database(backup, staged, manifest, home)
            found = _stage_blobs(backup, staged, now, progress)
            has_config = _stage_config(backup, staged, manifest, home)
            os.sync()
            _write_journal(home, staged, aside)
            unfinished.pop_all()  # from here on the backup is the state, and only has to be moved
        finish_restore(home)
    return Restored(
        **found,
        has_config=has_config,
        secrets=_texts(manifest.get("secrets")),
        created=str(manifest.get("created", ""))[:40],
        aside=aside if aside.is_dir() else None,
    )


def finish_restore(home: Home) -> None:
    """Move a complete staged backup into place, also after crashes; delete an incomplete one."""
    journal = home.path / JOURNAL
    if journal.exists():
        told = json.loads(journal.read_text(encoding="utf-8"))
        names = [str(told[part]) for part in ("staged", "aside")]
        if not all(_OURS.fullmatch(name) for name in names):
            raise StoreError(f"{journal} names folders that are not ours; remove it")
        staged, aside = (home.path / name for name in names)
        if staged.is_dir():
            _move_in(home, staged, aside)
        journal.unlink()
        sync_folder(home.path)
    for left in home.path.glob(f"{STAGED}*"):
        shutil.rmtree(left, ignore_errors=True)


def _move_in(home: Home, staged: Path, aside: Path) -> None:
    aside.mkdir(mode=0o700, exist_ok=True)
    for name in _MOVED:
        old, new = home.path / name, staged / name
        side_file = name.startswith("belino.db-")
        goes = (staged / "belino.db").exists() if side_file else name == "media" or os.path.lexists(new)
        if goes and os.path.lexists(old):
            old.rename(aside / name)
        if os.path.lexists(new):
            new.rename(old)
    for folder in (aside, home.path):
        sync_folder(folder)
    if not any(aside.iterdir()):
        aside.rmdir()


def _write_journal(home: Home, staged: Path, aside: Path) -> None:
    """Record what is to be moved: if this process dies, the next one that opens the state folder moves it."""
    scrap = staged / JOURNAL
    with scrap.open("x", encoding="utf-8") as file:
        json.dump({"staged": staged.name, "aside": aside.name}, file)
        file.flush()
        os.fsync(file.fileno())
    scrap.rename(home.path / JOURNAL)
    sync_folder(home.path)


def read_manifest(backup: int) -> Mapping[str, Any]:
    """The manifest of a backup, validated."""
    try:
        manifest = json.loads(read_plain(backup, MANIFEST, most=MANIFEST_BYTES))
        database = manifest["database"]
        fits = (
            isinstance(manifest["format"], int)
            and isinstance(manifest["schema"], int)
            and isinstance(database["size"], int)
            and DATABASE.fullmatch(database["name"])
            and _HASH.fullmatch(database["sha256"])
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(f"{MANIFEST} cannot be read: this is not a whole backup") from error
    if not fits:
        raise StoreError(f"{MANIFEST} does not describe a backup")
    if manifest["format"] > FORMAT or manifest["schema"] > len(STEPS):
        raise StoreTooNew("a newer belino made this backup; restore it with that one")
    return dict(manifest)


def _stage_key(backup: int, staged: Path, manifest: Mapping[str, Any], given: Path | None) -> None:
    if given is not None:
        try:
            with given.open("rb") as file:
                key = file.read(KEY_BYTES + 1)
        except OSError as error:
            raise StoreError(f"{given} cannot be read: {error.strerror}") from error
    elif not manifest.get("has_key"):
        raise StoreError("this backup was made without its key; name the key file with --key")
    else:
        key = read_plain(backup, KEY, most=KEY_BYTES)
    if len(key) != KEY_BYTES or key_check(key) != manifest.get("key_check"):
        raise StoreError("that is not the key this backup was made with")
    _write(staged / KEY, key)


def _stage_database(backup: int, staged: Path, manifest: Mapping[str, Any], home: Home) -> None:
    told = manifest["database"]
    if told["size"] > shutil.disk_usage(home.path).free:
        raise StoreFull("the disk has no room for the database of this backup")
    found = _copy(backup, (told["name"],), staged / "belino.db", most=told["size"])
    if found != told["sha256"]:
        raise StoreError("the database of this backup is damaged: its hash is not the one that was noted")
    prepare_database(staged / "belino.db")


def _stage_blobs(backup: int, staged: Path, now: datetime, progress: Progress) -> dict[str, int]:
    """Stage the blobs, each verified, and reset what a backup must not bring back."""
    with change_database(staged / "belino.db") as tx:
        rows = tx.execute("SELECT sha256, size FROM blobs LIMIT ?", (BLOBS_AT_MOST + 1,))
        names = {row["sha256"]: row["size"] for row in rows}
        if len(names) > BLOBS_AT_MOST or not all(_HASH.fullmatch(name) for name in names):
            raise StoreError("the database of this backup names blobs that cannot be; nothing was changed")
        looked_at, total, lost = 0, sum(names.values()), []
        if total > shutil.disk_usage(staged).free:
            raise StoreFull("the disk has no room for the bytes of this backup")
        for name, size in names.items():
            progress(looked_at := looked_at + size, total)
            if not _stage_blob(backup, staged, name, size):
                lost.append(name)
        held = _disarm(tx, lost, to_micros(now))
        (messages,) = tx.execute("SELECT count(*) FROM messages").fetchone()
        (pairings,) = tx.execute("SELECT count(*) FROM pairings").fetchone()
    (staged / "blobs").mkdir(mode=0o700, exist_ok=True)
    return {
        "messages": messages,
        "blobs": len(names) - len(lost),
        "lost": len(lost),
        "held": held,
        "pairings": pairings,
    }


def _stage_blob(backup: int, staged: Path, name: str, size: int) -> bool:
    """Copy a blob from the backup; False if it is missing or damaged."""
    target = blob_path(staged / "blobs", name)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        found = _copy(backup, ("blobs", name[:2], name[2:4], name), target, most=size)
    except StoreFull:
        raise
    except StoreError:
        target.unlink(missing_ok=True)
        return False
    if found != name:
        target.unlink()
    return found == name


def _disarm(tx: Tx, lost: Sequence[str], now: int) -> int:
    """Revoke all grants, and hold parcels that may have been sent since. Returns how many are held."""
    garbage.lose(tx, lost, now)
    tx.execute("DELETE FROM grants")
    tx.execute("DELETE FROM leases")
    # The turns were running when the backup was made: that is not a crash, and none of them is a suspect.
    tx.execute("UPDATE turns SET state = 'waiting', attempt = attempt - 1, started = NULL WHERE state = 'running'")
    for row in tx.execute("SELECT id, sha256 FROM uploads").fetchall():
        if row["sha256"] is None or not _UPLOAD.fullmatch(row["id"]):
            tx.execute("DELETE FROM uploads WHERE id = ?", (row["id"],))
    # The person may have written since, and got them.
    tx.execute("UPDATE parcels SET window_closed = 0, reason = ? WHERE window_closed = 1", (HELD,))
    held = tx.execute("UPDATE parcels SET state = 'held', reason = ?, changed = ? WHERE state = 'ready'", (HELD, now))
    uncertain = tx.execute(
        "UPDATE parcels SET state = 'uncertain', reason = ?, changed = ?, doubt = 2 WHERE state = 'sending'",
        (UNCERTAIN, now),
    )
    return held.rowcount + uncertain.rowcount


def _stage_config(backup: int, staged: Path, manifest: Mapping[str, Any], home: Home) -> bool:
    """Stage the configuration, unless one exists: that is what the operator wants now."""
    name = manifest.get("config")
    if name not in CONFIGS or home.config_file.exists():
        return False
    _write(staged / str(name), read_plain(backup, str(name), most=CONFIG_BYTES))
    return True


def read_plain(backup: int, *parts: str, most: int) -> bytes:
    """The content of a small regular file of the backup."""
    descriptor = open_plain(backup, parts)
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise StoreError(f"{'/'.join(parts)} is larger than it may be")
    return content


def _copy(backup: int, parts: Sequence[str], target: Path, *, most: int) -> str:
    """Copy a file of the backup, at most so many bytes, and return their hash; empty if there are more."""
    digest, left = hashlib.sha256(), most
    with os.fdopen(open_plain(backup, parts), "rb") as reader:
        try:
            with target.open("xb") as writer:
                while left >= 0 and (piece := reader.read(min(PIECE, left + 1))):
                    left -= len(piece)
                    digest.update(piece)
                    writer.write(piece)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            raise (StoreFull if full else StoreError)(f"the backup could not be copied: {error.strerror}") from error
    target.chmod(0o600)
    return digest.hexdigest() if left >= 0 else ""


def open_plain(backup: int, parts: Sequence[str]) -> int:
    """Open a regular file in the backup's folder, without following links."""
    with ExitStack() as opened:
        here = backup
        try:
            for part in parts[:-1]:
                here = os.open(part, FOLDER_ONLY, dir_fd=here)
                opened.callback(os.close, here)
            descriptor = os.open(parts[-1], _PLAIN, dir_fd=here)
        except OSError as error:
            raise StoreError(f"the backup has no file {'/'.join(parts)}: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StoreError(f"{'/'.join(parts)} of the backup is not a plain file")
    return descriptor


def _write(target: Path, content: bytes) -> None:
    with target.open("xb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(content)


def _texts(value: object) -> tuple[str, ...]:
    """Names from an untrusted source, limited in number and length."""
    return tuple(str(one)[:100] for one in value[:100]) if isinstance(value, list) else ()
