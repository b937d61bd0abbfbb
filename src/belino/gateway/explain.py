"""Explain what happened to a message, from the store, and retry one that failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from belino.context.manifest import if_compacted, session_json
from belino.domain.errors import BelinoError, NoSuchMessage, SeveralMessages
from belino.domain.message import ConversationKey
from belino.domain.outcome import MessageOutcome, Step
from belino.domain.places import message_at
from belino.domain.reading import AttemptRecord
from belino.domain.stored import ParcelRecord, RefRecord, Session, StoredMessage, Story
from belino.gateway.reading_attempts import attempts_json
from belino.storage.inbox import InboxVerbs
from belino.storage.library_verbs import LibraryVerbs
from belino.storage.store import Store
from belino.turns.attach import to_recover


class NotFailed(BelinoError):
    """There is no failed turn to run again; the error says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The full history of one message."""

    name: str
    """The unambiguous name of this message: `conversation/message id`."""
    message: StoredMessage
    steps: tuple[Step, ...]
    refs: tuple[RefRecord, ...]
    parcels: tuple[ParcelRecord, ...]
    attempts: tuple[tuple[int, AttemptRecord], ...] = ()
    """Every attempt to read its media as text, newest first."""
    session: Session
    """The current session of its conversation."""
    again: tuple[RefRecord, ...]
    """The media that its next turn attaches again, or would after a compaction."""


async def explain(library: Store, name: str) -> Explanation:
    """The history of the message named by `conversation/message id`, a trace, or a message id, which may be short."""
    story = await _exactly(library, name)
    if story is None:
        message = _the_one(name, await library.find_messages(name))
        story = await library.story(message.conversation, message.id)
    if story is None:
        raise NoSuchMessage(f"there is no message {name!r} here")
    conversation = story.message.conversation
    session = await library.session(conversation)
    return Explanation(
        name=message_name(story.message),
        message=story.message,
        steps=story.steps,
        refs=story.refs,
        parcels=story.parcels,
        attempts=tuple([each for record in story.refs for each in await library.attempts(ref=record.ref.id)]),
        session=session,
        again=await to_recover(library, if_compacted(session), conversation),
    )


def as_json(explanation: Explanation) -> dict[str, object]:
    """The history as plain JSON values; times are ISO 8601 UTC."""
    message = explanation.message
    return {
        "name": explanation.name,
        "message": _message(message),
        "trace": message.trace,
        "outcome": str(message.outcome),
        "reason": message.reason,
        "steps": [
            {
                "at": _time(step.at),
                "stage": str(step.stage),
                "outcome": str(step.outcome),
                "reason": step.reason,
                "subject": step.subject,
            }
            for step in explanation.steps
        ],
        "media": [_media(record) for record in explanation.refs],
        "readings": attempts_json(explanation.attempts),
        "parcels": [_parcel(record) for record in explanation.parcels],
        "session": session_json(explanation.session, explanation.again),
    }


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


def message_name(message: StoredMessage) -> str:
    """The unambiguous name of this message."""
    return f"{message.conversation}/{message.id}"


async def _exactly(library: LibraryVerbs, name: str) -> Story | None:
    # A conversation's text form contains no slash; a message id may.
    conversation, slash, message_id = name.partition("/")
    if not slash or not message_id:
        return None
    try:
        key = ConversationKey.parse(conversation)
    except (BelinoError, UnicodeDecodeError):
        return None
    there = message_at(message_id, key.channel)  # it may be named by the place that its channel moved to
    named = await library.messages_named(key, [there, message_id])
    found = named[there] or named[message_id]
    return await library.story(key, _the_one(name, found).id) if found else None


def _the_one(name: str, found: tuple[StoredMessage, ...]) -> StoredMessage:
    if not found:
        raise NoSuchMessage(f"there is no message {name!r} here; name it by trace, id, or conversation/id")
    if len({message.trace for message in found}) > 1:
        names = ", ".join(message_name(message) for message in found)
        raise SeveralMessages(f"{name!r} may mean several messages; write one of: {names}")
    # A question and its answers share one trace: start with the question.
    return min(found, key=lambda message: (message.author.is_agent, message.seq))


def _message(message: StoredMessage) -> Mapping[str, object]:
    return {
        "conversation": str(message.conversation),
        "id": message.id,
        "seq": message.seq,
        "author": {
            "id": message.author.id,
            "name": message.author.name,
            "is_bot": message.author.is_bot,
            "is_agent": message.author.is_agent,
        },
        "sent": _time(message.sent),
        "received": _time(message.received),
        "text": message.text,
        "spoken": message.spoken.text if message.spoken is not None else None,
        "standing": str(message.standing),
        "outcome": str(message.outcome),
        "reason": message.reason,
        "trace": message.trace,
        "album": message.album,
        "edited": _time(message.edited),
        "deleted": _time(message.deleted),
    }


def _media(record: RefRecord) -> Mapping[str, object]:
    ref = record.ref
    return {
        "ref": ref.id,
        "kind": str(ref.kind),
        "mime": ref.mime,
        "file_name": ref.file_name,
        "size": ref.size,
        "outcome": str(record.outcome),
        "reason": record.reason,
    }


def _parcel(record: ParcelRecord) -> Mapping[str, object]:
    return {
        "key": record.key,
        "kind": str(record.kind),
        "state": str(record.state),
        "attempts": record.attempts,
        "reason": record.reason,
        "created": _time(record.created),
        "changed": _time(record.changed),
        "message_id": record.message_id,
        "delivery": None if record.delivery is None else str(record.delivery),
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _refusal(message: StoredMessage) -> str:
    if message.author.is_agent:
        return "is a message of the agent; name the message that was not answered"
    if message.deleted is not None:
        return "was deleted"
    match message.outcome:
        case MessageOutcome.WAITING:
            return "is already queued"
        case MessageOutcome.WORKING:
            return "did not fail: its turn is running, or continues at the next start"
        case MessageOutcome.FAILED:
            return "is already being retried"
        case outcome:
            return f"did not fail: it is {outcome}; only a failed message can be retried"
