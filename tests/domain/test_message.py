"""Conversation keys are written and read without loss."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.domain.errors import BelinoError
from belino.domain.message import ConversationKey

part = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(platform=part, account=part, channel=part, thread=st.none() | part)
def test_a_conversation_survives_being_written_and_read(
    platform: str, account: str, channel: str, thread: str | None
) -> None:
    key = ConversationKey(platform=platform, account=account, channel=channel, thread=thread)
    assert ConversationKey.parse(str(key)) == key


def test_colons_and_slashes_in_an_id_cannot_move_its_borders() -> None:
    key = ConversationKey(platform="matrix", account="main", channel="!a:b.org", thread="$x/y")
    assert str(key) == "matrix:main:%21a%3Ab.org:%24x%2Fy"


@pytest.mark.parametrize(
    "text",
    ["", "web", "web:default", "web::main", "a:b:c:d:e", "web:default:", "web:default:%ff", "web:default:\udcff"],
)
def test_something_that_names_no_conversation_is_refused_with_the_right_form(text: str) -> None:
    with pytest.raises(BelinoError, match="platform:account:channel"):
        ConversationKey.parse(text)


def test_the_whole_channel_of_a_thread_has_no_thread() -> None:
    key = ConversationKey(platform="slack", account="main", channel="C1", thread="T1")
    assert str(key.whole_channel) == "slack:main:C1"
