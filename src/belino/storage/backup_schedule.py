"""Backup schedule on disk: existing backups, when the next is due, and which are deleted after it."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from belino.storage.backup import MANIFEST, SCRAP, Progress, absolute, back_up, remove, remove_leftovers
from belino.storage.backup_check import verify_backup
from belino.storage.backup_config import BackupConfig
from belino.storage.disk import sync_folder
from belino.storage.home import Home

DAMAGED = ".damaged"
"""Suffix of a backup that failed verification."""
_STAMP = "belino-%Y%m%dT%H%M%SZ"


def backup_folder(config: BackupConfig, home: Home) -> Path:
    """The folder of scheduled backups."""
    assert config.to is not None
    return absolute(home.path / config.to.expanduser())


def made_backups(folder: Path) -> Mapping[datetime, Path]:
    """Complete scheduled backups by the time they were made, oldest first."""
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    return {at: path for path in paths if (at := _made_at(path)) is not None and (path / MANIFEST).is_file()}


def next_due(folder: Path, interval: timedelta, now: datetime) -> datetime:
    """When the next backup is due: counted from the newest one, whichever process made it.

    One from the future is ignored: the clock was set back since, and it would delay the next one.
    """
    newest = max((at for at in made_backups(folder) if at <= now), default=None)
    return now if newest is None else newest + interval


def make_backup(config: BackupConfig, home: Home, now: datetime, version: str, progress: Progress) -> Sequence[str]:
    """Make a backup, verify it, then delete those over the limit. Returns its problems.

    A damaged one is kept under another name until the next damaged one: it may be the only copy there is.
    """
    folder = backup_folder(config, home)
    earlier = list(made_backups(folder).values())
    target = folder / now.astimezone(UTC).strftime(_STAMP)
    if folder.is_dir():
        remove_leftovers(folder, "belino-*")
    back_up(home, target, now=now, version=version, progress=progress, earlier=earlier[-1] if earlier else None)
    found = verify_backup(target, progress=progress)
    if found.is_whole:
        # The clock may have been set back: a backup from the future is older than the one made now.
        made = sorted(made_backups(folder).items(), key=lambda one: (one[0] <= now, one[0]))
        _delete([path for _, path in made[: -config.keep]])
    else:
        _delete(folder.glob(f"belino-*{DAMAGED}"))
        target.rename(target.with_name(f"{target.name}{DAMAGED}"))
    sync_folder(folder)
    return found.problems


def _delete(backups: Iterable[Path]) -> None:
    """Delete backups; each is renamed first, so that a half-deleted one is not taken for a backup."""
    for old in list(backups):
        remove(old.rename(old.with_name(f".{old.name}{SCRAP}{secrets.token_hex(8)}")))


def _made_at(backup: Path) -> datetime | None:
    """The time in the name of a scheduled backup; None for anything else."""
    try:
        return datetime.strptime(backup.name, _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None
