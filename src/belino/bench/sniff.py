"""Sniff: how often a file's type is right, from the whole file and from its first bytes, compared with other tools."""

import mimetypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from belino.bench import Row
from belino.media.sniff import HEAD_BYTES, sniff
from belino.media.sniff.hints import SUFFIXES, UNKNOWN, normal
from belino.testing.files import sample_files

GOAL_PERCENT = 97.0
SHORT_BYTES = 4096
TOOL_SECONDS = 120.0

# The types of suffixes that neither the standard library's table nor ours has, or that have several correct names.
_PROMISES = {
    "heif": "image/heic", "jp2": "image/jp2", "j2k": "image/x-jp2-codestream", "eps": "application/postscript",
    "ppm": "image/x-portable-pixmap", "pgm": "image/x-portable-graymap", "pfm": "image/x-portable-floatmap",
    "sgi": "image/x-sgi", "fli": "video/x-fli", "blp": "image/x-blp", "dds": "image/vnd.ms-dds", "qoi": "image/x-qoi",
    "fits": "image/fits", "icns": "image/icns", "dcx": "image/x-dcx", "pxr": "image/x-pixar",
}  # fmt: skip
# Synonyms of a type: each of them counts as right.
_SAME = {
    "image/x-icns": "image/icns", "image/x-dds": "image/vnd.ms-dds", "video/x-flc": "video/x-fli",
    "video/fli": "video/x-fli", "image/x-fits": "image/fits", "image/x-sgi-bw": "image/x-sgi",
    "image/x-portable-greymap": "image/x-portable-graymap", "text/x-script.python": "text/x-python",
    "application/eps": "application/postscript", "image/x-eps": "application/postscript",
    "application/x-empty": UNKNOWN, "inode/x-empty": UNKNOWN,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    path: Path
    promised: str
    size: int


def run(*, corpus: Path | None = None) -> list[Row]:
    """Measure how often a type is detected exactly."""
    return sniff_rows(corpus)


def sniff_rows(corpus: Path | None = None) -> list[Row]:
    """The files of a folder whose suffixes imply a type; without one, small files of ours."""
    with _files(corpus) as files:
        whole, seconds = _ours(files, HEAD_BYTES)
        short, _ = _ours(files, SHORT_BYTES)
        rows = [
            *(_row(f"% of {len(files)} files told exactly", whole, *beside) for beside in _others(files)),
            _row(f"% told exactly from the first {SHORT_BYTES // 1024} KB", short, "", None),
        ]
        return [*rows, Row(metric="µs to tell a type", ours=1e6 * seconds / max(1, len(files)))]


def _row(metric: str, ours: float, name: str, beside: float | None) -> Row:
    ratio = ours / beside if beside else None
    return Row(
        metric=metric, ours=ours, beside_name=name, beside=beside, ratio=ratio,
        goal=f"≥ {GOAL_PERCENT:g} %", ok=ours >= GOAL_PERCENT,
    )  # fmt: skip


@contextmanager
def _files(corpus: Path | None) -> Iterator[list[_File]]:
    with tempfile.TemporaryDirectory(prefix="belino-bench-") as folder:
        root = corpus or Path(folder)
        if corpus is None:
            for name, (_, content) in sample_files().items():
                (root / name).write_bytes(content)
        found = [_File(path=path, promised=_promise(path), size=path.stat().st_size) for path in _plain_files(root)]
        yield [file for file in found if file.promised and file.size]


def _plain_files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())


def _promise(path: Path) -> str:
    suffix = path.suffix[1:].lower()
    guessed = _PROMISES.get(suffix) or SUFFIXES.get(suffix) or mimetypes.guess_type(f"a.{suffix}")[0]
    # A suffix like .bin implies no type.
    return _same(guessed) if guessed and guessed != UNKNOWN else ""


def _same(mime: str) -> str:
    plain = normal(mime)
    return _SAME.get(plain, plain)


def _ours(files: Sequence[_File], size: int) -> tuple[float, float]:
    """The percentage detected exactly, and the CPU seconds without reading."""
    right, seconds = 0, 0.0
    for file in files:
        with file.path.open("rb") as opened:
            head = opened.read(size)
        begun = time.thread_time()
        mime = sniff(head, name=file.path.name, whole=file.size <= size).mime
        seconds += time.thread_time() - begun
        right += _same(mime) == file.promised
    return 100 * right / max(1, len(files)), seconds


def _others(files: Sequence[_File]) -> Iterator[tuple[str, float | None]]:
    told = {name: tool(files) for name, tool in _TOOLS.items()}
    known = {name: answers for name, answers in told.items() if answers is not None}
    for name, answers in known.items():
        right = sum(_same(answer) == file.promised for answer, file in zip(answers, files, strict=True))
        yield name, 100 * right / max(1, len(files))
    if not known:
        yield "", None


def _filetype(files: Sequence[_File]) -> list[str] | None:
    try:
        import filetype  # type: ignore[import-untyped]
    except ImportError:
        return None
    return [filetype.guess_mime(str(file.path)) or UNKNOWN for file in files]


def _libmagic(files: Sequence[_File]) -> list[str] | None:
    """By the `file` command, if installed."""
    command = shutil.which("file")
    if command is None:
        return None
    paths = "\n".join(str(file.path.absolute()) for file in files)
    asked = subprocess.run(  # noqa: S603 - a tool of the system, on names from a list
        [command, "--brief", "--mime-type", "--files-from", "-"],
        input=paths, capture_output=True, text=True, timeout=TOOL_SECONDS, check=False,
    )  # fmt: skip
    answers = asked.stdout.splitlines()
    return answers if len(answers) == len(files) else None


_TOOLS: dict[str, Callable[[Sequence[_File]], list[str] | None]] = {"libmagic": _libmagic, "filetype": _filetype}
