"""Backup of the state folder, made while a gateway may run: database, blobs, key and configuration."""

import fcntl
import glob
import hashlib
import hmac
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from belino.domain.errors import StoreError
from belino.domain.failpoints import failpoint
from belino.storage.disk import sync_folder
from belino.storage.folder import blob_path
from belino.storage.home import Home
from belino.storage.sqlite_files import copy_database, read_database

FORMAT = 1
PIECE = 1 << 20
Progress = Callable[[int, int], None]
"""(bytes of blobs processed, bytes of all blobs)."""
MANIFEST = "backup.json"
KEY = "key"
CONFIGS = ("belino.toml", "belino.json")
DATABASE = re.compile(r"belino-[0-9a-f]{16}\.db")
SCRAP = ".part-"


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


@contextmanager
def backup_place(home: Home, folder: Path) -> Iterator[Path]:
    """The folder to write a backup to. It gets the requested name when the block ends without an error."""
    target = absolute(folder)
    _refuse(target, home)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _can_appear(target):
        # An earlier backup is complete until its manifest is replaced; the root of a file system cannot be renamed.
        with _locked(target):
            target.chmod(0o700)
            for scrap in target.rglob(f"{SCRAP}*"):
                remove(scrap)
            yield target
        return
    remove_leftovers(target.parent, glob.escape(target.name))
    staged = target.with_name(f".{target.name}{SCRAP}{secrets.token_hex(8)}")
    staged.mkdir(mode=0o700)
    with ExitStack() as unfinished:
        unfinished.callback(shutil.rmtree, staged, ignore_errors=True)
        with _locked(staged):
            yield staged
            if target.is_dir() and any(target.iterdir()):
                shutil.rmtree(target)  # left by a killed backup of an earlier version
            staged.rename(target)
        unfinished.pop_all()
    sync_folder(target.parent)


def absolute(folder: Path) -> Path:
    """The folder as an absolute path; links are not followed."""
    try:
        return Path(os.path.abspath(folder.expanduser()))  # noqa: PTH100  resolve() would follow links
    except RuntimeError as error:
        raise StoreError(f"{folder} names no folder: {error}") from error


def remove_leftovers(parent: Path, name: str) -> None:
    """Remove what killed backups of this name, or pattern of names, left; one that is being written stays."""
    for left in parent.glob(f".{name}{SCRAP}*"):
        try:
            with _locked(left):
                remove(left)
        except StoreError:
            continue  # another process writes to it, or it is not ours


def remove(path: Path) -> None:
    """Remove a file or a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _refuse(target: Path, home: Home) -> None:
    """Refuse a link, a folder inside the state folder, and one that holds anything but a backup."""
    there, state = target.resolve(), home.path.resolve()
    if there == state or state in there.parents:
        raise StoreError("a backup inside the state folder would be lost with it; name a folder elsewhere")
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise StoreError(f"{target} must be a folder, not a link or a file")
    if target.is_dir() and any(target.iterdir()) and not (target / MANIFEST).is_file() and not _only_scraps(target):
        raise StoreError(f"{target} holds something else than a backup; name an empty folder")


def _can_appear(target: Path) -> bool:
    """Whether the folder may be replaced as a whole."""
    if not target.is_dir():
        return True
    is_backup = (target / MANIFEST).is_file()
    return not is_backup and not target.is_mount() and os.access(target.parent, os.W_OK | os.X_OK)


def _only_scraps(folder: Path) -> bool:
    """Whether a folder holds only the leftovers of a first backup that was killed."""
    ours = (KEY, "blobs", *CONFIGS)
    return all(
        path.name in ours or path.name.startswith(SCRAP) or DATABASE.fullmatch(path.name) for path in folder.iterdir()
    )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder for this process; the kernel releases the lock when the process ends."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError(f"{folder} cannot be opened: {error.strerror}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(f"another backup is being written to {folder}; wait until it is done") from None
        yield
    finally:
        os.close(handle)
