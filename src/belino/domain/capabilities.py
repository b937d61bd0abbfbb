"""Capabilities of a platform, in and out; the tables in the docs are generated from them."""

from dataclasses import dataclass
from enum import StrEnum


class Capability(StrEnum):
    """Everything people do in chats, by the names used in the docs."""

    TEXT = "text"
    PICTURE = "pictures"
    VIDEO = "video"
    SOUND = "audio"
    VOICE = "voice messages"
    FILE = "files"
    STICKER = "stickers"
    ALBUM = "several files at once"
    REPLY = "replies and quotes"
    FORWARD = "forwards"
    THREAD = "threads"
    MENTION = "mentions and commands"
    PREVIEW = "previews and embeds"
    PLACE = "places, contacts, polls"
    EDIT = "edits"
    DELETION = "deletions"
    REACTION = "reactions"
    TYPING = "a sign that somebody writes"
    HISTORY = "what was said before"
    OTHER = "anything else"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """One capability on one platform, in and out, in a few words each; empty where it is not supported."""

    thing: Capability
    comes: str = ""
    goes: str = ""


YES = "yes"
