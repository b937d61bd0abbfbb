"""Authors and conversations: people by their service id, groups by theirs, and messages by author and time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from belino.domain.message import UNKNOWN_AUTHOR, UNKNOWN_NAME, Author, ConversationKey
from belino.net.json_fields import Raw, count, line, table, words
from belino.net.message_lines import joined

PLATFORM = "signal"
GROUP = "group."


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalAccount:
    """The account that the daemon serves us: its phone number, and the service id that never changes."""

    number: str = ""
    uuid: str = ""

    @classmethod
    def among(cls, contacts: tuple[Raw, ...], number: str) -> "SignalAccount":
        """The account with a number; the daemon lists its service id with its contacts."""
        found = (words(each, "uuid") for each in contacts if number and words(each, "number") == number)
        return cls(number=number, uuid=next(found, ""))

    @property
    def id(self) -> str:
        return self.uuid or self.number

    def is_me(self, raw: Raw, prefix: str = "") -> bool:
        """Whether an address is ours; `prefix` is that of its keys, such as `author` in `authorUuid`."""
        uuid, number = words(raw, _key(prefix, "uuid")), words(raw, _key(prefix, "number"))
        return bool((self.uuid and uuid == self.uuid) or (self.number and number == self.number))


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalParseContext:
    """What parsing an envelope needs to know besides it."""

    account: str
    me: SignalAccount
    received: datetime
    names: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    """The first id of messages that were edited, by the id of each edition."""
    places: Mapping[str, str] = field(default_factory=dict)
    """The channels of messages that we sent, by their id: receipts do not name their group."""

    def author(self, raw: Raw, prefix: str) -> Author:
        """The author in an address; its name may be anything and may change, only the id counts."""
        own, number = address(raw, prefix), words(raw, _key(prefix, "number"))
        if not own:
            return UNKNOWN_AUTHOR
        is_me = self.me.is_me(raw, prefix)
        name = line(raw, _key(prefix, "name")) or self.names.get(own, "")
        others = (number,) if number and name else ()
        own = self.me.id if is_me else own
        return Author(id=own, name=name or number or UNKNOWN_NAME, is_agent=is_me, other_names=others)

    def message_id(self, timestamp: int | None, raw: Raw, prefix: str) -> str:
        """Signal names a message by author and time: the time alone is our own; two people may share another."""
        own = address(raw, prefix)
        return str(timestamp or 0) if self.me.is_me(raw, prefix) or not own else f"{timestamp or 0}.{own}"

    def stored_id(self, timestamp: int | None, raw: Raw, prefix: str) -> str:
        """The id under which a message is stored: that of its first edition."""
        own = self.message_id(timestamp, raw, prefix)
        return self.aliases.get(own, own)

    def conversation(self, message: Raw, other: str) -> ConversationKey:
        """The group of a message, or the direct messages with a person."""
        group = words(table(message, "groupInfo"), "groupId")
        channel = f"{GROUP}{group}" if group else other or "elsewhere"
        return ConversationKey(platform=PLATFORM, account=self.account, channel=channel)


def known_places(contacts: tuple[Raw, ...], groups: tuple[Raw, ...]) -> Iterator[tuple[str, str, int]]:
    """The id, the name and the timer, in seconds, of each person and group that the daemon lists."""
    for contact in contacts:
        profile = table(contact, "profile")
        given = joined(line(profile, "givenName"), line(profile, "familyName"), by=" ")
        yield address(contact), line(contact, "name") or given, count(contact, "messageExpirationTime") or 0
    for group in groups:
        yield f"{GROUP}{words(group, 'id')}", line(group, "name"), count(group, "messageExpirationTime") or 0


def address(raw: Raw, prefix: str = "") -> str:
    """The id of a person: the service id; the phone number where the daemon knows no other."""
    return words(raw, _key(prefix, "uuid")) or words(raw, _key(prefix, "number")) or words(raw, prefix)


def place_of(channel: str) -> dict[str, object]:
    """The fields of a call that name a group or a person."""
    is_group = channel.startswith(GROUP)
    return {"groupId": channel.removeprefix(GROUP)} if is_group else {"recipient": channel}


def _key(prefix: str, name: str) -> str:
    return f"{prefix}{name.capitalize()}" if prefix else name
