"""Publisher of files: signed links under the public address, for platforms and MCP clients that fetch from us."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from belino.config import ServerConfig
from belino.domain.errors import ConfigError
from belino.domain.media import Blob
from belino.domain.reply import OutgoingFile
from belino.domain.stored import RefRecord
from belino.storage.published import PublishedVerbs

if TYPE_CHECKING:
    from belino.media.image.images import Fitted

PATH = "/files"
PREVIEW = "/preview"
"""Follows the token of a link whose preview is meant."""
UNREACHABLE = "files can be fetched from belino only over HTTPS; set server.public_url to its https:// address"


def why_unpublished(server: ServerConfig) -> str:
    """Why the outside cannot fetch files from us; empty if it can."""
    return "" if (server.public_url or "").startswith("https://") else UNREACHABLE


class Publisher:
    """Makes links to stored bytes that are valid for `server.publish_minutes`."""

    def __init__(
        self,
        store: Callable[[], PublishedVerbs],
        server: Callable[[], ServerConfig],
        draw: Callable[[Blob], Awaitable["Fitted"]],
    ) -> None:
        """`draw` makes the preview of a picture or video; MediaError if it cannot."""
        self._store = store
        self._server = server
        self._draw = draw

    @property
    def is_possible(self) -> bool:
        """Whether the outside can reach us over HTTPS."""
        return not self.why_not()

    def why_not(self) -> str:
        """Why no link can be made now; empty if one can."""
        return why_unpublished(self._server())

    async def preview(self, file: OutgoingFile) -> str:
        """A link to a preview of a file of a parcel, which is made now, so that a failure is known now."""
        url = await self.file(file)
        await self._draw(Blob(sha256=file.sha256, mime=file.mime, size=file.size))
        return f"{url}{PREVIEW}"

    async def file(self, file: OutgoingFile) -> str:
        """A link to a file of a parcel; ConfigError without a public address."""
        return await self._link(file.sha256, file.name, file.mime)

    async def media(self, record: RefRecord, blob: Blob) -> str:
        """A link to the bytes of a ref, which ends when they are deleted; ConfigError without a public address."""
        return await self._link(blob.sha256, record.ref.file_name or "", record.ref.mime, ref=record.ref.id)

    async def _link(self, sha256: str, name: str, mime: str, ref: str | None = None) -> str:
        server = self._server()
        if server.public_url is None or not self.is_possible:
            raise ConfigError(UNREACHABLE)
        lifetime = timedelta(minutes=server.publish_minutes)
        token = await self._store().publish(sha256, name=name, mime=mime, lifetime=lifetime, ref=ref)
        return f"{server.public_url.rstrip('/')}{PATH}/{token}"
