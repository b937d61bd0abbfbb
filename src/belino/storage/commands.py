"""Commands as stored: what they change in a conversation, and the facts that their answers state."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from belino.domain.commands import ChatSettings, CommandEffect
from belino.domain.message import ConversationKey
from belino.domain.outcome import TurnState
from belino.domain.reply import Parcel
from belino.storage.channel_inbox import acknowledge, passed_on
from belino.storage.database import TableRow, Tx, Verbs
from belino.storage.messages import MessageRow
from belino.storage.parcels import COMMANDED, insert_parcels, insert_unasked
from belino.storage.row_ids import SEQ_MASK, RowIds, find_place
from belino.storage.text import sanitized

STOPPED = "stopped by a person"
"""The reason of a turn that a person stopped; a turn that still runs has it from the command until it ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationFacts:
    """The numbers of a conversation that `/status` states."""

    running: int = 0
    waiting: int = 0
    is_passed_on: bool = False
    """Whether a connected client has, or will get, a message that it did not acknowledge."""
    answered: int = 0
    cost_usd: float | None = None
    """None if the price of no turn is known."""
    model: str = ""
    """The model that answered last."""
    input_tokens: int = 0
    """Tokens that the last turn read."""


class CommandVerbs(Verbs):
    """What commands read and change."""

    async def chat_settings(self, conversation: ConversationKey) -> ChatSettings:
        """What people chose in a conversation."""
        return await self._database.read(lambda tx: chat_settings(tx, conversation))

    async def conversation_facts(self, conversation: ConversationKey) -> ConversationFacts:
        """The numbers of a conversation."""
        return await self._database.read(lambda tx: conversation_facts(tx, conversation))

    async def last_answered(self, conversation: ConversationKey) -> str | None:
        """The id of the message that the last turn of a conversation answered, or could not; None if there is none."""
        return await self._database.read(lambda tx: last_answered(tx, conversation))

    async def put_notices(self, parcels: Sequence[Parcel]) -> None:
        """Put parcels into the outbox that are no messages of the conversation."""
        now, said = self._now(), sanitized(tuple(parcels))
        await self._database.write(lambda tx: insert_parcels(tx, None, said, now))

    async def carry_out(
        self, conversation: ConversationKey, message_seq: int, effect: CommandEffect, *, turn: int
    ) -> int:
        """Change what a spoken command orders; its turn brings the answer. Doing it twice changes nothing more.

        Returns how many waiting turns it ended.
        """
        now, said = self._now(), sanitized(effect)

        def work(tx: Tx) -> int:
            place = tx.memo(RowIds).conversation(tx, conversation, now)
            ended = _change(tx, place.id, message_seq, said, now)
            tx.execute("UPDATE turns SET reason = '' WHERE id = ?", (turn,))
            return ended

        return await self._database.write(work)


def carry_out(tx: Tx, row: MessageRow, effect: CommandEffect, now: int) -> int:
    """Change what a stored command orders, and put its answer into the outbox. Returns how many turns it ended."""
    ended = _change(tx, row.conversation, row.id & SEQ_MASK, effect, now)
    answer = [replace(parcel, trace=row.trace) for parcel in effect.answer]
    insert_unasked(tx, answer, now, turn=COMMANDED)
    return ended


def _change(tx: Tx, conversation: int, seq: int, effect: CommandEffect, now: int) -> int:
    ended = 0
    if effect.stops:
        ended = stop_turns(tx, conversation, now)
        acknowledge(tx, conversation, seq)
    if effect.forgets:
        tx.execute("DELETE FROM sessions WHERE conversation = ?", (conversation,))
        _set(tx, conversation, "begun", seq)
    if effect.settings is not None:
        _set(tx, conversation, "model", effect.settings.model)
        _set(tx, conversation, "voice", None if effect.settings.voice is None else int(effect.settings.voice))
    return ended


def stop_turns(tx: Tx, conversation: int, now: int) -> int:
    """End the waiting turns of a conversation, and mark the running one: it ends soon, at the latest at a restart.

    Returns how many waited.
    """
    ended = tx.execute(
        "UPDATE turns SET state = 'aborted', reason = ?, ended = ? WHERE conversation = ? AND state = 'waiting'",
        (STOPPED, now, conversation),
    )
    tx.execute("UPDATE turns SET reason = ? WHERE conversation = ? AND state = 'running'", (STOPPED, conversation))
    return ended.rowcount


def began_before(tx: Tx, turn: TableRow) -> bool:
    """Whether a turn answers a message of an earlier session, or the one that ended it: it must not change this one."""
    row = _row(tx, turn["conversation"])
    return row is not None and int(row["begun"]) >= turn["message"] & SEQ_MASK


def session_begun(tx: Tx, conversation: int) -> int:
    """The seq of the message that began a conversation's session; 0 if none did."""
    row = _row(tx, conversation)
    return 0 if row is None else int(row["begun"])


def chat_settings(tx: Tx, conversation: ConversationKey) -> ChatSettings:
    """The settings of a conversation; none for a new one."""
    place = find_place(tx, conversation)
    row = None if place is None else _row(tx, place.conversation)
    if row is None:
        return ChatSettings()
    return ChatSettings(model=row["model"], voice=None if row["voice"] is None else bool(row["voice"]))


def conversation_facts(tx: Tx, conversation: ConversationKey) -> ConversationFacts:
    """Count the turns of a conversation and sum up their cost."""
    place = find_place(tx, conversation)
    if place is None:
        return ConversationFacts()
    rows = tx.execute(
        "SELECT state, count(*) AS times, sum(cost) AS cost FROM turns WHERE conversation = ? GROUP BY state",
        (place.conversation,),
    ).fetchall()
    times = {row["state"]: int(row["times"]) for row in rows}
    costs = [float(row["cost"]) for row in rows if row["cost"] is not None]
    last = tx.execute(
        "SELECT model, input_tokens FROM turns WHERE conversation = ? AND state = 'answered' ORDER BY id DESC LIMIT 1",
        (place.conversation,),
    ).fetchone()
    return ConversationFacts(
        running=times.get(TurnState.RUNNING, 0),
        waiting=times.get(TurnState.WAITING, 0),
        is_passed_on=bool(passed_on(tx, conversation, None, 1)),
        answered=times.get(TurnState.ANSWERED, 0),
        cost_usd=sum(costs) if costs else None,
        model=(last["model"] or "") if last is not None else "",
        input_tokens=last["input_tokens"] if last is not None else 0,
    )


def last_answered(tx: Tx, conversation: ConversationKey) -> str | None:
    """The platform's id of the message of the conversation's last turn that ended with an answer."""
    place = find_place(tx, conversation)
    row = tx.execute(
        "SELECT m.platform_id FROM turns t JOIN messages m ON m.id = t.message "
        "WHERE t.conversation = ? AND t.state IN ('answered', 'failed') ORDER BY t.id DESC LIMIT 1",
        (-1 if place is None else place.conversation,),
    ).fetchone()
    return None if row is None else str(row["platform_id"])


def _row(tx: Tx, conversation: int) -> TableRow | None:
    row: TableRow | None = tx.execute(
        "SELECT model, voice, begun FROM chat_settings WHERE conversation = ?", (conversation,)
    ).fetchone()
    return row


def _set(tx: Tx, conversation: int, column: str, value: object) -> None:
    tx.execute(
        f"INSERT INTO chat_settings (conversation, {column}) VALUES (?, ?) "
        f"ON CONFLICT (conversation) DO UPDATE SET {column} = excluded.{column}",
        (conversation, value),
    )
