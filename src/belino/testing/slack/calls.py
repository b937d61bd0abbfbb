"""Calls of the Web API: every method with its token and scope, and the methods that change something."""

import json
import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from belino.testing.slack.files import FILE_BYTES, SNIPPET_BYTES, PendingUpload, as_list
from belino.testing.slack.reads import SlackReads
from belino.testing.slack.request import SlackCall, SlackLimiter, SlackRefusal, missing
from belino.testing.slack.shapes import BOT, BOT_USER, TEAM, Json, linked, rich_text
from belino.testing.slack.world import SlackWorld, bot_fields

CONNECT = "apps.connections.open"
# Methods that read a JSON body; the others read forms and queries only, and ignore JSON.
TAKE_JSON = frozenset(
    {
        CONNECT, "auth.test", "chat.postMessage", "chat.update", "chat.delete", "chat.postEphemeral",
        "conversations.open", "reactions.add", "reactions.remove", "files.completeUploadExternal",
        "assistant.threads.setStatus", "chat.startStream", "chat.appendStream", "chat.stopStream",
    }
)  # fmt: skip
_SCOPES = {
    "chat.postMessage": "chat:write",
    "chat.update": "chat:write",
    "chat.delete": "chat:write",
    "chat.postEphemeral": "chat:write",
    "chat.startStream": "chat:write",
    "chat.appendStream": "chat:write",
    "chat.stopStream": "chat:write",
    "assistant.threads.setStatus": "chat:write",
    "conversations.open": "im:write",
    "users.info": "users:read",
    "users.list": "users:read",
    "bots.info": "users:read",
    "team.info": "team:read",
    "files.info": "files:read",
    "files.getUploadURLExternal": "files:write",
    "files.completeUploadExternal": "files:write",
    "reactions.add": "reactions:write",
    "reactions.remove": "reactions:write",
    "reactions.get": "reactions:read",
}
TEXT_CHARS = 40_000
UPDATE_CHARS = 4_000
ALT_CHARS = 1_000
SECTION_CHARS = 3_000
MARKDOWN_CHARS = 12_000
MOST_BLOCKS = 50
MOST_ATTACHMENTS = 100
METADATA_BYTES = 16_000
_EMOJI = re.compile(r"[a-z0-9_+'\-]+(?:::skin-tone-[2-6])?")
_STAMP = re.compile(r"\d+\.\d+")


class SlackCalls:
    """Every method, by its documented name."""

    def __init__(self, world: SlackWorld, limiter: SlackLimiter, *, bot_token: str, app_token: str) -> None:
        self._world = world
        self._limiter = limiter
        self.tokens = {bot_token: "bot", app_token: "app"}
        """The owner of each token; a revoked one is `token_revoked`, one of a closed account `account_inactive`."""
        self.socket_mode_on = True
        reads = SlackReads(world, page=limiter.pace.page)
        sends = SlackSends(world, reads)
        self._reads = reads
        self._methods: dict[str, Callable[[SlackCall], Awaitable[Json]]] = {
            CONNECT: self._connect,
            "auth.test": reads.auth_test,
            "conversations.list": reads.conversations,
            "users.conversations": reads.conversations,
            "conversations.info": reads.conversation,
            "conversations.members": reads.members,
            "conversations.history": reads.history,
            "conversations.replies": reads.replies,
            "conversations.open": sends.open,
            "users.info": reads.user,
            "users.list": reads.users,
            "bots.info": reads.bot,
            "team.info": reads.team,
            "chat.postMessage": sends.post,
            "chat.update": sends.update,
            "chat.delete": sends.delete,
            "chat.postEphemeral": sends.post_ephemeral,
            "chat.startStream": sends.start_stream,
            "chat.appendStream": sends.append_stream,
            "chat.stopStream": sends.stop_stream,
            "chat.getPermalink": reads.link,
            "assistant.threads.setStatus": sends.status,
            "files.getUploadURLExternal": sends.begin_upload,
            "files.completeUploadExternal": sends.end_upload,
            "files.info": reads.file,
            "reactions.add": sends.react,
            "reactions.remove": sends.react,
            "reactions.get": reads.reactions,
        }

    async def answer(self, call: SlackCall) -> Json:
        """The call's result."""
        method = self._methods.get(call.method)
        if method is None:
            refused = SlackRefusal("unknown_method")
            refused.more = {"req_method": call.method}
            raise refused
        self._authorize(call)
        self._limiter.enter(call)
        if (scope := _SCOPES.get(call.method)) is not None:
            self._reads.need(scope)
        return {"ok": True, **await method(call)}

    def headers(self, call: SlackCall) -> dict[str, str]:
        """The scope headers of every answer."""
        if self.tokens.get(call.token) == "app":
            return {"X-OAuth-Scopes": "connections:write", "X-Accepted-OAuth-Scopes": "connections:write"}
        if self.tokens.get(call.token) != "bot":
            return {}
        told = {"X-OAuth-Scopes": ",".join(sorted(self._world.scopes))}
        return told | ({"X-Accepted-OAuth-Scopes": _SCOPES[call.method]} if call.method in _SCOPES else {})

    def _authorize(self, call: SlackCall) -> None:
        if not call.token:
            raise SlackRefusal("not_authed")
        who = self.tokens.get(call.token, "invalid_auth")
        if who not in ("bot", "app"):
            raise SlackRefusal(who)
        if (who == "app") != (call.method == CONNECT) and call.method != "auth.test":
            raise SlackRefusal("not_allowed_token_type")

    async def _connect(self, call: SlackCall) -> Json:
        if not self.socket_mode_on:
            raise SlackRefusal("forbidden_team")
        link = self._world.files.url.replace("http://", "ws://", 1) + self._world.socket_mode.ticket()
        return {"url": link}


class SlackSends:
    """The methods with a visible result."""

    def __init__(self, world: SlackWorld, reads: SlackReads) -> None:
        self._world = world
        self._reads = reads
        self._own_blocks: set[str] = set()
        """The ts of messages with the app's own blocks, which Slack keeps until they are replaced."""

    async def post(self, call: SlackCall) -> Json:
        channel = self._target(call)
        fields = _content(call, TEXT_CHARS)
        message = self._own(fields)
        self._world.unfurled.append("unfurl_links" not in call.fields or call.flag("unfurl_links"))
        if call.fields.get("blocks"):
            self._own_blocks.add(message["ts"])
        if (metadata := _metadata(call)) is not None:
            message["metadata"] = metadata
        if thread := call.text("thread_ts"):
            self._thread(channel, message, thread, broadcast=call.flag("reply_broadcast"))
        self._show(channel, message)
        told = self._world.payload(channel, message, metadata=True)
        return {"channel": channel["id"], "ts": message["ts"], "message": told}

    async def update(self, call: SlackCall) -> Json:
        channel = self._reads.channel(call)
        message = self._mine(call, channel, "cant_update_message")
        if message["ts"] in self._world.streaming:
            raise SlackRefusal("streaming_state_conflict")
        fields = _content(call, UPDATE_CHARS)
        before = self._world.payload(channel, message)
        if call.value("blocks", "invalid_blocks_format"):
            self._own_blocks.add(message["ts"])
        elif "blocks" in call.fields:
            self._own_blocks.discard(message["ts"])
        elif message["ts"] in self._own_blocks:
            del fields["blocks"]
        message |= fields
        if (metadata := _metadata(call)) is not None:
            message["metadata"] = metadata
        message["edited"] = {"user": BOT, "ts": self._world.stamps.next()}
        self._world.edited.append((message["ts"], message["text"]))
        told = self._world.send_changed(channel, message, before)
        return {"channel": channel["id"], "ts": message["ts"], "text": message["text"], "message": told}

    async def start_stream(self, call: SlackCall) -> Json:
        """A reply in a thread that grows; in a channel, for one person to see."""
        channel, thread = self._target(call), call.needed("thread_ts")
        if not channel["id"].startswith("D"):
            for name in ("recipient_team_id", "recipient_user_id"):
                if not call.text(name):
                    raise SlackRefusal(f"missing_{name}")
        message = self._own(_streamed(call, ""))
        self._thread(channel, message, thread, broadcast=False)
        self._show(channel, message)
        self._world.streaming.append(message["ts"])
        return {"channel": channel["id"], "ts": message["ts"]}

    async def append_stream(self, call: SlackCall) -> Json:
        channel, message = self._stream(call)
        if not call.text("markdown_text"):
            raise SlackRefusal("no_text")
        message |= _streamed(call, message["text"])
        self._world.streamed.append((message["ts"], message["text"]))
        return {"channel": channel["id"], "ts": message["ts"]}

    async def stop_stream(self, call: SlackCall) -> Json:
        channel, message = self._stream(call)
        message |= _streamed(call, message["text"])
        if (metadata := _metadata(call)) is not None:
            message["metadata"] = metadata
        self._world.streaming.remove(message["ts"])
        return {"channel": channel["id"], "ts": message["ts"], "message": self._world.payload(channel, message)}

    def _stream(self, call: SlackCall) -> tuple[Json, Json]:
        channel = self._reads.channel(call)
        message = self._mine(call, channel, "message_not_owned_by_app")
        if message["ts"] not in self._world.streaming:
            raise SlackRefusal("message_not_in_streaming_state")
        return channel, message

    async def delete(self, call: SlackCall) -> Json:
        channel = self._reads.channel(call)
        message = self._mine(call, channel, "cant_delete_message")
        if message["ts"] in self._world.streaming:
            raise SlackRefusal("cant_delete_message")
        self._world.remove(channel, message)
        return {"channel": channel["id"], "ts": message["ts"]}

    async def post_ephemeral(self, call: SlackCall) -> Json:
        """A line that one person sees, who must be in the channel."""
        channel, user = self._target(call), call.needed("user")
        if user not in self._world.users:
            raise SlackRefusal("user_not_in_channel")
        self._world.ephemeral.append((channel["id"], user, str(_content(call, TEXT_CHARS)["text"])))
        return {"message_ts": self._world.stamps.next()}

    async def open(self, call: SlackCall) -> Json:
        """The direct conversation with a user."""
        if named := call.text("channel"):
            channel = self._world.channels.get(named)
            if channel is None:
                raise SlackRefusal("channel_not_found")
        else:
            users = call.needed("users").split(",")
            if any(user not in self._world.users for user in users):
                raise SlackRefusal("user_not_found")
            people = [self._world.users[user] for user in users]
            channel = self._world.dm(people[0]) if len(people) == 1 else self._world.group(*people)
        return {"no_op": False, "already_open": True, "channel": {"id": channel["id"]}}

    async def status(self, call: SlackCall) -> Json:
        channel = self._reads.channel(call, name="channel_id")
        self._world.statuses.append((channel["id"], call.needed("thread_ts"), call.text("status")))
        return {}

    async def react(self, call: SlackCall) -> Json:
        channel = self._reads.channel(call)
        message = self._reads.message(call, channel, "timestamp")
        emoji, remove = call.needed("name"), call.method == "reactions.remove"
        if not _EMOJI.fullmatch(emoji):
            raise SlackRefusal("invalid_name")
        if not self._world.change_reaction(channel, message, BOT_USER, emoji, remove=remove):
            raise SlackRefusal("no_reaction" if remove else "already_reacted")
        return {}

    async def begin_upload(self, call: SlackCall) -> Json:
        """The first of three steps: announce a name and a length, and receive a link and the file's id."""
        name, written, snippet = call.needed("filename"), call.needed("length"), call.text("snippet_type")
        if not written.isdecimal() or int(written) == 0:
            raise SlackRefusal("invalid_arguments", "[ERROR] length must be greater than 0 [json-pointer:/length]")
        if len(alt := call.text("alt_txt")) > ALT_CHARS:
            raise SlackRefusal("alt_txt_too_large")
        if int(written) > FILE_BYTES:
            raise SlackRefusal("file_upload_size_restricted")
        if snippet and int(written) > SNIPPET_BYTES:
            raise SlackRefusal("snippet_too_large")
        ticket, number = secrets.token_hex(16), self._world.numbers.next("F")
        self._world.files.pending[ticket] = PendingUpload(
            file=number, name=name, length=int(written), snippet=snippet, alt=alt
        )
        return {"upload_url": f"{self._world.files.url}/upload/v1/{ticket}", "file_id": number}

    async def end_upload(self, call: SlackCall) -> Json:
        """The third step: the files become visible, all in one message."""
        asked = as_list(call.fields.get("files"))
        if not asked:
            raise missing("files")
        waiting = {pending.file: (ticket, pending) for ticket, pending in self._world.files.pending.items()}
        named = [str(file.get("id")) for file in asked]
        if any(number not in waiting or waiting[number][1].received is None for number in named):
            raise SlackRefusal("file_not_found")
        places = self._places(call)
        for file, number in zip(asked, named, strict=True):
            self._complete(*waiting[number], title=str(file.get("title") or ""))
        for channel in places:
            message = self._shared(call, channel, named)
            self._show(channel, message)
        return {"files": [{"id": n, "title": self._world.files.by_id[n].shape["title"]} for n in named]}

    def _places(self, call: SlackCall) -> list[Json]:
        names = [name for name in (call.text("channel_id"), *call.text("channels").split(",")) if name]
        if any(not re.fullmatch(r"[CDGZ]\w{7,}", name) for name in names):
            raise SlackRefusal("invalid_arguments", "[ERROR] must match a channel's id [json-pointer:/channel_id]")
        if call.text("thread_ts") and len(names) > 1:
            raise SlackRefusal("invalid_arguments", "[ERROR] only one channel with thread_ts")
        places = [self._reads.channel(SlackCall(method=call.method, fields={"channel": name})) for name in names]
        if any(place["is_archived"] for place in places):
            raise SlackRefusal("is_archived")
        return places

    def _complete(self, ticket: str, pending: PendingUpload, *, title: str) -> None:
        upload = pending.received
        assert upload is not None
        more: Json = {"title": title or pending.name}
        if pending.alt:
            more["alt_txt"] = pending.alt
        if pending.snippet:
            more |= {"mode": "snippet", "editable": True, "filetype": pending.snippet}
        self._world.files.put(pending.file, upload, BOT_USER, **more)
        self._world.received.append(upload)
        del self._world.files.pending[ticket]

    def _shared(self, call: SlackCall, channel: Json, files: list[str]) -> Json:
        text = linked(call.text("initial_comment"))
        message: Json = {"user": BOT_USER, "type": "message", "ts": self._world.stamps.next(), "text": text}
        message |= {"team": TEAM, "blocks": rich_text(text)} if text else {"team": TEAM}
        if not text and (blocks := call.value("blocks", "invalid_blocks_format")):
            if any(block.get("type") == "markdown" for block in as_list(blocks)):
                raise SlackRefusal("internal_error")  # as seen: only chat.* methods accept a markdown block
            message["blocks"] = blocks
        if thread := call.text("thread_ts"):
            self._thread(channel, message, thread, broadcast=False)
        self._world.attach(channel, message, files)
        return message

    def _target(self, call: SlackCall) -> Json:
        named = call.text("channel")
        if not named:
            raise SlackRefusal("channel_not_found")
        if named in self._world.users:
            channel = self._world.dm(self._world.users[named])
        else:
            by_name = {f"#{place['name']}": key for key, place in self._world.channels.items() if "name" in place}
            known = by_name.get(named if named.startswith("#") else f"#{named}", named)
            channel = self._reads.channel(SlackCall(method=call.method, fields={"channel": known}))
        if channel["is_archived"]:
            raise SlackRefusal("is_archived")
        return channel

    def _own(self, fields: Json) -> Json:
        head: Json = {"user": BOT_USER, "type": "message", "ts": self._world.stamps.next()}
        return {**head, **bot_fields(self._world.bot), "team": TEAM, **fields}

    def _thread(self, channel: Json, message: Json, thread: str, *, broadcast: bool) -> None:
        if not _STAMP.fullmatch(thread):
            raise SlackRefusal("invalid_thread_ts")
        message["thread_ts"] = thread
        parent = self._world.messages[channel["id"]].get(thread)
        if parent is not None and "user" in parent:
            message["parent_user_id"] = parent["user"]
        if broadcast:
            message["subtype"] = "thread_broadcast"

    def _show(self, channel: Json, message: Json) -> None:
        self._world.keep(channel, message)
        self._world.sent.append(self._world.payload(channel, message, metadata=True) | {"channel": channel["id"]})
        self._world.send_posted(channel, message)

    def _mine(self, call: SlackCall, channel: Json, error: str) -> Json:
        message = self._reads.message(call, channel)
        if message.get("user") != BOT_USER:
            raise SlackRefusal(error)
        return message


def _content(call: SlackCall, most: int) -> Json:
    """The text and blocks of a message, within Slack's limits."""
    text, markdown = call.text("text"), call.text("markdown_text")
    blocks = call.value("blocks", "invalid_blocks_format")
    attachments = call.value("attachments", "invalid_attachments")
    if markdown and (text or blocks):
        raise SlackRefusal("markdown_text_conflict")
    if not (text or markdown or blocks or attachments):
        raise SlackRefusal("no_text")
    if len(text) > most or len(markdown) > MARKDOWN_CHARS:
        raise SlackRefusal("msg_too_long")
    if isinstance(attachments, list) and len(attachments) > MOST_ATTACHMENTS:
        raise SlackRefusal("too_many_attachments")
    if blocks is not None:
        _check_blocks(blocks)
    kept = linked(text or markdown)
    fields: Json = {"text": kept, "blocks": blocks or rich_text(kept)}
    return fields | ({"attachments": attachments} if attachments else {})


def _streamed(call: SlackCall, before: str) -> Json:
    """The text of a stream with what a call adds."""
    if len(more := call.text("markdown_text")) > MARKDOWN_CHARS:
        raise SlackRefusal("msg_too_long")
    return {"text": before + more, "blocks": [{"type": "markdown", "text": before + more}]}


def _check_blocks(blocks: Any) -> None:
    if not isinstance(blocks, list) or not all(isinstance(block, dict) and "type" in block for block in blocks):
        raise SlackRefusal("invalid_blocks_format")
    if len(blocks) > MOST_BLOCKS:
        raise SlackRefusal("invalid_blocks", f"[ERROR] no more than {MOST_BLOCKS} items allowed [json-pointer:/blocks]")
    markdown = sum(len(str(block.get("text", ""))) for block in blocks if block["type"] == "markdown")
    if markdown > MARKDOWN_CHARS:
        raise SlackRefusal("msg_blocks_too_long")
    for at, block in enumerate(blocks):
        if block["type"] == "actions":
            _check_actions(block)
        words = block.get("text")
        if block["type"] == "section" and isinstance(words, dict) and len(str(words.get("text", ""))) > SECTION_CHARS:
            where = f"[json-pointer:/blocks/{at}/text/text]"
            raise SlackRefusal("invalid_blocks", f"[ERROR] must be less than {SECTION_CHARS + 1} characters {where}")


def _check_actions(block: Json) -> None:
    """Up to 25 elements with ids of their own: https://docs.slack.dev/reference/block-kit/blocks/actions-block."""
    elements = block.get("elements")
    if not isinstance(elements, list) or not 1 <= len(elements) <= 25:
        raise SlackRefusal("invalid_blocks", "[ERROR] no more than 25 items allowed [json-pointer:/blocks/elements]")
    ids = [str(each.get("action_id", "")) for each in elements]
    labels = [str((each.get("text") or {}).get("text", "")) for each in elements]
    if len(set(ids)) != len(ids) or any(len(own) > 255 for own in ids):
        raise SlackRefusal("invalid_blocks", "[ERROR] `action_id` already exists")
    if any(not 1 <= len(label) <= 75 for label in labels):
        raise SlackRefusal("invalid_blocks", "[ERROR] must be less than 76 characters")
    if any(each.get("style") not in (None, "primary", "danger") for each in elements):
        raise SlackRefusal("invalid_blocks", "[ERROR] invalid style")


def _metadata(call: SlackCall) -> Json | None:
    given = call.value("metadata", "invalid_metadata_format")
    if given is None:
        return None
    if not isinstance(given, dict) or not isinstance(given.get("event_payload"), dict):
        raise SlackRefusal("invalid_metadata_format")
    if not isinstance(given.get("event_type"), str) or not given["event_type"]:
        raise SlackRefusal("invalid_metadata_schema")
    if len(json.dumps(given)) > METADATA_BYTES:
        raise SlackRefusal("metadata_too_large")
    return given
