"""The escape of text that an engine cannot store: NUL and lone surrogates, which are valid in a Python string.

An engine escapes what it writes and unescapes what it reads, so that every text is read as it was written. Each such
character, and each mark, becomes the mark and a code. A text that was not escaped may be read as another if it contains
the mark: an engine that does not escape every text from its first row on needs a mark that no earlier text can contain.
"""

import re
from functools import lru_cache

MARK = "\x1a"
"""What each escape begins with; a longer mark begins with it, too, and does not contain it again."""

_ITSELF = "-"


def escape(text: str, mark: str = MARK) -> str:
    """The text without NUL and lone surrogates, from which `unescape` makes the same text."""
    return _refused(mark).sub(lambda found: mark + _code(found[0]), text)


def unescape(text: str, mark: str = MARK) -> str:
    """The text that was escaped."""
    return _escaped(mark).sub(lambda found: mark if found[1] == _ITSELF else chr(int(found[1], 16)), text)


def _code(refused: str) -> str:
    return f"{ord(refused):04x}" if refused == "\0" or "\ud800" <= refused <= "\udfff" else _ITSELF


@lru_cache
def _refused(mark: str) -> re.Pattern[str]:
    return re.compile(f"{re.escape(mark)}|[\0\ud800-\udfff]")


@lru_cache
def _escaped(mark: str) -> re.Pattern[str]:
    return re.compile(f"{re.escape(mark)}({_ITSELF}|[0-9a-f]{{4}})")
