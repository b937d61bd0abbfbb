"""The journal of a running recording: records in order, in the state folder until the cassette is written.

It holds no secret. Ids and names are in it as they are in the database beside it; a later record may name a person whom
an earlier one mentions, so pseudonyms can only be assigned when the recording is over.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from belino.domain.errors import BelinoError

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """The options of a recording."""

    started: str
    conversation: str | None = None
    without_text: bool = False
    without_media: bool = False
    older: tuple[str, ...] = ()
    """Conversations that had begun before the recording."""
    ended: str = ""
    """Why it stopped by itself; empty while it records."""


class Journal:
    """A recording on disk: its options and its records."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._wishes_file = folder / "recording.json"
        self._records_file = folder / "recording.jsonl"
        self._file: TextIO | None = None
        self.size = 0

    def begin(self, wishes: Wishes) -> None:
        """Start an empty journal."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.discard()
        self._open()
        self._write_wishes(wishes)

    def resume(self) -> Wishes | None:
        """The recording that an earlier process left, ready to be continued; None if there is none."""
        try:
            wishes = Wishes(**json.loads(self._wishes_file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError):
            raise BelinoError(f"{self._wishes_file} cannot be read; delete it to discard the recording") from None
        if wishes.ended:
            self.size = self._records_file.stat().st_size
        else:
            self._open()
        return replace(wishes, older=tuple(wishes.older))

    def append(self, record: Json) -> None:
        """Write one record."""
        if self._file is not None:
            line = json.dumps(record, ensure_ascii=True, separators=(",", ":")) + "\n"
            self._file.write(line)
            self._file.flush()
            self.size += len(line)

    def end(self, wishes: Wishes, why: str) -> Wishes:
        """Stop recording; the records stay until the cassette is written."""
        self.close()
        ended = replace(wishes, ended=why)
        self._write_wishes(ended)
        return ended

    def records(self) -> Iterator[Json]:
        """All records; a line that a crash cut off is left out."""
        with suppress(FileNotFoundError), self._records_file.open(encoding="utf-8") as file:
            for line in file:
                with suppress(ValueError):
                    yield json.loads(line)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def discard(self) -> None:
        """Delete the recording."""
        self.close()
        for file in (self._wishes_file, self._records_file):
            file.unlink(missing_ok=True)

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.fdopen(os.open(self._records_file, flags, 0o600), "a", encoding="utf-8")
        self.size = self._records_file.stat().st_size
        if self.size:
            self._file.write("\n")  # a crash may have cut off the last line
            self.size += 1

    def _write_wishes(self, wishes: Wishes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(self._wishes_file, flags, 0o600), "w", encoding="utf-8") as file:
            json.dump(asdict(wishes), file)
