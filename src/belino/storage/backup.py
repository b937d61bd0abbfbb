"""Backup of the state folder, made while a gateway may run: database, blobs, key and configuration."""

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from belino.domain.errors import StoreError
from belino.domain.failpoints import failpoint
from belino.storage.backup_place import CONFIGS, DATABASE, KEY, MANIFEST, SCRAP, backup_place
from belino.storage.disk import sync_folder
from belino.storage.folder import blob_path
from belino.storage.home import Home
from belino.storage.sqlite_files import copy_database, read_database

FORMAT = 1
PIECE = 1 << 20

Progress = Callable[[int, int], None]
"""(bytes of blobs processed, bytes of all blobs)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedUp:
    """What a backup contains, and what is missing from it."""

    messages: int
    blobs: int
    size: int
    """Bytes of all blobs."""
    copied: int
    """Blobs that an earlier backup in the same folder did not have."""
    damaged: tuple[str, ...]
    """Blobs whose checksum is wrong; left out."""
    missing: int
    """Blobs deleted while the backup ran; left out."""
    secrets: tuple[str, ...]
    """Secrets of the configuration that are stored in separate files; never copied."""
    has_key: bool


def back_up(
    home: Home,
    folder: Path,
    *,
    now: datetime,
    version: str,
    with_key: bool = True,
    progress: Progress = lambda done, total: None,
    earlier: Path | None = None,
) -> BackedUp:
    """Copy the state to a separate folder, which appears complete or not at all.

    An earlier backup in the folder is reused, and replaced only at the end. Intact blobs of another, `earlier` backup
    become links to its files.
    """
    if not home.database.is_file():
        raise StoreError(f"there is no state in {home.path} to back up")
    with backup_place(home, folder) as place:
        return _fill(home, place, now, version, with_key=with_key, progress=progress, earlier=earlier)


def _fill(
    home: Home,
    folder: Path,
    now: datetime,
    version: str,
    *,
    with_key: bool,
    progress: Progress,
    earlier: Path | None,
) -> BackedUp:
    name, schema = _copy_database(home, folder)
    failpoint("backup.database.after")
    names, messages = _listed(folder / name)
    copied, damaged, missing = _copy_blobs(home, folder, names, progress, earlier)
    key, config = home.key_file.read_bytes(), _copy_config(home, folder)
    _put(folder / KEY, key if with_key else None)
    kept = names.keys() - {*damaged, *missing}
    done = BackedUp(
        messages=messages,
        blobs=len(kept),
        size=sum(names[name] for name in kept),
        copied=copied,
        damaged=tuple(damaged),
        missing=len(missing),
        secrets=_secret_names(home),
        has_key=with_key,
    )
    failpoint("backup.blobs.after")
    os.sync()  # one for all the blobs: a sync for each would take longer than the copy
    manifest = _manifest(folder / name, done, schema=schema, key=key, config=config, now=now, version=version)
    failpoint("backup.manifest.before")
    _put(folder / MANIFEST, json.dumps(manifest, indent=1).encode())
    failpoint("backup.manifest.after")
    _sweep(folder, name, names)
    return done


def key_check(key: bytes) -> str:
    """A fingerprint that shows whether a key is the one a backup was made with, and reveals nothing else."""
    return hmac.digest(key, b"belino backup", "sha256").hex()[:32]


def _copy_database(home: Home, folder: Path) -> tuple[str, int]:
    """Copy one consistent state of the database, also while others write. Returns its name and its version."""
    scrap = folder / f"{SCRAP}{secrets.token_hex(8)}"
    os.close(os.open(scrap, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    try:
        schema = copy_database(home.database, scrap)
        name = f"belino-{hash_of(scrap)[:16]}.db"
        scrap.rename(folder / name)
    finally:
        scrap.unlink(missing_ok=True)
    return name, schema


def _listed(database: Path) -> tuple[dict[str, int], int]:
    """Every blob in the copy, with its size, and the number of messages."""
    with read_database(database) as tx:
        names = {row["sha256"]: row["size"] for row in tx.execute("SELECT sha256, size FROM blobs ORDER BY sha256")}
        messages = int(tx.execute("SELECT count(*) FROM messages").fetchone()[0])
    return names, messages


def _copy_blobs(
    home: Home, folder: Path, names: Mapping[str, int], progress: Progress, earlier: Path | None
) -> tuple[int, list[str], list[str]]:
    """How many were copied, which are damaged, and which are missing."""
    copied, damaged, missing = 0, list[str](), list[str]()
    looked_at, total = 0, sum(names.values())
    for name, size in names.items():
        target = blob_path(folder / "blobs", name)
        progress(looked_at := looked_at + size, total)
        if target.is_file() and not target.is_symlink() and target.stat().st_size == size:
            continue
        if earlier is not None and _link(blob_path(earlier / "blobs", name), target):
            continue
        try:
            found = _copy(blob_path(home.blobs, name), target)
        except FileNotFoundError:
            missing.append(name)
            continue
        if found == name:
            copied += 1
        else:
            target.unlink()
            damaged.append(name)
    return copied, damaged, missing


def _copy(source: Path, target: Path) -> str:
    """Copy a file and return the hash of what was copied; it has its name only once it is complete."""
    digest = hashlib.sha256()
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(reading, "rb") as reader:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        scrap = target.with_name(f"{SCRAP}{secrets.token_hex(8)}")
        try:
            with os.fdopen(os.open(scrap, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as writer:
                while piece := reader.read(PIECE):
                    digest.update(piece)
                    writer.write(piece)
            scrap.rename(target)
        finally:
            scrap.unlink(missing_ok=True)
    return digest.hexdigest()


def _link(source: Path, target: Path) -> bool:
    """Link the file of an earlier backup, if its checksum is right and the file system supports links."""
    try:
        if source.is_symlink() or hash_of(source) != source.name:
            return False
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        target.hardlink_to(source)
    except OSError:
        return False
    return True


def _copy_config(home: Home, folder: Path) -> str | None:
    """Copy the configuration, which only names its secrets. Returns the name of its file."""
    found = home.config_file.name if home.config_file.is_file() else None
    for name in CONFIGS:
        _put(folder / name, home.config_file.read_bytes() if name == found else None)
    return found


def _put(target: Path, content: bytes | None) -> None:
    """Write a small file atomically; without content, delete it."""
    if content is None:
        target.unlink(missing_ok=True)
        return
    scrap = target.with_name(f"{SCRAP}{secrets.token_hex(8)}")
    with os.fdopen(os.open(scrap, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    scrap.rename(target)
    sync_folder(target.parent)


def hash_of(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _manifest(
    database: Path, done: BackedUp, *, schema: int, key: bytes, config: str | None, now: datetime, version: str
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "belino": version,
        "created": now.isoformat(timespec="seconds"),
        "schema": schema,
        "database": {"name": database.name, "sha256": hash_of(database), "size": database.stat().st_size},
        "messages": done.messages,
        "blobs": done.blobs,
        "size": done.size,
        "has_key": done.has_key,
        "key_check": key_check(key),
        "config": config,
        "secrets": list(done.secrets),
    }


def _secret_names(home: Home) -> tuple[str, ...]:
    return tuple(sorted(path.name for path in home.secrets.iterdir())) if home.secrets.is_dir() else ()


def _sweep(folder: Path, database: str, names: Iterable[str]) -> None:
    """Delete what only an earlier backup needed, deleted messages included."""
    known = set(names)
    for path in folder.iterdir():
        if DATABASE.fullmatch(path.name) and path.name != database:
            path.unlink()
    for path in (folder / "blobs").glob("??/??/*"):
        if path.name not in known:
            path.unlink(missing_ok=True)
