"""What Slack's refusals of a parcel mean: never, with a sentence a person can act on."""

from belino.adapters.slack.calls import Refused
from belino.domain.errors import AdapterError, Undeliverable
from belino.domain.reply import Parcel

_NOTHING_TO_EDIT = frozenset({"message_not_found", "cant_update_message", "edit_window_closed", "msg_too_long"})
_SENTENCES = {
    "not_in_channel": "the app is not in this channel; invite it there with /invite",
    "channel_not_found": "Slack knows no such channel, or the app is not in it; invite it there with /invite",
    "is_archived": "the channel is archived",
    "is_inactive": "the channel is no longer in use",
    "msg_too_long": "the text is longer than Slack takes",
    "no_text": "there is nothing in it",
    "restricted_action": "the workspace's settings do not let the app write here",
    "restricted_action_read_only_channel": "only some people may write in this channel",
    "restricted_action_thread_only_channel": "only replies in threads may be written in this channel",
    "restricted_action_non_threadable_channel": "no replies in threads may be written in this channel",
    "cannot_reply_to_message": "this message cannot be answered in a thread",
    "thread_not_found": "the thread is gone",
    "invalid_thread_ts": "the thread is gone",
    "user_not_found": "this person is no longer there",
    "messages_tab_disabled": "the app takes no direct messages; App Home, Messages Tab turns them on",
    "ekm_access_denied": "the workspace's administrators have suspended writing here",
    "posting_to_channel_denied": "the workspace's settings do not let the app write here",
    "file_uploads_disabled": "the workspace takes no files",
    "file_uploads_except_images_disabled": "the workspace takes no files but pictures",
    "file_upload_size_restricted": "the workspace takes no file that large",
    "file_size_exceeds_limit": "Slack takes no file that large",
    "storage_limit_reached": "the workspace has no room for files",
    "blocked_file_type": "the workspace takes no files of this type",
    "slack_connect_file_upload_sharing_blocked": "files may not be shared with the other workspace",
    "slack_connect_blocked_file_type": "the other workspace takes no files of this type",
}


def has_nothing_to_edit(error: Refused) -> bool:
    """Whether the message to be changed is gone, or can no longer be changed."""
    return error.error in _NOTHING_TO_EDIT


def refusal(error: Refused, parcel: Parcel) -> AdapterError:
    """The error of ours that a refusal is."""
    if error.error == "missing_scope":
        advice = f"give the app the scope {error.needed or 'it lacks'} and install it again"
        return Undeliverable(f"Slack will not deliver it: {advice}")
    what = "the file" if parcel.files else "it"
    return Undeliverable(_SENTENCES.get(error.error) or f"Slack will not deliver {what}: {error.error}")
