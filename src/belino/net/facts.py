"""Facts of a message that are neither text nor a file, as lines of text: places, people, polls."""

from collections.abc import Iterable, Iterator

from belino.net.json_fields import Raw, real

MOST_LINES = 50


def coordinates(place: Raw, latitude: str = "latitude", longitude: str = "longitude") -> str:
    """Where a place is; empty if it does not say so."""
    north, east = real(place, latitude), real(place, longitude)
    return "" if north is None or east is None else f"{north:.6f}, {east:.6f}"


def place_line(where: str, labels: Iterable[str], *, kind: str = "Location") -> str:
    """A place with its name and address."""
    label = ", ".join(filter(None, labels))
    return f"{kind}: {where or 'unknown'}{f' ({label})' if label else ''}"


def contact_line(told: Iterable[str]) -> str:
    """A contact: the name and the numbers of a person."""
    return f"Contact: {', '.join(filter(None, told)) or 'empty'}"


def poll_lines(question: str, options: Iterable[str], *, kind: str = "Poll") -> Iterator[str]:
    """A poll with its options."""
    yield f"{kind}: {question or 'without a question'}"
    yield from (f"- {option}" for option in options)
