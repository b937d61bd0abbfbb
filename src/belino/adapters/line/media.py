"""Media of messages: files as refs that hold ids only, and their bytes by the id, once LINE has them ready."""

import mimetypes
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from belino.adapters.line.client import LineClient, LineRefused
from belino.domain.errors import AdapterError, MediaError, MediaExpired
from belino.domain.media import MediaKind, MediaRef, kind_of
from belino.domain.message import SourceMessage
from belino.domain.ports import HttpAnswer
from belino.net.json_fields import UNKNOWN_MIME, Raw, count, line, measure, table, words
from belino.net.rest import LinkedFile

NAME_CHARS = 255
MESSAGE, STICKER, EXTERNAL = "message", "sticker", "external"
"""The keys of a locator: a message's id, a sticker's id, or that the file is elsewhere."""
URL = "url"
"""The sealed key of a file that is elsewhere: LINE tells its address once and has no id for it."""
PREPARE_SECONDS, PREPARE_PAUSE = 90.0, 1.0
"""How long LINE's preparation of a video or sound is waited for, and between questions."""
PREPARING = 202

# What people record or choose in LINE's apps; LINE tells no types. Sounds are recorded as voice messages.
_KINDS = {
    "image": (MediaKind.IMAGE, "image/jpeg"),
    "video": (MediaKind.VIDEO, "video/mp4"),
    "audio": (MediaKind.VOICE, "audio/mp4"),
}
_PREPARED = frozenset({MediaKind.VIDEO, MediaKind.VOICE})


def refs_of(message: Raw, source: SourceMessage) -> Iterator[MediaRef]:
    """The file of a message, if it has one."""
    own, kind = words(message, "id"), words(message, "type")
    if not own:
        return
    if kind == "file":
        name = line(message, "fileName", most=NAME_CHARS)
        mime = mimetypes.guess_type(name)[0] or UNKNOWN_MIME
        size = count(message, "fileSize")
        yield source.ref(
            item=own, kind=kind_of(mime), mime=mime, locator={MESSAGE: own}, file_name=name or None, size=size
        )
    elif kind in _KINDS:
        yield _recorded(message, source, own)
    elif kind == "sticker" and (ref := _sticker(message, source)):
        yield ref


def _recorded(message: Raw, source: SourceMessage, own: str) -> MediaRef:
    kind, mime = _KINDS[words(message, "type")]
    milliseconds = measure(message, "duration")
    seconds = None if milliseconds is None else milliseconds / 1_000
    provider = table(message, "contentProvider")
    elsewhere = words(provider, "originalContentUrl") if words(provider, "type") == EXTERNAL else ""
    if elsewhere:
        ref = source.ref(item=own, kind=kind, mime=mime, duration=seconds, locator={EXTERNAL: own})
        return replace(ref, sealed={URL: elsewhere})
    return source.ref(item=own, kind=kind, mime=mime, duration=seconds, locator={MESSAGE: own})


def _sticker(message: Raw, source: SourceMessage) -> MediaRef | None:
    """A sticker's picture, by its public id; its name is how it is sent again."""
    package, sticker = line(message, "packageId", most=32), line(message, "stickerId", most=32)
    if not (package.isdecimal() and sticker.isdecimal()):
        return None
    name = f"sticker-{package}-{sticker}.png"
    return source.ref(
        item=sticker, kind=MediaKind.STICKER, mime="image/png", locator={STICKER: sticker}, file_name=name
    )


class LineDownload(LinkedFile):
    """Downloads a file from LINE, from its shop of stickers, or from where another service has it."""

    gone = frozenset({PREPARING})

    def __init__(self, client: LineClient, ref: MediaRef, *, stickers_url: str) -> None:
        super().__init__(ref, client.clock, get=self._get)
        self._client = client
        self._stickers_url = stickers_url.rstrip("/")

    async def first_link(self) -> str:
        if self._ref.kind in _PREPARED and MESSAGE in self._ref.locator:
            await self._prepared()
        return await self.link()

    async def link(self) -> str:
        locator = self._ref.locator
        if sticker := locator.get(STICKER):
            return f"{self._stickers_url}/stickershop/v1/sticker/{sticker}/android/sticker.png"
        if EXTERNAL in locator:
            if not (url := self._ref.sealed.get(URL, "")):
                raise MediaExpired(f"where {self.shown} is was not kept")
            return url
        return self._client.content_url(locator.get(MESSAGE, ""))

    def dead(self, status: int) -> MediaError:
        return MediaError(f"LINE is still preparing {self.shown}; try it again in a minute")

    def check(self, answer: HttpAnswer) -> None:
        if answer.status in (404, 410):
            raise self._expired()

    def _get(self, link: str, headers: Mapping[str, str]) -> AbstractAsyncContextManager[HttpAnswer]:
        return (self._client.file if MESSAGE in self._ref.locator else self._client.foreign)(link, headers)

    def _expired(self) -> MediaExpired:
        return MediaExpired(f"LINE no longer hands out {self.shown}: it keeps files for a while only")

    async def _prepared(self) -> None:
        """Wait until LINE has encoded it: https://developers.line.biz/en/reference/messaging-api/#get-content."""
        path = ("message", self._ref.locator[MESSAGE], "content", "transcoding")
        give_up = self._clock.monotonic() + PREPARE_SECONDS
        while True:
            try:
                status = words(await self._client.get(*path, is_content=True), "status")
            except LineRefused as error:
                if error.status in (404, 410):
                    raise self._expired() from error
                raise
            if status != "processing":
                break
            if self._clock.monotonic() >= give_up:
                raise AdapterError(f"LINE is still preparing {self.shown} after {PREPARE_SECONDS:g} seconds")
            await self._clock.sleep(PREPARE_PAUSE)
        if status == "failed":
            raise MediaError(f"LINE could not prepare {self.shown}; ask the sender to send it again")
