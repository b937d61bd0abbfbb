"""Joining: decide how an arriving message may join a turn, and stop or restart the turn that runs."""

from collections.abc import Mapping
from datetime import timedelta

from belino.config import SessionsConfig
from belino.domain.commands import parse_command
from belino.domain.joining import SPLIT_MARGIN, Joining
from belino.domain.message import Arrival, Message
from belino.domain.outcome import Standing
from belino.domain.ports import Adapter, Taken
from belino.domain.stored import ScreenedArrival, Verdict
from belino.turns.underway import BY_MESSAGE, Underway


class Joiner:
    """Knows the settings, what clients split at, and what runs; the store decides, in one transaction."""

    def __init__(self, config: SessionsConfig, adapters: Mapping[tuple[str, str], Adapter], underway: Underway) -> None:
        self._config = config
        self._adapters = adapters
        self._underway = underway

    def joining(self, arrival: Arrival, verdict: Verdict) -> Joining | None:
        """How an arrival may join an open turn; None if it is no message, a command, or still to be heard."""
        if not isinstance(arrival, Message) or not verdict.sender_may_command or arrival.edited is not None:
            return None
        is_command = verdict.standing is Standing.MAY_COMMAND
        if (verdict.answer and not is_command) or parse_command(arrival.text) is not None:
            return None
        where = arrival.conversation
        return Joining(
            is_line=verdict.answer,
            is_forward=arrival.forward is not None,
            fills=self._fills(arrival),
            while_busy=self._config.while_busy,
            restarts=self._underway.unseen(where),
            interrupts=self._underway.running(where),
            wait=timedelta(milliseconds=self._config.join_ms),
            most=timedelta(milliseconds=self._config.join_max_ms),
        )

    def settle(self, judged: ScreenedArrival, taken: Taken) -> None:
        """After the commit: restart the running turn that the message joined, or stop one that it interrupts."""
        joining, where = judged.joining, judged.arrival.conversation
        if joining is None or taken.turn is None:
            return
        if taken.turn == joining.restarts:
            self._underway.restart(where, taken.turn)
        elif joining.while_busy == "interrupt" and joining.is_line and joining.interrupts is not None:
            self._underway.abort(where, turn=joining.interrupts, reason=BY_MESSAGE)

    def _fills(self, message: Message) -> bool:
        """Whether a text is as long as the pieces that clients split a longer one into."""
        where = message.conversation
        adapter = self._adapters.get((where.platform, where.account))
        most = None if adapter is None else adapter.limits.split_chars
        if adapter is None or most is None or 4 * len(message.text) < most - SPLIT_MARGIN:
            return False
        return adapter.limits.unit.length(message.text) >= most - SPLIT_MARGIN
