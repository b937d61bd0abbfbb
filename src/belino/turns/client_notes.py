"""Client notes: what clients outside a turn call, kept with the newest message of the conversation for `explain`."""

from collections import OrderedDict
from dataclasses import replace

from belino.domain.errors import StoreError
from belino.domain.message import ConversationKey
from belino.domain.outcome import Stage, Step
from belino.storage.store import Store

NOTES_AT_MOST = 200
"""For one message; each is a row in the store."""
MESSAGES_COUNTED = 1_000


class ClientNotes:
    """Keeps the steps of MCP clients, which have no turn of their own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._counts: OrderedDict[str, int] = OrderedDict()
        """By trace, the latest last."""

    async def note(self, conversation: ConversationKey, step: Step) -> None:
        """Store a step; a note never fails a call, and a client that calls without end leaves a bounded number."""
        try:
            newest = await self._store.history(conversation, limit=1)
            if not newest or not self._counted(newest[0].trace):
                return
            is_call = step.stage is Stage.TOOL
            told = replace(step, subject=f"{step.subject} (client)") if is_call else step
            await self._store.note(newest[0].trace, told)
        except StoreError:
            return

    def _counted(self, trace: str) -> bool:
        count = self._counts[trace] = self._counts.get(trace, 0) + 1
        self._counts.move_to_end(trace)
        while len(self._counts) > MESSAGES_COUNTED:
            self._counts.popitem(last=False)
        return count <= NOTES_AT_MOST
