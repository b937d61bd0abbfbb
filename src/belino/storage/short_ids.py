"""Short ids of messages: the first characters of a keyed hash, as many as tell a message from others of its channel.

A short id is two letters and at least three digits, like `kv305`: two tokens for a model, and unlike the ids of any
platform. When two messages of a channel begin alike, both get longer ids; the shorter one then names both.
"""

import re

from belino.domain.message import ConversationKey
from belino.storage.database import Database, Tx
from belino.storage.encryption import MESSAGE_CODES, Keys

LEAST_CHARS = 5
"""The default of `messages.short_chars`."""
FILLED_AT_ONCE = 2_000
"""Messages per transaction, so that a start that is interrupted continues where it was."""

_LETTERS = "abcdefghjkmnpqrstvwxyz"
_PAIRS = [first + second for first in _LETTERS for second in _LETTERS]
_NUMBERS = {pair: number for number, pair in enumerate(_PAIRS)}
_TAILS = MESSAGE_CODES // len(_PAIRS)
_DIGITS = len(str(_TAILS - 1))
_LEAST_DIGITS = [f"{number:0{LEAST_CHARS - 2}}" for number in range(10 ** (LEAST_CHARS - 2))]
_OF_ONE_ID = _TAILS // len(_LEAST_DIGITS)
_SHORT_ID = re.compile(rf"([{_LETTERS}]{{2}})([0-9]{{{LEAST_CHARS - 2},{_DIGITS}}})")
IN_TEXT = re.compile(rf"\b[a-z]{{2}}[0-9]{{{LEAST_CHARS - 2},{_DIGITS}}}\b")
"""Whatever may be a short id in a text, or the pseudonym of one, which has any letters."""


def short_id(code: int, chars: int) -> str:
    """The first characters of a message's code."""
    pair, tail = divmod(code, _TAILS)
    if chars == LEAST_CHARS:  # nearly always, and made for every message that is read
        return _PAIRS[pair] + _LEAST_DIGITS[tail // _OF_ONE_ID]
    return _PAIRS[pair] + f"{tail:0{_DIGITS}}"[: chars - 2]


def code_of(keys: Keys, conversation: ConversationKey, message_id: str) -> int:
    """A message's code."""
    return keys.message_code(conversation.platform, conversation.account, conversation.channel, message_id)


def codes_named(name: str) -> tuple[int, int]:
    """The first and the last code that begin with a short id; no code is between them if this is not one."""
    found = _SHORT_ID.fullmatch(name)
    if found is None:
        return 0, -1
    pair, digits = found.groups()
    size = 10 ** (_DIGITS - len(digits))
    first = _NUMBERS[pair] * _TAILS + int(digits) * size
    return first, first + size - 1


def lengthen(tx: Tx, channel: int, code: int) -> None:
    """Make the ids of a stored message, and of those of its channel that begin alike, long enough to differ."""
    alike = tx.execute(
        "SELECT DISTINCT short, short_chars FROM messages WHERE channel = ? AND short BETWEEN ? AND ? AND short <> ?",
        (channel, *codes_named(short_id(code, LEAST_CHARS)), code),
    ).fetchall()
    longer = [(_chars_apart(code, row["short"]), row["short"]) for row in alike]
    for chars, short in [*longer, *((chars, code) for chars, _ in longer)]:
        tx.execute(
            "UPDATE messages SET short_chars = ?1 WHERE channel = ?2 AND short = ?3 AND short_chars < ?1",
            (chars, channel, short),
        )


def _chars_apart(one: int, other: int) -> int:
    """The characters that tell two codes apart."""
    whole = zip(short_id(one, _DIGITS + 2), short_id(other, _DIGITS + 2), strict=True)
    return next(place for place, (left, right) in enumerate(whole, 1) if left != right)


async def fill_short_ids(database: Database, keys: Keys) -> None:
    """Give ids to the messages that an older version stored without."""
    while await database.write(lambda tx: _fill(tx, keys)):
        pass


def _fill(tx: Tx, keys: Keys) -> int:
    rows = tx.execute(
        "SELECT m.id, m.channel, m.platform_id, c.platform, c.account, c.channel AS channel_key FROM messages m "
        "JOIN channels c ON c.id = m.channel WHERE m.short IS NULL LIMIT ?",
        (FILLED_AT_ONCE,),
    ).fetchall()
    for row in rows:
        code = keys.message_code(row["platform"], row["account"], row["channel_key"], row["platform_id"])
        tx.execute("UPDATE messages SET short = ? WHERE id = ?", (code, row["id"]))
        lengthen(tx, row["channel"], code)
    return len(rows)
