"""Safe text: untrusted names, types and messages, made safe for an agent to read.

A placeholder tells the agent that a ref exists (`context/line_format.py`). File names, captions, MIME strings and
message texts are untrusted: the bracket of whatever has the shape of a placeholder is written `［` before an agent
reads it; no other bracket is changed. The store keeps the original.
"""

import re
import unicodedata
from functools import lru_cache

from belino.domain.media import MediaKind

NAME_CHARS = 100

_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")

# The shape of a placeholder: a kind right after the bracket, and a ref before the bracket is closed. Notes of our own
# in brackets, about what left an agent's memory, are known by how they begin.
_COLONS = ":ː։׃∶꞉"
_SHAPE = re.compile(
    rf"(?P<head>\[(?=\s*(?:{'|'.join(MediaKind)})\s*[{_COLONS}]))"
    r"|(?P<note>\[(?=\s*(?:post\W?compaction\s+context|earlier\s+turns\s+of\s+this\s+conversation)\b))"
    r"|(?P<open>\[)|(?P<shut>\])"
    rf"|(?P<ref>ref\s*[{_COLONS}]\s*[a-z0-9]{{1,8}}_[a-z0-9])"
)
_REF_COLON = re.compile(rf"ref[\W_]{{0,8}}?[{_COLONS}]")

# Homoglyphs of the Latin letters in the words above.
_LOOKALIKES = dict(zip("аеосіѕкмпртухгѵԁɡοιεακνρτυ", "aeociskmnptyxrvdgoieakvptu", strict=True))

_JOINERS = "\u200c\u200d\ufe0e\ufe0f"

# Printable by category yet invisible: variation selectors, fillers, the grapheme joiner.
_HIDDEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_BREAKS = "\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


def disarm(text: str) -> str:
    """Untrusted text for an agent: nothing invisible, nothing that passes for a placeholder."""
    if text.isascii() and text.isprintable() and "[" not in text:
        return text
    seen = _visible(text)
    if "[" not in seen and "﹇" not in seen:  # the vertical form folds to the same bracket
        return seen
    forged = set(_forged_brackets(seen))
    return "".join("［" if at in forged else character for at, character in enumerate(seen)) if forged else seen


def one_line(text: str) -> str:
    """Untrusted text in one line: disarmed, white space collapsed."""
    return " ".join(disarm(text).split())


def clean_name(name: str, *, limit: int = NAME_CHARS) -> str:
    """A file's or person's name for use in our own text: one line, no bracket, no ref, limited length."""
    line = one_line(name).replace("[", "［").replace("]", "］")
    folded, positions = _folded(line)
    colons = {positions[found.end() - 1] for found in _REF_COLON.finditer(folded)}
    line = "".join("：" if at in colons else character for at, character in enumerate(line))
    return line if len(line) <= limit else f"{line[: limit - 13]}…{line[-12:]}"


def fold(text: str) -> str:
    """The text in plain lower-case letters without marks, for comparing it with our own words."""
    return _folded(text)[0]


def clean_mime(mime: str) -> str:
    """The type without its parameters; empty if it is not a MIME type."""
    plain = mime[:256].partition(";")[0].strip().lower()
    return plain if _MIME.fullmatch(plain) else ""


def _forged_brackets(text: str) -> list[int]:
    """Where each `[` begins a note of ours or something of a placeholder's shape, in which brackets may be nested."""
    folded, positions = _folded(text)
    forged: list[int] = []
    opened: list[int] = []
    heads: list[int] = []
    """Of the open brackets, those that are followed by a kind and by no ref yet."""
    for found in _SHAPE.finditer(folded):
        if found.lastgroup == "ref":
            forged += [positions[at] for at in heads]
            heads.clear()
        elif found.lastgroup == "shut":
            if opened and opened.pop() in heads[-1:]:
                heads.pop()
        else:
            opened.append(found.start())
            forged += [positions[found.start()]] if found.lastgroup == "note" else []
            heads += [found.start()] if found.lastgroup == "head" else []
    return forged


def _folded(text: str) -> tuple[str, range | list[int]]:
    """The text folded to plain lower-case letters without marks, and the source position of each character."""
    if text.isascii():
        return text.lower(), range(len(text))
    letters: list[str] = []
    positions: list[int] = []
    for at, character in enumerate(text):
        for letter in _fold(character):
            letters.append(letter)
            positions.append(at)
    return "".join(letters), positions


@lru_cache(maxsize=8192)
def _fold(character: str) -> str:
    if character in "［］":
        return character  # our own replacements, which also stand in names: they open and close nothing
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return ""
    plain = unicodedata.normalize("NFKD", character).casefold()
    kept = "".join(letter for letter in plain if unicodedata.category(letter) not in ("Mn", "Me"))
    return "".join(_LOOKALIKES.get(letter, letter) for letter in kept)


def _visible(text: str) -> str:
    """Without control, bidi, zero-width, tag and private characters; joiners stay where scripts and emoji need them."""
    if text.replace("\n", "").isprintable() and (text.isascii() or not _HIDDEN.search(text)):
        return text
    kept: list[str] = []
    for character in text.replace("\r\n", "\n"):
        if character == "\t" or character.isprintable():
            if not _HIDDEN.match(character) or (character in _JOINERS and kept and _joins(kept[-1])):
                kept.append(character)
        elif character in _BREAKS:
            kept.append("\n")
        elif unicodedata.category(character) == "Zs":
            kept.append(" ")
        elif _unassigned(character) or (character in _JOINERS and kept and _joins(kept[-1])):
            kept.append(character)
    return "".join(kept)


def _unassigned(character: str) -> bool:
    """A letter or emoji newer than this Python's tables; ranges with ignorable characters are excluded."""
    point = ord(character)
    return 0x3000 <= point < 0xE0000 and point & 0xFFFF < 0xFFF0 and unicodedata.category(character) == "Cn"


def _joins(before: str) -> bool:
    """Scripts that join letters, and emoji: nothing that folds to a Latin letter or a bracket."""
    point = ord(before)
    return 0x0600 <= point <= 0x1FFF or 0x2190 <= point <= 0x2BFF or point >= 0x1F300 or before == "\ufe0f"
