"""Reply to parcels: collect its files, prepare and plan them; if that fails, the text is still sent and says so."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from weakref import WeakValueDictionary

from belino.aio.keyed_workers import KeyedWorkers
from belino.delivery.collect import FILES_AT_MOST, Collected, collect
from belino.delivery.decide import Action, Decision
from belino.delivery.folders import Folders, fates_of, split
from belino.delivery.long_code import LongBlock, long_blocks, shortened
from belino.delivery.outgoing_files import Keeper
from belino.delivery.plan import plan
from belino.delivery.prepare import Preparer
from belino.delivery.send import INLINE_CODE_LINES, ParcelNews
from belino.domain.choice import Choice, numbered, wrong_choices
from belino.domain.errors import MediaError, MediaRefused, StoreError, ToolError, place_of, reason_of
from belino.domain.failpoints import failpoint
from belino.domain.limits import Limits, Once, SendAs
from belino.domain.message import ConversationKey
from belino.domain.outcome import Stage, Step
from belino.domain.ports import Adapter, Clock, HttpClient
from belino.domain.reply import Offer, Parcel, ParcelState, Reply
from belino.domain.stored import ClaimedTurn
from belino.media.daily_limit import DailyLimits
from belino.storage.choices import new_key
from belino.storage.home import Home
from belino.storage.store import Store
from belino.tools.sending import Outlet
from belino.turns.reading import echo
from belino.turns.voice import NOT_SPOKEN, AnswerVoice
from belino.understanding.speaker import FILE_NAME, Speaker

log = logging.getLogger(__name__)

# For an account that is no longer configured: its parcels wait, small enough for any platform.
UNKNOWN_LIMITS = Limits(text_chars=1_000, once=Once.UNCERTAIN)
NO_TURN = 0
DOUBT = "(An earlier answer of mine may be missing here; ask me to repeat it if you did not get it.)"
WIDTH = 4
FLUSHES_AT_MOST = 50
"""Rounds of one flush, so that a script that writes without end cannot keep it running forever."""
_ENDED = (ParcelState.SENT, ParcelState.DEAD, ParcelState.UNCERTAIN)

Note = Callable[[Step], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class Flushed:
    """The result of flushing a conversation's pending files."""

    conversation: ConversationKey
    sent: list[str] = field(default_factory=list)
    """Names of the files that are now in the outbox."""
    refused: list[tuple[str, str]] = field(default_factory=list)
    """Names and reasons."""
    waiting: int = 0
    """Files that are still being written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Downloads:
    """How files at URLs that an agent names are fetched."""

    http: HttpClient
    limits: DailyLimits


class Replies:
    """Turns agents' texts and files into parcels, and moves pending files when their parcels end."""

    def __init__(
        self,
        store: Store,
        adapters: Mapping[tuple[str, str], Adapter],
        preparer: Preparer,
        *,
        keeper: Callable[[], Keeper],
        downloads: Downloads,
        home: Home,
        clock: Clock,
        put: Callable[[ConversationKey], None],
        speaker: Speaker | None = None,
        inline_code_lines: int = INLINE_CODE_LINES,
    ) -> None:
        self._store = store
        self._adapters = adapters
        self._preparer = preparer
        self._keeper = keeper
        """Called on use: it needs the image decoder, which is imported with the first file."""
        self._downloads = downloads
        self._home = home
        self._clock = clock
        self.put = put
        """Called when parcels of a conversation are in the outbox."""
        self.speaker = self.speak_with(speaker)
        self.inline_code_lines = inline_code_lines
        self._locks: WeakValueDictionary[ConversationKey, asyncio.Lock] = WeakValueDictionary()
        self._taken: dict[int, set[str]] = {}
        """By turn, the marks of its pending files that are not in the outbox yet."""
        self._awaited: set[ConversationKey] = set()
        """Conversations with pending files that are being sent."""
        self._lanes = KeyedWorkers(self._file_away, width=WIDTH, clock=clock)
        self.stop = self._lanes.stop

    def speak_with(self, speaker: Speaker | None) -> Speaker | None:
        """Speak with another voice from now on, or with none."""
        self.speaker = speaker
        self._voice = AnswerVoice(speaker, self._clock) if speaker is not None else None
        return speaker

    async def run(self) -> None:
        """Move pending files as their parcels end, until stopped."""
        await self._lanes.run()

    def words(self, claimed: ClaimedTurn, text: str) -> tuple[Parcel, ...]:
        """Text from belino itself as parcels."""
        where = claimed.conversation
        reply = Reply(conversation=where, text=text, reply_to=claimed.reply_to)
        return plan(reply, (), self._limits(where), turn=claimed.id, trace=claimed.trace, retries=claimed.retries)

    async def post_transcript(self, claimed: ClaimedTurn, transcript: str, form: str) -> None:
        """Post what was said in a voice message, before the answer and once, also after a restart."""
        parcels = echo(claimed, transcript, form, self._limits(claimed.conversation))
        if parcels:
            await self._store.put_parcels(parcels)
            self.put(claimed.conversation)

    async def ask(self, claimed: ClaimedTurn, asked: list[str], question: str, choices: Sequence[Choice]) -> str:
        """Send a question with choices at once; returns its id, and adds it to those asked in the turn."""
        where, own, has_buttons = claimed.conversation, new_key(), self._limits(claimed.conversation).buttons
        words = question if has_buttons else numbered(question, choices)
        await self.put_question(where, own, words, _for_sender(claimed, choices), is_numbered=not has_buttons)
        asked.append(own)
        return own

    def asks_all(self, where: ConversationKey) -> Callable[[str, Sequence[Choice]], Awaitable[str]] | None:
        """Sends a question with buttons without a turn, to no one person; None if the platform has no buttons."""

        async def ask(question: str, choices: Sequence[Choice]) -> str:
            own = new_key()
            await self.put_question(where, own, question, choices)
            return own

        return ask if self._limits(where).buttons else None

    async def put_question(
        self, where: ConversationKey, own: str, words: str, choices: Sequence[Choice], *, is_numbered: bool = False
    ) -> None:
        """Send a question under an id; if it is numbered, a number alone is an answer."""
        parcels = plan(
            Reply(conversation=where, text=words), (), self._limits(where), turn=NO_TURN, trace=f"question-{own}"
        )
        await self._store.offer_choices(own, parcels[-1], choices, is_numbered=is_numbered, unasked=parcels)
        self.put(where)

    async def say(
        self, where: ConversationKey, text: str, reply_to: str | None = None, offers: Sequence[Offer] = ()
    ) -> tuple[str, ...]:
        """Send a text and files without a turn; returns the keys of their parcels.

        MediaRefused, and nothing is sent, if a file cannot be sent here.
        """
        reply, own = Reply(conversation=where, text=text, reply_to=reply_to), secrets.randbits(62)
        decisions = await self._preparer.prepare(offers, self._limits(where)) if offers else ()
        for decision in decisions:
            if decision.action is Action.REFUSE:
                raise MediaRefused(f"{decision.offer.name} cannot be sent here: {decision.reason}")
        parcels = plan(reply, decisions, self._limits(where), turn=NO_TURN, trace=f"unasked-{own:x}")
        await self._store.put_parcels(parcels)
        self.put(where)
        return tuple(parcel.key for parcel in parcels)

    async def parcels(
        self, claimed: ClaimedTurn, text: str, handed: Sequence[Offer], note: Note, choices: Sequence[Choice] = ()
    ) -> tuple[Parcel, ...]:
        """An answer as parcels, with all its files. Call `done` once they are committed or given up."""
        text = await self._with_doubt(claimed, text, note)
        if wrong := wrong_choices(choices) if choices else "no choices":
            if choices:
                await note(self._step("choices not offered", wrong))
            return await self._plain(claimed, text, handed, note)
        is_numbered = not self._limits(claimed.conversation).buttons
        parcels = await self._plain(claimed, numbered(text, choices) if is_numbered else text, handed, note)
        if texts := [parcel for parcel in parcels if parcel.text]:
            offered = _for_sender(claimed, choices)
            await self._store.offer_choices(new_key(), texts[-1], offered, is_numbered=is_numbered, unasked=())
        return parcels

    async def _with_doubt(self, claimed: ClaimedTurn, text: str, note: Note) -> str:
        """The answer, after a line about earlier ones here that may not have arrived, once."""
        try:
            doubts = await self._store.report_doubts(claimed.conversation, claimed.id) if text.strip() else 0
        except StoreError as error:
            log.warning("doubts of %s are not reported: %s", claimed.conversation, type(error).__name__)
            return text
        if not doubts:
            return text
        await note(self._step("doubt reported", f"{doubts} earlier parcels may not have arrived"))
        return f"{DOUBT}\n\n{text}"

    async def _plain(self, claimed: ClaimedTurn, text: str, handed: Sequence[Offer], note: Note) -> tuple[Parcel, ...]:
        where, limits = claimed.conversation, self._limits(claimed.conversation)
        handed = await self._spoken(claimed, text, handed, note)
        try:
            found, decisions = await self._decided(where, text, handed, turn=claimed.id)
        except Exception as error:  # noqa: BLE001 - the text is sent even if a file fails
            log.warning("files of turn %d could not be collected: %s", claimed.id, place_of(error))
            reason = reason_of(error)
            found = Collected(text=text)
            decisions = tuple(Decision(offer=offer, action=Action.REFUSE, reason=reason) for offer in handed)
            await note(self._step("files not collected", reason))
        for decision in decisions:
            outcome = "not sent" if decision.action is Action.REFUSE else f"goes as {decision.send_as}"
            await note(self._step(outcome, decision.reason, decision.offer.name))
        for path, why in found.only_named[:FILES_AT_MOST]:
            await note(self._step("only named", f"{why}; send_media or its path in the answer sends it", path))
        if found.waiting:
            reason = f"{found.waiting} files: still being written, or too many at once"
            await note(self._step("left in pending", reason))
        words, long_code = await self._shortened(found.text, limits, note)
        decisions = (*decisions, *long_code)
        reply = Reply(conversation=where, text=words, reply_to=claimed.reply_to)
        return plan(reply, decisions, limits, turn=claimed.id, trace=claimed.trace, retries=claimed.retries)

    async def _shortened(self, text: str, limits: Limits, note: Note) -> tuple[str, tuple[Decision, ...]]:
        """The text without its long code and tables, and the files that they are sent as."""
        blocks = () if limits.scrolls_code else long_blocks(text, lines=self.inline_code_lines)
        taken, decisions = list[LongBlock](), list[Decision]()
        for block in blocks:
            try:
                offer = await self._keeper().keep(block.chunks(), name=block.name)
                (decision,) = await self._preparer.prepare((replace(offer, wanted=SendAs.DOCUMENT),), limits)
            except (MediaError, StoreError) as error:
                await note(self._step("kept in the text", reason_of(error), block.name))
                continue
            if decision.action is Action.SEND:
                taken.append(block)
                decisions.append(decision)
                lines = f"it has more than {self.inline_code_lines} lines"
                await note(self._step(f"goes as {decision.send_as}", lines, block.name))
        return shortened(text, taken), tuple(decisions)

    async def _spoken(self, claimed: ClaimedTurn, text: str, handed: Sequence[Offer], note: Note) -> Sequence[Offer]:
        """The files of an answer, with its voice message if it gets one."""
        if self._voice is None:
            return handed
        try:
            chosen = (await self._store.chat_settings(claimed.conversation)).voice
            return await self._voice.add(claimed, text, handed, note, chosen=chosen)
        except Exception as error:  # noqa: BLE001 - the text is sent even if speaking fails
            log.warning("the answer of turn %d could not be spoken: %s", claimed.id, place_of(error))
            await note(self._step(NOT_SPOKEN, reason_of(error), FILE_NAME))
            return handed

    def done(self, turn: int) -> None:
        """Release the turn's pending files: its parcels are committed, or it was requeued."""
        self._taken.pop(turn, None)

    def outlet(self, conversation: ConversationKey, basket: list[Offer] | None = None) -> Outlet:
        """Where `send_media` puts files: into a turn's basket, or directly into the outbox outside a turn."""

        async def into_reply(offer: Offer) -> str:
            if basket is None:
                await self._send_now(conversation, (offer,))
                return "It goes out now"
            if len(basket) >= FILES_AT_MOST and offer.sha256 not in {each.sha256 for each in basket}:
                raise ToolError(f"a reply brings along {FILES_AT_MOST} files at most; send this one with the next")
            basket.append(offer)
            return "It goes out with your answer"

        return Outlet(
            folder=self._home.folder(conversation),
            keeper=self._keeper(),
            http=self._downloads.http,
            prepare=partial(self._prepared, conversation),
            clock=self._clock,
            metered=partial(self._downloads.limits.take, conversation.whole_channel),
            give=into_reply,
            speaker=self.speaker,
        )

    async def _prepared(self, conversation: ConversationKey, offer: Offer) -> Decision:
        (decision,) = await self._preparer.prepare((offer,), self._limits(conversation))
        return decision

    async def flush(self, conversation: ConversationKey) -> Flushed:
        """Send the files in `pending` now, without a turn."""
        flushed = Flushed(conversation=conversation)
        for _ in range(FLUSHES_AT_MOST):
            token = secrets.randbits(62)
            try:
                found, decisions = await self._decided(conversation, "", (), turn=-token)
                flushed.waiting = found.waiting
                if not decisions:
                    break
                await self._commit(conversation, decisions, token)
            finally:
                self.done(-token)
            for decision in decisions:
                if decision.action is Action.REFUSE:
                    flushed.refused.append((decision.offer.name, decision.reason))
                else:
                    flushed.sent.append(decision.offer.name)
        return flushed

    async def flush_all(self) -> tuple[Flushed, ...]:
        """Flush every conversation that has pending files."""
        found = [await self.flush(where) for where in await self._with_folders()]
        return tuple(each for each in found if each.sent or each.refused or each.waiting)

    def parcel_news(self, news: ParcelNews) -> None:
        """Handle a parcel's new state: if it ended, its files may be moved."""
        if news.state in _ENDED and news.conversation in self._awaited:
            self._lanes.wake(news.conversation)

    async def sweep(self, before: datetime | None) -> int:
        """Move files that an earlier run left; delete those moved before `before`. Returns how many were deleted."""
        gone = 0
        for where in await self._with_folders():
            async with self._alone(where):
                await self._settled(where, self._folders(where))
                gone += await self._folders(where).sweep(before) if before else 0
        return gone

    async def _send_now(self, conversation: ConversationKey, offers: Sequence[Offer]) -> None:
        token = secrets.randbits(62)
        decisions = await self._preparer.prepare(offers, self._limits(conversation))
        self._await_marks(conversation, offers)
        await self._commit(conversation, decisions, token)

    async def _commit(self, where: ConversationKey, decisions: Sequence[Decision], token: int) -> None:
        reply = Reply(conversation=where, text="")
        parcels = plan(reply, decisions, self._limits(where), turn=NO_TURN, trace=f"unasked-{token:x}")
        await self._store.put_parcels(parcels)
        self.put(where)

    async def _decided(
        self, where: ConversationKey, text: str, handed: Sequence[Offer], *, turn: int
    ) -> tuple[Collected, tuple[Decision, ...]]:
        """All files of a reply, each with its decision; none is collected a second time."""
        self._home.outgoing(where)
        folders = self._folders(where)
        async with self._alone(where):
            busy = await self._settled(where, folders)
            earlier = partial(self._store.earlier_files, where)
            found = await collect(text, handed, folders, self._keeper(), earlier=earlier, busy=busy)
            self._await_marks(where, found.offers, turn)
        failpoint("reply.collected")
        prepared = await self._preparer.prepare(found.offers, self._limits(where))
        failpoint("reply.prepared")
        decisions = (*prepared, *found.refused)
        async with self._alone(where):
            await folders.refuse(_refused(decisions))
        return found, decisions

    def _await_marks(self, where: ConversationKey, offers: Sequence[Offer], turn: int | None = None) -> None:
        marks = {mark for offer in offers if offer.pending for mark in split(offer.pending)}
        if marks:
            self._awaited.add(where)
            if turn is not None:
                self._taken.setdefault(turn, set()).update(marks)

    async def _settled(self, where: ConversationKey, folders: Folders) -> frozenset[str]:
        """Move the files whose parcels have ended. Returns the marks of those still on their way."""
        taken = frozenset(mark for marks in self._taken.values() for mark in marks)
        if not await folders.is_used():
            return taken
        under_way = await folders.settle(fates_of(await self._store.carried_files(where)))
        # A file in `error` may still arrive if an operator retries its parcel.
        if await folders.is_used():
            self._awaited.add(where)
        else:
            self._awaited.discard(where)
        return under_way | taken

    async def _file_away(self, where: ConversationKey) -> datetime | None:
        try:
            async with self._alone(where):
                await self._settled(where, self._folders(where))
        except StoreError as error:
            log.warning("pending files of %s stay where they are: %s", where, type(error).__name__)
            return self._clock.now() + timedelta(minutes=1)
        return None

    @asynccontextmanager
    async def _alone(self, where: ConversationKey) -> AsyncIterator[None]:
        """Lock this conversation's folders."""
        lock = self._locks.setdefault(where, asyncio.Lock())
        async with lock:
            yield

    async def _with_folders(self) -> list[ConversationKey]:
        known = [summary.conversation for summary in await self._store.conversations()]
        return await asyncio.to_thread(lambda: [where for where in known if self._home.has_outgoing(where)])

    def _folders(self, where: ConversationKey) -> Folders:
        return Folders(self._home.folder(where), self._clock)

    def _limits(self, where: ConversationKey) -> Limits:
        adapter = self._adapters.get((where.platform, where.account))
        return adapter.limits if adapter is not None else UNKNOWN_LIMITS

    def _step(self, outcome: str, reason: str, subject: str = "") -> Step:
        return Step(at=self._clock.now(), stage=Stage.REPLY, outcome=outcome, reason=reason, subject=subject)


def _for_sender(claimed: ClaimedTurn, choices: Sequence[Choice]) -> list[Choice]:
    """The choices, for the sender of the message where they name no other."""
    sender = claimed.messages[-1].author.id
    return [replace(choice, who=choice.who or sender) for choice in choices]


def _refused(decisions: Sequence[Decision]) -> dict[str, str]:
    """The reasons why pending files cannot be sent, by mark."""
    refused = [each for each in decisions if each.action is Action.REFUSE and each.offer.pending]
    return {mark: each.reason for each in refused for mark in split(each.offer.pending or "")}
