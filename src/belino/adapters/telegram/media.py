"""Media of messages: files as refs that hold ids only, and their bytes by fresh links from getFile."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from belino.adapters.telegram.client import TelegramClient, TelegramRefused
from belino.domain.errors import AdapterError, MediaError, MediaExpired, MediaTooLarge
from belino.domain.media import MediaKind, MediaRef, kind_of
from belino.domain.message import SourceMessage
from belino.domain.ports import Clock
from belino.net.json_fields import UNKNOWN_MIME, Raw, as_table, count, line, measure, table, tables, words, yes
from belino.net.json_fields import mime as mime_of
from belino.net.redact import Secret
from belino.net.rest import LinkedFile
from belino.net.stream import ATTEMPTS, retried

FETCH_BYTES = 20 * 1024 * 1024
"""The download limit of Telegram's own servers."""
LOCAL_FETCH_BYTES = 2000 * 1024 * 1024

NAME_CHARS = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramSource(SourceMessage):
    """The message that holds the files, and the largest file that this bot may download."""

    most: int = FETCH_BYTES


def refs_of(message: Raw, source: TelegramSource) -> tuple[MediaRef, ...]:
    """Every file of a message (or of an external reply, which has the same fields), each once.

    A caption belongs to the message; it is given with the first file.
    """
    found = {ref.item: ref for ref in reversed([*_own(message, source), *_inside(message, source)])}
    refs = tuple(reversed(found.values()))
    return (replace(refs[0], caption=source.caption), *refs[1:]) if refs and source.caption else refs


def _own(message: Raw, source: TelegramSource) -> Iterator[MediaRef]:
    # A live photo's picture is beside it in a message; elsewhere it is inside.
    photo = largest(tables(message, "photo") or tables(table(message, "live_photo"), "photo"))
    if photo is not None:
        yield from _ref(photo, source, MediaKind.IMAGE, "image/jpeg")
    for key in ("live_photo", "video", "video_note"):
        yield from _ref(_to_be_had(table(message, key), source.most), source, MediaKind.VIDEO, "video/mp4")
    yield from _ref(table(message, "audio"), source, MediaKind.AUDIO, "audio/mpeg")
    yield from _ref(table(message, "voice"), source, MediaKind.VOICE, "audio/ogg")
    sticker = table(message, "sticker")
    yield from _ref(sticker, source, MediaKind.STICKER, sticker_mime(sticker))
    # Telegram repeats an animation under `document`, for clients that do not know animations.
    if animation := table(message, "animation"):
        yield from _ref(animation, source, kind_of(mime_of(animation, "mime_type", "video/mp4")), "video/mp4")
    elif document := table(message, "document"):
        yield from _ref(document, source, kind_of(mime_of(document, "mime_type")), UNKNOWN_MIME)


def _inside(message: Raw, source: TelegramSource) -> Iterator[MediaRef]:
    """Nested files: paid media, a game's pictures, and those of a poll and its options."""
    for item in tables(table(message, "paid_media"), "paid_media"):
        yield from _own(item, source)
    yield from _own(table(message, "game"), source)
    poll = table(message, "poll")
    yield from _own(table(poll, "media"), source)
    for option in tables(poll, "options"):
        for ref in _own(table(option, "media"), source):
            yield replace(ref, caption=line(option, "text"))
    yield from _own(table(poll, "explanation_media"), source)


def largest(sizes: tuple[Raw, ...]) -> Raw | None:
    """The largest of a photo's sizes, wherever it is in the list."""
    usable = [size for size in sizes if words(size, "file_id")]
    return max(usable, key=_extent, default=None)


def _to_be_had(video: Raw, most: int) -> Raw:
    """The video, or the best of its smaller qualities if the video itself is over the bot's limit."""
    if (count(video, "file_size") or 0) <= most:
        return video
    best = largest(tuple(one for one in tables(video, "qualities") if 0 < (count(one, "file_size") or 0) <= most))
    return video if best is None else {**video, "file_unique_id": None, "mime_type": None, **best}


def _extent(size: Raw) -> tuple[int, int]:
    return (count(size, "width") or 0) * (count(size, "height") or 0), count(size, "file_size") or 0


def sticker_mime(sticker: Raw) -> str:
    """A sticker's type, from two flags: an image, an animation (.tgs) or a video."""
    if yes(sticker, "is_animated"):
        return "application/x-tgsticker"
    return "video/webm" if yes(sticker, "is_video") else "image/webp"


def _ref(file: Raw, source: TelegramSource, kind: MediaKind, mime: str) -> Iterator[MediaRef]:
    file_id = words(file, "file_id")
    if not file_id:
        return
    side = count(file, "length")  # a video note is round: one number for both sides
    yield source.ref(
        item=words(file, "file_unique_id") or file_id,
        kind=kind,
        mime=mime_of(file, "mime_type", mime),
        file_name=_name(file),
        size=count(file, "file_size"),
        duration=measure(file, "duration"),
        width=count(file, "width") if side is None else side,
        height=count(file, "height") if side is None else side,
        locator={"file_id": file_id},
        file_id=words(file, "file_unique_id") or None,
    )


def _name(file: Raw) -> str | None:
    """The sender's file name; for music without one, from its tags."""
    name = words(file, "file_name").strip()
    if not name:
        name = " - ".join(part for part in (line(file, "performer"), line(file, "title")) if part)
    return name[:NAME_CHARS] or None


class TelegramDownload(LinkedFile):
    """Downloads a file, by links that are valid for an hour."""

    gone = frozenset({404, 410})

    def __init__(self, client: TelegramClient, clock: Clock, ref: MediaRef, *, limit: int, token: Secret) -> None:
        super().__init__(ref, clock, get=client.file)
        self._client = client
        self._limit = limit
        self._token = token

    async def first_link(self) -> str:
        """The link; files that Telegram never provides are refused here, without a call if the size is known."""
        self._check_size(self._ref.size)
        return await self.link(attempts=ATTEMPTS)

    async def link(self, *, attempts: int = 1) -> str:
        fields = {"file_id": self._ref.locator.get("file_id", "")}
        try:
            told = await retried(
                lambda: self._client.call("getFile", fields),
                clock=self._clock,
                lasting=(TelegramRefused,),
                attempts=attempts,
            )
        except TelegramRefused as error:
            raise self._refusal(error) from error
        file = as_table(told)
        self._check_size(count(file, "file_size"))
        return self._over_http(words(file, "file_path"))

    def dead(self, status: int) -> MediaError:
        # Telegram has the file, or getFile would have failed: this may be temporary, or the operator may fix it.
        return MediaError(
            f"a link that the Bot API has just made for {self.shown} leads nowhere; try it later, and where "
            "the server is your own, see whether its folder is served over HTTP"
        )

    def _refusal(self, error: TelegramRefused) -> Exception:
        if "too big" in error.description:
            return self._too_large(None)
        if "temporarily" in error.description:
            # Telegram answers the same for a wrong id; only a retry shows which.
            return AdapterError(f"Telegram cannot hand out {self.shown} now: {error.description}")
        return MediaExpired(f"Telegram no longer hands out {self.shown} ({error.description or error.code})")

    def _over_http(self, path: str) -> str:
        """The path of a link. A server with --local names a path on its own disk; we never open one."""
        if path.startswith("/"):
            # The folder has the bot's name; on file systems without colons, with a tilde.
            name = self._token.reveal()
            folder = next((folder for folder in (f"/{name}/", f"/{name.replace(':', '~')}/") if folder in path), None)
            if folder is None:
                raise AdapterError(
                    "the Bot API server names a file on its own disk, which belino does not open; "
                    "serve its folder over HTTP as the page on Telegram says"
                )
            path = path.partition(folder)[2]
        if not path or any(step in ("", ".", "..") for step in path.split("/")) or "\\" in path:
            raise AdapterError("the Bot API named no file that can be fetched")
        return path

    def _check_size(self, size: int | None) -> None:
        if size is not None and size > self._limit:
            raise self._too_large(size)

    def _too_large(self, size: int | None) -> MediaTooLarge:
        megabytes = 1024 * 1024
        this = "this one is larger" if size is None else f"this one has {size / megabytes:.1f} MB"
        return MediaTooLarge(
            f"Telegram hands bots files of up to {self._limit // megabytes} MB, and {this}; "
            "ask the sender for a smaller copy",
            limit=self._limit,
        )
