"""belino: chat platforms and AI agents, with every picture, voice note, file and thread in between."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.9.0"

if TYPE_CHECKING:
    from belino.cli.serve import run
    from belino.config import Config, load
    from belino.domain.choice import Choice, PickedChoice
    from belino.domain.errors import BelinoError, ToolError
    from belino.domain.limits import Limits
    from belino.domain.media import (
        AcceptedMedia,
        AudioBlock,
        AudioFormats,
        DocumentBlock,
        DocumentFormats,
        FileBlock,
        ImageBlock,
        MediaKind,
        MediaRef,
        TextBlock,
    )
    from belino.domain.message import Author, ConversationKey, Message
    from belino.domain.ports import Adapter, Agent
    from belino.domain.reply import Parcel, Receipt
    from belino.domain.turn import (
        Accepted,
        Attachment,
        Compacted,
        Final,
        Mishap,
        Refused,
        ReplyPart,
        ReplyParts,
        TextDelta,
        Toolbox,
        ToolNote,
        Turn,
        TurnMessage,
        Usage,
    )
    from belino.gateway.gateway import Gateway
    from belino.gateway.reload import file_source
    from belino.net.redact import Secret
    from belino.storage.home import Home
    from belino.web.server import serve

# Looked up on first use: `belino --help` must not pay for what it does not show.
_WHERE = {
    "Accepted": "belino.domain.turn",
    "AcceptedMedia": "belino.domain.media",
    "Adapter": "belino.domain.ports",
    "Agent": "belino.domain.ports",
    "Attachment": "belino.domain.turn",
    "AudioBlock": "belino.domain.media",
    "AudioFormats": "belino.domain.media",
    "Author": "belino.domain.message",
    "BelinoError": "belino.domain.errors",
    "Choice": "belino.domain.choice",
    "Compacted": "belino.domain.turn",
    "Config": "belino.config",
    "ConversationKey": "belino.domain.message",
    "DocumentBlock": "belino.domain.media",
    "DocumentFormats": "belino.domain.media",
    "FileBlock": "belino.domain.media",
    "Final": "belino.domain.turn",
    "Gateway": "belino.gateway.gateway",
    "Home": "belino.storage.home",
    "ImageBlock": "belino.domain.media",
    "Limits": "belino.domain.limits",
    "MediaKind": "belino.domain.media",
    "MediaRef": "belino.domain.media",
    "Message": "belino.domain.message",
    "Mishap": "belino.domain.turn",
    "Parcel": "belino.domain.reply",
    "PickedChoice": "belino.domain.choice",
    "Receipt": "belino.domain.reply",
    "Refused": "belino.domain.turn",
    "ReplyPart": "belino.domain.turn",
    "ReplyParts": "belino.domain.turn",
    "Secret": "belino.net.redact",
    "TextBlock": "belino.domain.media",
    "TextDelta": "belino.domain.turn",
    "ToolError": "belino.domain.errors",
    "ToolNote": "belino.domain.turn",
    "Toolbox": "belino.domain.turn",
    "Turn": "belino.domain.turn",
    "TurnMessage": "belino.domain.turn",
    "Usage": "belino.domain.turn",
    "file_source": "belino.gateway.reload",
    "load": "belino.config",
    "run": "belino.cli.serve",
    "serve": "belino.web.server",
}

__all__ = [
    "Accepted",
    "AcceptedMedia",
    "Adapter",
    "Agent",
    "Attachment",
    "AudioBlock",
    "AudioFormats",
    "Author",
    "BelinoError",
    "Choice",
    "Compacted",
    "Config",
    "ConversationKey",
    "DocumentBlock",
    "DocumentFormats",
    "FileBlock",
    "Final",
    "Gateway",
    "Home",
    "ImageBlock",
    "Limits",
    "MediaKind",
    "MediaRef",
    "Message",
    "Mishap",
    "Parcel",
    "PickedChoice",
    "Receipt",
    "Refused",
    "ReplyPart",
    "ReplyParts",
    "Secret",
    "TextBlock",
    "TextDelta",
    "ToolError",
    "ToolNote",
    "Toolbox",
    "Turn",
    "TurnMessage",
    "Usage",
    "__version__",
    "file_source",
    "load",
    "run",
    "serve",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'belino' has no attribute {name!r}")
    found = getattr(import_module(_WHERE[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
