"""A disk that loses power: what was written, what of it was synced, and what a cut may leave.

The rules are those of POSIX and of journaling file systems: a file's bytes are safe once the file was synced, and a
name once its folder was. Until then each write may be there, torn at a sector, or missing; names come and go in the
order they did in their folder, but any number of the last of them may be missing. A rename is there or not.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from random import Random

SECTOR = 512


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes written to a file."""

    inode: int
    offset: int
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Resize:
    """A file cut, or filled up with zeros, to a size."""

    inode: int
    size: int


@dataclass(frozen=True, slots=True)
class Sync:
    """A file's bytes reached the disk."""

    inode: int


@dataclass(frozen=True, slots=True)
class Name:
    """A name given to a file; without a file, to a new folder."""

    path: str
    inode: int | None


@dataclass(frozen=True, slots=True)
class Move:
    """A file renamed, in place of one that had the name before."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Remove:
    """A name taken away."""

    path: str


@dataclass(frozen=True, slots=True)
class SyncFolder:
    """A folder's names reached the disk."""

    path: str


@dataclass(frozen=True, slots=True)
class Promise:
    """What belino told its caller from here on: it must survive any later cut."""

    kind: str
    key: str
    value: str | int = ""


@dataclass(frozen=True, slots=True)
class Copy:
    """A whole file as it was, synced: of a database whose single writes could not be recorded. None: it was gone."""

    path: str
    content: bytes | None = field(repr=False)


Event = Write | Resize | Sync | Name | Move | Remove | SyncFolder | Promise | Copy
Naming = Name | Move | Remove


class _File:
    """A file's bytes that are safe, and what was done to them since."""

    def __init__(self) -> None:
        self.safe = bytearray()
        self.later: list[Write | Resize] = []

    def sync(self) -> None:
        for change in self.later:
            _change(self.safe, change)
        self.later.clear()

    def after_cut(self, rng: Random, luck: float) -> bytes:
        """The safe bytes, with some of the later changes and parts of others."""
        content = bytearray(self.safe)
        for change in self.later:
            if rng.random() < luck:
                _change(content, change)
            elif isinstance(change, Write) and rng.random() < luck:
                torn = change.content[: rng.randrange(len(change.content) // SECTOR + 1) * SECTOR]
                _change(content, Write(change.inode, change.offset, torn))
        return bytes(content)


class Disk:
    """The state of a folder on it, event by event."""

    def __init__(self) -> None:
        self._files: dict[int, _File] = {}
        self._names: dict[str, int | None] = {}
        self._later: list[Naming] = []
        self._copies: dict[str, bytes] = {}

    def take(self, event: Event) -> None:
        """One more thing happened."""
        match event:
            case Write() | Resize():
                self._files.setdefault(event.inode, _File()).later.append(event)
            case Sync():
                self._files.setdefault(event.inode, _File()).sync()
            case Name() | Move() | Remove():
                self._later.append(event)
            case SyncFolder():
                self._sync_folder(event.path)
            case Copy(content=None):
                self._copies.pop(event.path, None)
            case Copy(content=bytes() as content):
                self._copies[event.path] = content

    def cut(self, rng: Random, target: Path, luck: float) -> None:
        """Lose power now: write what is left into a new folder. `luck` is how much of what was not synced is there."""
        names = dict(self._names)
        stopped: set[str] = set()
        for change in self._later:
            if stopped & _folders(change) or rng.random() >= luck:
                stopped |= _folders(change)
            else:
                _rename(names, change)
        target.mkdir(mode=0o700)
        # Sorted: a folder comes before what lies in it. What lies in a folder that has no name is out of reach.
        for path, inode in sorted(names.items()):
            place = target / path
            if inode is None and place.parent.is_dir():
                place.mkdir(mode=0o700)
            elif inode is not None and place.parent.is_dir():
                place.write_bytes(self._files.get(inode, _File()).after_cut(rng, luck))
                place.chmod(0o600)
        for path, content in self._copies.items():
            (target / path).write_bytes(content)
            (target / path).chmod(0o600)

    def _sync_folder(self, path: str) -> None:
        """Its names are safe, and with a rename into it all that came before in the folder it came from."""
        wanted, safe = {path}, set()
        for number in range(len(self._later) - 1, -1, -1):
            folders = _folders(self._later[number])
            if folders & wanted:
                wanted |= folders
                safe.add(number)
        for number in sorted(safe):
            _rename(self._names, self._later[number])
        self._later = [change for number, change in enumerate(self._later) if number not in safe]


def promises(events: list[Event]) -> Iterator[Promise]:
    """What was promised by these events."""
    return (event for event in events if isinstance(event, Promise))


def _change(content: bytearray, change: Write | Resize) -> None:
    if isinstance(change, Resize):
        del content[change.size :]
        content.extend(bytes(change.size - len(content)))
    elif change.content:
        content.extend(bytes(max(0, change.offset - len(content))))
        content[change.offset : change.offset + len(change.content)] = change.content


def _rename(names: dict[str, int | None], change: Naming) -> None:
    match change:
        case Name():
            names[change.path] = change.inode
        case Move() if change.old in names:
            names[change.new] = names.pop(change.old)
        case Remove():
            names.pop(change.path, None)


def _folders(change: Naming) -> set[str]:
    paths = (change.old, change.new) if isinstance(change, Move) else (change.path,)
    return {str(PurePosixPath(path).parent) for path in paths}
