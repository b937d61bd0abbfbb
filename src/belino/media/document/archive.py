"""What lies in an archive, entry by entry, without unpacking any of it."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from belino.domain.document import DocumentText, Unit, Unread
from belino.media.document import charset, entries_7z, entries_tar, entries_zip
from belino.media.document.entries import UNTOLD, Entry
from belino.media.document.parts import CannotRead, Parts, Wish
from belino.media.placeholder import clean_name, format_size

ENTRIES_A_PART = 200
ENTRIES_AT_MOST = 500_000
"""Beyond these nothing is counted any more."""
NAME_CHARS = 300
RATIO_NOTED = 100


@dataclass(slots=True)
class _Tally:
    """What a reader should know of all entries together."""

    entries: int = 0
    folders: int = 0
    unpacked: int = 0
    encrypted: int = 0
    outside: int = 0
    names: Counter[int] = field(default_factory=Counter)

    def count(self, entry: Entry) -> None:
        self.entries += 1
        self.folders += entry.folder
        self.unpacked += entry.size or 0
        self.encrypted += entry.encrypted
        self.outside += entry.outside
        self.names[hash(entry.name)] += 1

    def notes(self, packed: int) -> Iterator[str]:
        files = self.entries - self.folders
        yield (
            f"{_counted(files, 'file')}, {_counted(self.folders, 'folder')}, {format_size(self.unpacked)} if unpacked; "
            "nothing was"
        )
        if self.encrypted:
            yield f"encrypted: {self.encrypted:,}"
        if self.outside:
            yield f"names that lead out of the folder they would be unpacked in: {self.outside:,}"
        if twice := sum(count > 1 for count in self.names.values()):
            yield f"names that occur more than once: {twice:,}"
        if packed and self.unpacked / packed > RATIO_NOTED:
            yield f"it unpacks to {round(self.unpacked / packed):,} times its size: a bomb, most likely"


def prepare() -> None:
    """Load the codecs; in the child it would be too late."""
    charset.prepare()


def read(file: BinaryIO, wish: Wish) -> DocumentText:
    """The listing, some hundred entries to a part."""
    size = file.seek(0, 2)
    file.seek(0)
    parts = Parts(wish, Unit.LIST)
    tally = _Tally()
    total = 0
    listed = itertools.islice(_entries(file, wish), ENTRIES_AT_MOST + 1)
    for group in _groups(listed, tally, parts):
        total += 1
        if parts.wants(total):
            begin = (total - 1) * ENTRIES_A_PART + 1
            parts.add(
                total, "\n".join(_line(entry) for entry in group), f"entries {begin:,}–{begin + len(group) - 1:,}"
            )
    if tally.entries > ENTRIES_AT_MOST:
        parts.note(f"there are more than {ENTRIES_AT_MOST:,} entries; the rest was not counted")
    if not tally.entries:
        raise CannotRead(Unread.NO_TEXT, "the archive is empty")
    parts.note(*tally.notes(size))
    return parts.document(total)


def _entries(file: BinaryIO, wish: Wish) -> Iterable[Entry]:
    match wish.mime:
        case "application/x-7z-compressed":
            return entries_7z.entries(file)
        case "application/x-tar" | "application/gzip" | "application/x-bzip2" | "application/x-xz":
            return entries_tar.entries(file, wish.mime, wish.name)
        case _:
            return entries_zip.entries(file)


def _groups(entries: Iterable[Entry], tally: _Tally, parts: Parts) -> Iterator[list[Entry]]:
    group: list[Entry] = []
    for entry in entries:
        if entry.note:
            parts.note(entry.note)
            continue
        tally.count(entry)
        group.append(entry)
        if len(group) == ENTRIES_A_PART:
            yield group
            group = []
    if group:
        yield group


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _link(target: str) -> str:
    if target in ("", UNTOLD):
        return "link" if target else ""
    return f"link to {clean_name(target, limit=NAME_CHARS)}"


def _line(entry: Entry) -> str:
    """`name, size, date, what is odd about it`."""
    about = [
        clean_name(entry.name, limit=NAME_CHARS) or "unnamed",
        "folder" if entry.folder else format_size(entry.size) if entry.size is not None else "",
        entry.modified,
        _link(entry.link),
        "encrypted" if entry.encrypted else "",
        "leads out of its folder" if entry.outside else "",
    ]
    return f"- {', '.join(part for part in about if part)}"
