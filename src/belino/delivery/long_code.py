"""Long code and tables of a reply: sent as files, with their first lines shown in the text."""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from belino.delivery.markup import SourceBlock, as_code, source_blocks

FIRST_LINES = 10
FIRST_CHARS = 600
"""The most that is shown of a block that is sent as a file."""
LINE_CHARS = 100
"""A longer line counts as several: one line of 100,000 characters is fifty messages."""
BLOCKS_AT_MOST = 5
"""The most blocks of one reply that are sent as files; the others stay in the text."""
_SUFFIXES = {
    "bash": "sh", "c": "c", "c#": "cs", "c++": "cpp", "cpp": "cpp", "cs": "cs", "csharp": "cs", "css": "css",
    "csv": "csv", "diff": "diff", "go": "go", "html": "html", "ini": "ini", "java": "java", "javascript": "js",
    "js": "js", "json": "json", "kotlin": "kt", "lua": "lua", "makefile": "mk", "markdown": "md", "md": "md",
    "patch": "diff", "perl": "pl", "php": "php", "py": "py", "python": "py", "r": "r", "rb": "rb", "ruby": "rb",
    "rs": "rs", "rust": "rs", "sh": "sh", "shell": "sh", "sql": "sql", "swift": "swift", "toml": "toml",
    "ts": "ts", "tsx": "tsx", "typescript": "ts", "xml": "xml", "yaml": "yaml", "yml": "yaml",
}  # fmt: skip
_TICKS = re.compile(r"`+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LongBlock:
    """A block of code or a table that is sent as a file."""

    start: int
    end: int
    name: str
    content: str
    shown: str
    """The Markdown that replaces it in the text."""

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self.content.encode(errors="replace")


def long_blocks(source: str, *, lines: int) -> tuple[LongBlock, ...]:
    """The code blocks and tables of a Markdown text with more than so many lines, in order; none for 0 lines."""
    if not lines or source.count("\n") + len(source) // LINE_CHARS < lines:
        return ()
    found: list[LongBlock] = []
    for block in source_blocks(source):
        if _lines(block.content) > lines and len(found) < BLOCKS_AT_MOST:
            name = _name(block, [each.name for each in found])
            shown = _shown(block, name)
            found.append(LongBlock(start=block.start, end=block.end, name=name, content=block.content, shown=shown))
    return tuple(found)


def shortened(source: str, blocks: Sequence[LongBlock]) -> str:
    """The text with these blocks, in order, replaced by their first lines."""
    pieces, at = list[str](), 0
    for block in blocks:
        pieces += [source[at : block.start], block.shown]
        at = block.end
    return "".join([*pieces, source[at:]])


def _lines(content: str) -> int:
    return sum(max(1, -(-len(line) // LINE_CHARS)) for line in content.rstrip("\n").split("\n"))


def _name(block: SourceBlock, taken: Sequence[str]) -> str:
    stem, suffix = ("table", "md") if block.is_table else ("code", _SUFFIXES.get(block.language.lower(), "txt"))
    name, number = f"{stem}.{suffix}", 2
    while name in taken:
        name, number = f"{stem}-{number}.{suffix}", number + 1
    return name


def _shown(block: SourceBlock, name: str) -> str:
    """The first lines, and where the others are."""
    first, size, count = list[str](), 0, block.content.rstrip("\n").count("\n") + 1
    for line in block.content.splitlines()[: FIRST_LINES + 2 * block.is_table]:
        size += len(line) + 1
        if size > FIRST_CHARS and first:
            size -= len(line) + 1
            break
        first.append(line[:FIRST_CHARS])
    told = f"The first {len(first)} of {count} lines; all of them are in {as_code(name)}.\n"
    if len(first) == 1 and size > FIRST_CHARS:
        told = f"Only the beginning; all of it is in {as_code(name)}.\n"
    if block.is_table:
        return "\n".join([*first, "", told])
    longest = max((len(run) for run in _TICKS.findall("\n".join(first))), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}{block.language}", *first, fence, "", told])
