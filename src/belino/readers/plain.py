"""Plain text in any character set, and formats based on it: Markdown, logs, source, CSV tables, notebooks, feeds."""

import csv
import io
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO
from xml.etree.ElementTree import Element

from belino.domain.media import DocumentText, DocumentUnit
from belino.readers import charset, html
from belino.readers.package import local, tree
from belino.readers.parts import PART_CHARS, CannotRead, Parts, ReadOptions, cut_document, one_line, table

TABLES = frozenset({"text/csv", "text/tab-separated-values"})
CHUNK_BYTES = 1024 * 1024
HEAD_BYTES = 64 * 1024
SCAN_CHUNKS = 100
CHUNK_CHARS = 256 * 1024

_COLOURS = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)")
_XML_CHARSET = re.compile(rb"""\A\s{0,20}<\?xml[^>]{1,100}?encoding\s*=\s*["']([A-Za-z0-9_.:-]{1,40})["']""")

SAMPLE_CHARS = 64 * 1024
SAMPLE_ROWS = 200
CELL_CHARS = 1024 * 1024
"""A quote that is never closed must not take up a hundred megabytes."""
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", ":": "colons"}
_STATED = re.compile(r"sep=([^\w\s\"]|\t)\s*\n", re.IGNORECASE)
"""A line before the table that Excel understands, and does not show."""

NOTEBOOK_BYTES = 50 * 1024 * 1024
_FENCE = "```"

FEED_BYTES = 20 * 1024 * 1024
# The root, after declarations and comments.
_FEED_ROOT = re.compile(
    r"\s*+(?:(?:<!--(?:[^-]|-(?!->))*+-->|<\?(?:[^?]|\?(?!>))*+\?>|<!DOCTYPE[^>\[]*+>)\s*+)*+<(rss|(?:\w{1,20}:)?(?:feed|RDF))[\s>]"
)
_RDF_FEED = "http://purl.org/rss/1.0/"
_ENTRIES = ("item", "entry")
_BODIES = ("encoded", "content", "description", "summary")
_DATES = ("pubDate", "updated", "published", "date")


def prepare() -> None:
    """Load the codecs and the parser before the sandbox forks: its child cannot."""
    charset.prepare()
    html.prepare()


def read(file: BinaryIO, options: ReadOptions) -> DocumentText:
    """The text as it is, split into parts; tables, notebooks and feeds in readable form."""
    if options.mime in TABLES:
        return _table_document(file, options)
    head = file.read(HEAD_BYTES)
    file.seek(0)
    if options.mime.endswith("json") and _is_notebook(head, options.name):
        cells = _notebook_text(file)
        if cells is not None:
            return cut_document(cells, options)
    if options.mime.endswith("xml") and _is_feed(head) and (feed := _feed_document(file, options)) is not None:
        return feed
    codec, texts = _open_text(file)
    notes = () if codec == "utf-8" else (f"read as {codec.replace('_', '-').upper()}",)
    return cut_document(texts, options, notes=notes, headings=options.mime == "text/markdown")


def _open_text(file: BinaryIO) -> tuple[str, Iterator[str]]:
    """The character set of a file, and its text piece by piece, with lines that end in `\\n`."""
    codec, mark = _detected(file)
    file.seek(mark)
    return codec, _texts(io.TextIOWrapper(file, encoding=codec, errors="replace"))


def _texts(reader: io.TextIOWrapper) -> Iterator[str]:
    try:
        while text := reader.read(CHUNK_CHARS):
            plain = text.replace("\f", "\n").replace("\0", "")
            yield _COLOURS.sub("", plain) if "\x1b" in plain else plain
    finally:
        reader.detach()


def _detected(file: BinaryIO) -> tuple[str, int]:
    """The codec, by the first chunk that is not pure ASCII, and the length of the byte order mark."""
    file.seek(0)
    first = file.read(CHUNK_BYTES)
    found = _XML_CHARSET.match(first)
    declared = charset.written_in_ascii(found[1]) if found else ""
    codec, mark = charset.detect(first, declared=declared)
    if codec != "utf-8" or mark or not first.isascii():
        return codec, mark
    for _ in range(SCAN_CHUNKS):
        chunk = file.read(CHUNK_BYTES)
        if not chunk:
            break
        if not chunk.isascii():
            # A chunk may begin in the middle of a character; a line does not.
            return charset.detect(chunk[chunk.find(b"\n") + 1 :], declared=declared)[0], 0
    return codec, 0


@dataclass(slots=True)
class _TableRows:
    """Rows of one part and their size."""

    first: int
    rows: list[list[str]]
    chars: int = 0


def _table_document(file: BinaryIO, options: ReadOptions) -> DocumentText:
    """Tables of some hundred rows, each with the header row repeated, and the total number of rows."""
    _, texts = _open_text(file)
    sample = next(texts, "")
    told = _STATED.match(sample)
    sample = sample[told.end() :] if told else sample
    separator = (
        told.group(1)
        if told
        else "\t"
        if options.mime.endswith("tab-separated-values")
        else _separator_of(sample[:SAMPLE_CHARS])
    )
    parts = Parts(options, DocumentUnit.PART)
    head: list[str] = []
    rows = total = 0
    for part in _table_parts(_rows(itertools.chain([sample], texts), separator)):
        total += 1
        rows += len(part.rows)
        head = head or part.rows[0]
        if parts.wants(total):
            shown = part.rows if total == 1 else [head, *part.rows]
            parts.add(total, table(shown), _rows_title(part) if total > 1 else "")
    if total:
        width = f", {len(head):,} columns, separated by {_SEPARATORS.get(separator, separator)}"
        parts.note(f"{rows:,} row{'' if rows == 1 else 's'}{width if len(head) > 1 else ', one column'}")
    return parts.document(total)


def _separator_of(sample: str) -> str:
    """The separator that gives the most rows the same number of cells, two or more."""
    whole = sample[: sample.rfind("\n") + 1] or sample
    scores = {mark: _evenness(whole, mark) for mark in _SEPARATORS}
    return max(scores, key=lambda mark: scores[mark])


def _evenness(sample: str, separator: str) -> float:
    widths = Counter(
        len(row) for row in itertools.islice(_rows([sample], separator), SAMPLE_ROWS) if len(row) > 1 or any(row)
    )
    if not widths:
        return 0.0
    width, count = max(widths.items(), key=lambda item: (item[1] if item[0] > 1 else 0, item[0]))
    if width < 2:
        return 0.0
    # Among equals, more cells are better, and a colon mostly belongs to a time of day.
    return count / widths.total() + min(width, 50) / 1000 - (0.5 if separator == ":" else 0)


def _rows(texts: "Iterator[str] | list[str] | itertools.chain[str]", separator: str) -> Iterator[list[str]]:
    csv.field_size_limit(CELL_CHARS)
    rows = csv.reader(_lines(texts), delimiter=separator, skipinitialspace=separator != "\t")
    while True:
        try:
            row = next(rows, None)
        except csv.Error:
            # An oversized cell: what is before and after it is still a table.
            continue
        if row is None:
            return
        if row:
            yield row


def _lines(texts: "Iterator[str] | list[str] | itertools.chain[str]") -> Iterator[str]:
    """Lines with their line breaks, because a cell may contain some."""
    rest = ""
    for text in texts:
        lines = (rest + text.replace("\0", "")).split("\n")
        rest = lines.pop()
        if len(rest) > CELL_CHARS:
            lines, rest = [*lines, rest], ""
        yield from (f"{line}\n" for line in lines)
    if rest:
        yield rest


def _table_parts(rows: Iterator[list[str]]) -> Iterator[_TableRows]:
    part = _TableRows(1, [])
    for number, row in enumerate(rows, 1):
        size = sum(map(len, row)) + 3 * len(row)
        if part.rows and part.chars + size > PART_CHARS:
            yield part
            part = _TableRows(number, [])
        part.rows.append(row)
        part.chars += size
    if part.rows:
        yield part


def _rows_title(part: _TableRows) -> str:
    return f"rows {part.first:,}–{part.first + len(part.rows) - 1:,}"


def _is_notebook(head: bytes, name: str) -> bool:
    """Whether JSON with this beginning is a notebook."""
    return b'"cells"' in head and (b'"cell_type"' in head or name.lower().endswith(".ipynb"))


def _notebook_text(file: BinaryIO) -> str | None:
    """The cells in order; None if it is not a notebook."""
    written = file.read(NOTEBOOK_BYTES + 1)
    file.seek(0)
    if len(written) > NOTEBOOK_BYTES:
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
    """The output of a cell; pictures are only named."""
    if output.get("output_type") == "error":
        return f"Error: {_joined(output.get('ename'))}: {_joined(output.get('evalue'))}"
    shown = output.get("data")
    kinds = shown if isinstance(shown, dict) else {}
    printed = _joined(output.get("text")) or _joined(kinds.get("text/plain"))
    picture = next((kind for kind in kinds if kind.startswith("image/")), "")
    told = [f"Output:\n{printed.rstrip()}"] if printed.strip() else []
    return "\n".join([*told, *([f"(output: {picture[:40]})"] if picture else [])])


def _joined(value: object) -> str:
    """Notebooks store text as a whole or line by line."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""


def _is_feed(head: bytes) -> bool:
    """Whether XML with this beginning is a feed."""
    text = head.decode("utf-8", "replace").replace("\0", "").lstrip("\ufeff\ufffd")
    root = _FEED_ROOT.match(text)
    return root is not None and (not root[1].endswith("RDF") or _RDF_FEED in text)


def _feed_document(file: BinaryIO, options: ReadOptions) -> DocumentText | None:
    """The feed's own text, then each entry under its title; None if its XML is broken or no feed."""
    try:
        root = tree(file.read(FEED_BYTES))
    except CannotRead:
        file.seek(0)
        return None
    hides: list[bool] = []
    channel = next((each for each in root if local(each.tag) == "channel"), root)
    entries = [each for each in root.iter() if local(each.tag) in _ENTRIES]
    if channel is root and not entries:
        file.seek(0)
        return None
    blocks = ["\n".join(_about(channel, hides, level="#")), *("\n".join(_about(each, hides)) for each in entries)]
    return cut_document("\n\n".join(blocks), options, hides=any(hides))


def _about(element: Element, hides: list[bool], *, level: str = "##") -> Iterator[str]:
    fields: dict[str, Element] = {}
    for child in element:
        fields.setdefault(local(child.tag), child)
    if (title := _field_html(fields.get("title"), hides)) != "":
        yield f"{level} {one_line(title)}"
    told = [_field_text(fields.get(name)) for name in _DATES if name in fields][:1]
    told += [_field_text(fields[name]) for name in ("author", "creator") if name in fields][:1]
    link = fields.get("link")
    told += [_field_text(link) or link.get("href", "")] if link is not None else []
    if line := " · ".join(one_line(each) for each in told if each):
        yield line
    for name in _BODIES:
        if (body := _field_html(fields.get(name), hides)) != "":
            yield body
            return


def _field_text(element: Element | None) -> str:
    return "" if element is None else one_line(" ".join(element.itertext()))


def _field_html(element: Element | None, hides: list[bool]) -> str:
    """The text of a field, which contains HTML."""
    if element is None:
        return ""
    shown = html.show("".join(element.itertext()))
    hides.append(shown.hides)
    return shown.text
