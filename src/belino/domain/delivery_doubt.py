"""Delivery doubt: how long a send may take, and what is known of earlier attempts."""

from enum import IntEnum

CALL_SECONDS = 60.0
SLOWEST_BYTES_A_SECOND = 64 * 1024
"""An upload that is slower than this is given up: half a megabit, less than any connection that carries files."""
LEASE_MARGIN_SECONDS = 120.0
"""From claim to call: time to check whether it arrived before, and whether it may still be sent."""


class Doubt(IntEnum):
    """How likely earlier calls for a parcel made it visible although no receipt came."""

    NONE = 0
    FAILED = 1
    """The platform reported a failure; such reports are trusted, but have been wrong."""
    UNANSWERED = 2
    """A call was made, or may have been, and no answer came."""
    AGAIN = 3
    """The same again when it was sent again."""

    def unanswered(self) -> "Doubt":
        """After one more call without an answer."""
        return Doubt.UNANSWERED if self < Doubt.UNANSWERED else Doubt.AGAIN


def call_seconds(size: int) -> float:
    """How long one platform call that carries so many bytes may take."""
    return CALL_SECONDS + size / SLOWEST_BYTES_A_SECOND


def lease_seconds(size: int) -> float:
    """How long a claim on a parcel is exclusive; a call begins only if it also ends within."""
    return LEASE_MARGIN_SECONDS + call_seconds(size)
