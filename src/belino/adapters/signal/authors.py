"""Authors and conversations: people by their service id, groups by theirs, and messages by author and time."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from belino.domain.message import UNKNOWN_AUTHOR, UNKNOWN_NAME, Author, ChatType, ConversationKey
from belino.net.json_fields import Raw, count, line, table, words

PLATFORM = "signal"
GROUP = "group."
MOST_NAMES = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalAccount:
    """The account that the daemon serves us: its phone number, and the service id that never changes."""

    number: str = ""
    uuid: str = ""

    @property
    def id(self) -> str:
        return self.uuid or self.number

    def is_me(self, raw: Raw, prefix: str = "") -> bool:
        """Whether an address is ours; `prefix` is that of its keys, such as `author` in `authorUuid`."""
        uuid, number = words(raw, _key(prefix, "uuid")), words(raw, _key(prefix, "number"))
        return bool((self.uuid and uuid == self.uuid) or (self.number and number == self.number))


@dataclass(slots=True, kw_only=True)
class ContactBook:
    """The names and timers that the daemon knows, by conversation or person."""

    names: dict[str, str] = field(default_factory=dict)
    timers: dict[str, int] = field(default_factory=dict)
    """Seconds after which messages of a channel vanish, where there is a timer."""

    def name(self, own: str, name: str) -> None:
        if own and name and len(self.names) < MOST_NAMES:
            self.names[own] = name

    def time(self, channel: str, seconds: int) -> None:
        if seconds > 0:
            self.timers[channel] = seconds
        else:
            self.timers.pop(channel, None)

    def learn_contacts(self, contacts: tuple[Raw, ...]) -> None:
        """Learn from `listContacts`."""
        for contact in contacts:
            profile = table(contact, "profile")
            given = " ".join(part for part in (line(profile, "givenName"), line(profile, "familyName")) if part)
            own = words(contact, "uuid") or words(contact, "number")
            self.name(own, line(contact, "name") or given)
            self.time(own, count(contact, "messageExpirationTime") or 0)

    def learn_groups(self, groups: tuple[Raw, ...]) -> None:
        """Learn from `listGroups`."""
        for group in groups:
            if own := words(group, "id"):
                self.name(f"{GROUP}{own}", line(group, "name"))
                self.time(f"{GROUP}{own}", count(group, "messageExpirationTime") or 0)


def address(raw: Raw, prefix: str = "") -> str:
    """The id of a person: the service id; the phone number where the daemon knows no other."""
    return words(raw, _key(prefix, "uuid")) or words(raw, _key(prefix, "number")) or words(raw, prefix)


def author(raw: Raw, prefix: str, me: SignalAccount, names: Mapping[str, str]) -> Author:
    """The author in an address; its name may be anything and may change, only the id counts."""
    own = address(raw, prefix)
    if not own:
        return UNKNOWN_AUTHOR
    if me.is_me(raw, prefix):
        own = me.id
    number = words(raw, _key(prefix, "number"))
    name = line(raw, _key(prefix, "name")) or names.get(own, "")
    return Author(
        id=own,
        name=name or number or UNKNOWN_NAME,
        is_agent=me.is_me(raw, prefix),
        other_names=(number,) if number and name else (),
    )


def message_id(timestamp: int | None, raw: Raw, prefix: str, me: SignalAccount) -> str:
    """Signal names a message by its author and time: the time alone is our own; two people may share another."""
    own = address(raw, prefix)
    return str(timestamp or 0) if me.is_me(raw, prefix) or not own else f"{timestamp or 0}.{own}"


def conversation(account: str, message: Raw, other: str) -> ConversationKey:
    """The group of a message, or the direct messages with a person."""
    group = words(table(message, "groupInfo"), "groupId") or words(message, "groupId")
    return ConversationKey(platform=PLATFORM, account=account, channel=f"{GROUP}{group}" if group else other)


def chat_type(where: ConversationKey) -> ChatType:
    return ChatType.GROUP if where.channel.startswith(GROUP) else ChatType.DIRECT


def own_uuid(contacts: tuple[Raw, ...], number: str) -> str:
    """Our own service id, which the daemon lists with its contacts."""
    return next((words(each, "uuid") for each in contacts if number and words(each, "number") == number), "")


def _key(prefix: str, name: str) -> str:
    return f"{prefix}{name.capitalize()}" if prefix else name
