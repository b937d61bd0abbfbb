"""Send parcels, each by one visible call: text with its styles, files and edits; and calls that show something else."""

from collections.abc import Sequence
from datetime import timedelta
from html.parser import HTMLParser

from belino.adapters.signal.authors import SignalAccount, place_of
from belino.adapters.signal.client import SignalClient
from belino.adapters.signal.errors import NO_METHOD, SignalRefused, refusal
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


async def send(
    client: SignalClient, parcel: Parcel, *, me: SignalAccount, paths: Sequence[str] | None, timer: int = 0
) -> tuple[Receipt, tuple[Raw, ...]]:
    """Send one message or edit, and what Signal says of each recipient; `paths`: files that the daemon itself reads."""
    params = {**place_of(parcel.conversation.channel), **_text(parcel)}
    if parcel.edits:
        params["editTimestamp"] = named(parcel.edits, me)[0]
    elif (target := named(parcel.reply_to or "", me))[0]:
        params |= {"quoteTimestamp": target[0], "quoteAuthor": target[1], "quoteMessage": parcel.quoted}
    if any(file.send_as is SendAs.VOICE for file in parcel.files):
        params["voiceNote"] = True
    if paths:
        params["attachments"] = paths
    try:
        told = as_table(await client.call("send", params, parcel.files if paths is None else ()))
    except SignalRefused as error:
        raise refusal(error, edits=bool(parcel.edits)) from error
    if not (stamp := count(told, "timestamp")):
        raise Unanswered("signal-cli took the message and did not say under which time")
    now = client.clock.now()
    expires = now + timedelta(seconds=timer) if timer else None
    receipt = Receipt(message_id=parcel.edits or str(stamp), sent=moment(stamp, now), expires=expires)
    return receipt, tables(told, "results")


async def act(client: SignalClient, method: str, conversation: ConversationKey, **params: object) -> None:
    """Make a call that shows something else than a message."""
    try:
        await client.call(method, {**place_of(conversation.channel), **params})
    except SignalRefused as error:
        if error.code == NO_METHOD:
            raise Undeliverable(f"this signal-cli has no {method}") from error
        refused = refusal(error)
        if isinstance(refused, Undeliverable):
            raise refused from error
        raise AdapterError(f"signal-cli did not carry out {method}: {error.said or error.code}") from error


def named(message_id: str, me: SignalAccount) -> tuple[int, str]:
    """The time and the author of a message, by its id; a time alone is of ours. 0 for anything else."""
    stamp, _, author = message_id.partition(".")
    is_time = stamp.isascii() and stamp.isdigit() and len(stamp) < 16
    return (int(stamp), author or me.number or me.uuid) if is_time else (0, "")


def _text(parcel: Parcel) -> dict[str, object]:
    text, styles = styled(parcel.text) if parcel.markup is Markup.HTML else (parcel.text, ())
    return {key: told for key, told in (("message", text), ("textStyle", styles)) if told}


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
