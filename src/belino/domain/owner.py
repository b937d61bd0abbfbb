"""Owner: the person who runs belino, the notices they get, and the groups that ask them for access."""

import base64
import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from belino.domain.message import ConversationKey

CODE_CHARS = 6
PLATFORM_EVENT = "a platform event, not a message"
"""Why platform noise is not stored; counted apart from people who are denied."""


class GroupState(StrEnum):
    """The owner's decision about a group."""

    WAITING = "waiting"
    ALLOWED = "allowed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAccess:
    """A group that the agent was added to, and the owner's decision about it."""

    channel: ConversationKey
    state: GroupState
    name: str = ""
    """As the platform reports it; not kept for a refused group."""
    inviter_id: str = ""
    """Who added the agent, or addressed it there first; empty if the platform does not say."""
    inviter_name: str = ""
    everyone: bool = False
    """Whether every person in the group may command the agent, not only who added it and the owners."""
    asked: datetime
    decided: datetime | None = None

    @property
    def code(self) -> str:
        """A short name of the group, for an answer in a direct message; it opens nothing by itself."""
        digest = hashlib.sha256(str(self.channel).encode()).digest()
        return base64.b32encode(digest).decode()[:CODE_CHARS]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerNotice:
    """Something that needs the owner."""

    kind: str
    """What it is about, such as `account PLATFORM:ACCOUNT`: one notice of a kind is told within an hour."""
    text: str
    at: datetime
