"""Drafts: an answer shown while it streams, as one message that is edited until it is complete."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal, Protocol

from belino.aio.deadline import deadline
from belino.delivery.plan import parcel_key, plan, turn_hash
from belino.delivery.send import ParcelNews
from belino.delivery.text import texts
from belino.domain.errors import AdapterError, MarkupRefused, StoreError, Undeliverable, place_of, reason_of
from belino.domain.failpoints import failpoint
from belino.domain.limits import Rich
from belino.domain.message import ConversationKey, Deletion
from belino.domain.outcome import CHOSE_SILENCE, Stage, Standing, Step, TurnState
from belino.domain.ports import Clock, Deletes, Drafts, StreamsDrafts
from belino.domain.reply import DRAFT_OF, UNFINISHED, Parcel, ParcelKind, ParcelState, Reply
from belino.domain.stored import ClaimedTurn, StoredMessage, TurnEnd, Verdict
from belino.storage.store import Store
from belino.understanding.request import ReadingNews

log = logging.getLogger(__name__)

BEGIN_SECONDS = 1.5
"""An answer that is complete by then is sent whole: a draft would cost an extra call."""
FIRST_CHARS = 40
"""A first draft that is shorter and no sentence waits until the agent writes more, or pauses."""
QUIET_SECONDS = 1.0
"""After so long without a new piece, the last word is taken as whole."""
LOOK_SECONDS = 0.25
STREAMED_SECONDS = 20.0
"""A preview that does not change is shown again after so long; it vanishes after half a minute."""
EDIT_SECONDS = 10.0
STOPPED = "(stopped)"
NO_ANSWER = "(no answer)"
"""What the draft of an agent that chose silence says where it cannot be deleted."""
WITHDRAWN = Verdict(standing=Standing.OBSERVED, reason="the agent chose silence")
PIECE_SECONDS = 0.05
"""A model writes a hundred pieces a second, faster than people read."""
_HALF_WORD = re.compile(r"(?<=\s)[^\W_\u2e80-\U0003ffff][\w'’-]*\Z|\A\w+\Z")
_SENTENCE = re.compile(r"[.!?…:。！？]|\n")
_ENDED = frozenset({ParcelState.SENT, ParcelState.UNCERTAIN, ParcelState.HELD, ParcelState.DEAD})


class TurnEvents(Protocol):
    """The part of the event bus that a running turn publishes to."""

    def watched(self, conversation: ConversationKey | None = None) -> bool: ...
    def message(self, message: StoredMessage) -> None: ...
    def changed(self, conversation: ConversationKey) -> None: ...
    def lost(self) -> None: ...
    def reading(self, conversation: ConversationKey, message_id: str, index: int, news: ReadingNews) -> None: ...
    def turn(
        self,
        conversation: ConversationKey,
        turn: int,
        state: TurnState | Literal["note", "writing"],
        text: str = "",
        *,
        at: int = 0,
    ) -> None: ...


class Draft:
    """The answer of one turn so far, published in pieces that a page can keep up with."""

    def __init__(self, conversation: ConversationKey, turn: int, events: TurnEvents, clock: Clock) -> None:
        self._conversation = conversation
        self._turn = turn
        self._events = events
        self._clock = clock
        self._published = 0
        self._held = ""
        self._last: float | None = None

    def write(self, piece: str) -> None:
        """Publish the next piece, or hold it until the next call."""
        self._held += piece
        now = self._clock.monotonic()
        if self._held and (self._last is None or now - self._last >= PIECE_SECONDS):
            self._last = now
            self._publish()

    def flush(self) -> None:
        """Publish held text: the next part is not text, and may take long."""
        if self._held:
            self._publish()

    def _publish(self) -> None:
        self._events.turn(self._conversation, self._turn, "writing", self._held, at=self._published)
        self._published += len(self._held.encode("utf-16-le", "surrogatepass")) // 2
        self._held = ""


class DraftWriter:
    """One turn's draft. Call `resume` first; `show` displays it, `write` extends it, `finish` makes it the answer."""

    def __init__(
        self,
        claimed: ClaimedTurn,
        adapter: Drafts,
        store: Store,
        *,
        pause: float,
        clean: Callable[[str], str],
        clock: Clock,
        put: Callable[[], None],
        told: Callable[[ConversationKey, Sequence[str]], Awaitable[None]],
    ) -> None:
        """`clean` removes from the text what only the finished answer replaces; `put` wakes the sender.

        `told` is called with the ids of messages that changed.
        """
        self._claimed = claimed
        self._adapter = adapter
        self._limits = adapter.limits
        self._store = store
        self._pause = pause
        self._clean = clean
        self._clock = clock
        self._put = put
        self._told = told
        self._key = f"d-{claimed.id}-{turn_hash(claimed.trace, claimed.retries)}"
        self._text = ""
        self._last = 0.0
        """When the last piece came."""
        self._shown = ""
        self._streamed = False
        """Whether a preview was shown, which vanishes by itself."""
        self._written = asyncio.Event()
        self._landed = asyncio.Event()
        self._editing = asyncio.Lock()
        self._started = False
        """Whether the outbox may hold the draft: from then on the answer is an edit of it."""
        self._over = False

    async def resume(self) -> None:
        """Continue the draft of an interrupted turn, if it had one."""
        draft = await self._store.parcel(self._key) if self._claimed.has_parcels else None
        if draft is not None:
            self._started = True
            if draft.state in _ENDED:
                self._landed.set()

    def write(self, piece: str) -> None:
        """Append text from the agent."""
        self._text += piece
        self._last = self._clock.monotonic()
        if self._text.strip():
            self._written.set()

    def news(self, news: ParcelNews) -> None:
        """Handle a parcel's new state."""
        if news.key == self._key and news.state in _ENDED:
            self._landed.set()

    async def show(self) -> None:
        """Show the text as it grows, until cancelled or until the platform accepts no more edits."""
        try:
            await self._written.wait()
            if not self._started:
                await self._presentable()
                if await self._stream():
                    return
            await self._begin()
            if (message_id := await self._message()) is not None:
                await self._keep_changing(message_id)
        except Exception as error:  # noqa: BLE001 - an answer is sent even if its draft fails
            log.info("the draft of turn %d is not continued: %s", self._claimed.id, place_of(error))

    def hush(self) -> None:
        """The text is complete: start no draft and no edit, even while its files are being prepared."""
        self._over = True

    async def stop(self) -> None:
        """Wait for an edit in progress, and start no other: the answer must be the last."""
        self.hush()
        try:
            async with deadline(self._clock, EDIT_SECONDS), self._editing:
                pass
        except TimeoutError:
            log.info("a change of the draft of turn %d is not waited for", self._claimed.id)

    async def finish(self, end: TurnEnd) -> TurnEnd:
        """The end of the turn, in which the first text parcel of the reply is an edit of the draft.

        The draft of an agent that chose silence is deleted; where that is refused, it says that there is no answer.
        """
        if not self._started:
            return self._kept(end) if self._streamed else end
        if end.reason.startswith(CHOSE_SILENCE) and await self._withdrawn():
            return end
        parcels = _text_apart(end.parcels)
        place = next((n for n, parcel in enumerate(parcels) if parcel.kind is ParcelKind.TEXT), None)
        if place is None:
            place = len(parcels)
            parcels.extend(self._left(end, place))
        # If the draft never arrived, this is a message of its own, and a reply like the draft.
        words = replace(parcels[place], reply_to=self._claimed.reply_to)
        parcels[place] = replace(words, kind=ParcelKind.EDIT, edits=f"{DRAFT_OF}{self._key}")
        return replace(end, parcels=tuple(parcels))

    async def _withdrawn(self) -> bool:
        """Delete the draft, on the platform and in the history; one that waits is not sent. False if it stays."""
        reason = "it is unknown whether it arrived"
        try:
            async with deadline(self._clock, EDIT_SECONDS):
                if (message_id := await self._message()) is not None:
                    await self._delete(message_id)
                    return True
        except AdapterError as error:
            reason = reason_of(error)
        except (StoreError, TimeoutError) as error:
            log.info("the draft of turn %d stays for now: %s", self._claimed.id, type(error).__name__)
        with suppress(StoreError):
            if await self._store.drop_parcel(self._key, reason=WITHDRAWN.reason) is not None:
                return True
            step = Step(at=self._clock.now(), stage=Stage.DELIVERY, outcome="draft not deleted", reason=reason)
            await self._store.note(self._claimed.trace, replace(step, subject=self._key))
        return False

    async def _delete(self, message_id: str) -> None:
        where, adapter = self._claimed.conversation, self._adapter
        if not isinstance(adapter, Deletes):
            raise Undeliverable("the platform deletes no messages")
        await adapter.delete(where, message_id)
        own = f"{self._key}-withdrawn"
        deletion = Deletion(conversation=where, id=own, message_id=message_id, author=None, sent=self._clock.now())
        await self._store.take_in(deletion, WITHDRAWN)
        await self._told(where, [message_id])

    def _kept(self, end: TurnEnd) -> TurnEnd:
        """The end of the turn; if it was cut off, with what the vanished preview has shown."""
        if end.state is TurnState.ANSWERED or any(parcel.text for parcel in end.parcels):
            return end
        return replace(end, parcels=(*end.parcels, *self._left(end, len(end.parcels))))

    def _left(self, end: TurnEnd, place: int) -> tuple[Parcel, ...]:
        """The final text of the draft if the turn ends without text."""
        stopped = "" if end.state is TurnState.ANSWERED else STOPPED
        words = "\n\n".join(part for part in (self._clean(self._text).strip(), stopped) if part) or UNFINISHED.strip()
        if end.reason.startswith(CHOSE_SILENCE):
            words = NO_ANSWER
        made = plan(
            Reply(conversation=self._claimed.conversation, text=words),
            (),
            self._limits,
            turn=self._claimed.id,
            trace=self._claimed.trace,
        )
        turn, trace, retries = self._claimed.id, self._claimed.trace, self._claimed.retries
        keys = (parcel_key(turn, place + number, trace, retries=retries) for number in range(len(made)))
        return tuple(replace(parcel, key=key) for parcel, key in zip(made, keys, strict=True))

    async def _presentable(self) -> None:
        """Wait until the answer takes long enough for a draft, and its beginning can be read."""
        await self._clock.sleep(BEGIN_SECONDS)
        while not self._over and not self._is_quiet():
            shown = self._whole()
            if len(shown) >= FIRST_CHARS or _SENTENCE.search(shown):
                return
            await self._clock.sleep(LOOK_SECONDS)

    def _is_quiet(self) -> bool:
        return self._clock.monotonic() - self._last >= QUIET_SECONDS

    def _whole(self) -> str:
        """The text so far, without a word that is still being written."""
        text = self._clean(self._text)
        if not _HALF_WORD.search(text) or self._is_quiet():
            return text.rstrip()
        return _HALF_WORD.sub("", text).rstrip()

    async def _stream(self) -> bool:
        """Show the text as a preview until cancelled; False if there are none here."""
        where, adapter = self._claimed.conversation, self._adapter
        pause = adapter.stream_pause(where) if isinstance(adapter, StreamsDrafts) else None
        if not isinstance(adapter, StreamsDrafts) or pause is None:
            return False
        while not self._over:
            self._written.clear()
            async with self._editing:
                try:
                    async with deadline(self._clock, EDIT_SECONDS):
                        await adapter.stream_draft(self._parcel(ParcelKind.DRAFT))
                except Undeliverable:
                    return False
                except MarkupRefused:
                    log.info("a change of the draft of turn %d had markup that was refused", self._claimed.id)
                self._streamed = True
            await self._clock.sleep(pause)
            with suppress(TimeoutError):
                async with deadline(self._clock, STREAMED_SECONDS):
                    await self._written.wait()
        return True

    async def _begin(self) -> None:
        if self._started or self._over:
            return
        self._started = True
        await self._store.start_draft(self._claimed.id, self._parcel(ParcelKind.DRAFT))
        failpoint("draft.put.after")
        self._put()

    async def _message(self) -> str | None:
        await self._landed.wait()
        draft = await self._store.parcel(self._key)
        return None if draft is None or draft.state is not ParcelState.SENT else draft.message_id

    async def _keep_changing(self, message_id: str) -> None:
        while True:
            await self._clock.sleep(self._pause)
            await self._written.wait()
            self._written.clear()
            async with self._editing:
                if self._over:
                    return
                await self._change(message_id)

    async def _change(self, message_id: str) -> None:
        before, parcel = self._shown, self._parcel(ParcelKind.EDIT)
        if parcel.text == before:
            return
        try:
            async with deadline(self._clock, EDIT_SECONDS):
                failpoint("draft.edit.before")
                await self._adapter.edit(message_id, parcel)
                failpoint("draft.edit.after")
        except MarkupRefused:
            log.info("a change of the draft of turn %d had markup that was refused", self._claimed.id)

    def _parcel(self, kind: ParcelKind) -> Parcel:
        source = self._whole() + UNFINISHED
        made = texts(source, self._limits)
        has_rich = self._limits.rich is Rich.MARKDOWN and len(source) <= self._limits.rich_chars
        self._shown = made[0].text
        return Parcel(
            key=self._key,
            conversation=self._claimed.conversation,
            kind=kind,
            text=made[0].text,
            plain=made[0].plain,
            rich=source if has_rich else "",
            markup=self._limits.markup,
            reply_to=self._claimed.reply_to,
            trace=self._claimed.trace,
        )


def _text_apart(parcels: Sequence[Parcel]) -> list[Parcel]:
    """The parcels, with text that was planned in one call with files in its own: the draft already shows it."""
    found: list[Parcel] = []
    for parcel in parcels:
        if parcel.files and parcel.text:
            words = replace(parcel, key=f"{parcel.key}-text", kind=ParcelKind.TEXT, files=())
            found += [words, replace(parcel, text="", plain="", reply_to=None)]
        else:
            found.append(parcel)
    return found


def without_folders(folder: Path, text: str) -> str:
    """The text with file names instead of local paths, like the finished answer."""
    for place in ("outgoing/pending/", "outgoing/", "incoming/"):
        text = text.replace(f"{folder}/{place}", "")
    return text
