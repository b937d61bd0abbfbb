"""Send parcels, each by one visible call: a message, an upload, an edit or a stream; and set a thread's status."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TypeVar

from belino.adapters.slack.authors import moment, stamp
from belino.adapters.slack.capabilities import EDIT_CHARS
from belino.adapters.slack.client import SlackClient, SlackRefused
from belino.adapters.slack.content import escaped
from belino.adapters.slack.media import file_ref
from belino.domain.emoji import emoji_name
from belino.domain.errors import AdapterError, MarkupRefused, NothingToEdit, PlaceClosed, Undeliverable
from belino.domain.graphemes import cut
from belino.domain.limits import Markup
from belino.domain.media import MediaRef
from belino.domain.message import ConversationKey, SourceMessage
from belino.domain.reply import UNFINISHED, OutgoingFile, Parcel, ParcelKind, Receipt, StoredFile
from belino.net.json_fields import Raw, as_table, count, table, tables, words
from belino.net.rest import FileBody, Latest, as_upload_errors

T = TypeVar("T")

KEY_EVENT = "belino_parcel"
"""The type of the metadata that carries a parcel's key; it is not visible."""

ALT_CHARS = 1_000
"""https://docs.slack.dev/reference/methods/files.getUploadURLExternal"""

# Slack shares a file a moment after it reports success; only then is the message known.
SHARED_AFTER = (0.0, 0.5, 1.0, 2.0, 4.0)

THINKING, UPLOADING = "is thinking…", "is sending a file…"
STATUS_SECONDS = 60.0
"""Slack shows a status until the answer comes, for two minutes at most."""
STATUS_REFUSED_SECONDS = 3_600.0
STATUS_CHARS = 100

START, APPEND, STOP = "chat.startStream", "chat.appendStream", "chat.stopStream"
MARKDOWN_CHARS = 12_000
"""The most that one call may add."""
PEOPLE_KEPT, STREAMS_KEPT = 1_000, 1_000
REFUSED_SECONDS = 3_600.0
SECTION_CHARS = 3_000

_NO_BLOCKS = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long"})
_NOTHING_TO_EDIT = frozenset({"message_not_found", "cant_update_message", "edit_window_closed", "msg_too_long"})
_CLOSED_THREAD = frozenset({"thread_not_found", "invalid_thread_ts", "message_not_found"})
_SENTENCES = {
    "not_in_channel": "the app is not in this channel; invite it there with /invite",
    "channel_not_found": "Slack knows no such channel, or the app is not in it; invite it there with /invite",
    "is_archived": "the channel is archived",
    "is_inactive": "the channel is no longer in use",
    "msg_too_long": "the text is longer than Slack takes",
    "message_not_found": "the message is gone",
    "no_text": "there is nothing in it",
    "restricted_action": "the workspace's settings do not let the app write here",
    "restricted_action_read_only_channel": "only some people may write in this channel",
    "restricted_action_thread_only_channel": "only replies in threads may be written in this channel",
    "restricted_action_non_threadable_channel": "no replies in threads may be written in this channel",
    "cannot_reply_to_message": "this message cannot be answered in a thread",
    "thread_not_found": "the thread is gone",
    "invalid_thread_ts": "the thread is gone",
    "user_not_found": "this person is no longer there",
    "messages_tab_disabled": "the app takes no direct messages; App Home, Messages Tab turns them on",
    "ekm_access_denied": "the workspace's administrators have suspended writing here",
    "posting_to_channel_denied": "the workspace's settings do not let the app write here",
    "file_uploads_disabled": "the workspace takes no files",
    "file_uploads_except_images_disabled": "the workspace takes no files but pictures",
    "file_upload_size_restricted": "the workspace takes no file that large",
    "file_size_exceeds_limit": "Slack takes no file that large",
    "storage_limit_reached": "the workspace has no room for files",
    "blocked_file_type": "the workspace takes no files of this type",
    "slack_connect_file_upload_sharing_blocked": "files may not be shared with the other workspace",
    "slack_connect_blocked_file_type": "the other workspace takes no files of this type",
}


async def send(client: SlackClient, parcel: Parcel, *, previews: bool = False) -> Receipt:
    """Send one message, several files in one, or an edit."""
    try:
        if parcel.kind is ParcelKind.EDIT:
            return await _finish(client, parcel.edits or "", parcel)
        if parcel.files:
            return await share(client, parcel)
        return await _post(client, parcel, previews=previews)
    except SlackRefused as error:
        raise refusal(error, parcel) from error


async def edit(client: SlackClient, ts: str, parcel: Parcel) -> Receipt:
    """Edit a message's text."""
    written = dict(text_fields(parcel))
    if parcel.rich:
        written["text"] = str(written["text"])[:EDIT_CHARS]  # only for notifications: the block is what is shown
    elif len(str(written["text"])) > EDIT_CHARS:
        raise NothingToEdit(f"Slack changes messages to {EDIT_CHARS} characters at most")
    # Blocks that are left out stay: https://docs.slack.dev/reference/methods/chat.update
    blocks = _blocks(parcel) or written.get("blocks", [])
    fields = {"channel": parcel.conversation.channel, "ts": ts, **written, "blocks": blocks}
    try:
        told = await client.call("chat.update", fields)
    except SlackRefused as error:
        if has_nothing_to_edit(error):
            raise NothingToEdit("the message that was to be changed is gone, or can no longer be") from error
        raise refusal(error, parcel) from error
    return Receipt(message_id=stamp(told, "ts") or ts, sent=client.now())


async def delete(client: SlackClient, conversation: ConversationKey, ts: str) -> None:
    """Delete a message."""
    try:
        await client.call("chat.delete", {"channel": conversation.channel, "ts": ts})
    except SlackRefused as error:
        if error.error != "message_not_found":
            raise Undeliverable(_refused(error, "delete it")) from error


async def react(client: SlackClient, conversation: ConversationKey, ts: str, emoji: str, *, added: bool) -> None:
    """Add or remove our reaction: https://docs.slack.dev/reference/methods/reactions.add."""
    if (name := emoji_name(emoji)) is None:
        raise Undeliverable(f"Slack takes emoji by their names, such as eyes, and that of {emoji} is not known")
    method, done = ("reactions.add", "already_reacted") if added else ("reactions.remove", "no_reaction")
    try:
        await client.call(method, {"channel": conversation.channel, "timestamp": ts, "name": name})
    except SlackRefused as error:
        if error.error == "invalid_name":
            raise Undeliverable(f"the workspace has no emoji {name}") from error
        if error.error != done and (added or error.error != "message_not_found"):
            raise Undeliverable(_refused(error, "react")) from error


def _refused(error: SlackRefused, what: str) -> str:
    if error.error == "missing_scope":
        return f"Slack will not {what}: give the app the scope {error.needed or 'it lacks'} and install it again"
    return _SENTENCES.get(error.error) or f"Slack will not {what}: {error.error}"


def metadata(key: str) -> Mapping[str, object]:
    """What a message of ours carries unseen: the key of its parcel."""
    return {"event_type": KEY_EVENT, "event_payload": {"key": key}}


def key_of(message: Raw) -> str:
    """The parcel key in a message of ours."""
    metadata = table(message, "metadata")
    return words(table(metadata, "event_payload"), "key") if words(metadata, "event_type") == KEY_EVENT else ""


async def _finish(client: SlackClient, ts: str, parcel: Parcel) -> Receipt:
    """Turn a draft into the answer. A draft that cannot be edited is deleted: the answer is sent as a new message."""
    try:
        return await edit(client, ts, parcel)
    except NothingToEdit:
        with suppress(AdapterError):  # a remaining draft is visible, and the answer below it is complete
            await client.call("chat.delete", {"channel": parcel.conversation.channel, "ts": ts})
        raise


async def _post(client: SlackClient, parcel: Parcel, *, previews: bool) -> Receipt:
    fields = {
        "channel": parcel.conversation.channel,
        **text_fields(parcel),
        **({"blocks": blocks} if (blocks := _blocks(parcel)) else {}),
        "thread_ts": parcel.conversation.thread,
        "unfurl_links": previews,
        "unfurl_media": previews,
        "metadata": metadata(parcel.key),
    }
    told = await client.call("chat.postMessage", fields)
    ts = stamp(told, "ts") or stamp(table(told, "message"), "ts")
    # Treated as sent: retried because its id is missing, it would appear twice.
    return Receipt(message_id=ts or f"untold-{parcel.key}", sent=_when(ts, client))


def text_fields(parcel: Parcel) -> Mapping[str, object]:
    if parcel.rich:
        return {"text": parcel.text, "mrkdwn": True, "blocks": [{"type": "markdown", "text": parcel.rich}]}
    if parcel.markup is Markup.MRKDWN:
        return {"text": parcel.text, "mrkdwn": True}
    return {"text": escaped(parcel.text), "mrkdwn": False}


def _blocks(parcel: Parcel) -> list[dict[str, object]]:
    """The text and its buttons as blocks: https://docs.slack.dev/reference/block-kit/blocks/actions-block."""
    if not parcel.buttons:
        return []
    text, is_marked = str(text_fields(parcel)["text"]), parcel.markup is Markup.MRKDWN
    pieces = [text[start : start + SECTION_CHARS] for start in range(0, len(text), SECTION_CHARS)]
    kind = {"type": "mrkdwn", "verbatim": True} if is_marked else {"type": "plain_text", "emoji": False}
    sections: list[dict[str, object]] = [{"type": "section", "text": {**kind, "text": piece}} for piece in pieces]
    if parcel.rich:
        sections = [{"type": "markdown", "text": parcel.rich}]
    elements = [
        {
            "type": "button",
            "action_id": each.key,
            "value": each.key,
            "text": {"type": "plain_text", "text": each.label, "emoji": False},
            **({"style": each.style} if each.style else {}),
        }
        for each in parcel.buttons
    ]
    return [*sections, {"type": "actions", "elements": elements}]


async def tell_apart(client: SlackClient, conversation: ConversationKey, user: str, text: str) -> None:
    """Show a line to one person only."""
    fields = {"channel": conversation.channel, "user": user, "text": escaped(text), "thread_ts": conversation.thread}
    await client.call("chat.postEphemeral", fields)


def _when(ts: str, client: SlackClient) -> datetime:
    return moment(ts) or client.now()


async def share(client: SlackClient, parcel: Parcel) -> Receipt:
    """Upload the parcel's files and show them in one message."""
    ids = [await _uploaded(client, file) for file in parcel.files]
    files = [{"id": own, "title": file.name} for own, file in zip(ids, parcel.files, strict=True)]
    told = await client.call(
        "files.completeUploadExternal",
        {
            "files": files,
            "channel_id": parcel.conversation.channel,
            "initial_comment": comment_of(parcel) or None,
            "thread_ts": parcel.conversation.thread,
        },
    )
    return await _receipt(client, parcel, ids, tables(told, "files"))


def comment_of(parcel: Parcel) -> str:
    """The captions of all files, which Slack shows above them."""
    captions = [file.caption for file in parcel.files if file.caption]
    text = "\n".join(part for part in (parcel.text, *captions) if part)
    return text if parcel.markup is Markup.MRKDWN else escaped(text)


def shared_at(file: Raw, channel: str) -> str:
    """The ts of the message that shows a file in a channel; empty if there is none yet."""
    for side in ("public", "private"):
        places = table(table(file, "shares"), side).get(channel)
        for each in places if isinstance(places, list) else ():
            if ts := stamp(as_table(each), "ts"):
                return ts
    return ""


async def _uploaded(client: SlackClient, file: OutgoingFile) -> str:
    """Upload a file, which is not visible yet, and return its id."""
    body = FileBody(file)
    with as_upload_errors(body):
        fields = {"filename": file.name, "length": str(file.size), "alt_txt": cut(file.alt, ALT_CHARS - 1) or None}
        told = await client.call("files.getUploadURLExternal", fields)
        url, own = words(told, "upload_url"), words(told, "file_id")
        if not url or not own:
            raise AdapterError("Slack did not say where to put the file")
        await client.upload(url, body.chunks(), file.size)
    return own


async def _receipt(client: SlackClient, parcel: Parcel, ids: Sequence[str], files: Sequence[Raw]) -> Receipt:
    told = {words(file, "id"): file for file in files}
    ts = next((ts for file in files if (ts := shared_at(file, parcel.conversation.channel))), "")
    for wait in SHARED_AFTER if not ts else ():
        await client.clock.sleep(wait)
        try:
            first = table(await client.call("files.info", {"file": ids[0]}), "file")
        except AdapterError:
            break  # the files are uploaded, whatever Slack answers now: sent again they would appear twice
        told[ids[0]] = first
        if ts := shared_at(first, parcel.conversation.channel):
            break
    # Treated as sent, with any id: an unknown message is identified by its file.
    sent, own = moment(ts) or client.now(), ts or ids[0]
    source = SourceMessage(where=parcel.conversation, message_id=own, sent=sent)
    stored = tuple(
        _stored(told.get(file_id, {}), file_ref(file_id, file.mime, source))
        for file_id, file in zip(ids, parcel.files, strict=True)
    )
    return Receipt(message_id=own, sent=sent, stored=stored)


def _stored(file: Raw, ref: MediaRef) -> StoredFile:
    """A file as Slack reports it, which has no forms; the answer to an upload may name no more than its id."""
    return StoredFile(size=count(file, "size"), name=words(file, "name") or None, ref=ref)


class ThreadStatus:
    """Sets a thread's status, and not again while it is still shown."""

    def __init__(self, client: SlackClient) -> None:
        self._client = client
        self._shown: dict[ConversationKey, tuple[str, float]] = {}

    async def show(self, conversation: ConversationKey, status: str) -> None:
        """Set the status; Undeliverable where Slack shows none, which is everywhere but in threads."""
        now = self._client.clock.monotonic()
        self._shown = {where: shown for where, shown in self._shown.items() if shown[1] > now}
        known, _ = self._shown.get(conversation, ("", 0.0))
        status = status[:STATUS_CHARS]
        if conversation.thread is None or known == _STATUS_REFUSED:
            raise Undeliverable("Slack shows no status here")
        if known == status:
            return
        self._shown[conversation] = status, now + STATUS_SECONDS
        fields = {"channel_id": conversation.channel, "thread_ts": conversation.thread, "status": status}
        try:
            await self._client.call("assistant.threads.setStatus", fields)
        except SlackRefused as error:
            self._shown[conversation] = _STATUS_REFUSED, now + STATUS_REFUSED_SECONDS
            raise Undeliverable(f"Slack shows no status here: {error.error}") from error

    def over(self, conversation: ConversationKey) -> None:
        """Forget a status; a message clears it."""
        self._shown.pop(conversation, None)


_STATUS_REFUSED = "\0"


class SlackStreams:
    """Answers shown while they are written, by Slack's own API, in threads of direct messages.

    In a channel Slack shows a growing message to one person only, so drafts there are messages that are edited.
    What was streamed is kept in memory alone: after a restart the answer ends the stream.
    https://docs.slack.dev/reference/methods/chat.startStream
    """

    def __init__(self, client: SlackClient) -> None:
        self._client = client
        self._people: Latest[str, Mapping[str, str]] = Latest(PEOPLE_KEPT)
        """The recipient in each channel of direct messages."""
        self._shown: Latest[str, str] = Latest(STREAMS_KEPT)
        """The text of each stream so far, by its ts."""
        self._refused_until = 0.0

    def met(self, channel: str, user: str, team: str) -> None:
        """Note the person of direct messages."""
        if channel.startswith("D") and user and team:
            self._people.keep(channel, {"recipient_user_id": user, "recipient_team_id": team})

    async def start(self, parcel: Parcel) -> Receipt | None:
        """Begin a stream with a draft; None if Slack streams nothing here."""
        where, text = parcel.conversation, _streamed(parcel)
        recipient = self._people.get(where.channel)
        is_refused = self._client.clock.monotonic() < self._refused_until
        if parcel.kind is not ParcelKind.DRAFT or not may_stream(where) or recipient is None or is_refused:
            return None
        if not 0 < len(text) <= MARKDOWN_CHARS:
            return None
        fields = {"channel": where.channel, "thread_ts": where.thread, **recipient, "markdown_text": text}
        try:
            told = await self._client.call(START, fields)
        except SlackRefused:
            self._refused_until = self._client.clock.monotonic() + REFUSED_SECONDS
            return None
        ts = stamp(told, "ts")
        self._shown.keep(ts, text)
        # Treated as sent: retried because its id is missing, it would appear twice.
        return Receipt(message_id=ts or f"untold-{parcel.key}", sent=moment(ts) or self._client.now())

    async def append(self, ts: str, parcel: Parcel) -> Receipt | None:
        """Add what a draft has more than before; None if the message is no stream."""
        shown, text = self._shown.get(ts), _streamed(parcel)
        if shown is None:
            return None
        rest = text.removeprefix(shown)[:MARKDOWN_CHARS] if text.startswith(shown) else ""
        if rest:  # a text that began differently is corrected by the answer
            fields = {"channel": parcel.conversation.channel, "ts": ts, "markdown_text": rest}
            try:
                await self._client.call(APPEND, fields)
            except SlackRefused:  # Slack ends a stream by itself after some minutes
                del self._shown[ts]
                return None
            self._shown[ts] = shown + rest
        return Receipt(message_id=ts, sent=self._client.now())

    async def stop(self, where: ConversationKey, ts: str) -> None:
        """End a stream, if the message is one: only then can it be edited or deleted.

        Its key is no parcel's, so that it is neither taken for the answer nor for a later draft.
        """
        if ts not in self._shown and not may_stream(where):
            return
        self._shown.pop(ts, None)
        fields = {"channel": where.channel, "ts": ts, "metadata": metadata(f"stream-{ts}")}
        try:
            await self._client.call(STOP, fields)
        except SlackRefused:
            return  # it was none, or has ended


def may_stream(where: ConversationKey) -> bool:
    """Whether Slack streams messages there to all who are in it."""
    return where.thread is not None and where.channel.startswith("D")


def _streamed(parcel: Parcel) -> str:
    return parcel.rich.removesuffix(UNFINISHED)


def has_nothing_to_edit(error: SlackRefused) -> bool:
    """Whether the message to edit is deleted or no longer editable."""
    return error.error in _NOTHING_TO_EDIT


def refusal(error: SlackRefused, parcel: Parcel) -> AdapterError:
    """A refused call as a domain error."""
    if parcel.rich and error.error in _NO_BLOCKS:
        return MarkupRefused(f"Slack cannot read the markdown block: {error.error}")
    if error.error == "missing_scope":
        advice = f"give the app the scope {error.needed or 'it lacks'} and install it again"
        return Undeliverable(f"Slack will not deliver it: {advice}")
    if error.error in _CLOSED_THREAD and parcel.conversation.thread is not None:
        return PlaceClosed("the thread is gone")
    what = "the file" if parcel.files else "it"
    return Undeliverable(_SENTENCES.get(error.error) or f"Slack will not deliver {what}: {error.error}")
