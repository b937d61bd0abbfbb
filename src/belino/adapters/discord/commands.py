"""Slash and menu commands: what somebody chose and filled in, read as a message to the agent."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from belino.adapters.discord.content import text_of
from belino.adapters.discord.files import UPLOADED, Bearer, attachment_ref, carried, refs_of_all
from belino.adapters.discord.people import SOMEBODY, Me, Places, author_of, channel_name, chat_type, name_of, user
from belino.adapters.discord.raw import identity, made_at, moment
from belino.domain.media import MediaRef
from belino.domain.message import ConversationKey, Message, Quote
from belino.net.raw import Raw, as_table, count, line, table, tables, words

COMMAND = 2
MOST_OPTIONS = 25
ON_PERSON, ON_MESSAGE = 2, 3
NAMING = frozenset({6, 7, 8, 9, 11})
"""The types of options that hold an id: of a person, a channel, a role, one of these, a file."""


def is_command(interaction: Raw) -> bool:
    """Whether an interaction is a command somebody gave, in a place we can answer in."""
    named = words(table(interaction, "data"), "name")
    return count(interaction, "type") == COMMAND and bool(named and identity(interaction, "channel_id"))


def command_of(interaction: Raw, where: ConversationKey, me: Me, places: Places, received: datetime) -> Message:
    """The command as a message; its files can be had as long as Discord keeps them for the command."""
    own, given, channel = identity(interaction, "id"), table(interaction, "data"), identity(interaction, "channel_id")
    member = table(interaction, "member")
    sent = made_at(own) or received
    bearer = Bearer(where=where, channel=channel, message_id=own, sent=sent)
    told = {**interaction, "channel_type": table(interaction, "channel").get("type")}
    return Message(
        conversation=where,
        id=own or "unnamed",
        author=user(table(member, "user") or table(interaction, "user"), me, member=member) or SOMEBODY,
        sent=sent,
        text=" ".join(_words(given)),
        media=tuple(_files(table(given, "resolved"), bearer)),
        chat_type=chat_type(told, places),
        channel_name=channel_name(channel, places),
        addressed=True,
        quote=_target(given, bearer, me, places),
    )


def _words(given: Raw) -> Iterator[str]:
    resolved = table(given, "resolved")
    yield f"/{line(given, 'name', most=64)}"
    yield from _options(tables(given, "options"), resolved)
    if count(given, "type") == ON_PERSON:
        yield _named(words(given, "target_id"), resolved)


def _named(own: str, resolved: Raw) -> str:
    """Whom or what an option means, by name: the command brings along all that it names."""
    for kind, sign in (("users", "@"), ("roles", "@"), ("channels", "#")):
        if found := table(table(resolved, kind), own):
            member = table(table(resolved, "members"), own)
            return sign + (name_of({**found, "member": member}) if kind == "users" else line(found, "name", most=100))
    return line(table(table(resolved, "attachments"), own), "filename") or own


def _options(options: tuple[Raw, ...], resolved: Raw, depth: int = 0) -> Iterator[str]:
    """What was filled in; a command may have groups and commands inside."""
    for option in options[:MOST_OPTIONS]:
        name, value = line(option, "name", most=64), option.get("value")
        inner = tables(option, "options")
        if count(option, "type") in (1, 2):
            yield name
            if depth < 2:
                yield from _options(inner, resolved, depth + 1)
        elif isinstance(value, str | int | float):
            shown = words(option, "value") if isinstance(value, str) else str(value).lower()
            yield f"{name}: {_named(shown, resolved) if count(option, 'type') in NAMING else shown}"


def _files(resolved: Raw, bearer: Bearer) -> Iterator[MediaRef]:
    """No message holds them: a fresh link is had by the path of the old one."""
    for file in map(as_table, table(resolved, "attachments").values()):
        ref = attachment_ref(file, bearer)
        path = UPLOADED.match(words(file, "url"))
        if ref is not None and path is not None:
            yield replace(ref, locator={"path": path["path"]})


def _target(given: Raw, command: Bearer, me: Me, places: Places) -> Quote | None:
    """The message a menu command was chosen at, with its files."""
    message = table(table(table(given, "resolved"), "messages"), words(given, "target_id"))
    own = identity(message, "id")
    if count(given, "type") != ON_MESSAGE or not own:
        return None
    channel, sent = identity(message, "channel_id") or command.channel, moment(message, "timestamp")
    holder = replace(command, channel=channel, message_id=own, sent=sent or command.sent)
    messages = (message, *carried(message))
    return Quote(
        author=author_of(message, me),
        message_id=own,
        text="\n".join(filter(None, (text_of(each, places, me) for each in messages))),
        sent=sent,
        media=refs_of_all(messages, holder),
    )
