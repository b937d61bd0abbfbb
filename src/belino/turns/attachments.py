"""Attachments of a turn's messages, with the way to their bytes: through the channel's fetcher, into the manifest."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial

from belino.context.readings import words_of
from belino.domain.errors import MediaNotFound, StoreError, ToolError
from belino.domain.media import Blob, MediaRef
from belino.domain.safe_text import clean_name
from belino.domain.turn import Attachment, TurnMessage
from belino.media.session_files import safe_name
from belino.tools.tool_context import ToolContext, find_ref, held
from belino.turns.prompt import TurnPrompt


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentOpener:
    """Makes the messages of a turn, whose attachments an agent can open."""

    context: ToolContext
    opened: Callable[[str, Blob], None]
    """Called with a ref that was read to its end, and its bytes."""

    def messages(self, prompt: TurnPrompt) -> tuple[TurnMessage, ...]:
        """The messages as values; media that was sent shortly before belongs to the last."""
        before = tuple(record.ref for record in prompt.unclaimed)
        return tuple(
            TurnMessage(
                id=message.id,
                author=message.author,
                sent=message.sent,
                text=picked.label if (picked := prompt.choices.get(message.id)) else words_of(message),
                attachments=tuple(
                    self._attachment(ref)
                    for ref in (message.media + before if message is prompt.messages[-1] else message.media)
                ),
                reply_to=message.reply_to,
                quote=message.quote,
                forward=message.forward,
                choice=picked,
            )
            for message in prompt.messages
        )

    def _attachment(self, ref: MediaRef) -> Attachment:
        return Attachment(
            ref=ref.id,
            kind=ref.kind,
            name=clean_name(ref.file_name or "") or safe_name(None, mime=ref.mime, kind=ref.kind),
            mime=ref.mime,
            size=ref.size,
            caption=ref.caption,
            duration=ref.duration,
            chunks=partial(self._chunks, ref.id),
        )

    async def _chunks(self, ref: str) -> AsyncIterator[bytes]:
        """The bytes of a ref, as it is now: it may be deleted since the turn began."""
        context = self.context
        blob = await held(context, await find_ref(context, ref))
        with context.fetcher.pin(blob.sha256):
            try:
                async for chunk in context.archive.chunks(blob.sha256):
                    yield chunk
            except (StoreError, MediaNotFound) as error:
                raise ToolError(f"{ref} could not be read: {error}") from error
        self.opened(ref, blob)
