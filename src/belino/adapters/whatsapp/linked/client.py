"""Client of a linked device: the protocol that the adapter needs of a library for WhatsApp, and errors in words."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from belino.aio.companion import Companion, companion
from belino.domain.errors import AdapterError, ListeningRefused, Unauthorized, Unreached
from belino.net.json_fields import Raw, count, words

SESSION = "session.db"
PROGRAM = (sys.executable, "-P", str(Path(__file__).with_name("socket.py")))
LINK = "link it by `belino setup whatsapp`, or on the page, next to the account"
_ENDS: Mapping[str, tuple[type[AdapterError], str]] = {
    "logged out": (Unauthorized, f"the phone logged this device out; {LINK}"),
    "banned": (Unauthorized, "WhatsApp banned this account{hours} ({why}); the phone shows what can be done"),
    "replaced": (ListeningRefused, "another program opened this session; stop it, and link each by itself"),
    "outdated": (ListeningRefused, "WhatsApp no longer accepts this version of neonize; update belino"),
    "missing": (ListeningRefused, "{why}"),
    "refused": (Unreached, "WhatsApp refuses the connection: {why}"),
    "stopped": (Unreached, "WhatsApp cannot be reached: {why}"),
}
_PASSING = ("SERVICE_UNAVAILABLE", "INTERNAL_SERVER_ERROR")  # reasons after which the library connects again

LinkedClient = Companion
"""A connection to WhatsApp as a linked device.

Events: `qr` and `pairing` with a `code`, `paired`, `connected`, `disconnected`, those that `parse` reads, and those of
`ended`. Calls: `send`, `read`, `typing`, `groups`, `media` and, where the library can, `reupload`.
"""


def connection(
    folder: Path, *, program: Sequence[str] | None, phone: str | None = None
) -> AbstractAsyncContextManager[LinkedClient]:
    """A connection with the session of this folder, which another program keeps."""
    return companion(program or PROGRAM, {"session": str(folder / SESSION), "phone": phone or ""}, folder=folder)


def ended(event: str, told: Raw) -> AdapterError | None:
    """Why a connection ended, in one sentence; None for other events, and where the library connects again."""
    reason, seconds = words(told, "Reason"), count(told, "Expire")
    if event not in _ENDS or reason in _PASSING:
        return None
    error, says = _ENDS[event]
    why = words(told, "Message") or reason or words(told, "Code").replace("_", " ").lower() or "it does not say why"
    return error(says.format(why=why, hours=f" for {seconds / 3600:.0f} hours" if seconds else ""))
