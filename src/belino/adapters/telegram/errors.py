"""Errors of the Bot API: exceptions of its calls, and what refused parcels mean."""

from belino.domain.errors import AdapterError, MarkupRefused, TogetherRefused, Unanswered, Unauthorized, Undeliverable
from belino.domain.limits import Markup, SendAs
from belino.domain.reply import Parcel

UNKNOWN_METHOD = "method not found"
"""Messages of servers that are older than a method."""

# Telegram could not process it as a photo; as a document it accepts any file.
_NO_PHOTO = (
    "photo_invalid_dimensions",
    "photo_save_file_invalid",
    "photo_ext_invalid",
    "photo_content_type_invalid",
    "image_process_failed",
    "too big for a photo",
)
_NOTHING_TO_EDIT = (
    "message to edit not found",
    "message can't be edited",
    "no text in the message to edit",
    "message_id_invalid",
    "message_edit_time_expired",
    "message_author_required",
    UNKNOWN_METHOD,
)
# Invalid tags, and those that Telegram finds too many, too long or misplaced.
_BAD_MARKUP = ("can't parse entities", "entities_", "entity_")
# Telegram promises to send without the reply, but not across topics and chats.
_NO_QUESTION = (
    "message to be replied not found",
    "replied message not found",
    "reply message not found",
    "reply_message_id_invalid",
)
# One of the files is refused, or they are too many for one call.
_NO_ALBUM = (
    "failed to send message #",
    "group send failed",
    "in the album",
    "request entity too large",
    UNKNOWN_METHOD,
)
_SENTENCES = {
    "voice_messages_forbidden": "this person takes no voice messages",
    "is too big": "Telegram takes no file that large",
    "request entity too large": "Telegram takes no file that large",
    "wrong file identifier": "Telegram could not read the file",
    "wrong type of the web page content": "Telegram could not read the file",
    "file must be non-empty": "the file is empty",
    "topic_closed": "the topic is closed",
    "topic_deleted": "the topic is gone",
    "message thread not found": "the topic is gone",
}


class TelegramRefused(AdapterError):
    """Telegram refused a call; the meaning depends on the call."""

    def __init__(self, message: str, *, code: int, description: str, migrate_to: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.description = description
        self.migrate_to = migrate_to
        """The new id of the chat, if it moved."""


class NotFound(Unauthorized):
    """Telegram does not know the token; a minimal server answers the same for a method it lacks."""


class OutOfOrder(AdapterError):
    """Telegram, or a proxy in front of it, fails."""


class NoSuchPage(OutOfOrder):
    """A 404 without Telegram's JSON: from a proxy, or from a minimal server that lacks the method."""


class PollConflict(AdapterError):
    """Another program receives this bot's updates."""


class OverlongAnswer(Unanswered):
    """Telegram's answer exceeds our limit."""


def refuses_photo(error: TelegramRefused, parcel: Parcel) -> bool:
    """Whether the pictures can be sent as documents."""
    pictures = any(file.send_as is SendAs.PHOTO for file in parcel.files)
    return pictures and _says(error, *_NO_PHOTO)


def misses_question(error: TelegramRefused, parcel: Parcel) -> bool:
    """Whether it can be sent without the reply."""
    return parcel.reply_to is not None and _says(error, *_NO_QUESTION)


def is_unchanged(error: TelegramRefused) -> bool:
    """Whether a message already has the text of the edit."""
    return _says(error, "message is not modified", "message_not_modified")


def has_nothing_to_edit(error: TelegramRefused) -> bool:
    """Whether the message to edit is deleted, was left behind in a group that moved, or cannot be edited."""
    return error.migrate_to is not None or _says(error, *_NOTHING_TO_EDIT)


def refusal(error: TelegramRefused, parcel: Parcel) -> AdapterError:
    """A refused call as a domain error."""
    if parcel.markup is Markup.HTML and _says(error, *_BAD_MARKUP):
        return MarkupRefused("Telegram cannot read the markup")
    if len(parcel.files) > 1 and _says(error, "too many requests"):
        # Reported for one item; others of the album have been seen to arrive all the same.
        return Unanswered("Telegram had enough in the middle of the album")
    if len(parcel.files) > 1 and (error.code == 413 or _says(error, *_NO_ALBUM)):
        return TogetherRefused(f"Telegram will not take the album: {error.description or error.code}")
    if error.code == 413:
        return Undeliverable("Telegram takes no file that large")
    for words, sentence in _SENTENCES.items():
        if _says(error, words):
            return Undeliverable(sentence)
    return Undeliverable(f"Telegram will not deliver it: {error.description or error.code}")


def _says(error: TelegramRefused, *phrases: str) -> bool:
    said = error.description.lower()
    return any(phrase in said for phrase in phrases)
