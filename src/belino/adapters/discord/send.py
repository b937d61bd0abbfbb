"""Send parcels: one message or one edit each, and report what Discord stored."""

import asyncio
import base64
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from belino.adapters.discord.authors import as_identity, identity
from belino.adapters.discord.client import (
    UNKNOWN_EMOJI,
    UNKNOWN_MESSAGE,
    DiscordClient,
    DiscordRefused,
    has_nothing_to_edit,
    refusal,
    refuses_reply,
    refuses_voice,
)
from belino.adapters.discord.media import DiscordSource, attachment_ref
from belino.domain.choice import Style
from belino.domain.commands import CommandSpec
from belino.domain.errors import AdapterError, NothingToEdit, PlaceClosed, Unauthorized, Undeliverable, Unfindable
from belino.domain.graphemes import cut
from belino.domain.limits import SendAs
from belino.domain.message import ConversationKey
from belino.domain.ports import Clock
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind, Receipt, StoredFile
from belino.net.json_fields import Raw, as_table, as_tables, count, iso_time, tables, words
from belino.net.redact import Secret
from belino.net.rest import Form, Latest
from belino.net.tap import on_behalf

log = logging.getLogger(__name__)

CALLBACK = "/interactions/{}/{}/callback"
ORIGINAL = "/webhooks/{}/{}/messages/@original"
FOLLOW_UP = "/webhooks/{}/{}"
DEFERRED, DEFERRED_UPDATE, SUGGESTIONS = 5, 6, 8
EPHEMERAL = 1 << 6
TOKEN_SECONDS = 14 * 60.0
"""Discord accepts answers for fifteen minutes."""
CHAT_INPUT, TEXT_OPTION = 1, 3
COMMANDS_KEPT = 1_000
MESSAGES = "/channels/{}/messages"
MESSAGE = "/channels/{}/messages/{}"
REACTION = "/channels/{}/messages/{}/reactions/{}/@me"
THREAD = "/channels/{}/messages/{}/threads"
THREAD_NAME_CHARS, THREADS_KEPT, UNNAMED_THREAD = 100, 1_000, "Answer"
HAS_THREAD = 160004
VOICE_MESSAGE = 1 << 13
SUPPRESS_EMBEDS = 1 << 2
NONCE_BYTES = 18
"""24 characters as text; Discord accepts 25."""
ALT_CHARS = 1_024
"""https://docs.discord.com/developers/resources/message#attachment-object"""
WAVEFORM_BYTES = 256
ACTION_ROW, BUTTON, ROW_BUTTONS = 1, 2, 5
STYLES: Mapping[Style, int] = {"": 2, "primary": 1, "danger": 4}
# Names in an answer notify no one; only its reply does.
NO_MENTIONS: dict[str, list[str]] = {"parse": []}


async def send(client: DiscordClient, parcel: Parcel, *, previews: bool = True) -> Receipt:
    """Send one message or edit; without the reply or voice form where Discord refuses them."""
    if parcel.kind is ParcelKind.EDIT:
        return await edit(client, parcel.edits or "", parcel)
    while True:
        try:
            return await _made(client, parcel, previews=previews)
        except DiscordRefused as error:
            reduced = _reduced(parcel, error)
            if reduced == parcel:
                raise refusal(error, in_thread=parcel.conversation.thread is not None) from error
            parcel = reduced


def _reduced(parcel: Parcel, error: DiscordRefused) -> Parcel:
    """The parcel without the refused part; the same parcel if nothing can be left out."""
    if refuses_reply(error):
        return replace(parcel, reply_to=None)
    if refuses_voice(error):
        plain = (replace(file, send_as=SendAs.AUDIO) if file.send_as is SendAs.VOICE else file for file in parcel.files)
        return replace(parcel, files=tuple(plain))
    return parcel


async def edit(client: DiscordClient, message_id: str, parcel: Parcel) -> Receipt:
    """Edit a message's text."""
    fields = {"content": parcel.text, "allowed_mentions": NO_MENTIONS, "components": _components(parcel)}
    try:
        told = await client.call("PATCH", MESSAGE, channel_of(parcel.conversation), _own(message_id), fields=fields)
    except DiscordRefused as error:
        if has_nothing_to_edit(error):
            raise NothingToEdit("the message that was to be changed is gone") from error
        raise refusal(error) from error
    return Receipt(message_id=message_id, sent=iso_time(as_table(told), "edited_timestamp") or client.now())


async def delete(client: DiscordClient, conversation: ConversationKey, message_id: str) -> None:
    """Delete a message."""
    try:
        await client.call("DELETE", MESSAGE, channel_of(conversation), _named(message_id))
    except DiscordRefused as error:
        if error.code != UNKNOWN_MESSAGE:
            raise refusal(error) from error


async def react(
    client: DiscordClient, conversation: ConversationKey, message_id: str, emoji: str, *, added: bool
) -> None:
    """Add or remove our reaction: a character, or `name:id` for a server's own emoji."""
    method = "PUT" if added else "DELETE"
    try:
        await client.call(method, REACTION, channel_of(conversation), _named(message_id), emoji)
    except DiscordRefused as error:
        if error.code == UNKNOWN_EMOJI and added:
            raise Undeliverable(f"Discord has no emoji {emoji}; write it as a character") from error
        if added or error.code not in (UNKNOWN_EMOJI, UNKNOWN_MESSAGE):
            raise refusal(error) from error


def _named(message_id: str) -> str:
    own = as_identity(message_id)
    if not own:
        raise Undeliverable("this is no message that Discord knows")
    return own


def nonce_of(parcel: Parcel) -> str:
    """The nonce by which Discord deduplicates a parcel for some minutes: the same key gives the same message."""
    digest = hashlib.sha256(parcel.key.encode()).digest()
    return base64.urlsafe_b64encode(digest[:NONCE_BYTES]).decode()


def channel_of(conversation: ConversationKey) -> str:
    """The channel id to post to: a thread is a channel of its own."""
    channel = as_identity(conversation.thread or conversation.channel)
    if not channel:
        raise Undeliverable("this conversation is no channel of Discord")
    return channel


def fields_of(parcel: Parcel) -> dict[str, object]:
    """The fields of a message."""
    fields: dict[str, object] = {
        "allowed_mentions": NO_MENTIONS,
        "nonce": nonce_of(parcel),
        "enforce_nonce": True,
    }
    if parcel.text:
        fields["content"] = parcel.text
    if parcel.buttons:
        fields["components"] = _components(parcel)
    if reply_to := as_identity(parcel.reply_to):
        # The message may be deleted by now; the answer is sent all the same.
        fields["message_reference"] = {"message_id": reply_to, "fail_if_not_exists": False}
    if parcel.files:
        fields["attachments"] = [_attachment(number, file) for number, file in enumerate(parcel.files)]
    if len(parcel.files) == 1 and parcel.files[0].send_as is SendAs.VOICE and not parcel.text:
        fields["flags"] = VOICE_MESSAGE
    return fields


def _components(parcel: Parcel) -> list[dict[str, object]]:
    """The buttons of a message, five to a row: https://discord.com/developers/docs/components/reference#button."""
    buttons = [
        {"type": BUTTON, "style": STYLES[each.style], "label": each.label, "custom_id": each.key}
        for each in parcel.buttons
    ]
    rows = [buttons[start : start + ROW_BUTTONS] for start in range(0, len(buttons), ROW_BUTTONS)]
    return [{"type": ACTION_ROW, "components": row} for row in rows]


async def _made(client: DiscordClient, parcel: Parcel, *, previews: bool) -> Receipt:
    channel, fields = channel_of(parcel.conversation), fields_of(parcel)
    if not previews:
        fields["flags"] = int(str(fields.get("flags", 0))) | SUPPRESS_EMBEDS
    if parcel.files:
        form = Form({"payload_json": fields}, {f"files[{number}]": file for number, file in enumerate(parcel.files)})
        told = as_table(await client.upload(MESSAGES, channel, form=form))
    else:
        told = as_table(await client.call("POST", MESSAGES, channel, fields=fields))
    own = identity(told, "id")
    if not own:
        raise AdapterError("Discord took the message and did not say under which id")
    source = DiscordSource(where=parcel.conversation, channel=channel, message_id=own, sent=_when(told, client))
    stored = _stored(told, parcel.files, source) if parcel.files else None
    return Receipt(message_id=own, sent=source.sent, stored=stored)


def _when(message: Raw, client: DiscordClient) -> datetime:
    return iso_time(message, "timestamp") or client.now()


def _attachment(number: int, file: OutgoingFile) -> dict[str, object]:
    described: dict[str, object] = {"id": number, "filename": file.name}
    if file.alt:
        described["description"] = cut(file.alt, ALT_CHARS - 1)
    if file.send_as is SendAs.VOICE:
        described |= {"duration_secs": round(file.seconds or 1.0, 3), "waveform": _waveform(file)}
    return described


def _waveform(file: OutgoingFile) -> str:
    """The waveform, one byte for each of up to 256 points; flat where it was not measured."""
    heights = file.waveform[:WAVEFORM_BYTES] or bytes(WAVEFORM_BYTES)
    return base64.b64encode(heights).decode()


def _stored(message: Raw, files: tuple[OutgoingFile, ...], source: DiscordSource) -> tuple[StoredFile, ...] | None:
    """What Discord reports that it stored; it changes some file names."""
    kept = tables(message, "attachments")
    if len(kept) != len(files):
        return None
    voice = bool((count(message, "flags") or 0) & VOICE_MESSAGE)
    return tuple(
        StoredFile(
            form=_kept_as(file, voice=voice),
            size=count(each, "size"),
            name=words(each, "filename") or None,
            ref=attachment_ref(each, source, voice=voice),
        )
        for file, each in zip(files, kept, strict=True)
    )


def _kept_as(file: OutgoingFile, *, voice: bool) -> SendAs:
    if voice:
        return SendAs.VOICE
    return SendAs.AUDIO if file.send_as is SendAs.VOICE else file.send_as


def _own(message_id: str) -> str:
    own = as_identity(message_id)
    if not own:
        raise NothingToEdit("the message that was to be changed was never sent")
    return own


class ThreadStarter:
    """Opens threads at the messages that are answered in one; a thread has the id of its message.

    https://docs.discord.com/developers/resources/channel#start-thread-from-message
    """

    def __init__(self, client: DiscordClient) -> None:
        self._client = client
        self._names: Latest[str, str] = Latest(THREADS_KEPT)
        """The names of threads that may be opened."""
        self.opened: Latest[str, None] = Latest(THREADS_KEPT)

    def expect(self, message: str, text: str) -> None:
        """A message may be answered in a thread, which is named after its text."""
        self._names.keep(message, " ".join(text.split())[:THREAD_NAME_CHARS].strip())

    def expects(self, thread: str) -> bool:
        return thread in self._names

    async def open(self, conversation: ConversationKey) -> Raw:
        """Open a thread; empty if it is open already. PlaceClosed if Discord opens none here."""
        thread = conversation.thread or ""
        fields = {"name": self._names.get(thread) or UNNAMED_THREAD}
        try:
            told = as_table(await self._client.call("POST", THREAD, conversation.channel, thread, fields=fields))
        except DiscordRefused as error:
            if error.code != HAS_THREAD:
                raise PlaceClosed("Discord opens no thread here", reply_to=thread, is_told=False) from error
            told = {}
        self._names.pop(thread, None)
        self.opened.keep(thread, None)
        return told


@dataclass(slots=True, kw_only=True)
class _Invocation:
    """A command, press or other interaction that we may answer in private."""

    token: Secret
    until: float
    acknowledged: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once Discord was told that the answer will follow, or refused that."""
    first: str = ""
    """The key of the parcel in the acknowledged place; later ones are messages below it."""


class CommandAnswers:
    """Answers to commands and presses, visible to their sender only; their tokens are kept in memory alone.

    https://docs.discord.com/developers/interactions/receiving-and-responding
    """

    def __init__(self, client: DiscordClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._open: OrderedDict[str, _Invocation] = OrderedDict()
        """By the interaction's id."""

    async def acknowledge(self, interaction: Raw) -> None:
        """Tell Discord at once, before anything is stored, that the answer will follow: it waits three seconds.

        One that was acknowledged before a restart is refused here, and can be answered all the same.
        """
        own, token = identity(interaction, "id"), words(interaction, "token")
        given = _Invocation(token=Secret("interaction token", token), until=self._clock.monotonic() + TOKEN_SECONDS)
        self._open[own] = given
        while len(self._open) > COMMANDS_KEPT:
            self._open.popitem(last=False)
        fields = _acknowledgement(count(interaction, "type"))
        try:
            with on_behalf(None):  # calls whose path is a secret are not recorded
                await self._client.call("POST", CALLBACK, own, token, fields=fields)
        except AdapterError as error:
            log.info("an interaction could not be acknowledged: %s", type(error).__name__)
        finally:
            given.acknowledged.set()

    def knows(self, parcel: Parcel) -> bool:
        """Whether a parcel answers an interaction that can still be answered in private."""
        return self._found(parcel.reply_to or "") is not None

    async def tell(self, interaction: str, text: str, application: str, *, below: bool = False) -> None:
        """Show a line to the sender in the acknowledged place, or below it."""
        key = "" if below else "told"
        try:
            await self._show(interaction, key, {"content": text, "allowed_mentions": NO_MENTIONS}, application)
        except AdapterError as error:
            log.info("an interaction could not be answered: %s", type(error).__name__)

    async def send(self, parcel: Parcel, application: str) -> Receipt | None:
        """Show a text to the sender alone; None if it is too late for that, or the parcel carries something else."""
        if parcel.files or parcel.buttons or parcel.kind is ParcelKind.EDIT:
            return None
        fields = {"content": parcel.text, "allowed_mentions": NO_MENTIONS}
        told = await self._show(parcel.reply_to or "", parcel.key, fields, application)
        return None if told is None else self._receipt(told)

    async def find(self, parcel: Parcel, application: str) -> Receipt | None:
        """The receipt of a text in the acknowledged place; Unfindable once its token is gone."""
        given = self._found(parcel.reply_to or "")
        if given is None or given.first != parcel.key:
            raise Unfindable("Discord does not show private answers to the bot afterwards")
        try:
            with on_behalf(None):
                told = as_table(await self._client.call("GET", ORIGINAL, application, given.token.reveal()))
        except (DiscordRefused, Unauthorized):
            return None  # nothing is shown yet
        return self._receipt(told) if words(told, "content") == parcel.text else None

    async def _show(self, interaction: str, key: str, fields: Mapping[str, object], application: str) -> Raw | None:
        given = self._found(interaction)
        if given is None:
            return None
        await given.acknowledged.wait()
        given.first = given.first or key
        token, is_first = given.token.reveal(), bool(key) and given.first == key
        try:
            with on_behalf(None):
                if is_first:
                    return as_table(await self._client.call("PATCH", ORIGINAL, application, token, fields=fields))
                hidden = {**fields, "flags": EPHEMERAL}
                return as_table(await self._client.call("POST", FOLLOW_UP, application, token, fields=hidden))
        except (DiscordRefused, Unauthorized):
            return None  # it was not acknowledged in time, or the token has ended

    def _found(self, interaction: str) -> _Invocation | None:
        given = self._open.get(interaction)
        return given if given is not None and given.until > self._clock.monotonic() else None

    def _receipt(self, told: Raw) -> Receipt:
        return Receipt(message_id=identity(told, "id"), sent=iso_time(told, "timestamp") or self._client.now())


def _acknowledgement(kind: int | None) -> Mapping[str, object]:
    match kind:
        case 3:  # a press: its message stays as it is
            return {"type": DEFERRED_UPDATE}
        case 4:  # half a command: we suggest nothing
            return {"type": SUGGESTIONS, "data": {"choices": []}}
        case _:
            return {"type": DEFERRED, "data": {"flags": EPHEMERAL}}


async def register_commands(client: DiscordClient, application: str, commands: Sequence[CommandSpec]) -> None:
    """Register commands if one is missing or differs; those of others are kept."""
    path = "/applications/{}/commands"
    known = as_tables(await client.call("GET", path, application))
    ours = [_registered(spec) for spec in commands]
    if all(any(_is_same(one, other) for other in known) for one in ours):
        return
    names = {spec.name for spec in commands}
    foreign = [one for one in known if words(one, "name") not in names or count(one, "type") != CHAT_INPUT]
    await client.call("PUT", path, application, fields=[*({**one} for one in foreign), *ours])


def _registered(spec: CommandSpec) -> dict[str, object]:
    option = {"type": TEXT_OPTION, "name": "choice", "description": spec.argument, "required": False}
    options = [option] if spec.argument else []
    return {"type": CHAT_INPUT, "name": spec.name, "description": spec.says, "options": options}


def _is_same(wanted: Mapping[str, object], known: Raw) -> bool:
    named = [words(each, "name") for each in tables(known, "options")]
    said = words(known, "name"), words(known, "description"), named
    options = wanted["options"]
    assert isinstance(options, list)
    return said == (wanted["name"], wanted["description"], [each["name"] for each in options])
