"""File mentions: where a text names one of the files of its conversation.

Paths are not parsed out of the text: the files are known, and only their own spellings are searched for. So spaces,
quotes and links need no rules, and any other name is only text.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

# Characters that continue a word or a path. Letters of other scripts do not: some are written without spaces.
_GOES_ON_BEFORE = re.compile(r"[A-Za-z0-9_/\\.~%@:=+#&$-]")
_GOES_ON_AFTER = re.compile(r"[A-Za-z0-9_/\\~%@=+#&$-]|[.:][^\s.:]")
_ENDS_SENTENCE = re.compile(r"[.:][)\]}>\"'”’»`*_]*(?:\s|\Z)")
_QUOTES = {"`": "`", '"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "<": ">"}
_EXTENSION = re.compile(r"[^/]\.(?=[0-9]*[A-Za-z])[A-Za-z0-9]{1,10}\Z")
_LINK_BEGINS = re.compile(r"(!?)\[([^\[\]\n]*)\]\(<?\Z")
_LINK_ENDS = re.compile(r">?(?: +\"[^\"\n]*\")?\)")
_LABEL_CHARS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMention:
    """A place in the text that names a file."""

    start: int
    end: int
    path: str
    full: bool
    """Whether the path is given with its folder; a bare name may mean another file."""


def find_named(text: str, paths: Iterable[str], roots: Sequence[tuple[str, str]]) -> tuple[FileMention, ...]:
    """Every mention of these files, in text order; of overlapping ones the longest.

    `paths` are relative to one folder. Each of `roots` is a folder below it, and the prefix with which a text may name
    a path in it; an empty prefix means a bare name.
    """
    spellings: dict[str, tuple[bool, str]] = {}
    for path in paths:
        if _occurs(text, path):
            for spelling, full in _spellings(path, roots):
                if spelling not in spellings or full > spellings[spelling][0]:
                    spellings[spelling] = full, path
    taken = bytearray(len(text))
    found = []
    for spelling in sorted(spellings, key=lambda known: (-len(known), known)):
        for start in _occurrences(text, spelling):
            end = start + len(spelling)
            if not any(taken[start:end]) and _stands_alone(text, start, end):
                taken[start:end] = b"\1" * (end - start)
                full, path = spellings[spelling]
                found.append(FileMention(start=start, end=end, path=path, full=full))
    return tuple(sorted(found, key=lambda named: named.start))


def replaced(text: str, named: Sequence[FileMention], names: Mapping[str, str]) -> str:
    """The text with the path of each of these files replaced by its name; other paths stay."""
    spans = [_span(text, one, names[one.path]) for one in named if one.path in names]
    pieces, at = [], 0
    for start, end, words in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= at:  # else it is in the label of a link that was replaced whole
            pieces += [text[at:start], words]
            at = end
    return "".join([*pieces, text[at:]])


def _span(text: str, named: FileMention, name: str) -> tuple[int, int, str]:
    """The range to replace, and the replacement; a link is replaced whole, since its target is a local path."""
    begins = _LINK_BEGINS.search(text, max(0, named.start - _LABEL_CHARS), named.start)
    ends = _LINK_ENDS.match(text, named.end) if begins else None
    if begins is None or ends is None:
        return named.start, named.end, name
    is_picture, label = bool(begins[1]), begins[2].strip()
    if is_picture or not label or "/" in label:
        return begins.start(), ends.end(), name
    return begins.start(), ends.end(), label if name in label else f"{label} ({name})"


def _occurs(text: str, path: str) -> bool:
    name = path.rpartition("/")[2]
    return name in text or _quoted(name) in text


def _spellings(path: str, roots: Sequence[tuple[str, str]]) -> Iterator[tuple[str, bool]]:
    """How a text may name a path, and whether that is its full path."""
    for folder, beginning in roots:
        if path.startswith(f"{folder}/"):
            spelling = f"{beginning}{path[len(folder) + 1 :]}"
            for each in (spelling,) if spelling.startswith("/") else (spelling, f"./{spelling}"):
                yield each, bool(beginning)
                yield _quoted(each), bool(beginning)  # a Markdown link cannot contain a space


def _quoted(path: str) -> str:
    # A file name may be any bytes; those that are not text are lone surrogates in the string.
    return quote(path.encode(errors="surrogateescape"))


def _occurrences(text: str, spelling: str) -> Iterable[int]:
    start = text.find(spelling)
    while start >= 0:
        yield start
        start = text.find(spelling, start + 1)


def _stands_alone(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 2]
    spelling = text[start:end]
    if not _EXTENSION.search(spelling) and "/" not in spelling:
        # A bare word such as `notes` does not mean the file `notes` unless it is quoted.
        return before in _QUOTES and after[:1] == _QUOTES[before]
    if before and (_GOES_ON_BEFORE.match(before) or (before.isalnum() and not spelling[0].isascii())):
        return False
    if not after or _ENDS_SENTENCE.match(text, end):
        return True
    return not _GOES_ON_AFTER.match(after)
