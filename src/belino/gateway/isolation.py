"""Isolation: ordinary turns run concurrently, suspects of a crash one at a time."""

from collections.abc import Callable

from belino.domain.message import ConversationKey


class Isolation:
    """Decides whether a conversation may claim a turn now. A conversation that may not is woken once it may.

    As soon as a suspect is due no other turn starts; when the running turns have ended, the suspect runs.
    `enter` does not block, so a conversation that is held back takes no slot and needs no stopping.
    """

    def __init__(self, wake: Callable[[ConversationKey], None]) -> None:
        self._wake = wake
        self._inside = 0
        self._alone: ConversationKey | None = None
        self._suspects: dict[ConversationKey, None] = {}
        """Conversations whose next turn must run alone, in the order they run."""
        self._held: dict[ConversationKey, None] = {}
        """Conversations to wake when no suspect is due any more."""

    def isolate(self, conversation: ConversationKey) -> None:
        """Mark the next turn of this conversation as due and to be run alone."""
        self._suspects.setdefault(conversation)

    def is_alone(self, conversation: ConversationKey) -> bool:
        """Whether this conversation has entered and no other may."""
        return self._alone == conversation

    def enter(self, conversation: ConversationKey) -> bool:
        """Whether the conversation may claim and run a turn now; if so, `leave` must follow."""
        if self._inside == 0 and conversation == next(iter(self._suspects), None):
            del self._suspects[conversation]
            self._alone = conversation
        elif self._suspects or self._alone is not None:
            self._held.setdefault(conversation)
            return False
        self._inside += 1
        return True

    def leave(self, conversation: ConversationKey) -> None:
        """End the turn, or an `enter` without one."""
        self._inside -= 1
        if self._alone == conversation:
            self._alone = None
        if self._inside:
            return
        if self._suspects:
            self._wake(next(iter(self._suspects)))
            return
        held, self._held = self._held, {}
        for waiting in held:
            self._wake(waiting)
