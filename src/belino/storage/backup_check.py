"""Backup check: read a backup back and compare it with its manifest."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from belino.domain.errors import StoreError
from belino.storage.audit import audit_files
from belino.storage.backup import CONFIGS, KEY, PIECE, Progress, absolute, key_check
from belino.storage.encryption import KEY_BYTES
from belino.storage.restore import CONFIG_BYTES, FOLDER_ONLY, open_plain, read_manifest, read_plain
from belino.storage.sqlite_files import read_database


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was read of a backup, and its problems."""

    created: str
    messages: int
    blobs: int
    size: int
    """Bytes of all blobs."""
    problems: tuple[str, ...]
    """One sentence each; empty if the backup can be restored completely."""

    @property
    def is_whole(self) -> bool:
        return not self.problems


def verify_backup(folder: Path, *, progress: Progress = lambda done, total: None) -> Verified:
    """Read a backup back: manifest, database, key, configuration, every blob. StoreError if it is not a backup."""
    place = absolute(folder)
    with ExitStack() as opened:
        try:
            backup = os.open(place, FOLDER_ONLY)
        except OSError as error:
            raise StoreError(f"{place} is no folder with a backup: {error.strerror}") from error
        opened.callback(os.close, backup)
        manifest = read_manifest(backup)
        database = place / manifest["database"]["name"]
        names, messages, problems = _read_database(backup, database, manifest)
        problems += _wrong_parts(backup, manifest)
        damaged = set(_wrong_blobs(backup, names, progress))
        problems += [f"blob {name} does not have the bytes of its name" for name in sorted(damaged)]
        if names or messages:
            problems += _discrepancies(database, place / "blobs", damaged)
    return Verified(
        created=str(manifest.get("created", ""))[:40],
        messages=messages,
        blobs=len(names) - len(damaged),
        size=sum(size for name, size in names.items() if name not in damaged),
        problems=tuple(problems),
    )


def _read_database(backup: int, database: Path, manifest: Mapping[str, Any]) -> tuple[dict[str, int], int, list[str]]:
    """The blobs it lists, the number of messages, and its problems; a damaged database is not read."""
    if _hash(backup, (database.name,)) != manifest["database"]["sha256"]:
        return {}, 0, ["the database does not have the hash that was noted, or is missing"]
    try:
        with read_database(database) as tx:
            names = {row["sha256"]: row["size"] for row in tx.execute("SELECT sha256, size FROM blobs")}
            messages = int(tx.execute("SELECT count(*) FROM messages").fetchone()[0])
    except StoreError as error:
        return {}, 0, [str(error)]
    told = manifest.get("messages")
    return names, messages, [] if told == messages else [f"it has {messages} messages, and {told} were noted"]


def _wrong_parts(backup: int, manifest: Mapping[str, Any]) -> list[str]:
    problems = []
    try:
        if manifest.get("has_key") and key_check(read_plain(backup, KEY, most=KEY_BYTES)) != manifest.get("key_check"):
            problems.append("the key is not the one this backup was made with")
        if manifest.get("config") in CONFIGS:
            read_plain(backup, str(manifest["config"]), most=CONFIG_BYTES)
    except StoreError as error:
        problems.append(str(error))
    return problems


def _wrong_blobs(backup: int, names: Mapping[str, int], progress: Progress) -> Iterator[str]:
    """Blobs that are missing or have a wrong checksum."""
    looked_at, total = 0, sum(names.values())
    for name, size in names.items():
        progress(looked_at := looked_at + size, total)
        if _hash(backup, ("blobs", name[:2], name[2:4], name)) != name:
            yield name


def _discrepancies(database: Path, blobs: Path, damaged: set[str]) -> Iterator[str]:
    """What the accounting check finds, except blobs that are already reported as damaged."""
    found = audit_files(database, blobs)
    for balance in found.balances:
        if balance.difference:
            yield f"{balance.name}: {balance.difference:+d} not accounted for; `belino audit` explains the check"
    for each in found.discrepancies:
        for subject in each.subjects:
            if subject not in damaged:
                yield f"{each.kind}: {subject}"


def _hash(backup: int, parts: tuple[str, ...]) -> str:
    """The sha256 of a regular file of the backup; empty if there is none."""
    digest = hashlib.sha256()
    try:
        with os.fdopen(open_plain(backup, parts), "rb") as file:
            while piece := file.read(PIECE):
                digest.update(piece)
    except (OSError, StoreError):
        return ""
    return digest.hexdigest()
