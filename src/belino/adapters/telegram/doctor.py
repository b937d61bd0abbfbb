"""Doctor checks of a bot: its token, privacy mode, webhook and the local clock."""

import os
from collections.abc import Iterator
from pathlib import Path

from belino.adapters.telegram.client import TelegramClient
from belino.domain.errors import AdapterError
from belino.domain.outcome import Finding
from belino.domain.ports import Clock
from belino.net.json_fields import Raw, as_table, count, line, unix_time, whole, words, yes
from belino.net.rest import clock_findings, token_finding


async def check_bot(client: TelegramClient, clock: Clock, *, name: str, webhook: bool) -> tuple[Finding, ...]:
    """All findings, by two calls that change nothing; `webhook` says whether one should be set."""
    try:
        me = await client.ask("getMe")
    except AdapterError as error:
        renew = "Open @BotFather, /mybots, the bot, API Token; run `belino setup telegram` with it."
        return (token_finding(name, error, renew=renew, api="the Bot API"),)
    try:
        hook = _hook(as_table(await client.call("getWebhookInfo")), name, webhook=webhook)
    except AdapterError:
        hook = Finding(name=f"{name} webhook", ok=False, says="the Bot API does not say whether one is set")
    return (*_bot(as_table(me.result), name), hook, *clock_findings(name, "Telegram", theirs=me.date, ours=clock.now()))


def local_findings(name: str, root: Path | None, *, large: bool) -> Iterator[Finding]:
    """What a server with --local gives: the size of its files, and whether its folder can be read."""
    if large:
        says = "the server gives files of up to 2000 MB, of which belino fetches those within media.max_bytes"
        yield Finding(name=f"{name} size", ok=True, says=says)
    if root is None:
        return
    good = root.is_dir() and not root.is_symlink() and os.access(root, os.R_OK | os.X_OK)
    says = "the server's folder can be read" if good else "the server's folder (local_root) cannot be read"
    cure = "" if good else "Let belino's user read it, for example by the group of the server's user; it is no link."
    yield Finding(name=f"{name} files", ok=good, says=says, cure=cure)


def _bot(me: Raw, name: str) -> Iterator[Finding]:
    who = line(me, "username")
    yield Finding(name=f"{name} token", ok=True, says=f"it is @{who}'s" if who else "it is valid")
    if yes(me, "can_read_all_group_messages"):
        yield Finding(name=f"{name} privacy", ok=True, says="privacy mode is off: it reads all messages of its groups")
    else:
        yield Finding(
            name=f"{name} privacy",
            ok=True,
            says="privacy mode is on: in groups it reads only commands, mentions and answers to it, unless it is an "
            "administrator there",
            cure="For context in groups: @BotFather, /setprivacy, Disable; then remove the bot from the group and add "
            "it again.",
        )


def _hook(hook: Raw, name: str, *, webhook: bool) -> Finding:
    account, name, is_set = name, f"{name} webhook", bool(words(hook, "url"))
    if not webhook:
        cure = (
            f"If the program behind it is no longer used: `belino doctor --take-over {account}`, or without a running "
            'gateway `belino setup telegram --take-over`. Else set mode = "webhook".'
        )
        says = "a webhook is still set, so this bot cannot be polled" if is_set else "none is set, as polling needs it"
        return Finding(name=name, ok=not is_set, says=says, cure=cure if is_set else "")
    if not is_set:
        return Finding(name=name, ok=False, says="none is set", cure="Set public_url, or call setWebhook yourself.")
    waiting = count(hook, "pending_update_count") or 0
    if whole(hook, "last_error_date"):
        says = (
            f"Telegram last failed at {unix_time(hook, 'last_error_date'):%Y-%m-%d %H:%M} UTC; {waiting} updates wait"
        )
        why = line(hook, "last_error_message")
        return Finding(name=name, ok=not waiting, says=says, cure=f"Telegram says: {why}" if why else "")
    return Finding(name=name, ok=True, says=f"set; {waiting} updates wait")
