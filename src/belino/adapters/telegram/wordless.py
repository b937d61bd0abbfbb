"""What a message is that says nothing: joins, pins, titles and the other things a platform reports."""

from belino.adapters.telegram.raw import has, identity
from belino.net.raw import Raw

# Everything around a message's content; what stands besides these is the content.
_AROUND = (
    "message_id message_thread_id direct_messages_topic from sender_chat sender_boost_count sender_business_bot "
    "sender_tag date guest_query_id business_connection_id chat forward_origin is_topic_message "
    "is_automatic_forward reply_to_message external_reply quote reply_to_story reply_to_checklist_task_id "
    "reply_to_poll_option_id via_bot guest_bot_caller_user guest_bot_caller_chat edit_date has_protected_content "
    "is_from_offline is_paid_post media_group_id author_signature paid_star_count entities link_preview_options "
    "suggested_post_info effect_id caption_entities show_caption_above_media has_media_spoiler reply_markup "
    "forward_from forward_from_chat forward_from_message_id forward_signature forward_sender_name forward_date origin "
    "receiver_user ephemeral_message_id"
)
_ENVELOPE = frozenset(_AROUND.split())

STORY = "a story, which bots cannot see"
_WORDS = {
    "new_chat_members": "somebody joined",
    "new_chat_member": "somebody joined",
    "left_chat_member": "somebody left",
    "new_chat_title": "the chat has a new title",
    "new_chat_photo": "the chat has a new picture",
    "delete_chat_photo": "the chat's picture was removed",
    "pinned_message": "a message was pinned",
    "forum_topic_created": "a topic was opened",
    "forum_topic_edited": "a topic was renamed",
    "forum_topic_closed": "a topic was closed",
    "forum_topic_reopened": "a topic was opened again",
    "story": STORY,
    "game": "a game",
    "invoice": "an invoice",
}


def what_it_is(message: Raw) -> str:
    """A few words for people: what came, although there is nothing in it to read."""
    return what_is_in(message) or "a message Telegram does not show to bots"


def what_is_in(message: Raw) -> str:
    """The same of a message, or of an external reply; empty if Telegram shows nothing of it."""
    if is_confidential(message):
        return "a message that only its sender and the bot see"
    if target := identity(message, "migrate_to_chat_id"):
        return f"the group became a supergroup: its channel id is {target} now"
    if source := identity(message, "migrate_from_chat_id"):
        return f"the group became a supergroup: its channel id was {source}, and what was said before stays there"
    content = sorted(str(key) for key in message if key not in _ENVELOPE and has(message, key))
    for key in content:
        if key in _WORDS:
            return _WORDS[key]
    return content[0].encode(errors="replace").decode().replace("_", " ")[:64] if content else ""


def is_confidential(message: Raw) -> bool:
    """Whether the others in the group do not see it. What is told to an agent there, and answered, they would."""
    return has(message, "ephemeral_message_id")
