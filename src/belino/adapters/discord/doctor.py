"""Doctor checks of a bot: its token, intents, servers and gateway."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

from belino.adapters.discord.authors import CATEGORY, as_identity, identity, read_channel
from belino.adapters.discord.client import DiscordClient, DiscordRefused
from belino.domain.errors import AdapterError
from belino.domain.outcome import Finding
from belino.net.json_fields import Raw, as_table, as_tables, count, line, table, words
from belino.net.rest import token_finding

# The application's flags for the message content intent: for verified bots, and for bots in few servers.
MESSAGE_CONTENT_FLAGS = 1 << 18 | 1 << 19
ADMINISTRATOR = 1 << 3
PERMISSIONS = {
    "View Channel": 1 << 10,
    "Send Messages": 1 << 11,
    "Attach Files": 1 << 15,
    "Read Message History": 1 << 16,
    "Send Messages in Threads": 1 << 38,
    "Send Voice Messages": 1 << 46,
}
FOR_THREADS = {"Create Public Threads": 1 << 35}
"""What `reply_in_threads` needs besides."""
SERVERS_NAMED = 5
FEW_SESSIONS = 10
MOST_CHANNELS, NAMED = 20, 40
EVERY = "*"


async def check_bot(client: DiscordClient, *, name: str, in_threads: bool = False) -> tuple[Finding, ...]:
    """All findings, by four calls that change nothing."""
    wanted = PERMISSIONS | (FOR_THREADS if in_threads else {})
    try:
        me = as_table(await client.call("GET", "/users/@me"))
    except AdapterError as error:
        renew = "Open the developer portal, the application, Bot, Reset Token; run `belino setup discord` with it."
        return (token_finding(name, error, renew=renew, api="Discord"),)
    who = line(me, "username")
    found = [Finding(name=f"{name} token", ok=True, says=f"it is {who}'s" if who else "it is valid")]
    # Early bots have another id than their application, whose id the link needs.
    link = invite_link(identity(me, "id"), wanted)
    try:
        application = as_table(await client.call("GET", "/applications/@me"))
        link = invite_link(identity(application, "id") or identity(me, "id"), wanted)
        found.append(_intent(application, name))
    except AdapterError as error:
        found.append(Finding(name=f"{name} intent", ok=False, says=str(error)))
    for part, look in (("servers", _servers(client, name, link, wanted)), ("gateway", _gateway(client, name))):
        try:
            found += [finding async for finding in look]
        except AdapterError as error:
            found.append(Finding(name=f"{name} {part}", ok=False, says=str(error)))
    return tuple(found)


async def check_listed(client: DiscordClient, channels: Sequence[str], *, name: str) -> tuple[Finding, ...]:
    """Problems with channels that the operator listed."""
    listed = [channel for channel in channels if channel != EVERY][:MOST_CHANNELS]
    return tuple([found for channel in listed if (found := await _channel(client, channel, name)) is not None])


async def _channel(client: DiscordClient, channel: str, name: str) -> Finding | None:
    says, cure = "it is not a Discord id", "Copy it again: Developer Mode, a right click on the channel, Copy ID."
    try:
        place = (
            read_channel(as_table(await client.call("GET", "/channels/{}", channel))) if as_identity(channel) else None
        )
        if place is not None and place.is_thread:
            says, cure = "it is a thread", f"List its channel instead, {place.parent}: that counts for all its threads."
        elif place is not None and place.kind == CATEGORY:
            says, cure = "it is a category", "List the channels in it."
        elif place is not None:
            return None
    except DiscordRefused as error:
        says = "Discord knows no such channel"
        if error.status == 403:
            says, cure = "the bot does not see it and receives nothing there", "Give its role View Channel there."
    return Finding(name=f"{name} channel {channel[:NAMED]}", ok=False, says=says, cure=cure)


def invite_link(application: str, wanted: Mapping[str, int] = PERMISSIONS) -> str:
    """The invitation link for an administrator, with only the permissions that the bot needs."""
    bits = sum(wanted.values())
    return f"https://discord.com/oauth2/authorize?client_id={application}&scope=bot&permissions={bits}"


def _intent(application: Raw, name: str) -> Finding:
    if (count(application, "flags") or 0) & MESSAGE_CONTENT_FLAGS:
        return Finding(name=f"{name} intent", ok=True, says="it may read messages: the message content intent is on")
    return Finding(
        name=f"{name} intent",
        ok=False,
        says="the message content intent is off: in servers it reads only what is said to it, without context",
        cure="Open the developer portal, the application, Bot, Privileged Gateway Intents; switch on Message Content "
        "Intent, and restart belino.",
    )


async def _servers(client: DiscordClient, name: str, link: str, wanted: Mapping[str, int]) -> AsyncIterator[Finding]:
    servers = as_tables(await client.call("GET", "/users/@me/guilds"))
    if not servers:
        cure = f"Open {link} and choose a server; people can only write to it if they share one with it."
        yield Finding(name=f"{name} servers", ok=False, says="it is in no server", cure=cure)
        return
    names = ", ".join(line(server, "name", most=40) for server in servers[:SERVERS_NAMED])
    more = f" and {len(servers) - SERVERS_NAMED} more" if len(servers) > SERVERS_NAMED else ""
    yield Finding(name=f"{name} servers", ok=True, says=f"it is in {names}{more}; to let it into another, open {link}")
    for finding in _lacking(servers, name, link, wanted):
        yield finding


def _lacking(servers: tuple[Raw, ...], name: str, link: str, wanted: Mapping[str, int]) -> Iterator[Finding]:
    for server in servers:
        held = words(server, "permissions")
        if not held.isdigit() or int(held) & ADMINISTRATOR:
            continue
        lacks = [label for label, bit in wanted.items() if not int(held) & bit]
        if lacks:
            says = f"in {line(server, 'name', most=40)} its role lacks {', '.join(lacks)}"
            yield Finding(
                name=f"{name} permissions", ok=False, says=says, cure=f"Give them to its role, or open {link}"
            )


async def _gateway(client: DiscordClient, name: str) -> AsyncIterator[Finding]:
    limit = table(as_table(await client.call("GET", "/gateway/bot")), "session_start_limit")
    left = count(limit, "remaining")
    good = left is None or left >= FEW_SESSIONS
    says = "it may start sessions" if good else f"it may start only {left} more sessions today"
    cure = "" if good else "Find out what restarts it so often: see `belino status` and the log."
    yield Finding(name=f"{name} gateway", ok=good, says=says, cure=cure)
