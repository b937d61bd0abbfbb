"""The methods of the Bot API that a bot may call, with the checks and the error texts Telegram answers with."""

import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from belino.domain.ports import Clock
from belino.testing.telegram.pace import TelegramPace
from belino.testing.telegram.request import TelegramCall, TelegramRefusal
from belino.testing.telegram.sends import FORMS, TelegramSends
from belino.testing.telegram.shapes import Json
from belino.testing.telegram.updates import RESTART, WEBHOOK_SET, PollConflict, Webhook
from belino.testing.telegram.world import TelegramWorld

DOWNLOAD_BYTES = 20 * 1024 * 1024
POLL_SECONDS = 50
_SECRET = re.compile(r"[A-Za-z0-9_-]*")
_ACTIONS = frozenset(
    [
        "typing",
        "upload_photo",
        "record_video",
        "upload_video",
        "record_voice",
        "upload_voice",
        "upload_document",
        "choose_sticker",
        "find_location",
        "record_video_note",
        "upload_video_note",
    ]
)


class TelegramCalls:
    """Every method, by its name in lower case."""

    def __init__(self, world: TelegramWorld, clock: Clock, *, pace: TelegramPace, big_files: bool) -> None:
        self.world = world
        self._clock = clock
        self._big_files = big_files
        self._sends = TelegramSends(world, clock, pace=pace, big_files=big_files)
        self._methods: dict[str, Callable[[TelegramCall], Awaitable[Any]]] = {
            "getme": self._get_me,
            "getupdates": self._get_updates,
            "setwebhook": self._set_webhook,
            "deletewebhook": self._delete_webhook,
            "getwebhookinfo": self._webhook_info,
            "getfile": self._get_file,
            "getchat": self._get_chat,
            "sendmessage": self._sends.message,
            "sendchataction": self._send_action,
            "editmessagetext": self._sends.edit,
            "deletemessage": self._delete_message,
            "sendmediagroup": self._sends.album,
            **dict.fromkeys(FORMS, self._sends.media),
        }

    async def answer(self, call: TelegramCall) -> Any:
        """The call's result."""
        method = self._methods.get(call.method.lower())
        if method is None:
            raise TelegramRefusal(404, "Not Found: method not found")
        return await method(call)

    async def _get_me(self, call: TelegramCall) -> Json:
        return {
            **self.world.bot,
            "can_join_groups": True,
            "can_read_all_group_messages": self.world.hears_all,
            "supports_inline_queries": False,
            "can_connect_to_business": True,
            "has_main_web_app": False,
        }

    async def _get_updates(self, call: TelegramCall) -> list[Json]:
        self._allow(call)
        timeout = min(max(call.whole("timeout", 0), 0), POLL_SECONDS)
        try:
            return await self.world.updates.poll(
                offset=call.whole("offset", 0), limit=min(max(call.whole("limit", 100), 1), 100), timeout=timeout
            )
        except PollConflict as error:
            raise TelegramRefusal(500 if str(error) == RESTART else 409, str(error)) from None

    def _allow(self, call: TelegramCall) -> None:
        kinds = call.value("allowed_updates")
        if isinstance(kinds, list):
            self.world.updates.allow([str(kind) for kind in kinds])

    async def _set_webhook(self, call: TelegramCall) -> bool:
        url, secret = call.text("url"), call.text("secret_token")
        parts = urlsplit(url)
        # Telegram takes https only; its server for one's own machine (--local) takes http too, and we are on loopback.
        if url and (parts.scheme not in ("https", "http") or not parts.hostname):
            raise TelegramRefusal(400, "Bad Request: invalid webhook URL specified")
        if url and parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
            raise TelegramRefusal(400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook")
        if len(secret) > 256:
            raise TelegramRefusal(400, "Bad Request: secret token is too long")
        if not _SECRET.fullmatch(secret):
            raise TelegramRefusal(400, "Bad Request: secret token contains unallowed characters")
        self._allow(call)
        if url:
            self.world.updates.interrupt(WEBHOOK_SET)
        return self._webhook(
            call, Webhook(url=url, secret_token=secret, max_connections=call.whole("max_connections", 40))
        )

    async def _delete_webhook(self, call: TelegramCall) -> bool:
        return self._webhook(call, Webhook())

    def _webhook(self, call: TelegramCall, webhook: Webhook) -> bool:
        if call.flag("drop_pending_updates"):
            self.world.updates.drop()
        self.world.updates.webhook = webhook
        return True

    async def _webhook_info(self, call: TelegramCall) -> Json:
        updates, hook = self.world.updates, self.world.updates.webhook
        told: Json = {"url": hook.url, "has_custom_certificate": False, "pending_update_count": len(updates.pending)}
        if hook.last_error is not None:
            told |= {"last_error_date": hook.last_error[0], "last_error_message": hook.last_error[1]}
        if hook.url:
            told["max_connections"] = hook.max_connections
        if updates.allowed is not None:
            told["allowed_updates"] = sorted(updates.allowed)
        return told

    async def _get_file(self, call: TelegramCall) -> Json:
        file_id = call.text("file_id")
        if not file_id:
            raise TelegramRefusal(400, "Bad Request: file_id not specified")
        stored = self.world.files.by_id.get(file_id)
        if stored is None:
            raise TelegramRefusal(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        if stored.size > DOWNLOAD_BYTES and not self._big_files:
            raise TelegramRefusal(400, "Bad Request: file is too big")
        stored.opened_at = self._clock.monotonic()
        return {
            "file_id": stored.file_id,
            "file_unique_id": stored.unique_id,
            "file_size": stored.size,
            "file_path": stored.path,
        }

    async def _get_chat(self, call: TelegramCall) -> Json:
        return self._sends.chat(call)

    async def _send_action(self, call: TelegramCall) -> bool:
        self._sends.chat(call)
        if call.text("action") not in _ACTIONS:
            raise TelegramRefusal(400, "Bad Request: wrong parameter action in request")
        return True

    async def _delete_message(self, call: TelegramCall) -> bool:
        chat = self._sends.chat(call)
        if self.world.messages.pop((chat["id"], call.whole("message_id", 0)), None) is None:
            raise TelegramRefusal(400, "Bad Request: message to delete not found")
        return True
