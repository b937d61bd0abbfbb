"""Reading at the turn: the media of the message being answered becomes text before the agent starts.

What is read is recorded for `explain`; a voice message may be posted back as text, and one that was heard before the
gate begins a turn only if it names the agent.
"""

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from belino.aio.deadline import deadline, or_abandon
from belino.context.readings import MediaMarker, MediaText
from belino.delivery.plan import turn_hash
from belino.delivery.text import texts
from belino.domain.commands import ChatCommand, spoken_command
from belino.domain.errors import StoreError, place_of
from belino.domain.limits import Limits
from belino.domain.media import OWN_READER, MediaRef
from belino.domain.message import ConversationKey
from belino.domain.outcome import Stage, Standing, Step
from belino.domain.ports import Clock, accepted_by
from belino.domain.reading import AttachmentRecord, Attempt, MediaCapability, ReadingDecision, ReadingOutcome
from belino.domain.reply import Parcel
from belino.domain.safe_text import fold
from belino.domain.stored import ClaimedTurn, RefRecord, StoredMessage
from belino.storage.store import Store
from belino.tools.tool_context import Notes
from belino.turns.agents import Agents
from belino.turns.underway import Underway
from belino.understanding.policy import capability_of
from belino.understanding.request import MessageMedia, MessageReadings, Note, ReadingNews

log = logging.getLogger(__name__)

GRACE_SECONDS = 0.5
"""A turn goes on so long after the deadline of its readings if they have not ended by themselves."""
NOT_ADDRESSED = "a voice message that does not name the agent"
ADDRESSED = "named in a voice message"
_LETTERS = re.compile(r"[^\W_]+")
_MISSPELT = 5
"""Letters from which on a name may be off by one: recognisers spell names freely."""


Watch = Callable[[ConversationKey, str, int, ReadingNews], None]
"""Called with the message, the number of its attachment, and how far its reading is."""


class ReadsMessages(Protocol):
    """The part of media understanding that a turn needs."""

    async def read_message(self, message: MessageMedia, note: Note) -> MessageReadings: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReadings:
    """What was read for a turn."""

    texts: Mapping[str, MediaText]
    """By message id."""
    decisions: tuple[ReadingDecision, ...] = ()
    """For each kind of media that there is."""
    transcript: str = ""

    def of(self, message: StoredMessage) -> MediaText | None:
        """What was read from a message as it is now: media that an edit removed is left out."""
        found = self.texts.get(message.id)
        if found is None:
            return None
        there = {ref.id for ref in attachments(message)}
        readings = tuple(one for one in found.readings if found.media[one.attachment_index].id in there)
        markers = tuple(one for one in found.markers if one.ref.id in there)
        if not readings and not markers:
            return None
        return replace(found, readings=readings, markers=markers)


NOTHING = TurnReadings(texts={})


class TurnReader:
    """Reads the media of the messages that turns answer, each within a deadline of its own."""

    def __init__(
        self,
        store: Store,
        understanding: Callable[[], ReadsMessages | None],
        agents: Agents,
        *,
        seconds: float,
        attaches: bool,
        clock: Clock,
        watch: Watch,
    ) -> None:
        """`attaches`: whether media of the message is attached as far as the agent takes it."""
        self._store = store
        self._understanding = understanding
        """Called with the first media: providers cost start-up time."""
        self._agents = agents
        self.seconds = seconds
        self.attaches = attaches
        self._clock = clock
        self._watch = watch

    async def read(
        self,
        claimed: ClaimedTurn,
        note: Notes,
        underway: Underway,
    ) -> TurnReadings:
        """What the media of a turn's messages say, as they are now; media that cannot be read is told and left out.

        While it lasts, its deadline is the turn's scope, by which the turn is stopped; that raises TimeoutError.
        """
        where, read = claimed.conversation, NOTHING
        try:
            async with deadline(self._clock, self.seconds + GRACE_SECONDS) as scope:
                underway.begins(claimed, scope)
                read = await or_abandon(self._messages_read(claimed), self._clock, grace=GRACE_SECONDS)
        except StoreError:
            raise
        except Exception as error:
            if where in underway.aborted or underway.is_restarted(claimed.id):
                raise
            log.warning("media of turn %d (trace %s) is not read: %s", claimed.id, claimed.trace, place_of(error))
            reason = "not read in time" if isinstance(error, TimeoutError) else type(error).__name__
            await note(self._step("failed", reason))
        finally:
            underway.scopes.pop(where, None)
        for step in self.steps(read.decisions):
            await note(step)
        return read

    async def _messages_read(self, claimed: ClaimedTurn) -> TurnReadings:
        living = await self._living(claimed)
        agent = self._agents.at(claimed.conversation)
        accepts = accepted_by(agent)
        places = [
            (message, record)
            for message in living
            for record in await self._records(message)
            if accepts.texts or _capability(record) is MediaCapability.AUDIO
        ]
        understanding = self._understanding() if places else None
        if understanding is None:
            return NOTHING
        sender = await self._store.sender_of(claimed.conversation.whole_channel, places[0][1].ref.id)
        documents = accepts.documents if self.attaches else None
        read = await understanding.read_message(
            MessageMedia(
                conversation=claimed.conversation,
                chat_type=claimed.chat_type,
                media=tuple(record for _, record in places),
                text="\n".join(message.text for message in living if message.text.strip()),
                sees_images=agent.sees_images,
                attached=documents.mimes if documents else frozenset(),
                language=sender.reported,
                recent_texts=sender.recent_texts,
            ),
            partial(_tell, places, partial(self._watch, claimed.conversation)),
        )
        kinds = {_capability(record) for _, record in places}
        return TurnReadings(
            texts=_by_message(places, read),
            decisions=tuple(each for each in read.decisions if each.attachments or each.capability in kinds),
            transcript=read.transcript,
        )

    def steps(self, decisions: Sequence[ReadingDecision]) -> Iterator[Step]:
        """The steps of `explain`: what was decided for each kind of media, and every attempt."""
        for decision in decisions:
            if decision.outcome is not ReadingOutcome.NO_ATTACHMENT:
                yield from self._steps(decision)

    def _steps(self, decision: ReadingDecision) -> Iterator[Step]:
        what = decision.capability.value
        if not decision.attachments:
            yield self._step(decision.outcome.value, f"{what}: {decision.reason}" if decision.reason else what)
        for attachment in decision.attachments:
            for attempt in attachment.attempts:
                yield self._step(*attempt_words(what, attempt), subject=attachment.ref)
            if decision.outcome is ReadingOutcome.SUCCESS and not attachment.attempts and not attachment.reason:
                yield self._step("read", f"{what} by {OWN_READER}", subject=attachment.ref)
            elif attachment.chosen is None and (why := _why_unread(attachment, decision)):
                outcome = "skipped" if decision.outcome is ReadingOutcome.SKIPPED else "not read"
                yield self._step(outcome, f"{what}: {why}", subject=attachment.ref)

    def _step(self, outcome: str, reason: str, subject: str = "") -> Step:
        return Step(at=self._clock.now(), stage=Stage.READING, outcome=outcome, reason=reason, subject=subject)

    async def _living(self, claimed: ClaimedTurn) -> list[StoredMessage]:
        ids, seqs = [message.id for message in claimed.messages], {message.seq for message in claimed.messages}
        found = await self._store.messages(claimed.conversation.whole_channel, ids)
        living = [message for message in found if message.seq in seqs and message.deleted is None]
        return sorted(living, key=lambda message: message.place_in_album)

    async def _records(self, message: StoredMessage) -> list[RefRecord]:
        channel = message.conversation.whole_channel
        records = [await self._store.ref(channel, ref.id) for ref in attachments(message)]
        return [record for record in records if record is not None]


def _capability(record: RefRecord) -> MediaCapability:
    return capability_of(record.ref.mime, record.ref.file_name, record.ref.kind)


def attachments(message: StoredMessage) -> tuple[MediaRef, ...]:
    """The media of a message: its own, and those of the message that it forwards."""
    return (*message.media, *(message.forward.media if message.forward is not None else ()))


def attempt_words(what: str, attempt: Attempt) -> tuple[str, str]:
    """The outcome and the reason of an attempt, in words for people."""
    who = " ".join(filter(None, (attempt.provider, attempt.model)))
    told = [attempt.reason] if attempt.reason else []
    if attempt.cached:
        told.append("read before")
    elif attempt.outcome is not ReadingOutcome.SKIPPED:
        told.append(f"{attempt.milliseconds} ms")
    if attempt.usd:
        told.append(f"{attempt.usd:.4f} USD")
    if attempt.sent_to:
        told.append(f"sent to {attempt.sent_to}")
    outcome = "read" if attempt.outcome is ReadingOutcome.SUCCESS else attempt.outcome.value
    return outcome, f"{what} by {who}: {', '.join(told)}" if told else f"{what} by {who}"


def is_unheard(claimed: ClaimedTurn) -> bool:
    """Whether it is not decided yet if the agent is addressed: only a voice message can tell."""
    return all(message.standing is Standing.OBSERVED for message in claimed.messages)


def names(transcript: str, name: str) -> bool:
    """Whether a name is spoken, also if its spelling is off by a letter."""
    wanted = _LETTERS.findall(fold(name))
    said = _LETTERS.findall(fold(transcript))
    spans = (said[at : at + len(wanted)] for at in range(len(said) - len(wanted) + 1))
    return bool(wanted) and any(all(map(_sounds_like, span, wanted)) for span in spans)


def echo(claimed: ClaimedTurn, transcript: str, form: str, limits: Limits) -> tuple[Parcel, ...]:
    """The transcript as parcels, with keys that are the same after a restart."""
    words = form.replace("{transcript}", transcript) if transcript.strip() else ""
    return tuple(
        Parcel(
            key=f"echo-{claimed.id}-{position}-{turn_hash(claimed.trace, 0)}",
            conversation=claimed.conversation,
            text=text.text,
            plain=text.plain,
            markup=limits.markup,
            reply_to=claimed.reply_to if position == 0 else None,
            trace=claimed.trace,
        )
        for position, text in enumerate(texts(words, limits))
    )


def _tell(
    places: Sequence[tuple[StoredMessage, RefRecord]], watch: Callable[[str, int, ReadingNews], None], news: ReadingNews
) -> None:
    for message, record in places:
        if record.ref.id == news.ref:
            own = [ref.id for ref in attachments(message)]
            watch(message.id, own.index(news.ref), news)
            return


def _by_message(places: Sequence[tuple[StoredMessage, RefRecord]], read: MessageReadings) -> Mapping[str, MediaText]:
    """What was read, with the index of each attachment in its own message."""
    found: dict[str, MediaText] = {}
    for message in {id(message): message for message, _ in places}.values():
        mine = [at for at, (whose, _) in enumerate(places) if whose is message]
        found[message.id] = MediaText(
            media=tuple(places[at][1].ref for at in mine),
            readings=tuple(
                replace(one, attachment_index=mine.index(one.attachment_index))
                for one in read.readings
                if one.attachment_index in mine
            ),
            markers=tuple(
                MediaMarker(ref=places[one.attachment_index][1].ref, why=one.says)
                for one in read.markers
                if one.attachment_index in mine
            ),
            uncounted=read.uncounted if message is places[-1][0] else 0,
        )
    return found


def _why_unread(attachment: AttachmentRecord, decision: ReadingDecision) -> str:
    return attachment.reason or ("" if attachment.attempts else decision.reason or decision.outcome.value)


def _sounds_like(said: str, wanted: str) -> bool:
    if said == wanted:
        return True
    if len(wanted) < _MISSPELT or abs(len(said) - len(wanted)) > 1:
        return False
    short, long = sorted((said, wanted), key=len)
    at = next((place for place, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    rest = short[at + 1 :] if len(short) == len(long) else short[at:]
    return rest == long[at + 1 :]


def command_in_speech(claimed: ClaimedTurn, read: TurnReadings) -> ChatCommand | None:
    """The command that a voice message without words consists of."""
    said = any(message.text.strip() for message in claimed.messages)
    return None if said or not read.transcript else spoken_command(read.transcript)
