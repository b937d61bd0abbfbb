"""Send parcels, each by one call of at most five messages: by a reply token while one is valid, else as a push."""

import re
from collections.abc import Sequence
from dataclasses import replace
from uuid import NAMESPACE_URL, uuid5

from belino.adapters.line.authors import is_person
from belino.adapters.line.client import LineClient, LineRefused
from belino.adapters.line.cursor import RepliedParcels
from belino.adapters.line.hooks import ReplyToken, ReplyTokens
from belino.domain.errors import (
    AdapterError,
    ConfigError,
    MediaError,
    RateLimited,
    TogetherRefused,
    Unauthorized,
    Undeliverable,
    Unreached,
)
from belino.domain.limits import SendAs
from belino.domain.message import ConversationKey
from belino.domain.ports import AdapterContext
from belino.domain.reply import OutgoingFile, Parcel, ParcelKind, Receipt
from belino.domain.units import format_size
from belino.net.json_fields import Raw, tables, words

MESSAGES = 5
"""The most messages of one call."""
STICKER_NAME = r"sticker-(\d{1,20})-(\d{1,20})\.png"
LOADING_SECONDS = 5
QUOTA_USED_UP = (
    "this month's messages of the LINE account are used up; choose a larger plan in the LINE Official Account Manager, "
    "or send it again next month. Answers within a minute are free and still arrive"
)
_MESSAGE = re.compile(r"messages?\[(\d)\]")
_NOT_DONE = (RateLimited, Unreached, LineRefused, Unauthorized)
"""What says that LINE has shown nothing."""


class LineSender:
    """Sends parcels. A push carries a key, under which LINE shows it once; a reply does not, and is free."""

    def __init__(
        self, client: LineClient, context: AdapterContext, tokens: ReplyTokens, replied: RepliedParcels
    ) -> None:
        self._client = client
        self._context = context
        self._tokens = tokens
        self._replied = replied
        self._pushed: set[str] = set()
        """The keys of parcels whose push was tried: a reply would be a second call, under no key."""
        self._since = client.now()
        """Older parcels may have been pushed before we started."""

    async def send(self, parcel: Parcel) -> Receipt:
        """Send a parcel; a file that LINE refuses alone is sent as a link."""
        try:
            return await self._sent(parcel)
        except LineRefused as error:
            if len(parcel.files) != 1 or parcel.files[0].send_as is SendAs.DOCUMENT or error.is_quota:
                raise refusal(error, parcel) from error
        return await self.send(replace(parcel, files=(replace(parcel.files[0], send_as=SendAs.DOCUMENT),)))

    async def _sent(self, parcel: Parcel) -> Receipt:
        messages = await self._messages(parcel)
        if (token := self._token_for(parcel)) is not None:
            receipt = await self._reply(parcel, token, messages)
            if receipt is not None:
                return receipt
        return await self._push(parcel, messages)

    def _token_for(self, parcel: Parcel) -> ReplyToken | None:
        """A token to reply with; only for a parcel that no call was made for."""
        is_new = parcel.created is None or parcel.created >= self._since
        if not is_new or not self._replied.is_kept or parcel.key in self._pushed or parcel.key in self._replied:
            return None
        return self._tokens.take(parcel.conversation.channel, parcel.reply_to)

    async def _reply(self, parcel: Parcel, token: ReplyToken, messages: Sequence[Raw]) -> Receipt | None:
        """Reply; None if the token is no longer valid. What is sent this way is on disk before, as it has no key."""
        await self._replied.add(parcel.key)
        fields = {"replyToken": token.token, "messages": messages}
        try:
            told = await self._client.post("message", "reply", fields=fields)
        except _NOT_DONE as error:
            await self._replied.drop(parcel.key)
            if isinstance(error, LineRefused) and "reply token" in error.description.lower():
                return None
            self._tokens.put_back(token)
            raise
        return self._receipt(parcel, told)

    async def _push(self, parcel: Parcel, messages: Sequence[Raw]) -> Receipt:
        """Push under the parcel's key; if it was accepted before, LINE says which messages it became."""
        self._pushed.add(parcel.key)
        fields = {"to": parcel.conversation.channel, "messages": messages}
        try:
            told = await self._client.post("message", "push", fields=fields, retry_key=retry_key(parcel.key))
        except LineRefused as error:
            told = error.told
            if error.status != 409:
                self._pushed.discard(parcel.key)
                raise
        self._pushed.discard(parcel.key)
        return self._receipt(parcel, told)

    def _receipt(self, parcel: Parcel, told: Raw) -> Receipt:
        sent = tables(told, "sentMessages")
        for message in sent:
            self._tokens.note_quote(parcel.conversation.channel, words(message, "id"), words(message, "quoteToken"))
        ids = [own for message in sent if (own := words(message, "id"))]
        # Treated as sent: retried because its id is missing, it would appear twice.
        ids = ids or [f"untold-{parcel.key}"]
        return Receipt(message_id=ids[0], sent=self._client.now(), also=tuple(ids[1:]))

    async def _messages(self, parcel: Parcel) -> list[Raw]:
        """The messages of a parcel: each file, then the text."""
        if parcel.kind is ParcelKind.EDIT:
            raise Undeliverable("LINE does not let an account change a message")
        made = [await self._of_file(file) for file in parcel.files]
        made += [{"type": "text", "text": parcel.text}] if parcel.text else []
        if not 0 < len(made) <= MESSAGES:
            raise Undeliverable(f"LINE takes 1 to {MESSAGES} messages in one call, and this has {len(made)}")
        return self._quoting(made, parcel)

    def _quoting(self, made: list[Raw], parcel: Parcel) -> list[Raw]:
        """The same, where a text or sticker quotes the message that is answered."""
        token = self._tokens.quote(parcel.conversation.channel, parcel.reply_to)
        place = next((at for at, each in enumerate(made) if each["type"] in ("text", "sticker")), None)
        if token and place is not None:
            made[place] = {**made[place], "quoteToken": token}
        return made

    async def _of_file(self, file: OutgoingFile) -> Raw:
        """A file as LINE shows it, by a link that it fetches; what it does not show as a line with the link."""
        try:
            return await self._shown(file) or await self._link(file)
        except ConfigError as error:
            raise Undeliverable(str(error)) from error

    async def _shown(self, file: OutgoingFile) -> Raw | None:
        match file.send_as:
            case SendAs.PHOTO | SendAs.VIDEO:
                return await self._previewed(file)
            case SendAs.AUDIO | SendAs.VOICE if file.seconds:
                milliseconds = max(1, round(file.seconds * 1_000))
                url = await self._context.publish(file)
                return {"type": "audio", "originalContentUrl": url, "duration": milliseconds}
            case SendAs.STICKER if named := re.fullmatch(STICKER_NAME, file.name):
                return {"type": "sticker", "packageId": named[1], "stickerId": named[2]}
        return None

    async def _previewed(self, file: OutgoingFile) -> Raw | None:
        """A picture or video with its preview; None if none can be made."""
        try:
            preview = await self._context.publish_preview(file)
        except MediaError:
            return None
        url = await self._context.publish(file)
        kind = "image" if file.send_as is SendAs.PHOTO else "video"
        return {"type": kind, "originalContentUrl": url, "previewImageUrl": preview}

    async def _link(self, file: OutgoingFile) -> Raw:
        url = await self._context.publish(file)
        return {"type": "text", "text": f"{file.name} ({format_size(file.size)})\n{url}"}


async def show_loading(client: LineClient, conversation: ConversationKey) -> None:
    """Show the loading animation, which a message ends: https://developers.line.biz/en/docs/messaging-api/use-loading-indicator/."""
    if not is_person(conversation.channel):
        raise Undeliverable("LINE shows the loading animation in the chat with one person only")
    fields = {"chatId": conversation.channel, "loadingSeconds": LOADING_SECONDS}
    try:
        await client.post("chat", "loading", "start", fields=fields)
    except LineRefused as error:
        raise Undeliverable(f"LINE shows no loading animation here: {error.description}") from error


def retry_key(key: str) -> str:
    """The UUID that stands for a parcel's key: https://developers.line.biz/en/docs/messaging-api/retrying-api-request/."""
    return str(uuid5(NAMESPACE_URL, f"belino:{key}"))


def refusal(error: LineRefused, parcel: Parcel) -> AdapterError:
    """A refused call as a domain error."""
    if error.is_quota:
        return Undeliverable(QUOTA_USED_UP)
    why = f"LINE will not deliver it: {error.description or error.status}"
    if len(parcel.files) > 1:
        return TogetherRefused(why, culprit=_culprit(error.told, parcel))
    return Undeliverable(why)


def _culprit(told: Raw, parcel: Parcel) -> int | None:
    """The place of the only file that an error names."""
    places = {int(found[1]) for each in tables(told, "details") if (found := _MESSAGE.search(words(each, "property")))}
    place = places.pop() if len(places) == 1 else -1
    return place if 0 <= place < len(parcel.files) else None
