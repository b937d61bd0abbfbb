"""What becomes of each file a reply offers: sent as it is, made to fit, re-encoded or refused, and why."""

from dataclasses import dataclass
from enum import StrEnum

from belino.domain.limits import SendAs
from belino.domain.reply import Offer


class Action(StrEnum):
    """What is to be done with a file before it leaves."""

    SEND = "send"
    FIT = "fit"
    TRANSCODE = "transcode"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What a picture must be made to fit into."""

    max_bytes: int
    formats: tuple[str, ...]
    max_side: int | None = None
    max_pixels: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One file, the form it leaves in, and what must happen to it first."""

    offer: Offer
    action: Action
    send_as: SendAs = SendAs.DOCUMENT
    fit: Fit | None = None
    reason: str = ""
    """Why it does not leave as it came or as it was wished; empty if it does."""
