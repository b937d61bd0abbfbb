"""belino: chat platforms and AI agents, with every picture, voice note, file and thread in between."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.9.0"

if TYPE_CHECKING:
    from belino.config import Config, load
    from belino.domain.errors import BelinoError
    from belino.domain.limits import Limits
    from belino.domain.media import MediaKind, MediaRef
    from belino.domain.message import Author, ConversationKey, Message
    from belino.domain.ports import Adapter, Agent
    from belino.domain.reply import Parcel, Receipt
    from belino.domain.turn import Toolbox
    from belino.gateway.gateway import Gateway
    from belino.net.redact import Secret
    from belino.storage.home import Home

# Looked up on first use: `belino --help` must not pay for what it does not show.
_WHERE = {
    "Adapter": "belino.domain.ports",
    "Agent": "belino.domain.ports",
    "Author": "belino.domain.message",
    "BelinoError": "belino.domain.errors",
    "Config": "belino.config",
    "ConversationKey": "belino.domain.message",
    "Gateway": "belino.gateway.gateway",
    "Home": "belino.storage.home",
    "Limits": "belino.domain.limits",
    "MediaKind": "belino.domain.media",
    "MediaRef": "belino.domain.media",
    "Message": "belino.domain.message",
    "Parcel": "belino.domain.reply",
    "Receipt": "belino.domain.reply",
    "Secret": "belino.net.redact",
    "Toolbox": "belino.domain.turn",
    "load": "belino.config",
}

__all__ = [
    "Adapter",
    "Agent",
    "Author",
    "BelinoError",
    "Config",
    "ConversationKey",
    "Gateway",
    "Home",
    "Limits",
    "MediaKind",
    "MediaRef",
    "Message",
    "Parcel",
    "Receipt",
    "Secret",
    "Toolbox",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'belino' has no attribute {name!r}")
    found = getattr(import_module(_WHERE[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
