"""Resources of a channel: its media by address, with their bytes, for clients that cannot open a path of ours."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from belino.domain.errors import ConfigError, MediaNotFound, StoreError, ToolError
from belino.domain.media import Blob
from belino.domain.stored import RefRecord
from belino.domain.units import format_size
from belino.tools.media import read_cursor
from belino.tools.tool_context import NO_MEDIA, ToolContext, find_ref, held

PREFIX = "belino://media/"
TEMPLATE = f"{PREFIX}{{ref}}"
PAGE = 100
READ_BYTES = 16 * 1024 * 1024
"""The most bytes of one answer, which is held in memory as base64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaResources:
    """The media of one channel; the channel is the context's, no address can name another."""

    context: ToolContext

    async def page(self, cursor: str | None) -> tuple[Sequence[RefRecord], str | None]:
        """Some of the channel's media, newest first, and the cursor of the next page; ToolError for a wrong cursor."""
        before, channel = read_cursor(cursor), self.context.channel
        found = await self.context.library.refs(channel, before=before, limit=PAGE + 1)
        shown = found[:PAGE]
        return shown, str(shown[-1].seq) if len(found) > PAGE else None

    async def read(self, uri: str) -> tuple[RefRecord, bytes]:
        """The bytes of a resource, within every limit of the channel; ToolError with the reason otherwise."""
        if not uri.startswith(PREFIX):
            raise ToolError(NO_MEDIA)
        record = await find_ref(self.context, uri.removeprefix(PREFIX))
        blob = await held(self.context, record)
        if blob.size > READ_BYTES:
            raise ToolError(await self._too_large(record, blob))
        try:
            async with self.context.archive.local(blob.sha256) as path:
                return record, await asyncio.to_thread(path.read_bytes)
        except (StoreError, MediaNotFound, FileNotFoundError) as error:
            raise ToolError(f"{record.ref.id} could not be read just now; try again in a moment") from error

    async def _too_large(self, record: RefRecord, blob: Blob) -> str:
        size, most = format_size(blob.size), format_size(READ_BYTES)
        says = f"{record.ref.id} is {size}, and a resource gives at most {most}"
        if self.context.link is None:
            return says
        try:
            return f"{says}; fetch it from {await self.context.link(record, blob)}"
        except ConfigError as error:
            return f"{says}; {error}"


def uri_of(ref_id: str) -> str:
    """The address of a ref."""
    return f"{PREFIX}{ref_id}"
