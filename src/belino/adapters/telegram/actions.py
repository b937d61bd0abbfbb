"""Signs that something is on its way, which Telegram calls chat actions."""

from belino.adapters.telegram.calls import Calls
from belino.adapters.telegram.send import where_of
from belino.domain.limits import SendAs
from belino.domain.message import ConversationKey

TYPING = "typing"
UPLOADS = {
    SendAs.PHOTO: "upload_photo",
    SendAs.VIDEO: "upload_video",
    SendAs.AUDIO: "upload_document",
    SendAs.VOICE: "upload_voice",
    SendAs.ANIMATION: "upload_video",
    SendAs.STICKER: "choose_sticker",
    SendAs.DOCUMENT: "upload_document",
}


async def show_action(calls: Calls, conversation: ConversationKey, action: str) -> None:
    """Show a sign; it fades after five seconds, or with the next message."""
    fields = {name: value for name, value in where_of(conversation).items() if name != "direct_messages_topic_id"}
    await calls.call("sendChatAction", fields | {"action": action})
