"""Bot API client: calls with the bot's token, the errors of refused calls, and the pace of sending."""

import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from belino.domain.errors import (
    AdapterError,
    ListeningRefused,
    MarkupRefused,
    MediaTooLarge,
    PlaceClosed,
    RateLimited,
    TogetherRefused,
    Unanswered,
    Unauthorized,
    Undeliverable,
    Unreached,
)
from belino.domain.limits import Markup, SendAs
from belino.domain.ports import AdapterContext, Clock, HttpAnswer
from belino.domain.reply import SLOWEST_BYTES_A_SECOND, Parcel, ParcelKind
from belino.net.client import LONGEST_WAIT, error_for, header, http_date
from belino.net.json_fields import Raw, from_json, line, real, table, whole
from belino.net.redact import redact
from belino.net.rest import Form, RateLimits, as_upload_errors

if TYPE_CHECKING:
    from belino.adapters.telegram import Config

API = "Bot API"

CALL_SECONDS = 30.0
# A hundred updates of maximum length are about 4 MB.
ANSWER_BYTES = 32 * 1024 * 1024

# Statuses that count even without JSON: proxies refuse with these too.
_TRUSTED = frozenset({401, 413, 429})

_RETRY_AFTER = re.compile(r"retry after (\d{1,9})\b")

T = TypeVar("T")

ALL_PER_SECOND = 30
"""The limit of a bot by Telegram's FAQ."""
SECOND = 1.0

UNKNOWN_METHOD = "method not found"
"""Messages of servers that are older than a method."""

# Telegram could not process it as a photo; as a document it accepts any file.
_NO_PHOTO = (
    "photo_invalid_dimensions",
    "photo_save_file_invalid",
    "photo_ext_invalid",
    "photo_content_type_invalid",
    "image_process_failed",
    "too big for a photo",
)
_NOTHING_TO_EDIT = (
    "message to edit not found",
    "message can't be edited",
    "no text in the message to edit",
    "message_id_invalid",
    "message_edit_time_expired",
    "message_author_required",
    UNKNOWN_METHOD,
)
# Invalid tags, and those that Telegram finds too many, too long or misplaced.
_BAD_MARKUP = ("can't parse entities", "entities_", "entity_")
# Of rich messages, as seen by others: RICH_MESSAGE_EMAIL_INVALID, RICH_VALIDATE_CTOR_NOT_ALLOWED.
_NO_RICH = ("rich", "can't parse", "is too long", "is empty")
# Telegram promises to send without the reply, but not across topics and chats.
_NO_QUESTION = (
    "message to be replied not found",
    "replied message not found",
    "reply message not found",
    "reply_message_id_invalid",
)
# One of the files is refused, or they are too many for one call.
_ITEM = re.compile(r"message #(\d{1,2})\b")
_NO_ALBUM = (
    "failed to send message #",
    "group send failed",
    "in the album",
    "request entity too large",
    UNKNOWN_METHOD,
)
_SENTENCES = {
    "voice_messages_forbidden": "this person takes no voice messages",
    "is too big": "Telegram takes no file that large",
    "request entity too large": "Telegram takes no file that large",
    "wrong file identifier": "Telegram could not read the file",
    "wrong type of the web page content": "Telegram could not read the file",
    "file must be non-empty": "the file is empty",
    "topic_closed": "the topic is closed",
    "topic_deleted": "the topic is gone",
    "message thread not found": "the topic is gone",
}

_CLOSED_TOPIC = ("topic_closed", "topic_deleted", "message thread not found")


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramAnswer:
    """The result of a call, and the server's time."""

    result: object
    date: datetime | None


class TelegramClient:
    """The Bot API calls of one bot."""

    def __init__(self, context: AdapterContext, config: "Config") -> None:
        self._http = context.http
        self._clock = context.clock
        self._api_url = config.api_url.rstrip("/")
        self._token = config.token
        self._works = partial(context.report, API)

    def now(self) -> datetime:
        """The local time, for answers without a date."""
        return self._clock.now()

    async def call(self, method: str, fields: Mapping[str, object] | None = None, *, wait: float = 0.0) -> object:
        """Call a method; `wait` is the long-polling timeout."""
        return (await self.ask(method, fields, wait=wait)).result

    async def ask(
        self, method: str, fields: Mapping[str, object] | None = None, *, wait: float = 0.0
    ) -> TelegramAnswer:
        url = self._url("bot", method)
        async with self._http.request("POST", url, json=dict(fields or {}), timeout=CALL_SECONDS + wait) as answer:
            return await self._answered(method, answer)

    async def look(self, method: str, fields: Mapping[str, object] | None = None, *, wait: float = 0.0) -> object:
        """Call a method that changes nothing: without an answer nothing has happened."""
        try:
            return await self.call(method, fields, wait=wait)
        except OverlongAnswer:
            raise
        except (OutOfOrder, Unanswered) as error:
            raise Unreached(str(error)) from error

    async def upload(self, method: str, form: Form) -> object:
        """Call a method with files."""
        seconds = CALL_SECONDS + form.length / SLOWEST_BYTES_A_SECOND
        with as_upload_errors(form):
            async with self._http.request(
                "POST", self._url("bot", method), headers=form.headers, body=form.chunks(), timeout=seconds
            ) as answer:
                return (await self._answered(method, answer)).result

    async def _answered(self, method: str, answer: HttpAnswer) -> TelegramAnswer:
        try:
            body = await answer.read(ANSWER_BYTES)
        except MediaTooLarge:
            raise OverlongAnswer(f"Telegram's answer to {method} is over {ANSWER_BYTES} bytes") from None
        told = from_json(body)  # a proxy's error page is not JSON: its status is enough
        if told.get("ok") is not True or "result" not in told:
            raise self._error(method, answer, told)
        self._works()
        return TelegramAnswer(result=told["result"], date=http_date(header(answer.headers, "date")))

    def file(self, path: str, headers: Mapping[str, str]) -> AbstractAsyncContextManager[HttpAnswer]:
        """GET a file that getFile named."""
        return self._http.request("GET", self._url("file/bot", path), headers=headers, timeout=CALL_SECONDS)

    def _url(self, what: str, rest: str) -> str:
        # The token is in the path. Only this line writes it, and nothing here is logged or raised.
        return f"{self._api_url}/{what}{quote(self._token.reveal(), safe=':')}/{quote(rest)}"

    def _error(self, method: str, answer: HttpAnswer, told: Raw) -> AdapterError:
        code = whole(told, "error_code") or answer.status
        description = redact(line(told, "description"))
        parameters = table(told, "parameters")
        wait = _wait(parameters, description)
        if code == 429 and wait is not None:
            wait = min(max(wait, 0.0), LONGEST_WAIT)
            return RateLimited(f"Telegram asks to wait {wait:g} seconds before {method}", retry_after=wait)
        if 400 <= code < 500 and code not in _TRUSTED and told.get("ok") is not False:
            # Telegram refuses in JSON: this is a proxy's page, and the failure may be temporary.
            passing = NoSuchPage if code == 404 else OutOfOrder
            return passing(f"something before Telegram answered {method} with status {code}")
        if code == 401 or (code == 404 and UNKNOWN_METHOD not in description.lower()):
            unknown = NotFound if code == 404 else Unauthorized
            return unknown("Telegram does not know this bot token; take the right one from @BotFather")
        if code == 409:
            return _conflict(description)
        if code < 400:
            unread = f"Telegram's answer to {method} cannot be read"
            # Not a refusal: the call may have been carried out.
            return AdapterError(unread) if code >= 300 or told.get("ok") is False else Unanswered(unread)
        if code == 429 or code >= 500:
            error = error_for(code, answer.headers, now=self._clock.now())
            return error if isinstance(error, RateLimited) else OutOfOrder(f"the platform answered with status {code}")
        return TelegramRefused(
            f"Telegram refused {method}: {description or f'status {code}'}",
            code=code,
            description=description,
            migrate_to=whole(parameters, "migrate_to_chat_id"),
        )


def _wait(parameters: Raw, description: str) -> float | None:
    """The wait that Telegram asks for, in seconds; to the millisecond where given."""
    if (precise := real(parameters, "adaptive_retry")) is not None:
        return precise / 1000
    if (seconds := real(parameters, "retry_after")) is not None:
        return seconds
    said = _RETRY_AFTER.search(description)
    return float(said[1]) if said else None


def _conflict(description: str) -> "PollConflict":
    if "webhook" in description.lower():
        return PollConflict(
            "a webhook is set for this bot, and Telegram hands out updates only one way; if the program behind it is "
            'no longer used, take over from it, else set mode = "webhook"',
            removable=True,
        )
    return PollConflict("another program listens with this bot's token; stop it, or give belino a bot of its own")


class SendPacing:
    """Paces visible calls: a limit per second in all, and no calls to a chat that Telegram asked to wait with.

    A refusal does not say whether it is the chat's limit or the bot's; our calls of the last second decide.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._limits = RateLimits("Telegram", clock)
        self._calls: deque[tuple[float, str]] = deque()
        """The calls of the last second, and those waiting, in order."""

    async def call(self, chat: str, work: Callable[[], Awaitable[T]]) -> T:
        """Make a visible call. RateLimited, and no call, while the chat is closed."""
        await self._turn(chat)
        try:
            return await work()
        except RateLimited as error:
            self._limits.close(chat, error.retry_after, everything=self._were_all_too_many(chat))
            raise

    async def _turn(self, chat: str) -> None:
        self._limits.check(chat)
        now = self._clock.monotonic()
        while self._calls and self._calls[0][0] <= now - SECOND:
            self._calls.popleft()
        crowded = len(self._calls) >= ALL_PER_SECOND
        at = self._calls[-ALL_PER_SECOND][0] + SECOND if crowded else now
        self._calls.append((at, chat))
        if at > now:
            await self._clock.sleep(at - now)
            self._limits.check(chat)  # an earlier call may have been asked to wait

    def _were_all_too_many(self, chat: str) -> bool:
        """Whether the chat received little in the last second, and all chats together much."""
        now = self._clock.monotonic()
        lately = [called for at, called in self._calls if now - SECOND < at <= now]
        return lately.count(chat) <= 1 and len(lately) >= ALL_PER_SECOND // 2


class TelegramRefused(AdapterError):
    """Telegram refused a call; the meaning depends on the call."""

    def __init__(self, message: str, *, code: int, description: str, migrate_to: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.description = description
        self.migrate_to = migrate_to
        """The new id of the chat, if it moved."""


class NotFound(Unauthorized):
    """Telegram does not know the token; a minimal server answers the same for a method it lacks."""


class MethodUnknown(AdapterError):
    """The server is older than a method for which there is a substitute."""


class OutOfOrder(AdapterError):
    """Telegram, or a proxy in front of it, fails."""


class NoSuchPage(OutOfOrder):
    """A 404 without Telegram's JSON: from a proxy, or from a minimal server that lacks the method."""


class PollConflict(ListeningRefused):
    """Another program receives this bot's updates."""


class OverlongAnswer(Unanswered):
    """Telegram's answer exceeds our limit."""


def refuses_photo(error: TelegramRefused, parcel: Parcel) -> bool:
    """Whether the pictures can be sent as documents, and no single one is named as refused."""
    pictures = any(file.send_as is SendAs.PHOTO for file in parcel.files)
    return pictures and _says(error, *_NO_PHOTO) and _culprit(error, parcel) is None


def misses_question(error: TelegramRefused, parcel: Parcel) -> bool:
    """Whether it can be sent without the reply."""
    return parcel.reply_to is not None and _says(error, *_NO_QUESTION)


def is_unchanged(error: TelegramRefused) -> bool:
    """Whether a message already has the text of the edit."""
    return _says(error, "message is not modified", "message_not_modified")


def is_gone(error: TelegramRefused) -> bool:
    """Whether the message to delete or to react to is deleted."""
    return _says(error, "message to delete not found", "message to react not found")


def refuses_reaction(error: TelegramRefused) -> bool:
    """Whether the chat does not have the emoji, or does not let bots use it."""
    return _says(error, "reaction_invalid", "reactions_too_many", "invalid reaction")


def has_nothing_to_edit(error: TelegramRefused) -> bool:
    """Whether the message to edit is deleted, was left behind in a group that moved, or cannot be edited."""
    return error.migrate_to is not None or _says(error, *_NOTHING_TO_EDIT)


def refusal(error: TelegramRefused, parcel: Parcel) -> AdapterError:
    """A refused call as a domain error."""
    if (parcel.rich or parcel.kind is ParcelKind.DRAFT) and _says(error, UNKNOWN_METHOD):
        return MethodUnknown("this Bot API server is older than the method")
    if parcel.rich and _says(error, *_NO_RICH):
        return MarkupRefused("Telegram cannot read the rich message")
    if parcel.markup is Markup.HTML and _says(error, *_BAD_MARKUP):
        return MarkupRefused("Telegram cannot read the markup")
    if len(parcel.files) > 1 and _says(error, "too many requests"):
        # Reported for one item; others of the album have been seen to arrive all the same.
        return Unanswered("Telegram had enough in the middle of the album")
    if len(parcel.files) > 1 and (error.code == 413 or _says(error, *_NO_ALBUM)):
        why = f"Telegram will not take the album: {error.description or error.code}"
        return TogetherRefused(why, culprit=_culprit(error, parcel))
    if error.code == 413:
        return Undeliverable("Telegram takes no file that large")
    for words, sentence in _SENTENCES.items():
        if _says(error, words):
            return (PlaceClosed if words in _CLOSED_TOPIC else Undeliverable)(sentence)
    return Undeliverable(f"Telegram will not deliver it: {error.description or error.code}")


def _culprit(error: TelegramRefused, parcel: Parcel) -> int | None:
    """The place of the album's item that the error names."""
    named = _ITEM.search(error.description)
    place = int(named[1]) - 1 if named else -1
    return place if len(parcel.files) > 1 and 0 <= place < len(parcel.files) else None


def _says(error: TelegramRefused, *phrases: str) -> bool:
    said = error.description.lower()
    return any(phrase in said for phrase in phrases)
