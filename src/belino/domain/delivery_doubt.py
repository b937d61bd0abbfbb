"""Delivery doubt: how long a send may take, and what is known of earlier attempts."""

from enum import IntEnum

CALL_SECONDS = 60.0
SLOWEST_BYTES_A_SECOND = 64 * 1024
"""An upload that is slower than this is given up: half a megabit, less than any line that carries files."""
LEASE_MARGIN_SECONDS = 120.0
"""From claim to call: looking whether it arrived before, and asking whether it may still be sent."""


class Doubt(IntEnum):
    """How far earlier calls for a parcel may have made it visible although no receipt came."""

    NONE = 0
    FAILED = 1
    """The platform said that it failed; it is believed, and yet has been seen to be wrong."""
    UNANSWERED = 2
    """A call was made, or may have been, and no answer came."""
    AGAIN = 3
    """And so it went when it was sent again."""

    def unanswered(self) -> "Doubt":
        """After one more call without an answer."""
        return Doubt.UNANSWERED if self < Doubt.UNANSWERED else Doubt.AGAIN


def call_seconds(size: int) -> float:
    """How long one platform call that carries so many bytes may take."""
    return CALL_SECONDS + size / SLOWEST_BYTES_A_SECOND


def lease_seconds(size: int) -> float:
    """How long whoever claims a parcel has it for itself; a call begins only if it also ends within."""
    return LEASE_MARGIN_SECONDS + call_seconds(size)
