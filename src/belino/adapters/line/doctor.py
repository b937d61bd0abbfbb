"""Doctor checks of an account: its token, webhook, secret, quota and the local clock."""

from collections.abc import Iterator, Sequence

from belino.adapters.line.client import LineClient, LineRefused
from belino.domain.errors import AdapterError
from belino.domain.outcome import Finding
from belino.net.json_fields import Raw, count, line, whole, words, yes
from belino.net.rest import clock_findings, token_finding

CONSOLE = "LINE Developers Console, your channel, Messaging API"
FEW = 0.9
"""The share of the month's messages above which the doctor warns."""


async def check_account(client: LineClient, *, name: str, path: str) -> tuple[Finding, ...]:
    """All findings, by calls that change nothing; `path` is where this account takes webhooks."""
    try:
        me = await client.ask("info")
    except AdapterError as error:
        renew = f"Issue a channel access token: {CONSOLE}; run `belino setup line` with it."
        return (token_finding(name, error, renew=renew, api="the Messaging API"),)
    return (
        *_account(me.told, name),
        await _webhook(client, name, path),
        *await _quota(client, name),
        *clock_findings(name, "LINE", theirs=me.date, ours=client.now()),
    )


async def check_listed(client: LineClient, channels: Sequence[str], *, name: str) -> tuple[Finding, ...]:
    """The groups among these that the account is not in; of rooms LINE tells nothing."""
    found = []
    for channel in (each for each in channels if each.startswith("C")):
        try:
            await client.get("group", channel, "summary")
        except LineRefused:
            cure = "Invite the account to the group; first allow it in the console: Messaging API, Allow bot to join."
            says = "the account is not in this group"
            found.append(Finding(name=f"{name} channel {channel}", ok=False, says=says, cure=cure))
    return tuple(found)


def _account(me: Raw, name: str) -> Iterator[Finding]:
    shown, own = line(me, "displayName"), line(me, "basicId")
    yield Finding(name=f"{name} token", ok=True, says=f"it is that of {shown or 'an account'} ({own})")


async def _webhook(client: LineClient, name: str, path: str) -> Finding:
    """Whether LINE calls us, and we take its calls: LINE tries that itself."""
    name, enter = f"{name} webhook", f"{CONSOLE}, Webhook settings: enter https://YOUR-HOST{path} and turn it on."
    try:
        hook = await client.get("channel", "webhook", "endpoint")
    except LineRefused as error:
        if error.status == 404:
            return Finding(name=name, ok=False, says="no URL is set, so no message arrives", cure=enter)
        return Finding(name=name, ok=False, says=f"LINE does not say whether one is set: {error.description}")
    except AdapterError as error:
        return Finding(name=name, ok=False, says=f"LINE does not say whether one is set: {error}")
    if not words(hook, "endpoint").endswith(path):
        return Finding(name=name, ok=False, says="LINE calls another address than this account's", cure=enter)
    if not yes(hook, "active"):
        return Finding(name=name, ok=False, says="its use is turned off, so no message arrives", cure=enter)
    return await _tried(client, name)


async def _tried(client: LineClient, name: str) -> Finding:
    try:
        told = await client.post("channel", "webhook", "test", fields={})
    except AdapterError:
        return Finding(name=name, ok=True, says="it is set and on; LINE could not try it now")
    if yes(told, "success"):
        return Finding(name=name, ok=True, says="it is set and on, and LINE reaches belino by it")
    status, why = whole(told, "statusCode"), line(told, "reason")
    if status == 401:
        cure = "Copy the channel secret again: LINE Developers Console, your channel, Basic settings."
        return Finding(name=name, ok=False, says="belino refuses LINE's calls: channel_secret is another's", cure=cure)
    says = f"LINE does not reach belino by it: {why or 'no reason given'}{f' (status {status})' if status else ''}"
    return Finding(name=name, ok=False, says=says, cure="Start `belino serve`, and see that the address leads to it.")


async def _quota(client: LineClient, name: str) -> tuple[Finding, ...]:
    """How many messages of the month are left; answers within a minute are not counted."""
    try:
        quota, used = await client.get("message", "quota"), await client.get("message", "quota", "consumption")
    except AdapterError:
        return (Finding(name=f"{name} quota", ok=False, says="LINE does not say how many messages are left"),)
    most, sent = count(quota, "value"), count(used, "totalUsage") or 0
    if words(quota, "type") != "limited" or most is None:
        return (Finding(name=f"{name} quota", ok=True, says=f"no limit is set; {sent} messages this month"),)
    cure = "Choose a larger plan in the LINE Official Account Manager." if sent >= most * FEW else ""
    says = f"{sent} of {most} messages are sent this month"
    return (Finding(name=f"{name} quota", ok=sent < most, says=says, cure=cure),)
