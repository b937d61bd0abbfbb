"""Moved channels: arrivals of the new place belong to the channel, under ids of their own."""

from datetime import UTC, datetime

from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import (
    Author,
    ConversationKey,
    Deletion,
    Edit,
    Message,
    Quote,
    Reaction,
    Unsupported,
)
from belino.gateway.moves import at_home

NEW = ConversationKey(platform="telegram", account="default", channel="-1009", thread="7")
ADA, SENT = Author(id="1", name="Ada"), datetime(2026, 1, 1, tzinfo=UTC)
PHOTO = MediaRef(
    platform="telegram", account="default", channel_id="-1009", message_id="5", created=SENT, item="photo",
    kind=MediaKind.IMAGE, mime="image/jpeg", locator={"file_id": "L"},
)  # fmt: skip


def test_a_message_of_the_new_place_is_one_of_the_channel_and_its_ids_name_the_place() -> None:
    quote = Quote(message_id="4", text="before")
    said = Message(conversation=NEW, id="5", author=ADA, sent=SENT, media=(PHOTO,), reply_to="4", quote=quote)
    moved = at_home(said, "-40")
    assert isinstance(moved, Message)
    assert str(moved.conversation) == "telegram:default:-40:7%40-1009"
    assert (moved.id, moved.reply_to, moved.quote and moved.quote.message_id) == ("5@-1009", "4@-1009", "4@-1009")
    assert [(ref.channel_id, ref.message_id) for ref in moved.media] == [("-40", "5@-1009")]


def test_a_quote_of_another_channel_keeps_its_id() -> None:
    said = Message(conversation=NEW, id="5", author=ADA, sent=SENT, quote=Quote(message_id="4", text="elsewhere"))
    moved = at_home(said, "-40")
    assert isinstance(moved, Message) and moved.quote is not None and moved.quote.message_id == "4"


def test_changes_of_the_new_place_are_about_its_messages() -> None:
    edit = Edit(conversation=NEW, id="5@1", message_id="5", author=ADA, sent=SENT, text="x", media=(PHOTO,))
    deletion = Deletion(conversation=NEW, id="d", message_id="5", author=None, sent=SENT)
    reaction = Reaction(conversation=NEW, id="r", message_id="5", author=ADA, sent=SENT, emoji="👍")
    for change in (edit, deletion, reaction):
        moved = at_home(change, "-40")
        assert not isinstance(moved, Message | Unsupported)
        assert (moved.conversation.channel, moved.message_id) == ("-40", "5@-1009")
