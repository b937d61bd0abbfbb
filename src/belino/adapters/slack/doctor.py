"""Doctor checks of an app: its tokens, scopes, event delivery, channels and the local clock."""

from collections.abc import Awaitable, Callable, Iterator, Sequence

from belino.adapters.slack.authors import CHANNELS_ASKED
from belino.adapters.slack.capabilities import SCOPES
from belino.adapters.slack.client import SlackAnswer, SlackClient, SlackRefused
from belino.domain.errors import AdapterError, Unauthorized
from belino.domain.outcome import Finding
from belino.net.json_fields import line, table, tables, yes
from belino.net.rest import clock_findings, token_finding

MOST_PLACES = 20
_WHAT_FOR = {
    "files:read": "no file can be fetched",
    "files:write": "no file can be sent",
    "chat:write": "nothing can be said",
    "channels:history": "nothing is heard in public channels",
    "groups:history": "nothing is heard in private channels",
    "im:history": "no direct message is heard",
    "mpim:history": "nothing is heard in group messages",
    "users:read": "people are told by their ids",
    "reactions:read": "no reaction is heard",
    "reactions:write": "the agent cannot react",
}


TryLine = Callable[[], Awaitable[object]]
"""Opens a connection, as far as one may be opened now."""


async def check_app(client: SlackClient, *, name: str, try_line: TryLine | None) -> tuple[Finding, ...]:
    """All findings, by three calls that change nothing; without `try_line` events do not come over Socket Mode."""
    try:
        me = await client.ask("auth.test")
    except AdapterError as error:
        renew = "Copy the token again: api.slack.com/apps, the app, OAuth & Permissions, Bot User OAuth Token."
        return (token_finding(name, error, renew=renew, api="Slack"),)
    line_up = await _socket(try_line, name) if try_line is not None else None
    if line_up is not None and not line_up.ok:
        return (line_up, *_token(me, name))
    return (
        *_token(me, name),
        *((line_up,) if line_up else ()),
        await _channels(client, name),
        *clock_findings(name, "Slack", theirs=me.date, ours=client.now()),
    )


async def check_listed(client: SlackClient, channels: Sequence[str], *, name: str) -> tuple[Finding, ...]:
    """Problems with channels that the operator listed; direct messages need no invitation."""
    places = [channel for channel in channels if not channel.startswith("D")][:MOST_PLACES]
    return tuple([found for channel in places if (found := await _place(client, channel, name)) is not None])


async def _place(client: SlackClient, channel: str, name: str) -> Finding | None:
    name = f"{name} channel {channel}"
    try:
        told = table(await client.call("conversations.info", {"channel": channel}), "channel")
    except SlackRefused as error:
        if error.error != "channel_not_found":
            return None  # a missing scope is reported elsewhere
        says = "the app is not in it and receives nothing there, or Slack knows no such channel"
        return Finding(name=name, ok=False, says=says, cure="Check the id; /invite the app there.")
    if yes(told, "is_archived"):
        return Finding(name=name, ok=False, says="it is archived", cure="Remove it from the configuration.")
    if told.get("is_member") is not False:
        return None
    says = f"the app is not in #{line(told, 'name') or channel} and receives nothing there"
    return Finding(name=name, ok=False, says=says, cure="/invite the app there.")


def _token(me: SlackAnswer, name: str) -> Iterator[Finding]:
    who, team = line(me.told, "user"), line(me.told, "team")
    yield Finding(name=f"{name} token", ok=True, says=f"it is @{who}'s in {team}" if who and team else "it is valid")
    if not me.scopes:
        yield Finding(name=f"{name} scopes", ok=True, says="Slack does not say which scopes it has")
        return
    missing = [scope for scope in SCOPES if scope not in me.scopes]
    if not missing:
        yield Finding(name=f"{name} scopes", ok=True, says="it has all that are needed")
        return
    effects = "; ".join(_WHAT_FOR[scope] for scope in missing if scope in _WHAT_FOR)
    yield Finding(
        name=f"{name} scopes",
        ok=False,
        says=f"missing: {', '.join(missing)}{f' ({effects})' if effects else ''}",
        cure="OAuth & Permissions, Scopes, Bot Token Scopes: add them; then Install App, Reinstall to Workspace.",
    )


async def _socket(try_line: TryLine, name: str) -> Finding:
    name = f"{name} socket mode"
    try:
        await try_line()
    except Unauthorized as error:
        cure = "Basic Information, App-Level Tokens: make one with the scope connections:write."
        return Finding(name=name, ok=False, says=f"the app token: {error}", cure=cure)
    except SlackRefused as error:
        cure = "Settings, Socket Mode, Enable Socket Mode; and an app-level token with the scope connections:write."
        why = "the app token lacks a scope" if error.error == "missing_scope" else "Socket Mode is off"
        return Finding(name=name, ok=False, says=f"no socket can be opened ({error.error}): {why}", cure=cure)
    except AdapterError as error:
        return Finding(name=name, ok=False, says=str(error), cure="Check that this machine reaches Slack.")
    return Finding(name=name, ok=True, says="a socket can be opened")


async def _channels(client: SlackClient, name: str) -> Finding:
    name = f"{name} channels"
    try:
        told = await client.call("users.conversations", CHANNELS_ASKED)
    except AdapterError as error:
        return Finding(name=name, ok=True, says=f"Slack does not say which channels the app is in ({error})")
    inside = len(tables(told, "channels"))
    cure = "" if inside else "For channels: /invite the app in each; direct messages need nothing."
    says = f"it is in {inside}" if inside else "it is in none, and receives only direct messages"
    return Finding(name=name, ok=True, says=says, cure=cure)
