"""What the doctor can find out about a bot: its token, what it may read in groups, its webhook, our clock."""

from collections.abc import Iterator

from belino.adapters.telegram.calls import Answered, Calls
from belino.adapters.telegram.raw import moment
from belino.domain.errors import AdapterError, Unauthorized
from belino.domain.outcome import Finding
from belino.domain.ports import Clock
from belino.net.raw import Raw, as_table, count, line, whole, words, yes

SKEW_SECONDS = 60.0


async def check_bot(calls: Calls, clock: Clock, *, name: str, webhook: bool) -> tuple[Finding, ...]:
    """Everything in two calls that change nothing; `webhook` says whether we expect to be called."""
    try:
        me = await calls.ask("getMe")
    except Unauthorized as error:
        cure = "Open @BotFather, /mybots, the bot, API Token; run `belino setup telegram` with it."
        return (Finding(name=f"{name} token", ok=False, says=str(error), cure=cure),)
    except AdapterError as error:
        cure = "See whether this machine reaches the Bot API."
        return (Finding(name=f"{name} token", ok=False, says=str(error), cure=cure),)
    try:
        hook = _hook(as_table(await calls.call("getWebhookInfo")), name, webhook=webhook)
    except AdapterError:
        hook = Finding(name=f"{name} webhook", ok=False, says="the Bot API does not tell whether one is set")
    return (*_bot(as_table(me.result), name), hook, *_clock(me, clock, name))


def _bot(me: Raw, name: str) -> Iterator[Finding]:
    who = line(me, "username")
    yield Finding(name=f"{name} token", ok=True, says=f"it is @{who}'s" if who else "it is good")
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
    name, is_set = f"{name} webhook", bool(words(hook, "url"))
    if not webhook:
        cure = 'Delete it with deleteWebhook, or set mode = "webhook".'
        says = "a webhook is still set, so this bot cannot be polled" if is_set else "none is set, as polling needs it"
        return Finding(name=name, ok=not is_set, says=says, cure=cure if is_set else "")
    if not is_set:
        return Finding(name=name, ok=False, says="none is set", cure="Set public_url, or call setWebhook yourself.")
    waiting = count(hook, "pending_update_count") or 0
    if whole(hook, "last_error_date"):
        says = f"Telegram last failed at {moment(hook, 'last_error_date'):%Y-%m-%d %H:%M} UTC; {waiting} updates wait"
        why = line(hook, "last_error_message")
        return Finding(name=name, ok=not waiting, says=says, cure=f"Telegram says: {why}" if why else "")
    return Finding(name=name, ok=True, says=f"set; {waiting} updates wait")


def _clock(me: Answered, clock: Clock, name: str) -> Iterator[Finding]:
    if me.date is None:
        return
    skew = abs((clock.now() - me.date).total_seconds())
    good = skew <= SKEW_SECONDS
    says = "it agrees with Telegram's" if good else f"it is {skew:.0f} seconds away from Telegram's"
    yield Finding(name=f"{name} clock", ok=good, says=says, cure="" if good else "Let the machine set its clock (NTP).")
