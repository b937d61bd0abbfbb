"""Client of a linked device: the protocol that the adapter needs of a library for WhatsApp, and its errors."""

import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from belino.aio.companion import CALL_SECONDS, CompanionError, companion
from belino.domain.errors import (
    AdapterError,
    ListeningRefused,
    RateLimited,
    Unanswered,
    Unauthorized,
    Undeliverable,
    Unreached,
)
from belino.net.json_fields import Raw, count, table, words

SESSION = "session.db"
PROGRAM = (sys.executable, "-P", str(Path(__file__).with_name("socket.py")))
LIMITED_SECONDS = 60.0
LINK = "link this device with `belino setup whatsapp`, or on the page of accounts"


class LinkedClient(Protocol):
    """A connection to WhatsApp as a linked device.

    Its events are `qr` and `pairing` with a `code`, `paired`, `connected`, `disconnected`, `ended` with `why`, and those
    that `parse` reads. Its calls are `send`, `read`, `typing`, `groups`, `media` and `reupload`.
    """

    def events(self) -> AsyncIterator[Mapping[str, object]]:
        """Events in order; one is acknowledged when the next is asked for, and else comes again."""
        ...

    async def call(
        self, name: str, arguments: Mapping[str, object], *, seconds: float = CALL_SECONDS
    ) -> Mapping[str, object]:
        """The result of a call; CompanionError with its kind if it is refused."""
        ...


def connection(
    folder: Path, *, program: Sequence[str] | None, phone: str | None = None
) -> AbstractAsyncContextManager[LinkedClient]:
    """A connection with the session of this folder, kept by a program."""
    task = {"session": str(folder / SESSION), "phone": phone or ""}
    return companion(program or PROGRAM, task, folder=folder)


@contextmanager
def as_errors() -> Iterator[None]:
    """The errors of a call in our words."""
    try:
        yield
    except CompanionError as error:
        raise _ERRORS.get(error.kind, _refused)(str(error)) from None


def _refused(says: str) -> AdapterError:
    return Undeliverable(f"WhatsApp refuses it: {says}")


_ERRORS = {
    "limited": lambda says: RateLimited("WhatsApp asks to send less", retry_after=LIMITED_SECONDS),
    "unreached": lambda says: Unreached("WhatsApp is not connected"),
    "unanswered": lambda says: Unanswered("WhatsApp did not answer"),
    "unlinked": lambda says: Unauthorized(f"WhatsApp no longer knows this device; {LINK}"),
}


def ended(told: Raw) -> AdapterError:
    """Why a connection ended for good, in one sentence."""
    why, more = words(told, "why"), table(told, "told")
    match why:
        case "logged out":
            return Unauthorized(f"the phone logged this device out; {LINK} again")
        case "banned":
            hours = (count(more, "Expire") or 0) / 3600
            until = f" for {hours:.0f} hours" if hours else ""
            return Unauthorized(f"WhatsApp banned this account{until} ({words(more, 'Code') or 'it does not say why'})")
        case "replaced":
            return ListeningRefused("another program opened this session of WhatsApp; stop it, or link each by itself")
        case "outdated":
            return ListeningRefused("WhatsApp no longer accepts this version of neonize; update belino")
        case "missing":
            return ListeningRefused(words(more, "Message") or "neonize is not installed")
        case _:
            says = words(more, "Message") or words(more, "Reason") or "no reason was given"
            return Unreached(f"WhatsApp ended the connection: {says}")
