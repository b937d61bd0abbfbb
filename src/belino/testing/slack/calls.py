"""The methods of the Web API an app may call: whose token they take, what it must be allowed, and who answers."""

from collections.abc import Awaitable, Callable

from belino.testing.slack.pace import SlackLimiter
from belino.testing.slack.reads import SlackReads
from belino.testing.slack.request import SlackCall, SlackRefusal
from belino.testing.slack.sends import SlackSends
from belino.testing.slack.shapes import Json
from belino.testing.slack.world import SlackWorld

CONNECT = "apps.connections.open"
# Methods that read a JSON body; the others read forms and queries only, and do not notice what they are not given.
TAKE_JSON = frozenset(
    {
        CONNECT, "auth.test", "chat.postMessage", "chat.update", "chat.delete", "conversations.open",
        "reactions.add", "reactions.remove", "files.completeUploadExternal", "assistant.threads.setStatus",
    }
)  # fmt: skip
_SCOPES = {
    "chat.postMessage": "chat:write",
    "chat.update": "chat:write",
    "chat.delete": "chat:write",
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


class SlackCalls:
    """Every method, by its documented name."""

    def __init__(self, world: SlackWorld, gate: SlackLimiter, *, bot_token: str, app_token: str) -> None:
        self._world = world
        self._gate = gate
        self.tokens = {bot_token: "bot", app_token: "app"}
        """Who each token is; one that was revoked is `token_revoked`, of a closed account `account_inactive`."""
        self.socket_mode_on = True
        reads = SlackReads(world, page=gate.pace.page)
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
        self._gate.enter(call)
        if (scope := _SCOPES.get(call.method)) is not None:
            self._reads.need(scope)
        return {"ok": True, **await method(call)}

    def headers(self, call: SlackCall) -> dict[str, str]:
        """What every answer says of the token's scopes."""
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
