"""Errors of the Bot API: exceptions of its calls, and what its refusals of a parcel mean."""

from belino.domain.errors import AdapterError, MarkupRefused, TogetherRefused, Unanswered, Unauthorized, Undeliverable
from belino.domain.limits import Markup, SendAs
from belino.domain.reply import Parcel

UNKNOWN_METHOD = "method not found"
"""What servers say that are older than a method."""

# Telegram could not make a photo of it; as a document it takes any file.
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
# Tags it cannot read, and those that its servers find too many, too long or out of place.
_BAD_MARKUP = ("can't parse entities", "entities_", "entity_")
# Telegram promises to send without it, but not across topics and chats.
_NO_QUESTION = (
    "message to be replied not found",
    "replied message not found",
    "reply message not found",
    "reply_message_id_invalid",
)
# One of its files is at fault, or they are too much for one call.
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
    """Telegram refused a call; what that means depends on the call."""

    def __init__(self, message: str, *, code: int, description: str, migrate_to: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.description = description
        self.migrate_to = migrate_to
        """Where the chat went that we tried to reach."""


class NotFound(Unauthorized):
    """Telegram does not know the token; a small server says the same of a method that it does not have."""


class OutOfOrder(AdapterError):
    """Telegram, or a proxy before it, is out of order."""


class NoSuchPage(OutOfOrder):
    """A 404 without Telegram's JSON: from a proxy, or from a small server that does not have the method."""


class PollConflict(AdapterError):
    """Another program gets this bot's updates."""


class OverlongAnswer(Unanswered):
    """Telegram's answer is longer than any that we read."""


def refuses_photo(error: TelegramRefused, parcel: Parcel) -> bool:
    """Whether the pictures may still go as documents."""
    pictures = any(file.send_as is SendAs.PHOTO for file in parcel.files)
    return pictures and _says(error, *_NO_PHOTO)


def misses_question(error: TelegramRefused, parcel: Parcel) -> bool:
    """Whether it may still go, as an answer to nothing."""
    return parcel.reply_to is not None and _says(error, *_NO_QUESTION)


def is_unchanged(error: TelegramRefused) -> bool:
    """Whether a message reads already what it was to be changed to."""
    return _says(error, "message is not modified", "message_not_modified")


def has_nothing_to_edit(error: TelegramRefused) -> bool:
    """Whether the message to be changed is gone, or stayed behind in a group that moved, or none can be changed."""
    return error.migrate_to is not None or _says(error, *_NOTHING_TO_EDIT)


def refusal(error: TelegramRefused, parcel: Parcel) -> AdapterError:
    """A refusal as an error of the domain."""
    if parcel.markup is Markup.HTML and _says(error, *_BAD_MARKUP):
        return MarkupRefused("Telegram cannot read the markup")
    if len(parcel.files) > 1 and _says(error, "too many requests"):
        # Told as a refusal of one item; others of the album have been seen to arrive all the same.
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
