"""Reading documents one after the other, with belino or markitdown, each in a child of a warm process.

`python -m belino.bench._reading ours|markitdown`: a path on each line in, a line of JSON out.
"""

import io
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TIMES = 3
TEXT_AT_MOST = 4_000_000
_KILOBYTE = 1 if sys.platform == "darwin" else 1024

Read = Callable[[Path], Callable[[], str]]
"""Reads a document and can then return the text."""


def main(how: str) -> None:
    """Answer until the input ends."""
    begin = _ours if how == "ours" else _markitdown
    begin()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_forked(begin, Path(line.rstrip("\n")))) + "\n")


def _forked(begin: Callable[[], Read], path: Path) -> dict[str, Any]:
    """In a child, so that each document's memory is its own and no cache carries over to the next."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            os.close(reading)
            with os.fdopen(writing, "w", encoding="utf-8", errors="replace") as answer:
                json.dump(_measured(begin(), path), answer)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as answer:
        told = answer.read()
    os.waitpid(pid, 0)
    found: dict[str, Any] = json.loads(told) if told else {"failed": True}
    return found


def _measured(read: Read, path: Path) -> dict[str, Any]:
    """The first run loads libraries and does not count; of the others the fastest counts, as the machine may be
    busy."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read(path)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    taken = []
    for _ in range(TIMES):
        cpu, wall = time.process_time(), time.perf_counter()
        text = read(path)
        taken.append((time.process_time() - cpu, time.perf_counter() - wall))
    cpu, wall = map(min, zip(*taken, strict=True))
    return {"cpu": cpu, "wall": wall, "memory": memory * _KILOBYTE, "text": text()[:TEXT_AT_MOST]}


def _ours() -> Read:
    """The work of the sandbox's child: sniff, read, write the answer."""
    from belino.media.sniff import HEAD_BYTES, sniff
    from belino.readers import read as reading

    reading.prepare()

    def read(path: Path) -> Callable[[], str]:
        with path.open("rb") as file, tempfile.TemporaryFile() as target:
            head = file.read(HEAD_BYTES)
            mime = sniff(head, name=path.name, whole=len(head) < HEAD_BYTES).mime
            if not reading.reads(mime):
                return str
            file.seek(0)
            reading.read(file.fileno(), target.fileno(), {"mime": mime, "name": path.name})
            target.seek(0)
            written = target.read()
        return lambda: _joined(written)

    return read


def _joined(written: bytes) -> str:
    parts = [json.loads(line) for line in written.splitlines()[1:]]
    return "\n\n".join(f"{title}\n{text}" for _, title, text, _ in parts if text)


def _markitdown() -> Read:
    """By bytes and name, as ours."""
    from markitdown import MarkItDown, MarkItDownException, StreamInfo

    converter = MarkItDown(enable_plugins=False)

    def read(path: Path) -> Callable[[], str]:
        about = StreamInfo(extension=path.suffix, filename=path.name)
        try:
            found = converter.convert_stream(io.BytesIO(path.read_bytes()), stream_info=about)
        except MarkItDownException:
            return str
        return lambda: str(found.markdown)

    return read


if __name__ == "__main__":
    main(sys.argv[1])
