"""Secrets in separate files, in the state folder's `secrets/`, readable by their owner only."""

import os
import re
import stat
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path

from belino.domain.errors import ConfigError

SECRETS: ContextVar[Path | None] = ContextVar("secrets", default=None)
"""The folder in which `file:NAME` is looked up while a configuration is read."""

MOST_BYTES = 64 * 1024

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def read_secret(name: str, folder: Path | None) -> str:
    """The secret in a file. A ValueError says what is wrong, without the secret."""
    if not _NAME.fullmatch(name):
        raise ValueError("must name a file by its name alone, made of letters, digits, dots and dashes")
    if folder is None:
        raise ValueError("names a file, and there is no state folder to look in")
    path = folder / name
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise ValueError(f"names the file {path}, which is not there; `belino setup` writes it") from None
    except OSError as error:
        raise ValueError(f"names the file {path}, which cannot be read: {error.strerror}") from None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
            raise ValueError(f"names {path}, which must be a plain file of your own")
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise ValueError(f"names the file {path}, which others may read; run: chmod 600 {path}")
        held = file.read(MOST_BYTES + 1)
    try:
        secret = held.decode().strip()
    except UnicodeDecodeError:
        raise ValueError(f"names the file {path}, which is not text") from None
    if not secret or len(held) > MOST_BYTES:
        raise ValueError(f"names the file {path}, which holds nothing" if not secret else f"{path} is too large")
    return secret


def write_secret(folder: Path, name: str, secret: str) -> Path:
    """Store a secret for `file:NAME`, atomically replacing an older one."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} cannot name a secret's file")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        return write_private(folder / name, f"{secret}\n")
    except OSError as error:
        raise ConfigError(f"{folder / name} cannot be written: {error.strerror}") from None


def write_private(path: Path, text: str) -> Path:
    """Write a file atomically, readable by its owner only."""
    beside = path.with_name(f".{path.name}.new")
    with suppress(FileNotFoundError):
        beside.unlink()
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    return path
