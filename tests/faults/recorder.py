"""Records what this process does to a folder: Python's calls by wrapping `os`, SQLite's by a VFS of our own.

The VFS is registered with the very library that Python's sqlite3 uses, found through its extension module. Where that
library cannot be reached (it may be linked in without its symbols), `copy_database` keeps the database file as a whole.
Syncs are recorded and not carried out: only the events are looked at afterwards.
"""

import _sqlite3
import ctypes
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from faults.disk import Copy, Event, Move, Name, Promise, Remove, Resize, Sync, SyncFolder, Write

WRITING = os.O_WRONLY | os.O_RDWR
NOT_KEPT = ("belino.lock", "run.json")
"""What is worth nothing after the process."""
DATABASE = ("belino.db", "belino.db-wal", "belino.db-journal")
MAIN_JOURNAL, WAL, CREATE = 0x0800, 0x80000, 0x0004

_POINTER = ctypes.c_void_p
# A path is handed on as the pointer it came as: the VFS keeps it for as long as the file is open.
_OPEN = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER, _POINTER, ctypes.c_int, _POINTER)
_DELETE = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, ctypes.c_char_p, ctypes.c_int)
_WRITE = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER, ctypes.c_int, ctypes.c_int64)
_TRUNCATE = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, ctypes.c_int64)
_SYNC = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, ctypes.c_int)


class _Vfs(ctypes.Structure):
    """sqlite3_vfs, https://www.sqlite.org/c3ref/vfs.html."""

    _fields_ = (
        ("iVersion", ctypes.c_int),
        ("szOsFile", ctypes.c_int),
        ("mxPathname", ctypes.c_int),
        ("pNext", _POINTER),
        ("zName", ctypes.c_char_p),
        ("pAppData", _POINTER),
        ("xOpen", _POINTER),
        ("xDelete", _POINTER),
        ("others", _POINTER * 14),
    )


class _Methods(ctypes.Structure):
    """sqlite3_io_methods, https://www.sqlite.org/c3ref/io_methods.html."""

    _fields_ = (
        ("iVersion", ctypes.c_int),
        ("xClose", _POINTER),
        ("xRead", _POINTER),
        ("xWrite", _POINTER),
        ("xTruncate", _POINTER),
        ("xSync", _POINTER),
        ("others", _POINTER * 13),
    )


class Recorder:
    """The events of one folder, in order."""

    def __init__(self, root: Path, *, without_sync: Callable[[str], bool] = lambda path: False) -> None:
        """`without_sync` names files and folders whose syncs are left out, as if the program had forgotten them."""
        self.root = root
        self.events: list[Event] = []
        self.unseen: list[str] = []
        """Files that were opened for writing past this recorder."""
        self.records_database = False
        self._without_sync = without_sync
        self._lock = threading.RLock()
        self._inodes: dict[str, int] = {}
        self._files: dict[int, str] = {}
        """Open descriptors."""
        self._kept_alive: list[object] = []
        self._opening = threading.local()

    def promise(self, kind: str, key: str, value: str | int = "") -> None:
        """The program told its caller that this is done."""
        with self._lock:
            self.events.append(Promise(kind, key, value))

    def copy_database(self) -> None:
        """Where its writes are not recorded: the database as it is now."""
        if not self.records_database:
            with self._lock:
                for name in DATABASE:
                    path = self.root / name
                    self.events.append(Copy(name, path.read_bytes() if path.exists() else None))

    def inside(self, path: object) -> str | None:
        """The path as seen from the folder, if it is in it and is worth recording."""
        if isinstance(path, int):
            return None
        found = os.path.abspath(os.fsdecode(path))  # type: ignore[arg-type]  # noqa: PTH100
        name = os.path.relpath(found, self.root) if found.startswith(f"{self.root}{os.sep}") else None
        if found == str(self.root):
            return "."
        return None if name in NOT_KEPT else name

    def inode(self, path: str) -> int:
        return self._inodes[path]

    def made(self, path: str) -> None:
        self._inodes[path] = len(self.events)
        self.events.append(Name(path, len(self.events)))

    def moved(self, old: str, new: str) -> None:
        self._inodes[new] = self._inodes.pop(old)
        self.events.append(Move(old, new))

    def removed(self, path: str) -> None:
        self._inodes.pop(path, None)
        self.events.append(Remove(path))

    def synced(self, path: str) -> None:
        if not self._without_sync(path):
            self.events.append(Sync(self._inodes[path]) if path in self._inodes else SyncFolder(path))

    # --- Python ---

    def wrap_os(self) -> None:
        """From here on `os` tells what it does; what writes to the folder in another way is noted as unseen."""
        for name in ("open", "close", "write", "ftruncate", "fsync", "mkdir", "unlink", "remove", "rename", "replace"):
            setattr(os, name, getattr(self, f"_{name}")(getattr(os, name)))
        sys.addaudithook(self._watch)

    def _watch(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and not getattr(self._opening, "now", False):
            path, _, flags = arguments
            name = self._files.get(path) if isinstance(path, int) else self.inside(path)
            if isinstance(flags, int) and flags & WRITING and name is not None:
                self.unseen.append(name)
        elif event in ("os.link", "os.symlink", "os.truncate", "os.rmdir") and self.inside(arguments[0]) is not None:
            self.unseen.append(f"{event} {arguments[0]}")

    def _open(self, real: Callable[..., int]) -> Callable[..., int]:
        def opened(path: Any, flags: int, *given: Any, **more: Any) -> int:
            name = self.inside(path)
            with self._lock:
                new = name is not None and not os.path.lexists(path)
                self._opening.now = True
                try:
                    descriptor = real(path, flags, *given, **more)
                finally:
                    self._opening.now = False
                if name is not None:
                    if new:
                        self.made(name)
                    elif flags & os.O_TRUNC:
                        self.events.append(Resize(self._inodes[name], 0))
                    self._files[descriptor] = name
                return descriptor

        return opened

    def _close(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def closed(descriptor: int) -> None:
            with self._lock:
                self._files.pop(descriptor, None)
                real(descriptor)

        return closed

    def _write(self, real: Callable[[int, Any], int]) -> Callable[[int, Any], int]:
        def written(descriptor: int, content: Any) -> int:
            if descriptor not in self._files:
                return real(descriptor, content)
            with self._lock:
                offset = os.lseek(descriptor, 0, os.SEEK_CUR)
                count = real(descriptor, content)
                inode = self._inodes[self._files[descriptor]]
                self.events.append(Write(inode, offset, bytes(memoryview(content)[:count])))
                return count

        return written

    def _ftruncate(self, real: Callable[[int, int], None]) -> Callable[[int, int], None]:
        def cut(descriptor: int, size: int) -> None:
            with self._lock:
                real(descriptor, size)
                if descriptor in self._files:
                    self.events.append(Resize(self._inodes[self._files[descriptor]], size))

        return cut

    def _fsync(self, real: Callable[[Any], None]) -> Callable[[Any], None]:
        def synced(target: Any) -> None:
            descriptor = target if isinstance(target, int) else target.fileno()
            with self._lock:
                if descriptor in self._files:
                    self.synced(self._files[descriptor])
                else:
                    real(descriptor)

        return synced

    def _mkdir(self, real: Callable[..., None]) -> Callable[..., None]:
        def made(path: Any, *given: Any, **more: Any) -> None:
            with self._lock:
                real(path, *given, **more)
                if (name := self.inside(path)) is not None:
                    self.events.append(Name(name, None))

        return made

    def _unlink(self, real: Callable[..., None]) -> Callable[..., None]:
        def removed(path: Any, *given: Any, **more: Any) -> None:
            with self._lock:
                real(path, *given, **more)
                if (name := self.inside(path)) is not None:
                    self.removed(name)

        return removed

    _remove = _unlink

    def _rename(self, real: Callable[..., None]) -> Callable[..., None]:
        def moved(old: Any, new: Any, *given: Any, **more: Any) -> None:
            with self._lock:
                real(old, new, *given, **more)
                before, after = self.inside(old), self.inside(new)
                if before is not None and after is not None:
                    self.moved(before, after)

        return moved

    _replace = _rename

    # --- SQLite ---

    def wrap_sqlite(self) -> None:
        """Register the VFS as SQLite's default, where the library can be reached."""
        library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
        with suppress(AttributeError):
            library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
            library.sqlite3_vfs_register.argtypes = (ctypes.POINTER(_Vfs), ctypes.c_int)
            real = library.sqlite3_vfs_find(None)
            ours = _Vfs.from_buffer_copy(real.contents)
            ours.zName = b"recorder"
            ours.xOpen = self._keep(_OPEN(self._vfs_open(real)))
            ours.xDelete = self._keep(_DELETE(self._vfs_delete(real)))
            self._kept_alive.append(ours)
            self.records_database = library.sqlite3_vfs_register(ctypes.byref(ours), 1) == 0

    def _keep(self, callback: Any) -> int | None:
        self._kept_alive.append(callback)
        return ctypes.cast(callback, _POINTER).value

    def _vfs_open(self, vfs: Any) -> Callable[..., int]:
        really_open = _OPEN(vfs.contents.xOpen)
        methods: dict[int, _Methods] = {}
        names: dict[int, tuple[str, bool]] = {}

        def opened(_: int, path: int | None, file: int, flags: int, out: int) -> int:
            name = self.inside(ctypes.string_at(path)) if path else None
            with self._lock:
                new = name is not None and not os.path.lexists(self.root / name)
                code: int = really_open(ctypes.cast(vfs, _POINTER), path, file, flags, out)
                if code or name is None:
                    return code
                if new:
                    self.made(name)
                names[file] = (name, bool(flags & CREATE and flags & (MAIN_JOURNAL | WAL)))
                table = ctypes.cast(file, ctypes.POINTER(_POINTER))
                if table[0] not in methods:
                    methods[table[0]] = self._methods(table[0], names)
                table[0] = ctypes.addressof(methods[table[0]])
                return 0

        self._kept_alive.append(methods)
        return opened

    def _methods(self, real: int, names: dict[int, tuple[str, bool]]) -> _Methods:
        ours = _Methods.from_buffer_copy(_Methods.from_address(real))
        write, truncate = _WRITE(ours.xWrite), _TRUNCATE(ours.xTruncate)

        def written(file: int, content: int, count: int, offset: int) -> int:
            with self._lock:
                code: int = write(file, content, count, offset)
                if code:
                    return code
                self.events.append(Write(self._inodes[names[file][0]], offset, ctypes.string_at(content, count)))
                return 0

        def cut(file: int, size: int) -> int:
            with self._lock:
                code: int = truncate(file, size)
                if code:
                    return code
                self.events.append(Resize(self._inodes[names[file][0]], size))
                return 0

        def synced(file: int, _: int) -> int:
            with self._lock:
                name, with_folder = names[file]
                self.synced(name)
                if with_folder:  # what the unix VFS does with the first sync of a new journal
                    self.synced(os.path.dirname(name) or ".")  # noqa: PTH120
                    names[file] = (name, False)
                return 0

        ours.xWrite, ours.xTruncate = self._keep(_WRITE(written)), self._keep(_TRUNCATE(cut))
        ours.xSync = self._keep(_SYNC(synced))
        return ours

    def _vfs_delete(self, vfs: Any) -> Callable[..., int]:
        really_delete = _DELETE(vfs.contents.xDelete)

        def deleted(_: int, path: bytes, sync: int) -> int:
            with self._lock:
                code: int = really_delete(ctypes.cast(vfs, _POINTER), path, sync)
                if code:
                    return code
                if (name := self.inside(path)) is not None:
                    self.removed(name)
                    if sync:
                        self.synced(os.path.dirname(name) or ".")  # noqa: PTH120
                return 0

        return deleted
