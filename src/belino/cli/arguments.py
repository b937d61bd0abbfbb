"""Values that arguments take, refused with their limits."""

from argparse import ArgumentTypeError
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


PORT = number_from(0, 65535)
