"""Typing and upload indicators, repeated until the message is sent, and reactions where there are none."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Literal

from belino.aio.deadline import beside, deadline
from belino.aio.keyed_workers import KeyedWorkers
from belino.domain.choice import may_be_choice
from belino.domain.errors import place_of
from belino.domain.message import ConversationKey, Message
from belino.domain.outcome import TurnState
from belino.domain.ports import Adapter, Clock, Reacts, ShowsTyping, ShowsUpload
from belino.domain.reply import Parcel
from belino.domain.stored import StoredMessage

log = logging.getLogger(__name__)

EVERY_SECONDS = 4.0
"""Platforms stop showing an indicator after about five seconds."""
CALL_SECONDS = 10.0
TYPING_SECONDS = 0.4
"""An answer that comes within this time needs no indicator."""
UPLOAD_SECONDS = 1.0
"""A file that is sent within this time needs no indicator."""
WAITS, WORKS, ANSWERED, FAILED = "⏳", "👀", "✅", "⚠️"
WIDTH = 4

SignMode = Literal["auto", "typing", "reaction", "off"]
"""How people see that an answer is on its way; `delivery.sign`."""


class Signs:
    """Shows people that their message waits or is being answered: by typing, or by a reaction to it.

    A sign that the platform refuses is left out. Reactions are made in the order of their messages, beside the turns.
    """

    def __init__(self, adapters: Mapping[tuple[str, str], Adapter], mode: SignMode, clock: Clock) -> None:
        self.mode = mode
        self._adapters = adapters
        self._clock = clock
        self._started = clock.now()
        self._busy: set[ConversationKey] = set()
        """Conversations whose turn runs."""
        self._wanted: dict[ConversationKey, dict[str, str]] = {}
        """The reaction that each message is to have, by its id; empty for none."""
        self._shown: dict[tuple[ConversationKey, str], str] = {}
        self._touched: set[ConversationKey] = set()
        """Conversations where typing is to be shown once."""
        self._lanes = KeyedWorkers(self._react, width=WIDTH, clock=clock)
        self.stop = self._lanes.stop

    async def run(self) -> None:
        """Make reactions until stopped."""
        await self._lanes.run()

    def waits(self, message: Message, *, is_full: bool = False) -> None:
        """Show that a message waits, if a turn runs before its own, here or, with `is_full`, in other conversations."""
        if (is_full or message.conversation in self._busy) and self.mode in ("auto", "reaction"):
            self._want(message.conversation, signed(message), WAITS)

    def begin(self, conversation: ConversationKey, messages: Sequence[StoredMessage]) -> None:
        """A turn begins: its messages wait no longer."""
        self._busy.add(conversation)
        for message in messages:
            if message.received < self._started:  # a process that died may have left the reaction
                self._shown.setdefault((conversation, signed(message)), WAITS)
            self._want(conversation, signed(message), "")

    async def show(self, conversation: ConversationKey, message: StoredMessage, note: Callable[[], str | None]) -> None:
        """Show that a message is being answered, until cancelled; `note` says what a tool is doing."""
        adapter = self._adapters.get((conversation.platform, conversation.account))
        if self.mode in ("auto", "typing") and isinstance(adapter, ShowsTyping):
            await self._clock.sleep(TYPING_SECONDS)
            await keep_showing(lambda: adapter.show_typing(conversation, note()), self._clock)
        if self.mode in ("auto", "reaction"):  # also where typing cannot be shown
            self._want(conversation, signed(message), WORKS)

    def show_once(self, conversation: ConversationKey) -> None:
        """Show typing for a few seconds: a client elsewhere has got a message, and answers in its own time."""
        if self.mode in ("auto", "typing"):
            self._touched.add(conversation)
            self._lanes.wake(conversation)

    def end(self, conversation: ConversationKey, message: StoredMessage, state: TurnState) -> None:
        """A turn has ended: a reaction to its message is removed, or says how it ended."""
        message_id = signed(message)
        self._busy.discard(conversation)
        shown = self._wanted.get(conversation, {}).get(message_id) or self._shown.get((conversation, message_id))
        if shown != WORKS:
            return
        ended = {TurnState.FAILED: FAILED, TurnState.ANSWERED: ANSWERED if self.mode == "reaction" else ""}
        self._want(conversation, message_id, ended.get(state, ""))

    def forget(self, message: StoredMessage) -> None:
        """A message waits no longer, and no turn answers it."""
        self._want(message.conversation, signed(message), "")

    def _want(self, conversation: ConversationKey, message_id: str, emoji: str) -> None:
        wanted = self._wanted.get(conversation, {})
        if not emoji and message_id not in wanted and (conversation, message_id) not in self._shown:
            return
        if isinstance(self._adapters.get((conversation.platform, conversation.account)), Reacts):
            self._wanted.setdefault(conversation, {})[message_id] = emoji
            self._lanes.wake(conversation)

    async def _react(self, conversation: ConversationKey) -> datetime | None:
        adapter = self._adapters.get((conversation.platform, conversation.account))
        if conversation in self._touched:
            self._touched.discard(conversation)
            await self._type(conversation, adapter)
        for message_id, emoji in self._wanted.pop(conversation, {}).items():
            before = self._shown.pop((conversation, message_id), "")
            if emoji in (WAITS, WORKS):
                self._shown[conversation, message_id] = emoji
            if before == emoji or not isinstance(adapter, Reacts):
                continue
            shown = adapter.limits.stand_ins
            try:
                async with deadline(self._clock, CALL_SECONDS):
                    if before:
                        await adapter.react(conversation, message_id, shown.get(before, before), added=False)
                    if emoji:
                        await adapter.react(conversation, message_id, shown.get(emoji, emoji))
            except Exception as error:  # noqa: BLE001 - a failed sign must not stop the others
                log.info("a reaction cannot be made: %s", place_of(error))
        return None

    async def _type(self, conversation: ConversationKey, adapter: Adapter | None) -> None:
        if not isinstance(adapter, ShowsTyping):
            return
        try:
            async with deadline(self._clock, CALL_SECONDS):
                await adapter.show_typing(conversation, None)
        except Exception as error:  # noqa: BLE001 - a failed sign must not stop the others
            log.info("an indicator cannot be shown: %s", place_of(error))


def signed(message: Message | StoredMessage) -> str:
    """The id of the message that bears the sign of a message: for a press of a button, the question; else its own."""
    return message.reply_to if message.reply_to is not None and may_be_choice(message.text) else message.id


async def keep_showing(show: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Show an indicator until cancelled. If that fails, stop: an indicator must not affect anything else."""
    try:
        while True:
            async with deadline(clock, CALL_SECONDS):
                await show()
            await clock.sleep(EVERY_SECONDS)
    except Exception as error:  # noqa: BLE001 - a failed indicator must not stop the work it announces
        log.info("an indicator cannot be shown: %s", place_of(error))


@asynccontextmanager
async def upload_shown(adapter: Adapter, parcel: Parcel, clock: Clock) -> AsyncIterator[None]:
    """Show an upload indicator inside the block, if the platform has one."""
    if parcel.files and isinstance(adapter, ShowsUpload):
        async with beside(_show_upload(adapter, parcel, clock)):
            yield
    else:
        yield


async def _show_upload(adapter: ShowsUpload, parcel: Parcel, clock: Clock) -> None:
    await clock.sleep(UPLOAD_SECONDS)
    form = parcel.files[0].send_as
    await keep_showing(lambda: adapter.show_upload(parcel.conversation, form), clock)
