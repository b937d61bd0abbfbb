"""What an event is that says nothing: joins, topics, pins and the other things a platform reports."""

from belino.net.raw import Raw, line

_WORDS = {
    "channel_join": "somebody joined",
    "group_join": "somebody joined",
    "member_joined_channel": "somebody joined",
    "channel_leave": "somebody left",
    "group_leave": "somebody left",
    "member_left_channel": "somebody left",
    "channel_topic": "the channel has a new topic",
    "group_topic": "the channel has a new topic",
    "channel_purpose": "the channel has a new description",
    "group_purpose": "the channel has a new description",
    "channel_name": "the channel has a new name",
    "group_name": "the channel has a new name",
    "channel_rename": "the channel has a new name",
    "channel_archive": "the channel was archived",
    "group_archive": "the channel was archived",
    "channel_unarchive": "the channel is in use again",
    "group_unarchive": "the channel is in use again",
    "channel_convert_to_private": "the channel is private now",
    "channel_posting_permissions": "who may write in the channel has changed",
    "pinned_item": "a message was pinned",
    "unpinned_item": "a message is no longer pinned",
    "reminder_add": "a reminder was set",
    "bot_add": "an app was added",
    "bot_remove": "an app was removed",
    "bot_enable": "an app was enabled",
    "bot_disable": "an app was disabled",
    "huddle_thread": "a huddle, which apps cannot hear",
    "sh_room_created": "a call was started",
    "ekm_access_denied": "a message whose key was withdrawn",
    "tombstone": "a message that was deleted",
    "file_comment": "a comment on a file",
    "file_mention": "a file was mentioned",
    "message_replied": "a thread has a new reply",
    "message_changed": "a change of a message that is not told",
    "message_deleted": "a deletion that names no message",
}


def what_it_is(raw: Raw) -> str:
    """A few words for people: what came, although there is nothing in it to read."""
    name = line(raw, "subtype", most=64) or line(raw, "type", most=64)
    if name in _WORDS:
        return _WORDS[name]
    if name in ("message", "app_mention", "bot_message", "file_share", "me_message", "thread_broadcast"):
        return "a message without a word"
    return name.replace("_", " ") or "nothing"
