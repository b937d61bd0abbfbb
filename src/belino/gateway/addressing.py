"""Addressing without a mention: wake words, and participation in a thread where the agent spoke."""

import re
import unicodedata
from collections.abc import Sequence
from datetime import timedelta

from belino.config import AccessConfig, ChannelAccess
from belino.domain.context import AgentSpoke
from belino.domain.message import Message

# Thai, Lao, Burmese, Khmer, Japanese and Chinese are written without spaces: their words have no edges.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


def wake_word(message: Message, words: Sequence[str]) -> str:
    """The wake word that a message has; empty if it has none."""
    said = [message.text, *(ref.caption or "" for ref in message.media)]
    return next((word for word in words if any(has_word(text, word) for text in said)), "")


def has_word(text: str, wanted: str) -> bool:
    """Whether whole words are in a text, in any case and with any punctuation between them."""
    sought, said = _words(wanted), _words(text)
    return bool(sought) and any(said[at : at + len(sought)] == sought for at in range(len(said)))


def may_continue(message: Message, access: AccessConfig, rules: ChannelAccess) -> bool:
    """Whether a message without a mention may continue a thread in which the agent spoke."""
    is_in_thread = message.conversation.thread is not None or message.reply_to is not None
    by_person = not (message.author.is_bot or message.author.is_agent)
    return is_in_thread and by_person and not message.mentions_another and access.minutes(rules) > 0


def continued(spoke: AgentSpoke | None, message: Message, access: AccessConfig, rules: ChannelAccess) -> str:
    """Why a message without a mention addresses the agent in a thread; empty if it does not."""
    if spoke is None or not may_continue(message, access, rules):
        return ""
    if not timedelta() <= message.sent - spoke.at <= timedelta(minutes=access.minutes(rules)):
        return ""
    return "continues a thread of the agent" if spoke.turn is None else f"continues turn {spoke.turn}'s thread"


def _words(text: str) -> list[str]:
    """The words of a text, folded; in an unspaced script every sign counts as a word."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
