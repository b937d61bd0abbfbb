"""Access: denied, observed or may command, one decision for every kind of arrival, before its content is read."""

from collections.abc import Sequence
from datetime import UTC, datetime

from belino.config import AccessConfig
from belino.domain.message import (
    Arrival,
    Author,
    ChatType,
    ConversationKey,
    Deletion,
    DeliveryStatus,
    Edit,
    Message,
    Reaction,
    Unsupported,
)
from belino.domain.outcome import Standing
from belino.domain.stored import Requester, StoredMessage, Verdict

EVERYBODY = "*"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def decide(
    arrival: Arrival,
    access: AccessConfig,
    *,
    trusts_senders: bool = False,
    about: StoredMessage | None = None,
    heard: bool = False,
    paired: bool = False,
) -> Verdict:
    """What the sender may do here.

    `trusts_senders`: the adapter lets nobody speak who has not logged in. `about`: the message that an edit, deletion,
    reaction or delivery status is about, if this channel has it. `heard`: this channel has any message. `paired`: an
    operator approved the sender's code, which counts in direct messages and nowhere else.
    """
    verdict = _place(arrival, access, trusts_senders=trusts_senders, about=about, heard=heard, paired=paired)
    if verdict.standing is Standing.DENIED:
        return verdict
    if arrival.author is not None and arrival.author.is_agent:
        return _observed("our own agent said it")
    if isinstance(arrival, Edit) and _rewrites_a_command(verdict, about):
        return _denied("only who may command may change a command")
    answer = isinstance(arrival, Message) and verdict.standing is Standing.MAY_COMMAND
    return Verdict(standing=verdict.standing, reason=verdict.reason, answer=answer)


def still_may(
    asker: Requester, conversation: ConversationKey, access: AccessConfig, *, trusts_senders: bool, paired: bool
) -> Verdict:
    """What whoever asked for an answer would be let do now: an answer must not outlive the right to it."""
    author = asker.author
    asked = Message(
        conversation=conversation, id="", author=author, sent=EPOCH, text="", chat_type=asker.chat_type, addressed=True
    )
    return decide(asked, access, trusts_senders=trusts_senders, paired=paired)


def may_pair(arrival: Arrival, access: AccessConfig) -> bool:
    """Whether the sender is somebody whom a pairing would let in here: a person who writes directly, not on the list.

    A bot is never told a code: two that answer each other would not stop. Nor is who writes to somebody else, in a
    direct chat that the agent only reads along (a business account's).
    """
    author = arrival.author
    if access.direct != "pairing" or author is None or author.is_bot or author.is_agent or _on(access.senders, author):
        return False
    if isinstance(arrival, Message | Unsupported):
        return arrival.chat_type is ChatType.DIRECT and (arrival.addressed or isinstance(arrival, Unsupported))
    return arrival.conversation.channel not in access.channels


def _place(
    arrival: Arrival,
    access: AccessConfig,
    *,
    trusts_senders: bool,
    about: StoredMessage | None,
    heard: bool,
    paired: bool,
) -> Verdict:
    if trusts_senders:
        return _may_command("logged in")
    listed = arrival.conversation.channel in access.channels
    if isinstance(arrival, Message | Unsupported):
        direct = arrival.chat_type is ChatType.DIRECT
    elif isinstance(arrival, DeliveryStatus):
        # News of what we sent ourselves; it may come before the receipt, and holds nobody's words.
        return _observed("the platform says so")
    elif about is None and not listed and not _may_be_early(arrival, heard=heard):
        # What became of a message is told without the sort of place; one that was never kept tells nothing new.
        return _denied("about a message that was never kept")
    else:
        direct = not listed
    if not direct:
        return _channel(arrival, access)
    verdict = _direct(arrival.author, access, paired=paired)
    overheard = isinstance(arrival, Message) and not arrival.addressed and verdict.standing is Standing.MAY_COMMAND
    return _observed("the agent was not addressed") if overheard else verdict


def _may_be_early(arrival: Arrival, *, heard: bool) -> bool:
    """Whether a change says that it is of a direct message: it may have overtaken it, and nobody tells it again.

    Where nobody is said to have made it, nobody can be judged: then it is believed only where something was kept.
    """
    if not isinstance(arrival, Edit | Deletion | Reaction) or arrival.chat_type is not ChatType.DIRECT:
        return False
    return heard or arrival.author is not None


def _direct(author: Author | None, access: AccessConfig, *, paired: bool) -> Verdict:
    if author is None:
        return _observed("the platform says so")
    if _on(access.senders, author):
        return _may_command("on the list for direct messages")
    if access.direct == "list" or author.is_bot:
        return _denied("not on the list for direct messages")
    return _may_command("paired") if paired else _denied("not paired")


def _channel(arrival: Arrival, access: AccessConfig) -> Verdict:
    rules = access.channels.get(arrival.conversation.channel)
    if rules is None:
        return _denied("the channel is not listed")
    if arrival.author is None:
        return _observed("the platform says so")
    if not _on(rules.senders, arrival.author):
        return _observed("not on the channel's list")
    if isinstance(arrival, Message | Unsupported) and rules.mention and not arrival.addressed:
        return _observed("the agent was not addressed")
    return _may_command("on the channel's list")


def _on(senders: Sequence[str], author: Author) -> bool:
    # Everybody means every person: two bots that may command each other would never stop talking.
    return author.id in senders or (EVERYBODY in senders and not author.is_bot)


def _rewrites_a_command(verdict: Verdict, about: StoredMessage | None) -> bool:
    return about is not None and about.standing is Standing.MAY_COMMAND and verdict.standing is not Standing.MAY_COMMAND


def _denied(reason: str) -> Verdict:
    return Verdict(standing=Standing.DENIED, reason=reason)


def _observed(reason: str) -> Verdict:
    return Verdict(standing=Standing.OBSERVED, reason=reason)


def _may_command(reason: str) -> Verdict:
    return Verdict(standing=Standing.MAY_COMMAND, reason=reason)
