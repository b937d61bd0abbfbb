"""Sends of a bot: messages, files, edits, and answers to slash commands, with Discord's documented checks."""

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from belino.testing.discord.request import GONE, Answered, DiscordCall, DiscordRefusal, invalid, too_large
from belino.testing.discord.shapes import (
    THREADS,
    WRITABLE,
    ChannelType,
    DiscordMessageFlag,
    Json,
    MessageType,
    mentioned_users,
    stamp,
)
from belino.testing.discord.world import DiscordWorld, Interaction
from belino.testing.file_server import FakeUpload

TEXT_CHARS = 2000
NONCE_CHARS = 25
NONCE_SECONDS = 300.0
MOST_FILES = 10
MOST_EMBEDS = 10
EMBED_CHARS = 6000
ALT_CHARS = 1024
WAVEFORM_BYTES = 256
MIB = 1024 * 1024
# The file size limit by the server's boost tier; direct messages have no tier.
FILE_BYTES = {0: 10 * MIB, 1: 10 * MIB, 2: 50 * MIB, 3: 100 * MIB}
SETTABLE = (
    DiscordMessageFlag.SUPPRESS_EMBEDS
    | DiscordMessageFlag.SUPPRESS_NOTIFICATIONS
    | DiscordMessageFlag.VOICE
    | DiscordMessageFlag.COMPONENTS_V2
)
MOST_ANSWERS, POLL_HOURS = 10, 24
ANSWER_SECONDS = 3.0
TOKEN_SECONDS = 15 * 60.0
MESSAGE, DEFERRED, DEFERRED_UPDATE = 4, 5, 6
COMPONENT = 3
_NAME = re.compile(r"[-_'\w]{1,32}")


class DiscordSends:
    """The calls with a visible result."""

    def __init__(self, world: DiscordWorld) -> None:
        self._world = world
        self._nonces: dict[str, tuple[float, Json]] = {}

    def create(self, call: DiscordCall, channel: Json) -> Json:
        """POST a message. A nonce that was used a few minutes ago returns its message."""
        self._permit(call, channel)
        return self.post(call, call.fields, channel)

    def post(self, call: DiscordCall, fields: Json, channel: Json, **more: Any) -> Json:
        """Create a message from its fields, permissions already checked; `more` are fields that bots cannot set."""
        if (known := self._known(fields)) is not None:
            return known
        text = _text(fields.get("content"))
        _check_embeds(fields.get("embeds"))
        _check_mentions(fields.get("allowed_mentions"))
        reference = self._reference(fields.get("message_reference"), channel)
        attached = self._files(call, fields, channel)
        flags = int(fields.get("flags") or 0) & SETTABLE
        if flags & DiscordMessageFlag.VOICE:
            self._check_voice(fields, text, attached, channel)
        stickers = self._stickers(fields.get("sticker_ids"))
        shown = (text, attached, stickers, reference.get("forward"))
        if not any((*shown, fields.get("embeds"), fields.get("components"), fields.get("poll"))):
            raise _empty()
        made: Json = {"flags": flags, "embeds": [{"type": "rich", **e} for e in fields.get("embeds") or []]}
        made |= reference | ({"stickers": stickers} if stickers else {})
        if fields.get("tts"):
            made["tts"] = True
        if fields.get("components"):
            _check_components(fields["components"])
            made["components"] = fields["components"]
        if fields.get("poll"):
            made["poll"] = self._poll(fields["poll"])
        if flags & DiscordMessageFlag.COMPONENTS_V2 and (
            text or fields.get("embeds") or stickers or fields.get("poll")
        ):
            raise invalid("flags", "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2", "Components, and no more")
        return self._sent(channel, text, attached, made | more, fields)

    def edit(self, call: DiscordCall, channel: Json, message: Json) -> Json:
        """PATCH a message of the bot's own; files not named in `attachments` are removed."""
        fields = call.fields
        if message["author"]["id"] != self._world.bot["id"] and set(fields) - {"flags"}:
            raise DiscordRefusal(403, 50005, "Cannot edit a message authored by another user")
        if message["flags"] & DiscordMessageFlag.VOICE:
            raise DiscordRefusal(400, 50162, "Voice messages cannot be edited")
        if channel["type"] in THREADS and channel["thread_metadata"]["archived"]:
            raise DiscordRefusal(400, 50083, "Thread is archived")
        text = _text(fields["content"]) if "content" in fields else message["content"]
        _check_embeds(fields.get("embeds"))
        _check_mentions(fields.get("allowed_mentions"))
        kept = message["attachments"]
        if "attachments" in fields:
            named = {str(item.get("id")) for item in fields["attachments"] or []}
            kept = [one for one in kept if one["id"] in named]
        files = [*kept, *self._files(call, fields, channel)]
        embeds = message["embeds"] if "embeds" not in fields else fields["embeds"] or []
        if not (text or files or embeds):
            raise _empty()
        message |= {"content": text, "attachments": files, "embeds": [{"type": "rich", **e} for e in embeds]}
        if "components" in fields:
            _check_components(fields["components"] or [])
            message["components"] = fields["components"] or []
        message["edited_timestamp"] = stamp(self._world.clock.now())
        message["mentions"] = self._mentions(text, fields.get("allowed_mentions"), message)
        self._world.edited.append((message["id"], text))
        return self._world.send_updated(message)

    def _sent(self, channel: Json, text: str, attached: list[Json], made: Json, fields: Json) -> Json:
        world = self._world
        message = world.compose(channel, world.bot, text, files=attached, mentions=[], **made)
        message["mentions"] = self._mentions(text, fields.get("allowed_mentions"), message)
        world.sent.append(message)
        told = world.payload(message)
        nonce = fields.get("nonce")
        if nonce is None:
            world.send_created(message)
            return told
        world.send_created(message, nonce=nonce)
        self._nonces[str(nonce)] = (world.clock.monotonic(), message)
        return {**told, "nonce": nonce}

    def _known(self, fields: Json) -> Json | None:
        nonce = fields.get("nonce")
        if nonce is None:
            return None
        if isinstance(nonce, str) and len(nonce) > NONCE_CHARS:
            raise invalid("nonce", "BASE_TYPE_MAX_LENGTH", f"Must be {NONCE_CHARS} or fewer in length.")
        if not isinstance(nonce, str | int) or isinstance(nonce, bool):
            raise invalid("nonce", "NONCE_TYPE_INVALID", "Nonce must be a string or integer.")
        if not fields.get("enforce_nonce") or str(nonce) not in self._nonces:
            return None
        made_at, message = self._nonces[str(nonce)]
        if self._world.clock.monotonic() - made_at > NONCE_SECONDS:
            return None
        return {**self._world.payload(message), "nonce": nonce}

    def _permit(self, call: DiscordCall, channel: Json) -> None:
        world = self._world
        if channel["type"] not in WRITABLE:
            raise DiscordRefusal(400, 50008, "Cannot send messages in a non-text channel")
        if channel["type"] == ChannelType.DM and channel["recipients"][0]["id"] in world.blocked:
            raise DiscordRefusal(403, 50007, "Cannot send messages to this user")
        in_thread = channel["type"] in THREADS
        if in_thread and channel["thread_metadata"]["locked"]:
            raise DiscordRefusal(400, 160005, "Thread is locked")
        needed = ["SEND_MESSAGES_IN_THREADS" if in_thread else "SEND_MESSAGES"]
        needed += ["ATTACH_FILES"] if call.files else []
        for permission in needed:
            if not world.may(channel, permission):
                raise DiscordRefusal(403, 50013, "Missing Permissions")
        if in_thread:
            channel["thread_metadata"]["archived"] = False  # writing wakes a thread

    def _reference(self, given: Any, channel: Json) -> Json:
        if not isinstance(given, dict):
            return {}
        where = str(given.get("channel_id") or channel["id"])
        message = (
            self._world.messages[where].get(str(given.get("message_id"))) if where in self._world.channels else None
        )
        forward = given.get("type") == 1
        if message is None or (where != channel["id"] and not forward):
            if given.get("fail_if_not_exists", True) or forward:
                raise invalid("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
            return {}
        if forward:
            return {"forward": message}
        if message["type"] not in (
            MessageType.DEFAULT,
            MessageType.REPLY,
            MessageType.COMMAND,
            MessageType.MENU_COMMAND,
        ):
            raise invalid(
                "message_reference", "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE", "Cannot reply to a system message"
            )
        if not self._world.may(channel, "READ_MESSAGE_HISTORY"):
            raise DiscordRefusal(400, 160002, "Cannot reply without permission to read message history")
        return {"reply_to": message}

    def _files(self, call: DiscordCall, fields: Json, channel: Json) -> list[Json]:
        """The attachments of the uploaded files, described by `attachments`."""
        if len(call.files) > MOST_FILES:
            raise invalid("attachments", "BASE_TYPE_MAX_LENGTH", f"Must be {MOST_FILES} or fewer in length.")
        listed = fields.get("attachments") or []
        if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
            raise invalid("attachments", "BASE_TYPE_BAD_TYPE", "Only dictionaries may be used in a list")
        guild = self._world.guilds.get(channel.get("guild_id", ""), {})
        most = FILE_BYTES[guild.get("premium_tier", 0)]
        made = []
        for number, upload in call.files.items():
            if upload.announced > most:
                raise too_large()
            described: Json = next((item for item in listed if str(item.get("id")) == number), {})
            made.append(self._attachment(channel, upload, described))
        return made

    def _attachment(self, channel: Json, upload: FakeUpload, described: Mapping[str, Any]) -> Json:
        told = {n: described[n] for n in ("description", "title", "duration_secs", "waveform") if described.get(n)}
        if len(str(told.get("description", ""))) > ALT_CHARS:
            raise invalid("attachments", "BASE_TYPE_MAX_LENGTH", f"Must be {ALT_CHARS} or fewer in length.")
        self._world.received.append(upload)
        name = str(described.get("filename") or upload.name or "file")
        # Discord derives a missing type from the name.
        mime = None if upload.mime == "application/octet-stream" else upload.mime
        kept = FakeUpload(
            content=upload.content, size=upload.size, name=name, mime=mime, width=upload.width, height=upload.height
        )
        return self._world.cdn.put(channel["id"], self._world.ids.next(), kept, **told)

    def _check_voice(self, fields: Json, text: str, attached: list[Json], channel: Json) -> None:
        if not self._world.may(channel, "SEND_VOICE_MESSAGES"):
            raise DiscordRefusal(403, 50173, "You cannot send voice messages in this channel")
        if text or fields.get("embeds") or fields.get("sticker_ids") or fields.get("poll"):
            raise DiscordRefusal(400, 50159, "Voice messages do not support additional content")
        if len(attached) != 1 or not str(attached[0].get("content_type", "")).startswith("audio/"):
            raise DiscordRefusal(400, 50160, "Voice messages must have a single audio attachment")
        if "duration_secs" not in attached[0] or not _is_waveform(attached[0].get("waveform")):
            raise DiscordRefusal(400, 50161, "Voice messages must have supporting metadata")

    def _stickers(self, wanted: Any) -> list[Json]:
        wanted = wanted or []
        if len(wanted) > 3:
            raise invalid("sticker_ids", "BASE_TYPE_MAX_LENGTH", "Must be 3 or fewer in length.")
        unknown = [number for number in wanted if str(number) not in self._world.stickers]
        if unknown:
            raise DiscordRefusal(400, 50081, "Invalid sticker sent")
        return [self._world.stickers[str(number)] for number in wanted]

    def _poll(self, asked: Any) -> Json:
        """A poll as Discord returns it: numbered answers, and an end time."""
        answers = asked.get("answers") if isinstance(asked, dict) else None
        if not isinstance(answers, list) or not 1 <= len(answers) <= MOST_ANSWERS:
            raise invalid("poll.answers", "BASE_TYPE_BAD_LENGTH", f"Must be between 1 and {MOST_ANSWERS} in length.")
        ends = self._world.clock.now() + timedelta(hours=int(asked.get("duration") or POLL_HOURS))
        return {
            "question": asked.get("question"),
            "answers": [{"answer_id": number, **answer} for number, answer in enumerate(answers, 1)],
            "expiry": stamp(ends),
            "allow_multiselect": bool(asked.get("allow_multiselect")),
            "layout_type": 1,
            "results": {"is_finalized": False, "answer_counts": []},
        }

    def _mentions(self, text: str, allowed: Any, message: Json) -> list[Json]:
        """The users actually mentioned: all that are named, unless `allowed_mentions` restricts them."""
        named = mentioned_users(text)
        told: Json = allowed if isinstance(allowed, dict) else {"parse": ["users"], "replied_user": True}
        if "users" not in (told.get("parse") or []):
            named = [number for number in named if number in (told.get("users") or [])]
        if message["type"] == MessageType.REPLY and told.get("replied_user", False):
            reference = message["message_reference"]
            named.append(self._world.messages[reference["channel_id"]][reference["message_id"]]["author"]["id"])
        return [self._world.users[number] for number in dict.fromkeys(named) if number in self._world.users]


def _empty() -> DiscordRefusal:
    return DiscordRefusal(400, 50006, "Cannot send an empty message")


def _text(content: Any) -> str:
    if content is not None and not isinstance(content, str):
        raise invalid("content", "BASE_TYPE_STRING", "Must be a string.")
    text = (content or "").strip()
    if len(text) > TEXT_CHARS:
        raise invalid("content", "BASE_TYPE_MAX_LENGTH", f"Must be {TEXT_CHARS} or fewer in length.")
    return text


def _check_embeds(embeds: Any) -> None:
    if not embeds:
        return
    if not isinstance(embeds, list) or len(embeds) > MOST_EMBEDS:
        raise invalid("embeds", "BASE_TYPE_MAX_LENGTH", f"Must be {MOST_EMBEDS} or fewer in length.")
    told = sum(len(str(embed.get(name, ""))) for embed in embeds for name in ("title", "description"))
    told += sum(len(str(f.get("name", ""))) + len(str(f.get("value", ""))) for e in embeds for f in e.get("fields", ()))
    if told > EMBED_CHARS:
        raise invalid("embeds", "MAX_EMBED_SIZE_EXCEEDED", f"Embed size exceeds maximum size of {EMBED_CHARS}")


def _check_components(rows: Any) -> None:
    """Rows of buttons: https://discord.com/developers/docs/components/reference#action-row."""
    if not isinstance(rows, list) or len(rows) > 5:
        raise invalid("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
    seen: set[str] = set()
    for row in rows:
        if row.get("type") != 1:
            continue
        buttons = row.get("components") or []
        if not 1 <= len(buttons) <= 5:
            raise invalid("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
        for button in buttons:
            own = str(button.get("custom_id", ""))
            if not 1 <= len(own) <= 100 or own in seen:
                raise invalid(
                    "components", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated"
                )
            if len(str(button.get("label", ""))) > 80 or button.get("style") not in range(1, 7):
                raise invalid("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 80 in length.")
            seen.add(own)


def _check_mentions(allowed: Any) -> None:
    if not isinstance(allowed, dict):
        return
    parse = allowed.get("parse") or []
    for number, kind in enumerate(parse):
        if kind not in ("roles", "users", "everyone"):
            where = f"allowed_mentions.parse.{number}"
            raise invalid(where, "BASE_TYPE_CHOICES", "Value must be one of {'users', 'everyone', 'roles'}.")
        if allowed.get(kind):
            text = f'parse:["{kind}"] and {kind}: [ids...] are mutually exclusive.'
            raise invalid("allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", text)


def _is_waveform(written: Any) -> bool:
    try:
        return 0 < len(base64.b64decode(str(written or ""), validate=True)) <= WAVEFORM_BYTES
    except binascii.Error:
        return False


class Interactions:
    """The routes of commands and of answers to them."""

    def __init__(self, world: DiscordWorld, sends: DiscordSends) -> None:
        self._world = world
        self._sends = sends
        commands, original = (
            "/applications/{application}/commands",
            "/webhooks/{application}/{token}/messages/@original",
        )
        self.routes: Sequence[tuple[str, str, Callable[[DiscordCall], Answered]]] = [
            ("GET", commands, self._list),
            ("PUT", commands, self._replace),
            ("POST", commands, self._register),
            ("GET", "/applications/{application}/guilds/{guild}/commands", self._list),
            ("PUT", "/applications/{application}/guilds/{guild}/commands", self._replace),
            ("POST", "/interactions/{interaction}/{token}/callback", self._answer),
            ("POST", "/webhooks/{application}/{token}", self._follow_up),
            ("GET", original, self._original),
            ("PATCH", original, self._edit_original),
            ("DELETE", original, self._delete_original),
        ]

    def _list(self, call: DiscordCall) -> list[Json]:
        return list(self._world.commands.values())

    def _replace(self, call: DiscordCall) -> list[Json]:
        wanted = call.fields.get("", [])
        made = [self._command(command) for command in wanted]
        self._world.commands = {command["id"]: command for command in made}
        return made

    def _register(self, call: DiscordCall) -> Json:
        made = self._command(call.fields)
        kept = [c for c in self._world.commands.values() if c["name"] != made["name"]]
        self._world.commands = {command["id"]: command for command in (*kept, made)}
        return made

    def _command(self, given: Json) -> Json:
        name, kind = str(given.get("name", "")), given.get("type", 1)
        if kind == 1 and (not _NAME.fullmatch(name) or name != name.lower()):
            raise invalid("name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
        if kind == 1 and not 1 <= len(str(given.get("description", ""))) <= 100:
            raise invalid("description", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
        number = next((c["id"] for c in self._world.commands.values() if c["name"] == name), self._world.ids.next())
        return {
            "options": [],
            "description": "",
            **given,
            "id": number,
            "application_id": self._world.bot["id"],
            "type": kind,
            "version": number,
        }

    def _answer(self, call: DiscordCall) -> Json:
        found = self._world.interactions.get(call.ids["token"])
        late = found is not None and self._world.clock.monotonic() - found.at > ANSWER_SECONDS
        if found is None or late or found.asked["id"] != call.ids["interaction"]:
            raise DiscordRefusal(404, 10062, "Unknown interaction")
        if found.acknowledged:
            raise DiscordRefusal(400, 40060, "Interaction has already been acknowledged.")
        kind, fields = call.fields.get("type"), call.fields.get("data") or {}
        if kind == MESSAGE:
            found.answer = self._post(call, fields, found)
        elif kind != DEFERRED and not (kind == DEFERRED_UPDATE and found.asked["type"] == COMPONENT):
            raise invalid("type", "BASE_TYPE_CHOICES", "Value must be one of {4, 5}.")
        else:
            found.flags = int(fields.get("flags") or 0)
        found.acknowledged = True
        if call.query.get("with_response", "").lower() not in ("true", "1"):
            return GONE
        told: Json = {
            "id": found.asked["id"],
            "type": found.asked["type"],
            "response_message_loading": kind == DEFERRED,
        }
        if found.answer is None:
            return {"interaction": told, "resource": {"type": kind}}
        told["response_message_id"] = found.answer["id"]
        return {"interaction": told, "resource": {"type": kind, "message": found.answer}}

    def _follow_up(self, call: DiscordCall) -> Json:
        found = self._found(call)
        made = self._post(call, call.fields, found)
        if found.answer is None:
            found.answer = made
        return made

    def _original(self, call: DiscordCall) -> Json:
        found, answer = self._answered(call)
        return self._world.payload(self._kept(found, answer))

    def _edit_original(self, call: DiscordCall) -> Json:
        found = self._found(call)
        if found.answer is None:
            # Who sees the answer is decided when it is deferred.
            found.answer = self._post(call, {**call.fields, "flags": found.flags}, found)
            return found.answer
        return self._sends.edit(call, found.channel, self._kept(found, found.answer))

    def _delete_original(self, call: DiscordCall) -> Json:
        found, answer = self._answered(call)
        self._world.delete(self._kept(found, answer))
        return GONE

    def _found(self, call: DiscordCall) -> Interaction:
        found = self._world.interactions.get(call.ids["token"])
        if found is None:
            raise DiscordRefusal(404, 10015, "Unknown Webhook")
        if self._world.clock.monotonic() - found.at > TOKEN_SECONDS:
            raise DiscordRefusal(401, 50027, "Invalid Webhook Token")
        return found

    def _answered(self, call: DiscordCall) -> tuple[Interaction, Json]:
        found = self._found(call)
        if found.answer is None:
            raise DiscordRefusal(404, 10008, "Unknown Message")
        return found, found.answer

    def _kept(self, found: Interaction, answer: Json) -> Json:
        kept = self._world.messages[found.channel["id"]].get(answer["id"])
        if kept is None:
            raise DiscordRefusal(404, 10008, "Unknown Message")
        return kept

    def _post(self, call: DiscordCall, fields: Json, found: Interaction) -> Json:
        asked, bot = found.asked, self._world.bot["id"]
        metadata = {n: asked[n] for n in ("id", "type", "authorizing_integration_owners")} | {"user": found.user}
        hidden = int(fields.get("flags") or 0) & DiscordMessageFlag.EPHEMERAL
        return self._sends.post(
            call,
            fields,
            found.channel,
            type=int(MessageType.COMMAND),
            webhook_id=bot,
            application_id=bot,
            interaction_metadata=metadata,
            **({"flags": hidden} if hidden else {}),
        )
