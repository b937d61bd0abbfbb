"""Message lines: contacts, places and polls as lines of text, in the same words on every platform.

Senders write the labels in them: each is as untrusted as the message, and has to be on one line.
"""

from collections.abc import Iterable, Iterator

MOST_LINES = 50


def joined(*parts: str, by: str = ", ") -> str:
    """The parts that say something."""
    return by.join(filter(None, parts))


def contact_line(*facts: str) -> str:
    """A contact that was sent: its name first."""
    return f"Contact: {joined(*facts) or 'empty'}"


def coordinates(latitude: float | None, longitude: float | None) -> str:
    """A place on the globe, to about ten centimetres; empty if it is not known."""
    return "" if latitude is None or longitude is None else f"{latitude:.6f}, {longitude:.6f}"


def place_line(latitude: float | None, longitude: float | None, *labels: str, kind: str = "Location") -> str:
    """A place that was sent, with its names."""
    label = joined(*labels)
    return f"{kind}: {coordinates(latitude, longitude) or 'unknown'}{f' ({label})' if label else ''}"


def poll_lines(question: str, options: Iterable[str], *, mark: str = "") -> Iterator[str]:
    """A poll and its options; `mark` says what is special about it."""
    yield f"Poll{mark}: {question or 'without a question'}"
    yield from (f"- {option}" for option in options)
