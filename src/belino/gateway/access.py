"""Access: one decision (denied, observed or may command) for every kind of arrival, before its content is read.

A person who writes directly without access may get a pairing code, which an operator approves.
"""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from belino.config import AccessConfig, ChannelAccess
from belino.domain.context import ChannelFacts
from belino.domain.media import MediaKind
from belino.domain.message import (
    SERVER,
    Arrival,
    Author,
    ChatType,
    ConversationKey,
    Deletion,
    DeliveryStatus,
    Edit,
    Message,
    Presence,
    Reaction,
    Unsupported,
)
from belino.domain.outcome import Standing
from belino.domain.owner import PLATFORM_EVENT, GroupAccess, GroupState
from belino.domain.places import Moved
from belino.domain.reply import Parcel
from belino.domain.safe_text import clean_name
from belino.domain.stored import ClaimedParcel, Requester, StoredMessage, Verdict
from belino.gateway.addressing import continued, may_continue, wake_word
from belino.storage.access import AccessVerbs
from belino.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountAccess:
    """The access rules of one account."""

    access: AccessConfig
    trusts_senders: bool = False
    """The adapter accepts only senders who are logged in."""


EVERYBODY = "*"
NO_FACTS = ChannelFacts()
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""32 characters, none of which looks like another."""
CODE_CHARS = 8
"""Five bits each: a guess hits one of three codes with probability 3 in 10^12, and there are five guesses."""
NAME_CHARS = 64

_MISREAD = str.maketrans({"O": "0", "I": "1", "L": "1"})


def decide(
    arrival: Arrival,
    access: AccessConfig,
    *,
    trusts_senders: bool = False,
    about: StoredMessage | None = None,
    heard: bool = False,
    paired: bool = False,
    facts: ChannelFacts = NO_FACTS,
) -> Verdict:
    """Decide what the sender may do here.

    `trusts_senders`: the adapter accepts only senders who are logged in. `about`: the message that an edit, deletion,
    reaction or delivery status is about, if this channel has it. `heard`: this channel has any message. `paired`: an
    operator approved the sender's code, which counts in direct messages and nowhere else. `facts`: what is known of the
    place (`channel_facts`).
    """
    if trusts_senders:
        verdict = _may_command("logged in")
    else:
        verdict = _place(arrival, access, about=about, heard=heard, paired=paired, facts=facts)
    if verdict.standing is Standing.DENIED:
        # Platform noise is counted apart from people who were not allowed to speak.
        is_noise = isinstance(arrival, Unsupported) and arrival.is_event
        return _denied(PLATFORM_EVENT) if is_noise else verdict
    if arrival.conversation.channel.startswith(SERVER):
        return _denied(PLATFORM_EVENT)  # about a server as a whole, which is no place where something is said
    if arrival.author is not None and arrival.author.is_agent:
        return _observed("our own agent said it")
    if isinstance(arrival, Edit) and _rewrites_a_command(verdict, about):
        return _denied("only who may command may change a command")
    answer = isinstance(arrival, Message) and verdict.standing is Standing.MAY_COMMAND
    by_bot = answer and not trusts_senders and arrival.author is not None and arrival.author.is_bot
    if by_bot and facts.bot_turns >= access.bot_turns:  # two bots that answer each other would not stop
        return _observed(f"a bot wrote it, and no person wrote since {facts.bot_turns} answers to bots (bot_turns)")
    return replace(verdict, answer=answer)


async def channel_facts(store: Store, arrival: Arrival, account: AccountAccess) -> ChannelFacts:
    """What the store knows about the place of an arrival; it is asked only for what may decide."""
    access, where, author = account.access, arrival.conversation, arrival.author
    if account.trusts_senders:
        return NO_FACTS
    server = arrival.server if isinstance(arrival, Message | Unsupported) else ""
    facts = replace(NO_FACTS, server=server)
    if access.is_broad and not server:
        facts = await store.channel_facts(where)
    if not isinstance(arrival, Message) or author is None or author.is_agent:
        return facts
    if author.is_bot:
        return replace(facts, bot_turns=await store.bot_turns(where))
    rules = access.rules(where.channel, facts.server)
    if rules is None or arrival.addressed or not rules.mention or not may_continue(arrival, access, rules):
        return facts
    since = arrival.sent - timedelta(minutes=access.minutes(rules))
    spoke = await store.agent_spoke(where, reply_to=arrival.reply_to, since=since, until=arrival.sent)
    return replace(facts, spoke=spoke)


async def wake_words(store: Store, conversation: ConversationKey, account: AccountAccess | None) -> tuple[str, ...]:
    """The words that address the agent in a conversation like its name."""
    if account is None:
        return ()
    facts = await store.channel_facts(conversation) if account.access.is_broad else NO_FACTS
    rules = account.access.rules(conversation.channel, facts.server)
    return account.access.wake_words if rules is None else account.access.words(rules)


def still_may(
    asker: Requester, conversation: ConversationKey, access: AccessConfig, *, trusts_senders: bool, paired: bool
) -> Verdict:
    """Decide again for the requester of an answer: it must not be sent after their access is withdrawn."""
    author = asker.author
    asked = Message(
        conversation=conversation, id="", author=author, sent=EPOCH, text="", chat_type=asker.chat_type, addressed=True
    )
    # A bot's turn was counted when it was accepted.
    facts, counted = replace(NO_FACTS, server=asker.server), replace(access, bot_turns=1)
    return decide(asked, counted, trusts_senders=trusts_senders, paired=paired, facts=facts)


async def why_not_still(claimed: ClaimedParcel, store: Store, account: AccountAccess | None) -> str:
    """Why an answer may no longer be sent: a file is damaged, or the access of one of its requesters was withdrawn."""
    where = claimed.parcel.conversation
    for file in claimed.parcel.files:
        if await store.blob(file.sha256) is None:
            return f"the bytes of {file.name} are damaged or missing on this disk"
    if account is None:
        return ""
    for asker in claimed.askers:
        paired = await store.is_paired(where.platform, where.account, asker.author.id)
        verdict = still_may(asker, where, account.access, trusts_senders=account.trusts_senders, paired=paired)
        if verdict.standing is not Standing.MAY_COMMAND:
            return f"a sender who asked for it may no longer command the agent ({verdict.reason})"
    return ""


def to_hear(arrival: Arrival, access: AccessConfig, verdict: Verdict, facts: ChannelFacts = NO_FACTS) -> bool:
    """Whether only its sound can tell if a message addresses the agent: of a sender who may then command it."""
    if not isinstance(arrival, Message) or arrival.author.is_bot or arrival.author.is_agent:
        return False
    if verdict.standing is not Standing.OBSERVED or arrival.chat_type is ChatType.DIRECT or arrival.album is not None:
        return False
    is_silent = not arrival.text.strip() and not any((ref.caption or "").strip() for ref in arrival.media)
    is_voice = any(ref.kind in (MediaKind.VOICE, MediaKind.AUDIO) for ref in arrival.media)
    addressed = decide(replace(arrival, addressed=True), access, facts=facts)
    return is_silent and is_voice and addressed.standing is Standing.MAY_COMMAND


def may_pair(arrival: Arrival, access: AccessConfig) -> bool:
    """Whether a pairing code may be offered: the sender is a person who writes directly and is not on the list.

    Bots get no code: two bots that answer each other would not stop. Nor does the sender of a direct message to another
    person that the agent only reads (a business account's chat).
    """
    author = arrival.author
    if access.direct != "pairing" or author is None or author.is_bot or author.is_agent or _on(access.senders, author):
        return False
    if isinstance(arrival, Message | Unsupported):
        return arrival.chat_type is ChatType.DIRECT and (arrival.addressed or isinstance(arrival, Unsupported))
    return access.rules(arrival.conversation.channel) is None


def may_ask(arrival: Arrival, access: AccessConfig) -> bool:
    """Whether the owner is asked about a group: the agent was added there, or a person addresses it there."""
    server = arrival.server if isinstance(arrival, Message | Unsupported) else ""
    if access.groups != "ask" or access.rules(arrival.conversation.channel, server) is not None:
        return False
    if isinstance(arrival, Unsupported):
        return arrival.presence is Presence.ADDED and arrival.chat_type is not ChatType.DIRECT
    author = arrival.author
    is_person = author is not None and not (author.is_bot or author.is_agent)
    return isinstance(arrival, Message) and arrival.chat_type is not ChatType.DIRECT and arrival.addressed and is_person


def is_leaving(arrival: Arrival) -> bool:
    """Whether an arrival says that the agent was removed from its channel."""
    return isinstance(arrival, Unsupported) and arrival.presence is Presence.REMOVED


def with_groups(access: AccessConfig, owners: Sequence[str], groups: Iterable[GroupAccess]) -> AccessConfig:
    """The rules of an account with its owners and the groups that they allowed; what is configured comes first.

    In an allowed group the agent answers only when it is addressed, by who added it and the owners, or by everyone.
    """
    allowed = {
        group.channel.channel: ChannelAccess(senders=_commanders(group, owners))
        for group in groups
        if group.state is GroupState.ALLOWED
    }
    senders = (*access.senders, *(owner for owner in owners if owner not in access.senders))
    return replace(access, senders=senders, channels={**allowed, **access.channels})


def with_moves(access: AccessConfig, moves: Iterable[Moved]) -> AccessConfig:
    """The rules of an account whose channels moved: what is configured for the new id comes before that for the old."""
    ours = {move.old: access.channels[move.new] for move in moves if move.new in access.channels}
    return replace(access, channels={**access.channels, **ours}) if ours else access


def _commanders(group: GroupAccess, owners: Sequence[str]) -> tuple[str, ...]:
    if group.everyone:
        return (EVERYBODY,)
    return tuple(dict.fromkeys(sender for sender in (group.inviter_id, *owners) if sender))


def _place(
    arrival: Arrival,
    access: AccessConfig,
    *,
    about: StoredMessage | None,
    heard: bool,
    paired: bool,
    facts: ChannelFacts,
) -> Verdict:
    listed = _is_listed(arrival, access, facts)
    if isinstance(arrival, Message | Unsupported):
        direct = arrival.chat_type is ChatType.DIRECT
    elif isinstance(arrival, DeliveryStatus):
        # Status of a message we sent ourselves; it may come before the receipt, and it has no user content.
        return _observed("the platform says so")
    elif about is None and not listed and not _may_be_early(arrival, heard=heard):
        # These arrivals do not carry the chat type; one about a message that was never stored adds nothing.
        return _denied("about a message that was never kept")
    else:
        direct = not listed
    if not direct:
        return _channel(arrival, access, facts)
    verdict = _direct(arrival.author, access, paired=paired)
    overheard = isinstance(arrival, Message) and not arrival.addressed and verdict.standing is Standing.MAY_COMMAND
    return _overheard() if overheard else verdict


def _is_listed(arrival: Arrival, access: AccessConfig, facts: ChannelFacts) -> bool:
    """Whether rules for channels count here; those for several count for no direct conversation."""
    if arrival.conversation.channel in access.channels:
        return True
    told = None if isinstance(arrival, DeliveryStatus) else arrival.chat_type
    is_direct = facts.is_direct if told is None else told is ChatType.DIRECT
    # Of a change whose channel is unknown, no message is kept.
    return is_direct is False and access.rules(arrival.conversation.channel, facts.server) is not None


def _may_be_early(arrival: Arrival, *, heard: bool) -> bool:
    """Whether a change of a direct message may have overtaken the message: platforms report a change only once.

    A change without an author cannot be checked; it is accepted only if this channel has any message.
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


def _channel(arrival: Arrival, access: AccessConfig, facts: ChannelFacts) -> Verdict:
    rules = access.rules(arrival.conversation.channel, facts.server)
    if rules is None:
        return _denied("the channel is not listed")
    if arrival.author is None:
        return _observed("the platform says so")
    if not _on(rules.senders, arrival.author):
        return _observed("not on the channel's list")
    if isinstance(arrival, Message | Unsupported) and rules.mention and not arrival.addressed:
        why = _addressed(arrival, access, rules, facts) if isinstance(arrival, Message) else ""
        return _may_command(why) if why else _overheard()
    return _may_command("on the channel's list")


def _addressed(message: Message, access: AccessConfig, rules: ChannelAccess, facts: ChannelFacts) -> str:
    """Why a message without a mention addresses the agent all the same; empty if it does not."""
    if word := wake_word(message, access.words(rules)):
        return f"says {word!r}"
    return continued(facts.spoke, message, access, rules)


def _on(senders: Sequence[str], author: Author) -> bool:
    # "Everybody" means every person: two bots that may command each other would never stop talking.
    return author.id in senders or (EVERYBODY in senders and not author.is_bot)


def _rewrites_a_command(verdict: Verdict, about: StoredMessage | None) -> bool:
    return about is not None and about.standing is Standing.MAY_COMMAND and verdict.standing is not Standing.MAY_COMMAND


def _denied(reason: str) -> Verdict:
    return Verdict(standing=Standing.DENIED, reason=reason)


def _observed(reason: str) -> Verdict:
    return Verdict(standing=Standing.OBSERVED, reason=reason)


def _overheard() -> Verdict:
    return Verdict(standing=Standing.OBSERVED, reason="the agent was not addressed", sender_may_command=True)


def _may_command(reason: str) -> Verdict:
    return Verdict(standing=Standing.MAY_COMMAND, reason=reason, sender_may_command=True)


async def offer_pairing(pairings: AccessVerbs, message: Message) -> bool:
    """Answer a stranger's message with a code, if one is due; nothing of the message is stored."""
    code = new_code()
    key = secrets.token_hex(8)
    parcel = Parcel(
        key=f"pairing-{key}", conversation=message.conversation, text=invitation(code), trace=f"pairing-{key}"
    )
    name = clean_name(message.author.name, limit=NAME_CHARS)
    return await pairings.ask_pairing(replace(message.author, name=name), parcel, plain_code(code))


def new_code() -> str:
    """A new code as a person reads it, `K3V9-D0Q2`."""
    signs = "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARS))
    return f"{signs[: CODE_CHARS // 2]}-{signs[CODE_CHARS // 2 :]}"


def plain_code(typed: str) -> str:
    """Normalize a typed code: case, dashes and blanks do not count, and O is 0."""
    return "".join(sign for sign in typed.upper() if sign not in "- \t").translate(_MISREAD)


def invitation(code: str) -> str:
    """The message to the stranger."""
    return (
        "I do not know you yet. Give this code to the person who runs me, within 10 minutes: "
        f"{code}\nThey let you in with: belino pair {code}\n"
        "Nothing of your message was kept; send it again afterwards."
    )
