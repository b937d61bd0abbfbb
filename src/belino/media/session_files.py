"""Session files: copies of media in a session's folder, under names that are safe to write."""

import errno
import json
import os
import re
import stat
import unicodedata
from collections.abc import Collection, Mapping
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path

from belino.domain.errors import StoreError, StoreFull
from belino.domain.media import MediaKind, MediaRef
from belino.domain.safe_text import clean_mime
from belino.media.jail import DEEP, Jail, Seen

STEM_CHARS = 60
STEM_BYTES = 160
COPIES_AT_MOST = 1000
MARK = "---"
"""Separates the sender's name and the ref in the name of a copy."""
PIECE = 1 << 20
INCOMING = "incoming"
IPC = "ipc"
"""The folder that a container sees, next to `incoming`."""
IPC_MEDIA, IPC_RESPONSES = f"{IPC}/media", f"{IPC}/responses"
LOOKED_AT = 100_000
DELETED_ANSWER: Mapping[str, object] = {"ok": False, "error": "something was deleted in this channel; ask again"}
TOO_LARGE = "the result is too large; ask for less at a time"

_RESPONSE = re.compile(r"([A-Za-z0-9_-]{1,64})\.json")
_EXTENSION = re.compile(r"[a-z0-9]{1,10}")
_MIME_EXTENSIONS = {
    "image/jpeg": "jpg", "image/png": "png", "image/gif": "gif", "image/webp": "webp", "image/bmp": "bmp",
    "image/svg+xml": "svg", "image/heic": "heic", "image/avif": "avif", "image/tiff": "tiff",
    "audio/ogg": "ogg", "audio/mpeg": "mp3", "audio/mp4": "m4a", "audio/wav": "wav", "audio/webm": "weba",
    "audio/aac": "aac", "audio/flac": "flac",
    "video/mp4": "mp4", "video/webm": "webm", "video/quicktime": "mov",
    "text/plain": "txt", "text/markdown": "md", "text/csv": "csv", "text/html": "html",
    "application/json": "json", "application/pdf": "pdf", "application/zip": "zip",
}  # fmt: skip
_KIND_EXTENSIONS = {
    MediaKind.IMAGE: "jpg", MediaKind.VIDEO: "mp4", MediaKind.AUDIO: "mp3",
    MediaKind.VOICE: "ogg", MediaKind.STICKER: "webp", MediaKind.DOCUMENT: "bin",
}  # fmt: skip


def safe_name(name: str | None, *, mime: str, kind: MediaKind) -> str:
    """A safe file name: letters and digits of any script kept, anything else `_`, never a path, never hidden."""
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", (name or "")[-1024:]))[-1]
    stem, dot, extension = last.rpartition(".")
    if not dot or not stem.strip(". ") or not _EXTENSION.fullmatch(extension.lower()):
        stem, extension = last, ""
    stem = "".join(character if _kept(character) else "_" for character in stem.strip(". "))[:STEM_CHARS]
    stem = stem.encode()[:STEM_BYTES].decode(errors="ignore").lstrip("-.").rstrip(".")
    if not stem.strip("_.-"):
        stem = kind.value
    return f"{stem}.{extension.lower() or _MIME_EXTENSIONS.get(clean_mime(mime)) or _KIND_EXTENSIONS[kind]}"


def stored_name(ref: MediaRef) -> str:
    """The name of a ref's copy, `photo---tg_k3v9d0q2m7xa.jpg`: unique per ref, with the sender's name."""
    stem, _, extension = safe_name(ref.file_name, mime=ref.mime, kind=ref.kind).rpartition(".")
    return f"{stem}{MARK}{ref.id}.{extension}"


def place(folder: Path, name: str, source: Path) -> Path:
    """Copy a blob into a session's folder. Nothing is overwritten or followed; an equal copy is reused."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise StoreError(f"{name!r} is no file name; nothing was written")
    try:
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError("the session's folder is not a folder; nothing was written") from error
    try:
        return folder / _copy_below(directory, name, source)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull("the disk is full; the file was not copied") from error
        raise StoreError(f"the file could not be copied ({errno.errorcode.get(error.errno or 0, 'error')})") from error
    finally:
        os.close(directory)


def remove_copies(folder: Path, refs: Collection[str]) -> int:
    """Delete every copy of these refs below a conversation's folder. Returns how many there were.

    A container's list of refs goes too, and answers that it has not read: they may hold what was deleted.
    """
    marks = [f"{MARK}{ref}" for ref in refs]
    with Jail(folder) as jail:
        copies = [seen.path for seen in _copies(jail) if any(mark in seen.path.partition("/")[2] for mark in marks)]
        unread = _below(jail, IPC_RESPONSES)
        listed = [seen for seen in _below(jail, IPC, deep=0) if seen.name == "media_refs.json"]
        for path in (*copies, *(seen.path for seen in (*unread, *listed))):
            _remove(jail, path)
    for seen in unread:
        if answered := _RESPONSE.fullmatch(seen.name):
            write_response(folder, answered[1], DELETED_ANSWER)
    return len(copies)


def write_response(folder: Path, own: str, answer: Mapping[str, object], *, most: int | None = None) -> None:
    """Write the answer to a container's request; one that is over `most` bytes is replaced by an error."""
    content = json.dumps({"id": own, **answer}, separators=(",", ":")).encode(errors="replace")
    if most is not None and len(content) > most:
        content = json.dumps({"id": own, "ok": False, "error": TOO_LARGE}).encode()
    with Jail(folder) as jail:
        jail.replace(f"{IPC_RESPONSES}/{own}.json", content)


def remove_older(folder: Path, before: datetime) -> int:
    """Delete copies in the session's folder that were not written or read since then. Returns how many there were."""
    bound = before.timestamp() * 1e9
    with Jail(folder) as jail:
        found = (*_copies(jail), *_below(jail, IPC_RESPONSES))
        old = [seen.path for seen in found if max(seen.mtime_ns, seen.atime_ns) < bound]
        for path in old:
            _remove(jail, path)
    return len(old)


def _copies(jail: Jail) -> list[Seen]:
    return [*_below(jail, INCOMING), *_below(jail, IPC_MEDIA)]


def _below(jail: Jail, folder: str, *, deep: int = DEEP) -> list[Seen]:
    """The files below a folder; none if a container has put something else in its place."""
    try:
        return list(jail.files(folder, deep=deep, most=LOOKED_AT))
    except OSError:
        return []


def _remove(jail: Jail, path: str) -> None:
    with suppress(OSError):  # a container may change its folder at any time
        jail.remove(path)


def _kept(character: str) -> bool:
    return character in "-_." or unicodedata.category(character)[0] in "LN" or unicodedata.category(character) == "Mc"


def _copy_below(directory: int, name: str, source: Path) -> str:
    stem, dot, extension = name.rpartition(".")
    for count in range(1, COPIES_AT_MOST + 1):
        candidate = name if count == 1 else f"{stem}-{count}{dot}{extension}" if dot else f"{name}-{count}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            target = os.open(candidate, flags, 0o600, dir_fd=directory)
        except FileExistsError:
            if _equal(directory, candidate, source):
                return candidate
            continue
        with ExitStack() as undo:
            undo.callback(os.unlink, candidate, dir_fd=directory)
            undo.callback(os.close, target)
            _pour(source, target)
            undo.pop_all()
        os.close(target)
        return candidate
    raise StoreError(f"the session's folder holds {COPIES_AT_MOST} different files of that name already")


def _pour(source: Path, target: int) -> None:
    os.fchmod(target, 0o600)
    with _open_plain(source) as reader:
        while piece := os.read(reader.fd, PIECE):
            while piece:
                piece = piece[os.write(target, piece) :]


def _equal(directory: int, name: str, source: Path) -> bool:
    """Whether the file of that name is a regular one with the blob's exact bytes: unchanged by the agent."""
    try:
        with _open_plain(source) as ours, _open_plain(name, directory) as theirs:
            if os.fstat(ours.fd).st_size != os.fstat(theirs.fd).st_size:
                return False
            while piece := os.read(ours.fd, PIECE):
                if os.read(theirs.fd, PIECE) != piece:
                    return False
            return True
    except (OSError, StoreError):
        return False


class _open_plain:  # noqa: N801 - reads as the function it replaces
    """A regular file, opened without following a link or blocking on a pipe."""

    def __init__(self, path: Path | str, directory: int | None = None) -> None:
        self.fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
        status = os.fstat(self.fd)
        if not stat.S_ISREG(status.st_mode) or (directory is not None and status.st_nlink != 1):
            os.close(self.fd)
            raise StoreError("not a plain file")

    def __enter__(self) -> "_open_plain":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)
