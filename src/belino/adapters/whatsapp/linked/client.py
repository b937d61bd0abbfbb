"""Client of a linked device: the protocol that the adapter needs of a library for WhatsApp, and errors in words."""

import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from belino.aio.companion import Companion, companion
from belino.domain.errors import AdapterError, ListeningRefused, Unauthorized, Unreached
from belino.net.json_fields import Raw, count, words

SESSION = "session.db"
PROGRAM = (sys.executable, "-P", str(Path(__file__).with_name("socket.py")))
LINK = "link it by `belino setup whatsapp`, or on the page, next to the account"


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
    match event:
        case "logged out":
            return Unauthorized(f"the phone logged this device out; {LINK}")
        case "banned":
            hours = f" for {(count(told, 'Expire') or 0) / 3600:.0f} hours" if count(told, "Expire") else ""
            why = words(told, "Code").replace("_", " ").lower() or "it does not say why"
            return Unauthorized(f"WhatsApp banned this account{hours} ({why}); the phone shows what can be done")
        case "replaced":
            return ListeningRefused("another program opened this session; stop it, and link each by itself")
        case "outdated":
            return ListeningRefused("WhatsApp no longer accepts this version of neonize; update belino")
        case "missing":
            return ListeningRefused(words(told, "Message") or "neonize is not installed")
        case "refused" if (reason := words(told, "Reason")) not in ("SERVICE_UNAVAILABLE", "INTERNAL_SERVER_ERROR"):
            return Unreached(
                f"WhatsApp refuses the connection: {words(told, 'Message') or reason or 'it does not say why'}"
            )
        case "stopped":
            return Unreached(f"WhatsApp cannot be reached: {words(told, 'Message') or 'the connection ended'}")
    return None
