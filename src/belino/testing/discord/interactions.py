"""Slash commands: registered by the bot, used by people, answered within three seconds or acknowledged for later."""

import re
from collections.abc import Callable, Sequence

from belino.testing.discord.record import Interaction
from belino.testing.discord.request import GONE, Answered, DiscordCall, DiscordRefusal, invalid
from belino.testing.discord.sends import DiscordSends
from belino.testing.discord.shapes import Json, MessageFlag, MessageType
from belino.testing.discord.world import DiscordWorld

ANSWER_SECONDS = 3.0
TOKEN_SECONDS = 15 * 60.0
MESSAGE, DEFERRED = 4, 5
_NAME = re.compile(r"[-_'\w]{1,32}")


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
        elif kind != DEFERRED:
            raise invalid("type", "BASE_TYPE_CHOICES", "Value must be one of {4, 5}.")
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
        return self._world.told(self._kept(found, answer))

    def _edit_original(self, call: DiscordCall) -> Json:
        found = self._found(call)
        if found.answer is None:
            found.answer = self._post(call, call.fields, found)
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
        hidden = int(fields.get("flags") or 0) & MessageFlag.EPHEMERAL
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
