"""Who is denied, observed or may command."""

from datetime import UTC, datetime

import pytest

from belino.config import AccessConfig, ChannelAccess
from belino.domain.message import (
    Arrival,
    Author,
    ChatType,
    ConversationKey,
    Deletion,
    DeliveryState,
    DeliveryStatus,
    Edit,
    Message,
    Reaction,
    Unsupported,
)
from belino.domain.outcome import MessageOutcome, Standing
from belino.domain.stored import StoredMessage
from belino.gateway.access import decide, may_pair

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ANN, BOB, EVE = (Author(id=name, name=name) for name in ("ann", "bob", "eve"))
ROBOT = Author(id="r2", name="R2", is_bot=True)
AGENT = Author(id="agent", name="belino", is_bot=True, is_agent=True)
ACCESS = AccessConfig(
    senders=("ann",),
    channels={
        "team": ChannelAccess(senders=("bob",)),
        "open": ChannelAccess(senders=("*",)),
        "free": ChannelAccess(senders=("bob",), mention=False),
        "mute": ChannelAccess(),
    },
)


def place(channel: str) -> ConversationKey:
    return ConversationKey(platform="memory", account="default", channel=channel)


def said(author: Author, channel: str, *, direct: bool = False, addressed: bool = True) -> Message:
    return Message(
        conversation=place(channel),
        id="m1",
        author=author,
        sent=NOW,
        text="hello",
        chat_type=ChatType.DIRECT if direct else ChatType.GROUP,
        addressed=addressed,
    )


def kept(author: Author, channel: str, standing: Standing = Standing.MAY_COMMAND) -> StoredMessage:
    return StoredMessage(
        seq=1,
        conversation=place(channel),
        id="m1",
        author=author,
        sent=NOW,
        received=NOW,
        text="hello",
        media=(),
        standing=standing,
        outcome=MessageOutcome.WAITING,
        reason="",
        trace="t",
    )


def later(kind: str, author: Author, channel: str) -> Arrival:
    where = place(channel)
    match kind:
        case "edit":
            return Edit(conversation=where, id="e1", message_id="m1", author=author, sent=NOW, text="other")
        case "deletion":
            return Deletion(conversation=where, id="d1", message_id="m1", author=author, sent=NOW)
        case "reaction":
            return Reaction(conversation=where, id="r1", message_id="m1", author=author, sent=NOW, emoji="👍")
        case _:
            return Unsupported(
                conversation=where, id="u1", author=author, sent=NOW, what="poll", chat_type=ChatType.GROUP
            )


@pytest.mark.parametrize(
    ("arrival", "standing", "answer"),
    [
        (said(ANN, "dm", direct=True), Standing.MAY_COMMAND, True),
        (said(EVE, "dm", direct=True), Standing.DENIED, False),
        (said(BOB, "team"), Standing.MAY_COMMAND, True),
        (said(BOB, "team", addressed=False), Standing.OBSERVED, False),
        (said(BOB, "free", addressed=False), Standing.MAY_COMMAND, True),
        (said(EVE, "team"), Standing.OBSERVED, False),
        (said(EVE, "open"), Standing.MAY_COMMAND, True),
        (said(EVE, "mute"), Standing.OBSERVED, False),
        (said(BOB, "elsewhere"), Standing.DENIED, False),
    ],
    ids=[
        "a direct message by a listed sender",
        "a direct message by a stranger",
        "a listed sender in a listed channel",
        "not addressed",
        "not addressed where no mention is needed",
        "a stranger in a listed channel",
        "a stranger where everybody may command",
        "anybody where the list is empty",
        "an unlisted channel",
    ],
)
def test_a_message_is_judged_by_its_sender_and_place(arrival: Message, standing: Standing, answer: bool) -> None:
    verdict = decide(arrival, ACCESS)
    assert (verdict.standing, verdict.answer) == (standing, answer)
    assert verdict.reason


@pytest.mark.parametrize(
    ("arrival", "may_command"),
    [
        (said(BOB, "team"), True),
        (said(BOB, "team", addressed=False), True),
        (said(ANN, "dm", direct=True, addressed=False), True),
        (said(EVE, "team", addressed=False), False),
        (said(EVE, "mute"), False),
    ],
    ids=[
        "a listed sender who addresses the agent",
        "the same who does not",
        "a listed sender who writes to another person",
        "a stranger",
        "anybody where the list is empty",
    ],
)
def test_who_may_command_is_known_apart_from_whether_they_address_the_agent(
    arrival: Message, may_command: bool
) -> None:
    assert decide(arrival, ACCESS).sender_may_command is may_command


def test_rights_in_direct_messages_give_none_in_channels() -> None:
    assert decide(said(ANN, "team"), ACCESS).standing is Standing.OBSERVED
    assert decide(said(ANN, "elsewhere"), ACCESS).standing is Standing.DENIED


def test_a_direct_message_to_somebody_else_is_only_observed_and_its_sender_is_told_no_code() -> None:
    assert decide(said(ANN, "ann", direct=True, addressed=False), ACCESS).standing is Standing.OBSERVED
    assert not may_pair(said(EVE, "eve", direct=True, addressed=False), ACCESS)
    assert may_pair(said(EVE, "eve", direct=True), ACCESS)


def test_rights_in_a_channel_give_none_in_direct_messages() -> None:
    assert decide(said(BOB, "dm", direct=True), ACCESS).standing is Standing.DENIED


def test_an_empty_configuration_lets_nobody_in() -> None:
    for direct in (True, False):
        assert decide(said(ANN, "dm", direct=direct), AccessConfig()).standing is Standing.DENIED


def test_everybody_means_every_person_and_no_bot_unless_it_is_named() -> None:
    assert decide(said(ROBOT, "open"), ACCESS).standing is Standing.OBSERVED
    named = AccessConfig(channels={"open": ChannelAccess(senders=("r2",))})
    assert decide(said(ROBOT, "open"), named).standing is Standing.MAY_COMMAND


def test_our_own_agent_is_never_answered_even_where_everybody_may_command() -> None:
    for trusts_senders in (True, False):
        verdict = decide(said(AGENT, "open"), ACCESS, trusts_senders=trusts_senders)
        assert (verdict.standing, verdict.answer) == (Standing.OBSERVED, False)


def test_who_has_logged_in_may_command_without_a_list() -> None:
    assert decide(said(EVE, "main", direct=True), AccessConfig(), trusts_senders=True).answer


@pytest.mark.parametrize("kind", ["edit", "deletion", "reaction", "unsupported"])
def test_every_kind_of_arrival_is_denied_where_the_channel_is_not_listed(kind: str) -> None:
    assert decide(later(kind, ANN, "elsewhere"), ACCESS).standing is Standing.DENIED


@pytest.mark.parametrize("kind", ["edit", "deletion", "reaction", "unsupported"])
def test_no_other_kind_of_arrival_starts_a_turn(kind: str) -> None:
    verdict = decide(later(kind, BOB, "team"), ACCESS, about=kept(BOB, "team"))
    assert verdict.standing is not Standing.DENIED
    assert not verdict.answer


@pytest.mark.parametrize("kind", ["edit", "deletion", "reaction"])
def test_a_change_to_a_direct_message_that_was_kept_is_judged_by_its_sender(kind: str) -> None:
    assert decide(later(kind, ANN, "dm"), ACCESS, about=kept(ANN, "dm")).standing is Standing.MAY_COMMAND
    assert decide(later(kind, EVE, "dm"), ACCESS, about=kept(ANN, "dm")).standing is Standing.DENIED


@pytest.mark.parametrize(
    ("author", "sort", "standing"),
    [
        (ANN, ChatType.DIRECT, Standing.MAY_COMMAND),
        (EVE, ChatType.DIRECT, Standing.DENIED),
        (ANN, ChatType.GROUP, Standing.DENIED),
        (ANN, None, Standing.DENIED),
    ],
    ids=["a direct chat", "a stranger", "a group that is not listed", "a place of a sort that is not told"],
)
def test_an_edit_before_its_message_is_judged_as_the_message_will_be(
    author: Author, sort: ChatType | None, standing: Standing
) -> None:
    edit = Edit(
        conversation=place("elsewhere"), id="e", message_id="m", author=author, sent=NOW, text="a", chat_type=sort
    )
    verdict = decide(edit, ACCESS)
    assert (verdict.standing, verdict.answer) == (standing, False)


def test_who_may_only_be_observed_cannot_rewrite_a_command() -> None:
    edit = later("edit", EVE, "team")
    assert decide(edit, ACCESS, about=kept(BOB, "team")).standing is Standing.DENIED
    assert decide(edit, ACCESS, about=kept(EVE, "team", Standing.OBSERVED)).standing is Standing.OBSERVED


def test_news_of_what_we_sent_is_noted_even_before_its_receipt() -> None:
    news = DeliveryStatus(conversation=place("dm"), id="s1", message_id="m9", sent=NOW, state=DeliveryState.READ)
    assert decide(news, ACCESS).standing is Standing.OBSERVED
