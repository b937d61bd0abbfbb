"""Parse events into arrivals: pure, fetches nothing, never fails; what it cannot read it reports as unsupported."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from belino.adapters.slack.authors import (
    Directory,
    SlackApp,
    author_of,
    chat_type,
    conversation,
    mentioned,
    moment,
    stamp,
    user_named,
)
from belino.adapters.slack.content import (
    MOST_ATTACHMENTS,
    Attachments,
    Blocks,
    pasted,
    readable,
    what_it_is,
    wordings_of,
)
from belino.adapters.slack.media import pictures_in, refs_of, transcript_of
from belino.domain.choice import KEY
from belino.domain.commands import parse_command
from belino.domain.media import MediaRef
from belino.domain.message import (
    UNKNOWN_AUTHOR,
    Arrival,
    Author,
    ChatType,
    ConversationKey,
    Deletion,
    Edit,
    Message,
    Presence,
    Quote,
    Reaction,
    SourceMessage,
    ThreadReport,
    Unsupported,
    as_edit,
    as_unsupported,
)
from belino.net.json_fields import Raw, as_table, as_tables, count, line, table, tables, words

_SEVERAL = re.compile(r"<!(?:subteam\^|here|channel|everyone)")
"""Mentions of several: https://docs.slack.dev/messaging/formatting-message-text"""
EVENTS, COMMANDS = "events_api", "slash_commands"
ACTIONS = "block_actions"
SHORTCUT = "message_action"

# Subtypes of messages with content; every other one reports an event.
_SAID = frozenset(
    {
        "", "file_share", "bot_message", "slackbot_response", "me_message", "thread_broadcast", "reply_broadcast",
        "assistant_app_thread",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackParseContext:
    """What parsing an event needs to know: account, app, names, and when it was received."""

    account: str
    me: SlackApp = field(default_factory=SlackApp)
    directory: Directory = field(default_factory=Directory)
    received: datetime
    server: str = ""
    """The workspace that an event comes from, if it does not say so itself."""
    in_threads: bool = False
    """Whether a channel message addressed to us begins a thread, in which it is answered."""

    def where(self, channel: str, thread: str | None = None) -> ConversationKey:
        return conversation(self.account, channel, thread)

    def when(self, ts: str) -> datetime:
        """The event's time; without one, the time it was received."""
        return moment(ts) or self.received


def parse(payload: object, view: SlackParseContext) -> tuple[Arrival, ...]:
    """One payload of an event, command or interaction as arrivals, at least one."""
    raw = as_table(payload)
    view = replace(view, server=words(raw, "context_team_id") or words(raw, "team_id") or view.server)
    if event := table(raw, "event"):
        return _event(event, raw, view)
    if words(raw, "command"):
        return (_command(raw, view),)
    if words(raw, "type") == ACTIONS and (pressed := _press(raw, view)) is not None:
        return (pressed,)
    if words(raw, "type") == SHORTCUT and (asked := _shortcut(raw, view)) is not None:
        return (asked,)
    return (_unread(raw, raw, view),)


def says_nothing_new(payload: object) -> bool:
    """Whether an event only repeats others: a preview was added, a thread grew."""
    event = table(as_table(payload), "event")
    if words(event, "type") != "message":
        return False
    if _is_growth(event):
        return True
    return words(event, "subtype") == "message_changed" and not _is_gone(event) and not _really_changed(event)


def own_teams(payload: object) -> frozenset[str]:
    """The workspaces an event came through: an organisation-wide app has no other way to know them."""
    raw = as_table(payload)
    teams = {words(raw, "context_team_id"), *(words(each, "team_id") for each in tables(raw, "authorizations"))}
    return frozenset(teams - {""})


def is_own_change(payload: object, me: SlackApp) -> bool:
    """Whether an event reports our own edit or reaction, which is already recorded."""
    event = table(as_table(payload), "event")
    if words(event, "type") in ("reaction_added", "reaction_removed"):
        return bool(me.user) and words(event, "user") == me.user
    message = table(event, "message")
    ours = (me.user and words(message, "user") == me.user) or (me.bot and words(message, "bot_id") == me.bot)
    return words(event, "subtype") == "message_changed" and bool(ours) and not _is_gone(event)


def lost_access(payload: object, me: SlackApp) -> str:
    """Why the app can do nothing any more, if an event reports that; else empty.

    https://docs.slack.dev/reference/events/tokens_revoked, https://docs.slack.dev/reference/events/app_uninstalled
    """
    event = table(as_table(payload), "event")
    match words(event, "type"):
        case "app_uninstalled":
            return "the app was uninstalled from the workspace; install it again at api.slack.com/apps"
        case "tokens_revoked" if _names_bot(table(event, "tokens").get("bot"), me):
            return "the app's bot token was revoked; install it again at api.slack.com/apps, and set the new token"
    return ""


def _names_bot(users: object, me: SlackApp) -> bool:
    """Whether a list of users has our bot; users that cannot be read count, because an app has one bot."""
    if not isinstance(users, list) or not users:
        return False
    return not me.user or me.user in users or not all(isinstance(user, str) for user in users)


def said(
    raw: Raw, channel: str, view: SlackParseContext, *, kind: str = "", always: bool = False
) -> Message | Unsupported:
    """A message from events or history; with `always` it counts as addressed to us."""
    ts, thread = stamp(raw, "ts") or line(raw, "client_msg_id"), stamp(raw, "thread_ts")
    sort, author = chat_type(channel, kind), author_of(raw, view.me, view.directory)
    addressed = (always or _is_addressed(raw, sort, view.me)) and not author.is_agent
    where = view.where(
        channel, _thread(ts, thread, starts=view.in_threads and addressed and sort is not ChatType.DIRECT)
    )
    own_id, name = ts or f"untold-{view.received.timestamp():.6f}", view.directory.channels.get(channel)
    sent, text = view.when(ts), _words(raw, view)
    source = SourceMessage(where=where, message_id=own_id, sent=sent, caption=text)
    files = tables(raw, "files") or as_tables([raw.get("file")])  # a single file, in the old format
    below = Attachments(view.me, view.directory).read(tables(raw, "attachments"), source)
    refs = _each_once(refs_of((*files, *below.files), source), pictures_of(raw, source))
    whole = "\n".join(part for part in (text, *wordings_of(files), below.text) if part)
    message = Message(
        conversation=where,
        id=own_id,
        author=author,
        sent=sent,
        text=whole,
        media=refs,
        chat_type=sort,
        channel_name=name,
        addressed=addressed,
        reply_to=thread if thread and thread != ts else None,
        quote=below.quote,
        forward=below.forward,
        edited=moment(stamp(table(raw, "edited"), "ts")),
        language=view.directory.locales.get(words(raw, "user")),
        thread_report=_thread_report(raw, view),
        mentions_another=_mentions_another(raw, view.me),
        server=view.server,
    )
    if words(raw, "subtype") not in _SAID or not (whole or refs or below.forward or below.quote):
        return as_unsupported(message, what_it_is(raw, author.name))
    return message


def pictures_of(raw: Raw, source: SourceMessage) -> Iterator[MediaRef]:
    """The pictures in a message's blocks, and in those of its legacy attachments."""
    yield from pictures_in(raw, source)
    for each in tables(raw, "attachments")[:MOST_ATTACHMENTS]:
        yield from pictures_in(each, source)


def _each_once(refs: tuple[MediaRef, ...], pictures: Iterator[MediaRef]) -> tuple[MediaRef, ...]:
    found = {ref.item: ref for ref in refs}
    for picture in pictures:
        found.setdefault(picture.item, picture)
    return tuple(found.values())


def _event(event: Raw, raw: Raw, view: SlackParseContext) -> tuple[Arrival, ...]:
    match words(event, "type"):
        case "message":
            return (_message(event, raw, view),)
        case "app_mention":
            return (said(event, words(event, "channel"), view, always=True),)
        case "reaction_added" | "reaction_removed" if words(table(event, "item"), "type") == "message":
            return (_reaction(event, raw, view),)
        case "member_joined_channel" | "member_left_channel" as kind if view.me.user == words(event, "user"):
            return (_membership(event, raw, view, added=kind == "member_joined_channel"),)
        case _:
            return (_unread(event, raw, view),)


def _message(event: Raw, raw: Raw, view: SlackParseContext) -> Arrival:
    channel, kind = words(event, "channel"), words(event, "channel_type")
    match words(event, "subtype"):
        case "message_changed" if _is_gone(event):
            return _deletion(event, raw, channel, stamp(table(event, "message"), "ts"), view)
        case "message_changed" if table(event, "message"):
            return _edit(event, raw, channel, kind, view)
        case "message_deleted" if stamp(event, "deleted_ts") or stamp(table(event, "previous_message"), "ts"):
            gone = stamp(event, "deleted_ts") or stamp(table(event, "previous_message"), "ts")
            return _deletion(event, raw, channel, gone, view)
        case "message_replied" | "message_changed" | "message_deleted":
            return _unread(event, raw, view)
        case "" if _is_growth(event):
            return _unread({**event, "subtype": "message_replied"}, raw, view)
        case _:
            return said(event, channel, view, kind=kind)


def _edit(event: Raw, raw: Raw, channel: str, kind: str, view: SlackParseContext) -> Edit | Unsupported:
    now = said(table(event, "message"), channel, view, kind=kind)
    at = stamp(event, "event_ts") or stamp(event, "ts") or stamp(table(table(event, "message"), "edited"), "ts")
    edit_id = f"{now.id}@{at or _own_id(raw, view)}"
    if isinstance(now, Message):
        if not _really_changed(event):
            what = "a preview of what a message links to"
            return _unsupported(now.conversation, edit_id, now.author, view.when(at), what, now.chat_type)
        now = replace(now, text=_with_quote(now), media=(*now.media, *_quoted_media(now)))
    return as_edit(now, edit_id, view.when(at))


def _with_quote(now: Message) -> str:
    """An edit has no quote of its own: the linked message is added below the text."""
    if now.quote is None:
        return now.text
    author = now.quote.author.name if now.quote.author is not None else ""
    said = ": ".join(part for part in (author, now.quote.text) if part)
    return "\n".join(part for part in (now.text, f"> {said}".replace("\n", "\n> ") if said else "") if part)


def _quoted_media(now: Message) -> tuple[MediaRef, ...]:
    own = {ref.item for ref in now.media}
    quoted = () if now.quote is None else now.quote.media
    return tuple(replace(ref, message_id=now.id) for ref in quoted if ref.item not in own)


def _deletion(event: Raw, raw: Raw, channel: str, message_id: str, view: SlackParseContext) -> Deletion:
    """Slack does not say who deleted it: the author, or an administrator."""
    before = table(event, "previous_message")
    thread = stamp(before, "thread_ts")
    at = stamp(event, "event_ts") or stamp(event, "ts")
    return Deletion(
        conversation=view.where(channel, thread if thread != message_id else None),
        id=f"{message_id}@{at or _own_id(raw, view)}-gone",
        message_id=message_id,
        author=author_of(before, view.me, view.directory) if words(before, "user") else None,
        sent=view.when(at),
    )


def _reaction(event: Raw, raw: Raw, view: SlackParseContext) -> Arrival:
    item, at = table(event, "item"), stamp(event, "event_ts")
    added, name = words(event, "type") == "reaction_added", line(event, "reaction", most=100)
    author = user_named(words(event, "user"), view.me, view.directory)
    message_id = stamp(item, "ts")
    if not message_id:
        return _unread(event, raw, view)
    return Reaction(
        conversation=view.where(words(item, "channel")),
        id=f"{message_id}@{at or _own_id(raw, view)}-{author.id}-{name}-{'on' if added else 'off'}",
        message_id=message_id,
        author=author,
        sent=view.when(at),
        emoji=f":{name}:",
        added=added,
    )


def _press(raw: Raw, view: SlackParseContext) -> Message | None:
    """A press of a button: https://docs.slack.dev/reference/interaction-payloads/block_actions-payload."""
    action, place = next(iter(tables(raw, "actions")), {}), table(raw, "container")
    key, person = words(action, "value"), words(table(raw, "user"), "id")
    channel = words(place, "channel_id") or words(table(raw, "channel"), "id")
    if not KEY.fullmatch(key) or not person or not channel:
        return None
    command = {"channel_id": channel, "user_id": person, "trigger_id": f"{words(action, 'action_ts')}-{key}"}
    said = _command({**command, "channel_name": words(table(raw, "channel"), "name")}, view)
    where = replace(said.conversation, thread=words(place, "thread_ts") or None)
    return replace(
        said,
        conversation=where,
        id=said.id.replace("command-", "press-", 1),
        text="",
        reply_to=words(place, "message_ts") or None,
        press=key,
        invoked=False,
    )


def _shortcut(raw: Raw, view: SlackParseContext) -> Message | None:
    """A message shortcut, as a command about the message that it quotes.

    https://docs.slack.dev/interactivity/implementing-shortcuts
    """
    place, person = table(raw, "channel"), table(raw, "user")
    channel, user = words(place, "id"), words(person, "id")
    about = said(table(raw, "message"), channel, view) if channel and user else None
    if about is None or not isinstance(about, Message):
        return None
    command = {"channel_id": channel, "channel_name": words(place, "name"), "trigger_id": words(raw, "trigger_id")}
    command |= {"user_id": user, "user_name": words(person, "name"), "command": f"/{line(raw, 'callback_id')}"}
    quote = Quote(author=about.author, message_id=about.id, text=about.text, sent=about.sent, media=about.media)
    asked = _command(command, view)
    where = replace(asked.conversation, thread=about.conversation.thread)
    return replace(asked, conversation=where, quote=quote)


def _command(raw: Raw, view: SlackParseContext) -> Message:
    """A slash command: addressed to us, wherever it was typed, and visible to no one else."""
    channel, user = words(raw, "channel_id"), words(raw, "user_id")
    author = user_named(user, view.me, view.directory)
    if author.name == user and (name := line(raw, "user_name")):
        author = replace(author, name=name)
    said = readable(words(raw, "text"), view.me, view.directory)
    text = f"{words(raw, 'command')} {said}".strip()
    if parse_command(text) is None and parse_command(f"/{said}") is not None:
        text = f"/{said}"  # `/belino status`: Slack has commands of its own under some of the names
    return Message(
        conversation=view.where(channel),
        id=f"command-{line(raw, 'trigger_id') or format(view.received.timestamp(), '.6f')}",
        author=author,
        sent=view.received,
        text=text,
        chat_type=chat_type(channel),
        channel_name=view.directory.channels.get(channel) or line(raw, "channel_name") or None,
        server=view.server,
        invoked=True,
    )


def _unread(event: Raw, raw: Raw, view: SlackParseContext) -> Unsupported:
    """An event we did not subscribe to or do not know, with its name and apparent author."""
    channel = words(event, "channel") or words(table(event, "channel"), "id") or words(table(event, "item"), "channel")
    user = words(event, "user") or words(table(event, "user"), "id")
    ts = stamp(event, "event_ts") or stamp(event, "ts")
    own = line(raw, "event_id") or line(raw, "trigger_id") or ts or _own_id(raw, view)
    # Opening our page or pressing a button is no message and gets no answer.
    sort = chat_type(channel) if channel and words(event, "type") == "message" else ChatType.CHANNEL
    author = user_named(user, view.me, view.directory)
    unread = _unsupported(
        view.where(channel), f"event-{own}", author, view.when(ts), what_it_is(event, author.name), sort
    )
    return replace(unread, is_event=words(event, "type") != "message", server=view.server)


def _membership(event: Raw, raw: Raw, view: SlackParseContext, *, added: bool) -> Unsupported:
    """A change of the app's own membership: https://docs.slack.dev/reference/events/member_joined_channel."""
    inviter, channel = words(event, "inviter"), words(event, "channel")
    return replace(
        _unread(event, raw, view),
        author=user_named(inviter, view.me, view.directory) if inviter else UNKNOWN_AUTHOR,
        what="the app was added" if added else "the app was removed",
        channel_name=view.directory.channels.get(channel),
        is_notice=True,
        presence=Presence.ADDED if added else Presence.REMOVED,
    )


def _own_id(raw: Raw, view: SlackParseContext) -> str:
    """A unique key for an event that has no time."""
    return line(raw, "event_id") or format(view.received.timestamp(), ".6f")


def _unsupported(
    where: ConversationKey, own_id: str, author: Author, sent: datetime, what: str, sort: ChatType
) -> Unsupported:
    return Unsupported(conversation=where, id=own_id, author=author, sent=sent, what=what, chat_type=sort)


def _thread(ts: str, thread: str, *, starts: bool) -> str | None:
    """The thread of a message; a thread's first message belongs to its channel."""
    if thread and thread != ts:
        return thread
    return ts if starts and ts else None


def _thread_report(raw: Raw, view: SlackParseContext) -> ThreadReport | None:
    """What Slack reports about the replies under a message in its history."""
    replies, users = count(raw, "reply_count"), raw.get("reply_users")
    if not replies:
        return None
    names = view.directory.users
    listed = [user for user in users if isinstance(user, str)] if isinstance(users, list) else []
    people = [names[user] for user in listed if user in names]
    return ThreadReport(replies=replies, last=moment(stamp(raw, "latest_reply")), participants=tuple(people))


def _words(raw: Raw, view: SlackParseContext) -> str:
    """A message's own text. Apps put text into blocks; `text` is then what a notification shows."""
    text = readable(words(raw, "text"), view.me, view.directory)
    if _laid_out(raw) or not text:
        shown = Blocks(view.me, view.directory).text(tables(raw, "blocks"))
        if _letters(shown) not in _letters(text):
            text = shown if _letters(text) in _letters(shown) else f"{text}\n{shown}".strip()
    return f"/me {text}" if words(raw, "subtype") == "me_message" and text else text


def _laid_out(raw: Raw) -> tuple[Raw, ...]:
    """The blocks whose text may differ from `text`: those of Slack's own clients do not."""
    by_app = bool(words(raw, "bot_id"))
    return tuple(block for block in tables(raw, "blocks") if by_app or words(block, "type") != "rich_text")


def _letters(text: str) -> str:
    return "".join(character for character in text if character.isalnum())


def _is_addressed(raw: Raw, sort: ChatType, me: SlackApp) -> bool:
    """Whether a message is addressed to us: in private, by our name, or as a reply in a thread that we began."""
    if sort is ChatType.DIRECT:
        return True
    if not me.user:
        return False
    if words(raw, "parent_user_id") == me.user and stamp(raw, "thread_ts") != stamp(raw, "ts"):
        return True
    return me.user in mentioned(words(raw, "text")) or me.user in _mentioned_in(raw)


def _mentions_another(raw: Raw, me: SlackApp) -> bool:
    """Whether a message names another user, a group of users, or everyone in the channel."""
    named = {*mentioned(words(raw, "text")), *_mentioned_in(raw)} - {me.user}
    return bool(named) or _SEVERAL.search(words(raw, "text")) is not None


def _mentioned_in(raw: Raw) -> Iterator[str]:
    """The users that the blocks of Slack's own clients mention."""
    pile = list(tables(raw, "blocks"))
    for _ in range(1_000):
        if not pile:
            return
        block = pile.pop()
        if words(block, "type") == "user":
            yield words(block, "user_id")
        pile.extend(tables(block, "elements"))


def _is_growth(event: Raw) -> bool:
    """A thread's first message, sent again because of a reply; Slack often leaves the subtype out."""
    subtype, message = words(event, "subtype"), table(event, "message")
    return subtype == "message_replied" or (not subtype and bool(message) and not words(event, "user"))


def _is_gone(event: Raw) -> bool:
    """A deleted message with replies leaves a tombstone."""
    message = table(event, "message")
    return words(event, "subtype") == "message_changed" and (
        words(message, "subtype") == "tombstone" and bool(stamp(message, "ts"))
    )


def _really_changed(event: Raw) -> bool:
    """Whether text or files changed, or a quote was added; Slack reports previews and pins the same way."""
    message, before = table(event, "message"), table(event, "previous_message")
    if not before:
        return bool(table(message, "edited"))
    return any(_content(message, key) != _content(before, key) for key in ("text", "files", "blocks", "attachments"))


def _content(message: Raw, key: str) -> object:
    """The compared part: the ids of files, whether they still exist and what is said in them; the blocks of apps."""
    match key:
        case "files":
            return [(words(file, "id"), words(file, "mode"), transcript_of(file)) for file in tables(message, key)]
        case "attachments":
            return pasted(tables(message, key))
        case "blocks":
            return [{name: block[name] for name in block if name != "block_id"} for block in _laid_out(message)]
        case _:
            return words(message, key)


def context_to_json(view: SlackParseContext, payload: Raw) -> Mapping[str, object]:
    """The context of a payload for a recording, reduced to the names it mentions."""
    told, me = json.dumps(dict(payload)), view.me
    return {
        "me": {"user_id": me.user, "bot_id": me.bot, "name": me.name, "teams": sorted(me.teams)},
        "users": _named(view.directory.users, told),
        "channels": _named(view.directory.channels, told),
        "team_id": view.server,
    }


def context_from_json(told: Mapping[str, object], view: SlackParseContext) -> SlackParseContext:
    """The context that `context_to_json` wrote."""
    raw = as_table(told)
    me, teams = table(raw, "me"), table(raw, "me").get("teams")
    return replace(
        view,
        me=SlackApp(
            user=words(me, "user_id"),
            bot=words(me, "bot_id"),
            name=line(me, "name"),
            teams=frozenset(str(team) for team in teams) if isinstance(teams, list) else frozenset(),
        ),
        directory=Directory(users=_names(raw, "users"), channels=_names(raw, "channels")),
        server=words(raw, "team_id"),
    )


def _named(names: Mapping[str, str], told: str) -> list[Mapping[str, str]]:
    return [{"id": own, "name": name} for own, name in names.items() if own in told]


def _names(raw: Raw, key: str) -> dict[str, str]:
    return {words(each, "id"): line(each, "name") for each in tables(raw, key)}
