"""Backup place: a backup is written under a temporary name and renamed once it is complete."""

import fcntl
import glob
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from belino.domain.errors import StoreError
from belino.storage.disk import sync_folder
from belino.storage.home import Home

MANIFEST = "backup.json"
KEY = "key"
CONFIGS = ("belino.toml", "belino.json")
DATABASE = re.compile(r"belino-[0-9a-f]{16}\.db")
SCRAP = ".part-"


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
