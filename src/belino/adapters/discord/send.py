"""Send parcels: one message or one edit each, and report what Discord stored."""

import asyncio
import base64
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from belino.domain.errors import AdapterError, NothingToEdit, Undeliverable
from belino.domain.limits import SendAs
from belino.domain.message import ConversationKey
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind, Receipt, StoredFile
from belino.net.json_fields import Raw, as_table, as_tables, count, iso_time, tables, words
from belino.net.rest import Form

log = logging.getLogger(__name__)

CALLBACK = "/interactions/{}/{}/callback"
ORIGINAL = "/webhooks/{}/{}/messages/@original"
DEFERRED, EPHEMERAL = 5, 1 << 6
CHAT_INPUT, TEXT_OPTION = 1, 3
COMMANDS_KEPT = 1_000
MESSAGES = "/channels/{}/messages"
MESSAGE = "/channels/{}/messages/{}"
REACTION = "/channels/{}/messages/{}/reactions/{}/@me"
VOICE_MESSAGE = 1 << 13
SUPPRESS_EMBEDS = 1 << 2
NONCE_BYTES = 18
"""24 characters as text; Discord accepts 25."""
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
                raise refusal(error) from error
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


class CommandAnswers:
    """Answers to commands, visible to their sender only.

    https://docs.discord.com/developers/interactions/receiving-and-responding
    """

    def __init__(self, client: DiscordClient) -> None:
        self._client = client
        self._tokens: OrderedDict[str, asyncio.Future[str]] = OrderedDict()
        """The tokens of commands by id; empty for one that could not be acknowledged. They are valid for 15 minutes."""

    def expect(self, command: str) -> None:
        """A command is about to be stored: its answer waits until it is acknowledged."""
        self._tokens[command] = asyncio.get_running_loop().create_future()
        while len(self._tokens) > COMMANDS_KEPT:
            self._tokens.popitem(last=False)

    def has(self, parcel: Parcel) -> bool:
        """Whether a parcel answers a command that waits for it."""
        return parcel.reply_to in self._tokens

    def drop(self, command: str) -> None:
        """An agent answers a command, for all to see."""
        if (waiting := self._tokens.pop(command, None)) and not waiting.done():
            waiting.set_result("")

    async def acknowledge(self, interaction: Raw) -> None:
        """Tell Discord that the answer will follow, for the sender alone."""
        own, token = identity(interaction, "id"), words(interaction, "token")
        accepted = ""
        try:
            await self._client.call(
                "POST", CALLBACK, own, token, fields={"type": DEFERRED, "data": {"flags": EPHEMERAL}}
            )
            accepted = token
        except AdapterError as error:
            log.info("a command could not be acknowledged: %s", type(error).__name__)
        finally:
            if (waiting := self._tokens.get(own)) and not waiting.done():
                waiting.set_result(accepted)

    async def send(self, parcel: Parcel, application: str) -> Receipt | None:
        """The answer in the place that was acknowledged, once however often it is sent; None if there is none."""
        waiting = self._tokens.get(parcel.reply_to or "")
        token = "" if waiting is None else await asyncio.shield(waiting)
        if not token or parcel.files or parcel.kind is ParcelKind.EDIT:
            return None
        fields = {"content": parcel.text, "allowed_mentions": NO_MENTIONS}
        try:
            told = as_table(await self._client.call("PATCH", ORIGINAL, application, token, fields=fields))
        except DiscordRefused:
            return None  # it is too late for it: the answer is sent as a message
        return Receipt(message_id=identity(told, "id"), sent=iso_time(told, "timestamp") or self._client.now())


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
