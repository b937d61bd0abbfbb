"""Media views for a person: the bytes of a ref, its renditions, previews, pages and readings."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from belino.domain.media import Blob
from belino.domain.stored import RefRecord
from belino.gateway.events import EventBus
from belino.media.fetch import Fetcher
from belino.storage.store import Store

if TYPE_CHECKING:
    from belino.gateway.readings import WantedReading
    from belino.gateway.rendering import Held
    from belino.media.image.images import Fitted, Images
    from belino.media.preview import FilePreview, Glance
    from belino.media.render import Renderer
    from belino.media.renditions import Rendered, RenderOptions
    from belino.understanding.read import Understanding
    from belino.understanding.request import ItemReading


PREVIEW_BYTES, PREVIEW_SIDE = 1_000_000, 1_024
PREVIEW_TYPES = ("image/jpeg", "image/png")


class MediaViews(ABC):
    """The part of a gateway that shows media to people."""

    store: Store
    notices: EventBus
    _fetcher: Fetcher

    @property
    @abstractmethod
    def renderer(self) -> "Renderer":
        """Makes renditions in the sandbox, and stores them."""

    @property
    @abstractmethod
    def images(self) -> "Images":
        """Decodes pictures in the sandbox."""

    @property
    @abstractmethod
    def understanding(self) -> "Understanding":
        """Reads media as text."""

    async def fetch(self, record: RefRecord, progress: Callable[[int, int | None], None] | None = None) -> Blob:
        """The bytes of a ref, for a person; downloaded once for all requesters."""
        return await self._fetcher.fetch(record, progress=progress)

    async def render(self, record: RefRecord, form: str, wish: "RenderOptions") -> "Rendered":
        """A ref in another form, for a person; made once for all requesters."""
        from belino.gateway.rendering import render_ref

        with self._holding() as held:
            return await render_ref(record, form, wish, store=self.store, renderer=self.renderer, held=held)

    async def glance(self, record: RefRecord, look: "FilePreview") -> "Glance":
        """A short preview of a ref, for a person."""
        from belino.gateway.rendering import glance_at

        with self._holding() as held:
            return await glance_at(record, look, store=self.store, renderer=self.renderer, held=held)

    async def small_picture(self, blob: Blob) -> "Fitted":
        """A picture or video small enough, and of a type, that every platform shows; MediaError if there is none."""
        if blob.mime.startswith("video/"):
            return await self.renderer.poster(blob, cached=False)
        return await self.images.fit(blob, max_bytes=PREVIEW_BYTES, max_side=PREVIEW_SIDE, formats=PREVIEW_TYPES)

    async def picture(self, record: RefRecord, page: int) -> "Fitted":
        """A picture of a ref, or of one of its pages, for a person."""
        from belino.gateway.rendering import picture_of

        with self._holding() as held:
            return await picture_of(record, page, store=self.store, renderer=self.renderer, held=held)

    async def read(self, record: RefRecord, wanted: "WantedReading") -> "ItemReading":
        """The text of a ref, for a person; read once for all requesters."""
        from belino.gateway.readings import RequestedReadings

        with self._holding() as held:
            return await RequestedReadings(self.store, self.understanding, self.notices).read(record, wanted, held)

    @contextmanager
    def _holding(self) -> "Iterator[Held]":
        """Fetch bytes and pin them until the block is left."""
        with ExitStack() as needed:

            async def held(wanted: RefRecord) -> Blob:
                blob = await self._fetcher.fetch(wanted)
                needed.enter_context(self._fetcher.pin(blob.sha256))
                return blob

            yield held

    @asynccontextmanager
    async def _held(self, record: RefRecord) -> AsyncIterator[Blob]:
        """The bytes of a ref, with their real type, pinned until the block is left."""
        from belino.gateway.rendering import seen_blob

        with self._holding() as held:
            yield await seen_blob(record, held, self.store)
