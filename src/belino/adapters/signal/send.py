"""Send parcels, each by one visible call: text with its styles, files and edits; delete, react and show typing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from html.parser import HTMLParser

from belino.adapters.signal.authors import GROUP, SignalAccount
from belino.adapters.signal.client import SignalClient
from belino.adapters.signal.errors import NO_METHOD, SignalRefused, edit_refusal, refusal
from belino.adapters.signal.parse import moment
from belino.domain.errors import AdapterError, Unanswered, Undeliverable
from belino.domain.limits import Markup, SendAs, Unit
from belino.domain.message import ConversationKey
from belino.domain.reply import Parcel, Receipt
from belino.net.json_fields import Raw, as_table, count, tables

STYLES = {
    "b": "BOLD",
    "i": "ITALIC",
    "s": "STRIKETHROUGH",
    "code": "MONOSPACE",
    "pre": "MONOSPACE",
    "tg-spoiler": "SPOILER",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage:
    """The receipt of a message, and what Signal says of each recipient."""

    receipt: Receipt
    results: tuple[Raw, ...]


async def send(
    client: SignalClient,
    parcel: Parcel,
    *,
    me: SignalAccount,
    paths: Sequence[str] | None,
    quoted: str = "",
    timer: int = 0,
    edits: str = "",
) -> SentMessage:
    """Send one message; `paths` are its files where the daemon reads them itself, `edits` names an edited one."""
    params = {**place_of(parcel.conversation), **_text(parcel)}
    if edits:
        params["editTimestamp"] = named(edits, me)[0]
    elif parcel.reply_to is not None and (target := named(parcel.reply_to, me))[0]:
        params |= {"quoteTimestamp": target[0], "quoteAuthor": target[1], "quoteMessage": quoted}
    if any(file.send_as is SendAs.VOICE for file in parcel.files):
        params["voiceNote"] = True
    try:
        if parcel.files and paths is None:
            told = as_table(await client.upload("send", params, parcel.files))
        else:
            told = as_table(await client.call("send", {**params, "attachments": paths} if paths else params))
    except SignalRefused as error:
        raise (edit_refusal if edits else refusal)(error) from error
    if not (stamp := count(told, "timestamp")):
        raise Unanswered("signal-cli took the message and did not say under which time")
    sent = moment(stamp, client.clock.now())
    expires = client.clock.now() + timedelta(seconds=timer) if timer else None
    receipt = Receipt(message_id=edits or str(stamp), sent=sent, expires=expires)
    return SentMessage(receipt=receipt, results=tables(told, "results"))


async def delete(client: SignalClient, conversation: ConversationKey, message_id: str, me: SignalAccount) -> None:
    """Delete a message of ours for everyone."""
    stamp, _ = named(message_id, me)
    await _act(client, "remoteDelete", {**place_of(conversation), "targetTimestamp": stamp})


async def react(
    client: SignalClient, conversation: ConversationKey, message_id: str, emoji: str, *, me: SignalAccount, added: bool
) -> None:
    """Set or remove our reaction; Signal has one for each person, and a later one replaces it."""
    stamp, author = named(message_id, me)
    if not stamp:
        raise Undeliverable("this is no message that Signal knows")
    params = {"emoji": emoji, "targetAuthor": author, "targetTimestamp": stamp, "remove": not added}
    await _act(client, "sendReaction", {**place_of(conversation), **params})


async def show_typing(client: SignalClient, conversation: ConversationKey) -> None:
    """Show typing, which ends after 15 seconds or with the message."""
    await _act(client, "sendTyping", place_of(conversation))


async def mark_read(client: SignalClient, sender: str, stamp: int) -> None:
    await _act(client, "sendReceipt", {"recipient": sender, "targetTimestamp": stamp, "type": "read"})


async def _act(client: SignalClient, method: str, params: Mapping[str, object]) -> None:
    try:
        await client.call(method, params)
    except SignalRefused as error:
        if error.code == NO_METHOD:
            raise Undeliverable(f"this signal-cli has no {method}") from error
        refused = refusal(error)
        if isinstance(refused, Undeliverable):
            raise refused from error
        raise AdapterError(f"signal-cli did not carry out {method}: {error.said or error.code}") from error


def place_of(conversation: ConversationKey) -> dict[str, object]:
    """The fields that name a group or a person."""
    channel = conversation.channel
    if channel.startswith(GROUP):
        return {"groupId": channel.removeprefix(GROUP)}
    return {"recipient": [channel]}


def named(message_id: str, me: SignalAccount) -> tuple[int, str]:
    """The time and the author of a message, by its id; a time alone is of ours. 0 for anything else."""
    stamp, _, author = message_id.partition(".")
    is_time = stamp.isascii() and stamp.isdigit() and len(stamp) < 16
    return (int(stamp), author or me.number or me.uuid) if is_time else (0, "")


def _text(parcel: Parcel) -> dict[str, object]:
    if parcel.markup is not Markup.HTML:
        return {"message": parcel.text} if parcel.text else {}
    text, styles = styled(parcel.text)
    return ({"message": text} if text else {}) | ({"textStyle": list(styles)} if styles else {})


def styled(html: str) -> tuple[str, tuple[str, ...]]:
    """The text of a few tags, and its styles as `start:length:STYLE`, in UTF-16 units."""
    reader = _StyleReader()
    reader.feed(html)
    reader.close()
    return reader.text, tuple(reader.styles)


class _StyleReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.styles: list[str] = []
        self._open: list[tuple[str, int, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append((tag, Unit.UTF16.length(self.text), dict(attrs).get("href") or ""))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1][0] != tag:
            return
        _, start, address = self._open.pop()
        length = Unit.UTF16.length(self.text) - start
        within = any(outer == "pre" for outer, _, _ in self._open)
        if tag in STYLES and length and not within:
            self.styles.append(f"{start}:{length}:{STYLES[tag]}")
        if tag == "a" and address and address not in self.text[-len(address) :]:
            self.text += f" ({address})"
