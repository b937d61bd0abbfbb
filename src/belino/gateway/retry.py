"""Retry a failed message when a person asks for it."""

from collections.abc import Sequence

from belino.domain.errors import BelinoError
from belino.domain.outcome import MessageOutcome
from belino.domain.stored import StoredMessage
from belino.gateway.explain import message_name
from belino.storage.inbox_verbs import InboxVerbs


class NotFailed(BelinoError):
    """There is no failed turn to run again; the error says why."""


async def retry_failed(inbox: InboxVerbs, message: StoredMessage) -> tuple[StoredMessage, ...]:
    """Queue the message's failed turn again. Returns every message it answers; NotFailed if there is none."""
    retried = await inbox.retry_turn(message.conversation, message.id)
    if not retried:
        raise NotFailed(f"{message_name(message)} {_refusal(message)}")
    return retried


def retried_json(messages: Sequence[StoredMessage]) -> dict[str, object]:
    """The queued messages: one, or the items of an album."""
    first = messages[0]
    return {
        "name": message_name(first),
        "conversation": str(first.conversation),
        "messages": [message.id for message in messages],
        "outcome": str(first.outcome),
        "trace": first.trace,
    }


def _refusal(message: StoredMessage) -> str:
    if message.author.is_agent:
        return "is a message of the agent; name the message that was not answered"
    if message.deleted is not None:
        return "was deleted"
    match message.outcome:
        case MessageOutcome.WAITING:
            return "waits for its turn already"
        case MessageOutcome.WORKING:
            return "did not fail: its turn is running, or goes on with the next start"
        case MessageOutcome.FAILED:
            return "is being tried again already"
        case outcome:
            return f"did not fail: it is {outcome}; only a failed message can be tried again"
