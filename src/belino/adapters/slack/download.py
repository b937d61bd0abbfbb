"""A file's bytes: files.info for a fresh link, then the stream, continued where it broke off."""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from belino.adapters.slack.calls import Calls, Refused
from belino.adapters.slack.files import CANVAS_MIME, has_bytes, mime_of
from belino.domain.errors import MediaExpired, MediaRefused
from belino.domain.media import MediaRef
from belino.domain.ports import HttpAnswer
from belino.net.guard import host_of, parse_url
from belino.net.raw import Raw, count, table, words, yes
from belino.net.stream import range_headers, resumed, retried

FILE_PATHS = ("/files-pri/", "/files-tmb/")
"""What private links begin with: the token is shown to no other page of Slack's."""
_STEPS = re.compile(r"(?i)/(?:\.|%2e){1,2}(?:[/?]|%2f|$)|//|\\\\|%5c")

_GONE = frozenset({401, 403, 404, 410})
_NOT_LET_IN = frozenset({401, 403})
_NO_SUCH_FILE = frozenset({"file_not_found", "file_deleted"})
_NOT_SHOWN = frozenset({"access_denied", "not_visible", "not_in_channel", "slack_connect_file_upload_sharing_blocked"})
_PAGES = frozenset({"text/html", CANVAS_MIME})


class Download:
    """One file on its way."""

    def __init__(
        self, calls: Calls, ref: MediaRef, *, api_url: str, files_url: str | None, hosts: frozenset[str]
    ) -> None:
        """`hosts` are whom the token may be told; of the API's own host, nothing below `api_url`."""
        self._calls = calls
        self._ref = ref
        self._api = parse_url(api_url)
        self._files = None if files_url is None else host_of(files_url)
        self._hosts = hosts
        self._url: str | None = None
        self._is_page = False
        """Whether the file itself is HTML, or what Slack hands out as such."""
        self._size: int | None = None

    async def prepare(self) -> None:
        """Get the link; what Slack will never hand out is refused here."""
        self._url = await retried(self._link, clock=self._calls.clock, lasting=(Refused,))

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        async for chunk in resumed(self._open_at, clock=self._calls.clock):
            yield chunk

    @asynccontextmanager
    async def _open_at(self, offset: int, validator: str | None) -> AsyncIterator[HttpAnswer]:
        headers = range_headers(offset, validator)
        url, self._url = self._url or await self._link(), None
        async with self._calls.file(url, headers) as answer:
            if answer.status not in _GONE:
                self._check_page(answer)
                yield answer
                return
        async with self._calls.file(await self._link(), headers) as answer:
            if answer.status in _NOT_LET_IN:
                raise MediaRefused(_ADVICE)
            if answer.status in _GONE:
                raise self._expired(f"status {answer.status}")
            self._check_page(answer)
            yield answer

    async def _link(self) -> str:
        try:
            file = table(await self._calls.call("files.info", {"file": self._ref.locator.get("file", "")}), "file")
        except Refused as error:
            if error.error == "missing_scope":
                raise MediaRefused(_ADVICE) from error
            if error.error in _NO_SUCH_FILE:
                raise self._expired(error.error) from error
            if error.error in _NOT_SHOWN:
                raise self._hidden(error.error) from error
            raise
        if not has_bytes(file):
            if words(file, "mode") == "external" or yes(file, "is_external"):
                raise MediaRefused(f"Slack does not have the bytes of {self._shown}: it is kept elsewhere")
            if (access := words(file, "file_access")) in _NOT_SHOWN:
                raise self._hidden(access)
            raise self._expired(words(file, "mode") or access)
        self._is_page, self._size = mime_of(file) in _PAGES, count(file, "size")
        return self._checked(file)

    def _checked(self, file: Raw) -> str:
        """The link, if it leads to files of Slack's: its API would tell whoever asks what token it was asked with."""
        url = (words(file, "url_private_download") or words(file, "url_private")).replace(" ", "%20")
        place = parse_url(url)
        if place.origin == self._api.origin:
            # An API at the root of its host has its methods there, one step deep.
            is_file = not place.rest.startswith(self._api.rest) or (self._api.rest == "/" and "/" in place.rest[1:])
        else:
            is_file = place.rest.startswith(FILE_PATHS) or host_of(url) == self._files
        if host_of(url) not in self._hosts or not is_file or _STEPS.search(place.rest):
            raise MediaRefused("Slack named no link of its own for this file")
        return url

    def _check_page(self, answer: HttpAnswer) -> None:
        """Whom Slack does not let in, it shows a page to log in at, with status 200; other pages tell of trouble."""
        named = {name.lower(): value for name, value in answer.headers.items()}
        if answer.status != 200 or not named.get("content-type", "").lower().startswith("text/html"):
            return
        # A page that somebody sent is handed out as a file, or at least as long as Slack says that it is.
        is_file = "content-disposition" in named or named.get("content-length") == str(self._size)
        if not self._is_page or not (is_file or self._ref.mime == CANVAS_MIME):
            raise MediaRefused(_ADVICE)

    @property
    def _shown(self) -> str:
        return self._ref.id or "this file"

    def _hidden(self, why: str) -> MediaRefused:
        return MediaRefused(
            f"Slack does not show {self._shown} to the app ({why}): it may not be shared, or is in a conversation "
            "without the app; invite it there"
        )

    def _expired(self, why: str) -> MediaExpired:
        return MediaExpired(
            f"Slack no longer hands out {self._shown} ({why or 'gone'}); ask the sender to send it again"
        )


_ADVICE = (
    "Slack asked for a login instead of sending the file: the app lacks the scope files:read, or is not in the "
    "conversation; add the scope under OAuth & Permissions and install the app again"
)
