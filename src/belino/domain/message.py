"""Messages from platforms, and everything that later happens to them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, TypedDict, Unpack
from urllib.parse import quote, unquote

from belino.domain.errors import BelinoError
from belino.domain.media import MediaKind, MediaRef
from belino.domain.places import Moved


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationKey:
    """Where a session answers: a channel, or a thread in it."""

    platform: str
    account: str
    channel: str
    thread: str | None = None

    def __str__(self) -> str:
        parts = [self.platform, self.account, self.channel]
        if self.thread is not None:
            parts.append(self.thread)
        return ":".join(quote(part, safe="") for part in parts)

    @classmethod
    def parse(cls, text: str) -> "ConversationKey":
        """Read `platform:account:channel[:thread]`, each part percent-encoded."""
        try:
            parts = [unquote(part, errors="strict") if part else "" for part in text.split(":")]
            text.encode()
        except UnicodeError:
            parts = []
        if len(parts) not in (3, 4) or not all(parts):
            raise BelinoError(f"{text!r} does not name a conversation; write platform:account:channel[:thread]")
        return cls(platform=parts[0], account=parts[1], channel=parts[2], thread=parts[3] if len(parts) == 4 else None)

    @property
    def whole_channel(self) -> "ConversationKey":
        """The channel without the thread: the scope of tools."""
        return ConversationKey(platform=self.platform, account=self.account, channel=self.channel)


class ChatType(StrEnum):
    """The type of a channel."""

    DIRECT = "direct"
    GROUP = "group"
    CHANNEL = "channel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """The author of a message. `id` is the platform's immutable id; the name may change any time."""

    id: str
    name: str
    is_bot: bool = False
    is_agent: bool = False
    """One of our own agents."""
    other_names: tuple[str, ...] = field(default=(), compare=False)
    """The other names that the platform's list of users has: a login name, a real name. Searches know them."""


SERVER = "server:"
"""Prefix of a server's id where a channel's is expected: it stands for all channels of the server."""
UNKNOWN_NAME = "someone"
"""The name of an author whose name is not known."""
UNKNOWN_AUTHOR = Author(id="unknown", name=UNKNOWN_NAME)

_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8}){0,4}", re.ASCII)


def language_tag(told: object) -> str | None:
    """The language that a platform reports, such as `de` or `pt-BR`; None for anything else."""
    return told if isinstance(told, str) and _LANGUAGE.fullmatch(told) else None


class FileFacts(TypedDict, total=False):
    """What a platform may report about a file."""

    file_name: str | None
    size: int | None
    duration: float | None
    width: int | None
    height: int | None
    caption: str | None
    file_id: str | None
    transcript: str | None
    is_transcript_partial: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceMessage:
    """The message that brings files: the fields that all of their refs share."""

    where: ConversationKey
    message_id: str
    sent: datetime
    caption: str = ""

    def ref(
        self, *, item: str, kind: MediaKind, mime: str, locator: Mapping[str, str], **facts: Unpack[FileFacts]
    ) -> MediaRef:
        """The ref of one of its files."""
        return MediaRef(
            platform=self.where.platform,
            account=self.where.account,
            channel_id=self.where.channel,
            message_id=self.message_id,
            created=self.sent,
            item=item,
            kind=kind,
            mime=mime,
            locator=locator,
            **facts,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenText:
    """The words of voice messages, as a provider read them: untrusted text, like a caption."""

    text: str
    uncertain: bool = False
    """Whether the provider is not confident of them."""
    partial: bool = False
    """Whether only a part of the sound was read."""

    @property
    def doubts(self) -> tuple[str, ...]:
        """What a reader of the words should know, each in one word."""
        return tuple(word for word, is_so in (("uncertain", self.uncertain), ("partial", self.partial)) if is_so)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A message carried inside another: replied to, quoted or forwarded."""

    author: Author | None = None
    message_id: str | None = None
    text: str = ""
    sent: datetime | None = None
    media: tuple[MediaRef, ...] = ()
    spoken: SpokenText | None = None
    """What is said in its voice messages, if that was read; known to the store only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadReport:
    """What a platform reports about the thread under a message, whose replies may not be stored."""

    replies: int
    last: datetime | None = None
    """When the last reply was sent."""
    participants: tuple[str, ...] = ()
    """The names of people who replied, as far as they are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Something said."""

    kind: ClassVar[str] = "message"
    conversation: ConversationKey
    id: str
    author: Author
    sent: datetime
    text: str = ""
    media: tuple[MediaRef, ...] = ()
    chat_type: ChatType = ChatType.DIRECT
    channel_name: str | None = None
    addressed: bool = True
    """Addressed to the agent: a direct message, a mention, a reply to it, a command."""
    reply_to: str | None = None
    quote: Quote | None = None
    forward: Quote | None = None
    album: str | None = None
    """Items with the same album id belong together and are answered together."""
    edited: datetime | None = None
    """When it was last edited, if it is delivered in its edited form, as in a platform's history."""
    language: str | None = None
    """The language tag that the platform reports for its sender, such as `de-AT`."""
    thread_report: ThreadReport | None = None
    """What the platform reports about the thread under it, as in its history."""
    invoked: bool = False
    """Given through the platform's own commands: a reply to it is seen by its sender only."""
    press: str | None = None
    """The key of the button that it is a press of; its text is then that of the choice."""
    mentions_another: bool = False
    """It mentions a person, a bot or a group of people other than the agent."""
    server: str = ""
    """The id of the server or workspace of its channel, if the platform has them."""
    expires: datetime | None = None
    """When it vanishes by the platform's timer: it is stored no longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A message was edited."""

    kind: ClassVar[str] = "edit"
    conversation: ConversationKey
    id: str
    """Distinguishes the edits of a message, e.g. message id and edit time."""
    message_id: str
    author: Author
    sent: datetime
    text: str
    media: tuple[MediaRef, ...] = ()
    chat_type: ChatType | None = None
    """If the platform reports it: an edit may come before its message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """A message was deleted."""

    kind: ClassVar[str] = "deletion"
    conversation: ConversationKey
    id: str
    message_id: str
    author: Author | None
    sent: datetime
    chat_type: ChatType | None = None
    """If the platform reports it, as for an edit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """An emoji was added to a message, or removed."""

    kind: ClassVar[str] = "reaction"
    conversation: ConversationKey
    id: str
    message_id: str
    author: Author
    sent: datetime
    emoji: str
    """Empty if one is removed and the platform does not say which; it then `replaces`."""
    added: bool = True
    chat_type: ChatType | None = None
    """If the platform reports it, as for an edit."""
    replaces: bool = False
    """The author's earlier reactions to the message are gone: the platform allows one at a time."""


class DeliveryState(StrEnum):
    """What a platform reports later about a message we sent."""

    SENT = "sent"
    """On its way to the person."""
    DELIVERED = "delivered"
    READ = "read"
    FAILED = "failed"
    HELD = "held"
    """Not delivered: the platform accepts it later, and a person decides whether it is sent again."""
    WINDOW_CLOSED = "window closed"
    """Not delivered: it is held until the adapter reports that the person has written (`ReopensWindows`)."""
    AGAIN = "again"
    """Not delivered: the adapter can send it in another form, and is given it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStatus:
    """A delivery report about a message we sent."""

    kind: ClassVar[str] = "delivery"
    conversation: ConversationKey
    id: str
    message_id: str
    sent: datetime
    state: DeliveryState
    reason: str = ""
    author: Author | None = None


class Presence(StrEnum):
    """What an event says about our own membership in a channel."""

    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """An arrival that we cannot parse yet; it is reported, not lost."""

    kind: ClassVar[str] = "unsupported"
    conversation: ConversationKey
    id: str
    author: Author
    sent: datetime
    what: str
    chat_type: ChatType = ChatType.DIRECT
    channel_name: str | None = None
    addressed: bool = field(default=False)
    is_notice: bool = False
    """The platform's own note about the place, such as that a thread was opened: no reply, though it is in a thread."""
    is_event: bool = False
    """The platform reports something that is no message, such as that a file was created."""
    presence: Presence | None = None
    """The agent was added to the channel, by the author, or removed from it."""
    server: str = ""
    """The id of the server or workspace of its channel, as for a message."""
    moved: Moved | None = None
    """The platform's own note that the channel goes on under another id."""


class ReportFacts(TypedDict, total=False):
    """What may be known of something unsupported."""

    channel_name: str | None
    addressed: bool
    is_notice: bool
    is_event: bool
    presence: Presence | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where, by whom and when something arrived, and under which id: the fields that all arrivals share."""

    where: ConversationKey
    own_id: str
    author: Author
    sent: datetime
    chat_type: ChatType

    def deletion(self, message_id: str) -> Deletion:
        """The author took a message back."""
        return Deletion(
            conversation=self.where,
            id=self.own_id,
            message_id=message_id,
            author=self.author,
            sent=self.sent,
            chat_type=self.chat_type,
        )

    def reaction(self, message_id: str, emoji: str) -> Reaction:
        """The author's only reaction to a message; an empty one removes it."""
        return Reaction(
            conversation=self.where,
            id=self.own_id,
            message_id=message_id,
            author=self.author,
            sent=self.sent,
            emoji=emoji,
            added=bool(emoji),
            chat_type=self.chat_type,
            replaces=True,
        )

    @property
    def source(self) -> SourceMessage:
        """The message that brings its files."""
        return SourceMessage(where=self.where, message_id=self.own_id, sent=self.sent)

    def message(self, text: str, media: tuple[MediaRef, ...] = ()) -> Message:
        """The author said something; in a direct chat it is addressed to the agent."""
        return Message(
            conversation=self.where,
            id=self.own_id,
            author=self.author,
            sent=self.sent,
            text=text,
            media=media,
            chat_type=self.chat_type,
            addressed=self.chat_type is ChatType.DIRECT,
        )

    def report(self, what: str, **facts: Unpack[ReportFacts]) -> Unsupported:
        """Something that is no message, or cannot be read."""
        return Unsupported(
            conversation=self.where,
            id=self.own_id,
            author=self.author,
            sent=self.sent,
            what=what,
            chat_type=self.chat_type,
            **facts,
        )

    def status(self, message_id: str, state: DeliveryState, *, reason: str = "") -> DeliveryStatus:
        """What became of a message of ours; the author is who tells it."""
        return DeliveryStatus(
            conversation=self.where,
            id=self.own_id,
            message_id=message_id,
            sent=self.sent,
            state=state,
            reason=reason,
            author=self.author,
        )


def as_unsupported(message: Message, what: str, *, is_notice: bool = False) -> Unsupported:
    """A message without readable content, described by its kind."""
    return Unsupported(
        conversation=message.conversation,
        id=message.id,
        author=message.author,
        sent=message.sent,
        what=what,
        chat_type=message.chat_type,
        channel_name=message.channel_name,
        addressed=message.addressed,
        is_notice=is_notice,
        server=message.server,
    )


def as_edit(said: Message | Unsupported, edit_id: str, sent: datetime) -> Edit | Unsupported:
    """A message in its edited form; one without readable content stays unsupported."""
    if isinstance(said, Unsupported):
        return replace(said, id=edit_id, what=f"an edit: {said.what}", addressed=False)
    return edit_of(said, edit_id, sent)


def edit_of(said: Message, edit_id: str, sent: datetime) -> Edit:
    """The edit that makes a message read as this one does."""
    return Edit(
        conversation=said.conversation,
        id=edit_id,
        message_id=said.id,
        author=said.author,
        sent=sent,
        text=said.text,
        media=said.media,
        chat_type=said.chat_type,
    )


Arrival = Message | Edit | Deletion | Reaction | DeliveryStatus | Unsupported
