"""Argument types of commands, with limits and errors."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable


def number_from(least: int, most: int | None = None) -> Callable[[str], int]:
    """A whole number within limits."""
    limits = f"at least {least}" if most is None else f"from {least} to {most}"

    def number(text: str) -> int:
        value = int(text) if text.removeprefix("-").isdecimal() else None
        if value is None or value < least or (most is not None and value > most):
            raise ArgumentTypeError(f"{text!r} is not a whole number {limits}")
        return value

    return number


def text_up_to(most: int, *, least: int = 1) -> Callable[[str], str]:
    """A non-empty text that HTTP and the store can carry."""

    def text(given: str) -> str:
        said = given.strip()
        if not least <= len(said) <= most or any("\ud800" <= character <= "\udfff" for character in said):
            raise ArgumentTypeError(f"{given[:80]!r} is not a text of {least} to {most} characters")
        return said

    return text


def seconds_up_to(most: float) -> Callable[[str], float]:
    """A duration in seconds, with fractions."""

    def seconds(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value <= most:  # NaN fails too
            raise ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to {most:g}")
        return value

    return seconds


PORT = number_from(0, 65535)
NAME = text_up_to(256)
MESSAGE_CHARS = 1_100
"""Room for a conversation's name and the longest id."""


def message_argument(parser: ArgumentParser) -> None:
    """The name of a message."""
    parser.add_argument(
        "message",
        type=text_up_to(MESSAGE_CHARS),
        metavar="MESSAGE",
        help="conversation/message id, a trace, or a platform's message id",
    )
