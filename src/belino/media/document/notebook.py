"""Jupyter notebooks: cells and what they printed, as text."""

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from belino.media.document import charset

BYTES_AT_MOST = 50 * 1024 * 1024
_FENCE = "```"


def is_notebook(head: bytes, name: str) -> bool:
    """Whether JSON that begins so is a notebook."""
    return b'"cells"' in head and (b'"cell_type"' in head or name.lower().endswith(".ipynb"))


def text(file: BinaryIO) -> str | None:
    """The cells in order; None if it is no notebook after all."""
    written = file.read(BYTES_AT_MOST + 1)
    file.seek(0)
    if len(written) > BYTES_AT_MOST:
        return None
    try:
        book = json.loads(charset.decode(written))
    except (ValueError, RecursionError):
        return None
    cells = book.get("cells") if isinstance(book, dict) else None
    if not isinstance(cells, list):
        return None
    return "\n\n".join(block for cell in cells if isinstance(cell, dict) for block in _cell(cell) if block.strip())


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    source = _joined(cell.get("source"))
    if cell.get("cell_type") != "code":
        yield source
        return
    yield f"{_FENCE}\n{source}\n{_FENCE}" if source.strip() else ""
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        if isinstance(output, dict):
            yield _output(output)


def _output(output: dict[str, Any]) -> str:
    """What a cell printed; pictures are only named."""
    if output.get("output_type") == "error":
        return f"Error: {_joined(output.get('ename'))}: {_joined(output.get('evalue'))}"
    shown = output.get("data")
    kinds = shown if isinstance(shown, dict) else {}
    printed = _joined(output.get("text")) or _joined(kinds.get("text/plain"))
    picture = next((kind for kind in kinds if kind.startswith("image/")), "")
    told = [f"Output:\n{printed.rstrip()}"] if printed.strip() else []
    return "\n".join([*told, *([f"(output: {picture[:40]})"] if picture else [])])


def _joined(value: object) -> str:
    """Notebooks hold text whole or line by line."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""
