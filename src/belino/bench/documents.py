"""Text of documents: seconds, memory, and how much of markitdown's text we find too, on the same files."""

import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from belino.bench import Row
from belino.domain.media import Blob, open_files
from belino.media.documents import Documents
from belino.media.sandbox.sandbox import Sandbox
from belino.media.sniff import HEAD_BYTES, sniff
from belino.readers.read import reads
from belino.testing.documents import document_files

BESIDE = "markitdown"
GOAL_SPEED = 5.0
GOAL_PERCENT = 95.0
SECONDS = 300.0
FEW_WORDS = 3
"""Fewer words are a file's name or a number, not its text."""
_ARCHIVES = ("application/zip", "application/x-tar", "application/gzip")
_TARGET = re.compile(r"\]\([^)]*+\)")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    path: Path
    mime: str

    @property
    def archive(self) -> bool:
        return self.mime in _ARCHIVES


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
    """The result of one reader on one file."""

    cpu: float = 0.0
    wall: float = 0.0
    memory: float = 0.0
    text: str = ""
    failed: bool = False


def run(*, corpus: Path | None = None) -> list[Row]:
    """Measure the documents of a folder; without one, generated documents."""
    with _files(corpus) as files:
        ours = _all("ours", files)
        sandboxed = asyncio.run(_sandboxed(files))
        if find_spec("markitdown") is None:
            cpu = median(done.cpu for done in ours)
            return [Row(metric=f"CPU ms a file of {len(files)}, median", ours=1e3 * cpu), sandboxed]
        pairs = list(zip(files, ours, _all(BESIDE, files), strict=True))
        return [*_speed(pairs), sandboxed, *_fidelity(pairs)]


def _speed(pairs: Sequence[tuple[_File, _Done, _Done]]) -> list[Row]:
    """Files that only one reader can read do not count for speed; nor do archives, which only one unpacks."""
    both = [(ours, beside) for file, ours, beside in pairs if ours.text and beside.text and not file.archive]
    if not both:
        return []
    rows = []
    for name in ("cpu", "wall"):
        mine, other = (median(getattr(pair[side], name) for pair in both) for side in (0, 1))
        faster = median(getattr(beside, name) / max(getattr(ours, name), 1e-5) for ours, beside in both)
        rows.append(
            Row(metric=f"{name.upper() if name == 'cpu' else name} ms a file of {len(both)}, median", ours=1e3 * mine,
                beside_name=BESIDE, beside=1e3 * other, ratio=faster, goal=f"≥ {GOAL_SPEED:g} × faster",
                ok=faster >= GOAL_SPEED)
        )  # fmt: skip
    memory, memory_beside = (median(pair[side].memory for pair in both) / 2**20 for side in (0, 1))
    largest, largest_beside = (max(pair[side].memory for pair in both) / 2**20 for side in (0, 1))
    return [
        *rows,
        Row(metric="MB a file takes, median", ours=memory, beside_name=BESIDE, beside=memory_beside,
            ratio=memory / memory_beside if memory_beside else None, goal="lower", ok=memory <= memory_beside),
        Row(metric="MB a file takes, largest", ours=largest, beside_name=BESIDE, beside=largest_beside),
    ]  # fmt: skip


def _fidelity(pairs: Sequence[tuple[_File, _Done, _Done]]) -> list[Row]:
    shares, missed, alone = [], 0, 0
    for file, ours, beside in pairs:
        told = _words(beside.text)
        if file.archive or (len(told) >= FEW_WORDS and _echoed(file, beside.text) and not _echoed(file, ours.text)):
            continue
        alone += len(told) < FEW_WORDS <= len(_words(ours.text))
        if len(told) >= FEW_WORDS:
            shares.append(100 * len(told & _words(ours.text)) / len(told))
            missed += not ours.text.strip()
    if not shares:
        return []
    return [
        Row(metric=f"of {len(pairs)} files, text that only beside finds", ours=missed, beside_name=BESIDE, beside=alone,
            goal="0", ok=missed == 0),
        Row(metric=f"% of its words that we find, median of {len(shares)}", ours=median(shares),
            goal=f"≥ {GOAL_PERCENT:g} %", ok=median(shares) >= GOAL_PERCENT),
        Row(metric="% of its words that we find, lowest", ours=min(shares)),
        Row(metric="files that neither of them reads", ours=sum(not (a.text or b.text) for _, a, b in pairs)),
    ]  # fmt: skip


def _words(text: str) -> set[str]:
    """Words as people read them, without link targets."""
    return set(_WORD.findall(_TARGET.sub("]", text).casefold()))


def _echoed(file: _File, text: str) -> bool:
    """Whether a file that is not plain text was returned unchanged: that is not reading it."""
    if file.mime.startswith("text/plain") or not file.mime.endswith(("rtf", "rfc822", "xml", "json")):
        return False
    written = file.path.read_text(encoding="utf-8", errors="replace")
    return "".join(written.split())[:2000] == "".join(text.split())[:2000]


def _all(how: str, files: Sequence[_File]) -> list[_Done]:
    command = [sys.executable, "-m", "belino.bench._reading", how]
    paths = "".join(f"{file.path.absolute()}\n" for file in files)
    done = subprocess.run(  # noqa: S603 - our own module
        command, input=paths, capture_output=True, text=True, timeout=SECONDS + 10 * len(files), check=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [_Done(**answer) for answer in answers]


async def _sandboxed(files: Sequence[_File]) -> Row:
    """As the gateway reads: in the sandbox, with the answer checked."""
    taken = []
    with tempfile.TemporaryDirectory(prefix="belino-bench-") as folder:
        async with Sandbox() as sandbox:
            paths = {str(number): file.path for number, file in enumerate(files)}
            documents = Documents(sandbox, Path(folder), open_files(paths))
            for name, file in zip(("0", *paths), (files[0], *files), strict=True):
                blob = Blob(sha256=name, mime=file.mime, size=file.path.stat().st_size)
                begun = time.perf_counter()
                await documents.read(blob, mime=file.mime, name=file.path.name)
                taken.append(time.perf_counter() - begun)
    return Row(metric="wall ms a file in the sandbox, median", ours=1e3 * median(taken[1:]))


@contextmanager
def _files(corpus: Path | None) -> Iterator[list[_File]]:
    with tempfile.TemporaryDirectory(prefix="belino-bench-") as folder:
        root = corpus or Path(folder)
        if corpus is None:
            for name, content in document_files().items():
                (root / name).write_bytes(content)
        found = [_File(path=path, mime=_mime(path)) for path in sorted(root.rglob("*")) if path.is_file()]
        yield [file for file in found if "\n" not in str(file.path) and _is_document(file)]


def _mime(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    return sniff(head, name=path.name, whole=len(head) < HEAD_BYTES).mime


def _is_document(file: _File) -> bool:
    return reads(file.mime) or not file.mime.startswith(("image/", "audio/", "video/"))
