"""Inspect bytes as they arrive: within a time limit, typed by their content."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager

from belino.domain.errors import AdapterError, BelinoError, MediaRefused
from belino.domain.media import MediaKind, MediaRef

OPEN_SECONDS = 30.0
HEAD_BYTES = 64 * 1024
WEB_PAGE = "the platform sent a web page, perhaps a login, instead of the file"

_PAGES = ("text/html", "application/xhtml+xml")
_PAGE_NAMES = (".html", ".htm", ".xhtml", ".mht", ".mhtml", ".txt", ".xml", ".svg")
# A file declared as one of these may be an HTML page.
_MAY_BE_PAGES = ("text/", "application/octet-stream", "application/xhtml", "application/xml", "message/")


class Inspector:
    """The type of a ref's file by its first bytes, and whether it is acceptable."""

    def __init__(self, ref: MediaRef) -> None:
        self._ref = ref
        self._mime = ref.mime
        self.lies = ""
        """Claims about the file that its bytes contradict."""

    def look(self, head: bytes, *, whole: bool) -> None:
        """MediaRefused for a web page instead of a file; AdapterError for an empty file that should not be."""
        from belino.media.sniff import sniff  # on the first fetch: it costs 50 ms

        if not head and self._ref.size:
            raise AdapterError("the platform sent an empty file")
        found = sniff(head, name=self._ref.file_name, declared=self._ref.mime, whole=whole)
        if found.mime in _PAGES and not self._may_be_page():
            raise MediaRefused(WEB_PAGE)
        self._mime, self.lies = found.mime, found.lies

    def mime(self) -> str:
        """The type by content; the declared type before any bytes arrived."""
        return self._mime

    def _may_be_page(self) -> bool:
        declared = self._ref.mime.strip().lower()
        named = (self._ref.file_name or "").lower().endswith(_PAGE_NAMES)
        return self._ref.kind is MediaKind.DOCUMENT and (named or not declared or declared.startswith(_MAY_BE_PAGES))


async def judged(chunks: AsyncIterator[bytes], judge: Inspector, tell: Callable[[int], None]) -> AsyncIterator[bytes]:
    """The same bytes; the first are held back until they are inspected."""
    count = 0
    head: list[bytes] | None = []
    async for chunk in chunks:
        count += len(chunk)
        tell(count)
        if head is None:
            yield chunk
            continue
        head.append(chunk)
        if count >= HEAD_BYTES:
            first, head = b"".join(head), None
            judge.look(first[:HEAD_BYTES], whole=False)
            yield first
    if head is not None:
        first = b"".join(head)
        judge.look(first, whole=True)
        yield first


@asynccontextmanager
async def opened(
    opening: AbstractAsyncContextManager[AsyncIterator[bytes]],
) -> AsyncIterator[AsyncIterator[bytes]]:
    """The stream, opened within the time limit."""
    with _platform_failures():
        async with asyncio.timeout(OPEN_SECONDS) as timer, opening as chunks:
            timer.reschedule(None)
            async with aclosing(_watched(chunks)) as watched:
                yield watched


async def _watched(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The same chunks; a stream that breaks is the platform's failure, not the reader's."""
    with _platform_failures():
        async for chunk in chunks:
            yield chunk


@contextmanager
def _platform_failures() -> Iterator[None]:
    """Socket errors become an AdapterError, and so does a plugin's own bug: the item must have its outcome."""
    try:
        yield
    except BelinoError:
        raise
    except TimeoutError as error:
        raise AdapterError("the platform did not answer in time") from error
    except OSError as error:
        raise AdapterError(f"the platform broke off ({type(error).__name__})") from error
    except Exception as error:
        raise AdapterError(f"the adapter broke ({type(error).__name__})") from error
