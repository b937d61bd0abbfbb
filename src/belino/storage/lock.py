"""Lock: one process at a time uses a state folder."""

import fcntl
import os

from belino.domain.errors import StoreInUse
from belino.storage.home import Home


def lock_folder(home: Home) -> int:
    """A descriptor that holds the lock until it is closed. The kernel releases it when the process ends."""
    lock = os.open(home.lock_file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(lock, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(lock, 20).decode("ascii", "replace").strip() or "unknown"
        os.close(lock)
        raise StoreInUse(f"the state folder {home.path} is in use by another gateway (process {holder})") from None
    os.ftruncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())
    return lock
