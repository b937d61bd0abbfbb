"""Read media as text: the one way in for turns, tools, the command line and the page."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from belino.domain.media import Blob
from belino.domain.message import ConversationKey
from belino.domain.outcome import Finding
from belino.domain.ports import ProviderContext
from belino.domain.reading import ReadingForm
from belino.domain.stored import RefRecord
from belino.media.price import Facts
from belino.understanding.config import MediaTools, Profile
from belino.understanding.request import ItemReading, MessageMedia, MessageReadings, Note, ReadingPrice

Hold = Callable[[RefRecord], AbstractAsyncContextManager[Blob]]
"""Fetches the bytes of a ref, and keeps them as long as the block lasts."""


class Understanding:
    """Reads media with the configured providers, each at most once, and stores what they read."""

    def __init__(
        self, tools: MediaTools, profiles: Mapping[str, Profile], *, hold: Hold, context: ProviderContext
    ) -> None:
        self._tools = tools
        self._profiles = profiles
        self._hold = hold
        self._context = context

    async def read_message(self, message: MessageMedia, note: Note) -> MessageReadings:
        """Decide about the attachments of a message that is being answered, and read them, within `turn_seconds`.

        A provider's fault is part of the result, and never raised. What was read when the time is up is in it, too.
        """
        raise NotImplementedError

    async def read_item(
        self,
        record: RefRecord,
        blob: Blob,
        form: ReadingForm,
        *,
        pages: tuple[int, int | None] | None = None,
        times: tuple[float, float | None] | None = None,
        conversation: ConversationKey,
    ) -> ItemReading:
        """Read one file on request: the stored text, else a provider's, from a page or time on as far as one call goes.

        MediaError if the file cannot be read in this form, ProviderError if no provider could read it; both say why.
        """
        raise NotImplementedError

    async def read_file(
        self,
        path: Path,
        mime: str,
        form: ReadingForm,
        *,
        pages: tuple[int, int | None] | None = None,
        times: tuple[float, float | None] | None = None,
    ) -> ItemReading:
        """Read a local file, for its owner; nothing is stored. Errors are those of `read_item`."""
        raise NotImplementedError

    def prices(self, facts: Facts, conversation: ConversationKey) -> Mapping[ReadingForm, ReadingPrice]:
        """The forms in which a file can be read here, each with its price; known without a call."""
        raise NotImplementedError

    async def check(self) -> Sequence[Finding]:
        """Try every configured entry on a sample of our own."""
        raise NotImplementedError

    async def close(self) -> None:
        """End running readings, and release what providers hold."""
