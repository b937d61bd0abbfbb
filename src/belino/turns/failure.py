"""Failure of a turn: words for people in the chat, the reason for the operator, and a notice to the owners."""

import traceback
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from belino.domain.errors import AgentError, BelinoError, StoreError, place_of, reason_of
from belino.domain.turn import Final, ReplyPart, TextDelta
from belino.net.redact import redact
from belino.turns.state import repaired

REASON_CHARS = 300
TRACE_CHARS = 8_000
BROKEN = "something failed inside the agent; its operator has been told"
NO_ANSWER = "the model ended without an answer"


class TellsOwners(Protocol):
    """The part of the owners' notices that turns need; see gateway/owners.py."""

    async def tell(self, kind: str, text: str) -> None: ...
    async def close(self, kind: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class TurnFailure:
    """Why a turn failed."""

    reason: str
    """For the operator: in `explain`, and in the notice if there is one."""
    says: str = ""
    """For people in the chat; empty where the reason can be told to them."""
    needs_owner: bool = False
    trace: str = ""
    """For the log: the message and traceback of an error that is not ours."""

    @property
    def apology(self) -> str:
        """The message to the people in the chat."""
        return f"Sorry, I could not answer that: {self.says or self.reason}."


def failure_of(error: Exception) -> TurnFailure:
    """The failure that an error of an agent is."""
    if isinstance(error, AgentError):
        reason = repaired(reason_of(error))
        return TurnFailure(reason, says=error.says, needs_owner=bool(error.says))
    if isinstance(error, BelinoError):
        return TurnFailure(repaired(reason_of(error)), says=BROKEN, needs_owner=True)
    said = " ".join(redact(repaired(str(error))).split())[:REASON_CHARS]
    trace = redact(repaired("".join(traceback.format_exception(error))))[-TRACE_CHARS:]
    reason = f"the agent raised {place_of(error)}" + (f": {said}" if said else "")
    return TurnFailure(reason, says=BROKEN, needs_owner=True, trace=f"{reason}\n{trace}")


def not_kept(error: Exception) -> TurnFailure:
    """The failure that an answer is which the store can never accept."""
    reason = f"its answer could not be kept ({place_of(error)})"
    return TurnFailure(reason, says="my answer could not be stored; my operator has been told", needs_owner=True)


def empty(why: str) -> TurnFailure:
    """The failure that an answer without text and files is."""
    return TurnFailure(repaired(why) or NO_ANSWER, says="I got no answer from the model; ask again, or in other words")


class TurnFailures:
    """Tells the owners of failures that need them, until the agent answers again."""

    def __init__(self, owners: TellsOwners) -> None:
        self._owners = owners
        self._told: set[str] = set()

    async def tell(self, agent: str, failure: TurnFailure) -> None:
        """Tell the owners, if they must act."""
        if failure.needs_owner:
            self._told.add(agent)
            await self._owners.tell(f"agent {agent}", f"{agent} could not answer: {failure.reason}")

    async def ended(self, agent: str) -> None:
        """An answer arrived: what was told is over."""
        if agent in self._told:
            self._told.discard(agent)
            with suppress(StoreError):
                await self._owners.close(f"agent {agent}")


class Length:
    """The length of an answer, streamed and complete; over the limit, the turn ends."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._written = 0

    def add(self, part: ReplyPart) -> None:
        """Count a part; AgentError if the answer is too long."""
        if isinstance(part, TextDelta):
            self._written += len(part.text)
        if self._written > self._limit or (isinstance(part, Final) and len(part.text) > self._limit):
            raise AgentError(
                f"the agent's answer is over {self._limit} characters, which sessions.max_reply_chars sets",
                says="my answer became too long to send; ask for less, or for a file",
            )
