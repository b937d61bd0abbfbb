"""Errors of the API: a refused call, and what it means for a parcel."""

from belino.domain.errors import AdapterError, Undeliverable

UNKNOWN_CHANNEL, UNKNOWN_MESSAGE = 10003, 10008
INVALID_FORM = 50035
VOICE_REFUSED = frozenset({50159, 50160, 50161, 50173})
# Deleted, not our own, or a system message; in an archived thread, or edited too often.
NOT_TO_EDIT = frozenset({UNKNOWN_MESSAGE, 50005, 50021, 50083, 30046})
# The message replied to is deleted, or the bot cannot read earlier messages.
REPLY_REFUSED = frozenset({UNKNOWN_MESSAGE, 160002})
_SENTENCES = {
    UNKNOWN_CHANNEL: "the channel or thread is gone",
    20026: "Discord marked this bot's messages as spam",
    40005: "Discord takes no file that large here",
    50001: "the bot does not see this channel; invite it there, or give its role View Channel",
    50007: "this person takes no direct messages from the bot",
    50008: "this channel takes no text",
    50013: "the bot may not do this here; its role needs Send Messages, Attach Files and Read Message History",
    50083: "the thread is archived and locked",
    160005: "the thread is locked",
    200000: "the server's moderation rules block this text",
    400001: "Discord takes no files in this server for now",
    240000: "Discord blocks a link in this text",
}


class DiscordRefused(AdapterError):
    """Discord refused a call; the meaning depends on the call."""

    def __init__(
        self, message: str, *, status: int, code: int, description: str, fields: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        """The JSON error code of Discord's list."""
        self.description = description
        self.fields = fields
        """The names of the invalid fields."""


def refusal(error: DiscordRefused) -> Undeliverable:
    """A refused call as a domain error."""
    if error.status == 413:
        return Undeliverable(_SENTENCES[40005])
    known = _SENTENCES.get(error.code)
    return Undeliverable(known or f"Discord will not deliver it: {error.description or error.status}")


def has_nothing_to_edit(error: DiscordRefused) -> bool:
    """Whether the message to edit is deleted or no longer editable."""
    return error.code in NOT_TO_EDIT


def refuses_reply(error: DiscordRefused) -> bool:
    """Whether the message can be sent without the reply."""
    return error.code in REPLY_REFUSED or (error.code == INVALID_FORM and "message_reference" in error.fields)


def refuses_voice(error: DiscordRefused) -> bool:
    """Whether a sound can be sent as a plain file."""
    return error.code in VOICE_REFUSED
