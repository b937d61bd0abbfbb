"""What was said before: one call for a channel, one for a thread, and one to find a parcel of ours again."""

import re
from collections.abc import Sequence
from datetime import timedelta

from belino.adapters.slack.calls import Calls, Refused
from belino.adapters.slack.pacing import Pacing
from belino.adapters.slack.raw import moment, stamp
from belino.adapters.slack.send import key_of
from belino.adapters.slack.upload import comment_of
from belino.domain.message import ConversationKey
from belino.domain.reply import OutgoingFile, Parcel, Receipt
from belino.net.raw import Raw, count, table, tables, words

HISTORY, REPLIES = "conversations.history", "conversations.replies"
MOST_MESSAGES = 200
MOST_AT_ONCE = 999
"""The most that Slack gives in one answer, where one has to do."""
SKEW = timedelta(minutes=5)
"""So far Slack's clock may be behind ours."""

_LINK = re.compile(r"<[^<>|]*\|([^<>]*)>")
_EMOJI = re.compile(r":[a-z0-9_+'-]+:")
_NO_SUCH_THREAD = frozenset({"thread_not_found", "message_not_found"})


class Past:
    """Asks for what was said, at Slack's pace: some apps are given fifteen messages a minute, and no more."""

    def __init__(self, calls: Calls, pacing: Pacing) -> None:
        self._calls = calls
        self._pacing = pacing

    async def channel(self, channel: str, *, latest: str | None = None, limit: int = MOST_MESSAGES) -> Sequence[Raw]:
        """The newest messages, oldest first."""
        return _in_order(
            await self._ask(
                HISTORY, {"channel": channel, "latest": latest, "limit": str(max(1, min(limit, MOST_MESSAGES)))}
            )
        )

    async def thread(self, channel: str, thread: str) -> Sequence[Raw]:
        """The first message and the replies, oldest first; nothing if there is no such thread."""
        try:
            told = await self._ask(REPLIES, {"channel": channel, "ts": thread, "limit": str(MOST_AT_ONCE)})
        except Refused as error:
            if error.error in _NO_SUCH_THREAD:
                return ()
            raise
        return _in_order(told)

    async def since(
        self, channel: str, thread: str, oldest: str, cursor: str | None = None
    ) -> tuple[Sequence[Raw], str | None]:
        """A page of what was said after `oldest` in a channel, or in one of its threads, and where the next begins."""
        fields: dict[str, object] = {"channel": channel, "oldest": oldest, "cursor": cursor}
        if thread:
            told = await self._ask(REPLIES, {**fields, "ts": thread, "limit": str(MOST_AT_ONCE)})
        else:
            told = await self._ask(HISTORY, {**fields, "limit": str(MOST_MESSAGES)})
        after = [message for message in _in_order(told) if float(stamp(message, "ts")) > float(oldest)]
        return after, words(table(told, "response_metadata"), "next_cursor") or None

    async def find(self, parcel: Parcel, own_user: str, own_bot: str) -> Receipt | None:
        """The message a parcel became: by the key it carries; files carry none, and are known by name and size."""
        fields: dict[str, object] = {
            "channel": parcel.conversation.channel,
            # Nothing from before: a thread is told from its beginning, and might be told to its end by no one call.
            "oldest": None if parcel.created is None else f"{(parcel.created - SKEW).timestamp():.6f}",
            "include_all_metadata": "true",
            "limit": str(MOST_AT_ONCE),
        }
        if (thread := parcel.conversation.thread) is None:
            told = await self._ask(HISTORY, fields)
        else:
            told = await self._ask(REPLIES, {**fields, "ts": thread})
        for message in reversed(_in_order(told)):
            ours = words(message, "user") == own_user or bool(own_bot and words(message, "bot_id") == own_bot)
            if ours and _is_parcel(message, parcel):
                ts = stamp(message, "ts")
                return Receipt(message_id=ts, sent=moment(ts) or self._calls.now())
        return None

    async def _ask(self, method: str, fields: dict[str, object]) -> Raw:
        return await self._pacing.call(method, "", lambda: self._calls.call(method, fields))


def in_conversation(message: Raw, conversation: ConversationKey) -> bool:
    """Whether a message of a thread's answer is of that thread: its first message, or a reply."""
    ts, thread = stamp(message, "ts"), stamp(message, "thread_ts")
    return conversation.thread in (ts, thread)


def _is_parcel(message: Raw, parcel: Parcel) -> bool:
    if not parcel.files:
        return key_of(message) == parcel.key
    kept, wanted = tables(message, "files"), parcel.files
    if len(kept) != len(wanted) or _as_said(words(message, "text")) != _as_said(comment_of(parcel)):
        return False
    return all(_is_file(one, other) for one, other in zip(kept, wanted, strict=True))


def _is_file(kept: Raw, sent: OutgoingFile) -> bool:
    """Slack may tidy up a name, never a title; and it takes out of pictures where they were made."""
    size = count(kept, "size") or 0
    fits = 0 < size <= sent.size if sent.mime.startswith("image/") else size == sent.size
    return fits and sent.name in (words(kept, "title"), words(kept, "name"))


def _as_said(text: str) -> str:
    """The letters of a text: Slack writes addresses as links, and emoji by their names."""
    text = _EMOJI.sub("", _LINK.sub(r"\1", text))
    return "".join(character for character in text if character.isalnum())


def _in_order(told: Raw) -> list[Raw]:
    messages = [message for message in tables(told, "messages") if stamp(message, "ts")]
    return sorted(messages, key=lambda message: float(stamp(message, "ts")))
