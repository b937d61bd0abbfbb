"""Media of messages: files as refs that hold ids only, and their bytes by links that are valid for a day."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from mimetypes import MimeTypes
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from belino.adapters.discord.authors import as_identity, identity
from belino.adapters.discord.client import DiscordClient, DiscordRefused
from belino.domain.errors import AddressRefused, MediaExpired, MediaTooLarge
from belino.domain.media import MediaKind, MediaRef, kind_of
from belino.domain.message import SourceMessage
from belino.domain.ports import Clock
from belino.net.json_fields import NOTHING, UNKNOWN_MIME, Raw, as_table, count, line, measure, table, tables, words
from belino.net.json_fields import mime as mime_of
from belino.net.rest import LinkedFile

# Discord accepts forty components in all, three levels deep.
MOST_COMPONENTS, DEEPEST = 50, 4
VOICE_MESSAGE = 1 << 13
NAME_CHARS = 255
CAPTION_CHARS = 1_024
UPLOADED = re.compile(
    r"https?://[^/?#]+/(?P<path>(?:ephemeral-)?attachments/\d{1,20}/(?P<own>\d{1,20})/(?P<name>[^/?#\s]{1,255}))"
)
"""The CDN's path of uploads."""
RICH = ("rich", "")
"""Embeds made by bots; Discord makes the others from links in the text."""
# Sticker formats: PNG, APNG, Lottie and GIF; each has its own CDN path.
STICKERS = {1: ("png", "image/png"), 2: ("png", "image/png"), 3: ("json", "application/json"), 4: ("gif", "image/gif")}

CDN_HOSTS = frozenset({"cdn.discordapp.com", "media.discordapp.net"})
# Only GIF stickers are on the media host, see "Image formatting" in the reference.
GIF_URL = "https://media.discordapp.net"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordSource(SourceMessage):
    """The message that holds the files, and the channel it is in: the thread's id, if it is in one."""

    channel: str


def refs_of(message: Raw, source: DiscordSource) -> tuple[MediaRef, ...]:
    """Every file of a message, each once; also of a forwarded one, which has the same fields."""
    return refs_of_all((message,), source)


def refs_of_all(messages: tuple[Raw, ...], source: DiscordSource) -> tuple[MediaRef, ...]:
    """Every file of a message and of those it carries, each once."""
    found: dict[str, MediaRef] = {}
    for message in messages:
        for ref in (*_attachments(message, source), *_stickers(message, source)):
            found.setdefault(ref.item, ref)
    return tuple(found.values())


def carried(message: Raw) -> tuple[Raw, ...]:
    """The messages inside a forward."""
    return tuple(filter(None, (table(snapshot, "message") for snapshot in tables(message, "message_snapshots"))))


def files_in(message: Raw) -> Iterator[Raw]:
    """Uploads of a message; a file shown by its components or cards is reported only by them."""
    yield from tables(message, "attachments")
    for component in components_in(message):
        for item in (component, *tables(component, "items")):
            yield from filter(None, (uploaded(table(item, "media"), item), uploaded(table(item, "file"), item)))
    for embed in tables(message, "embeds"):
        if words(embed, "type") in RICH:
            shown = (table(embed, name) for name in ("image", "thumbnail", "video"))
            yield from filter(None, (uploaded(media, NOTHING) for media in shown))


def components_in(holder: Raw, depth: int = 0) -> Iterator[Raw]:
    """All components of a message, nested ones too, from top to bottom."""
    inner = (*tables(holder, "components")[:MOST_COMPONENTS], table(holder, "accessory"), table(holder, "component"))
    for component in filter(None, inner if depth < DEEPEST else ()):
        yield component
        yield from components_in(component, depth + 1)


def uploaded(media: Raw, item: Raw) -> Raw:
    """A shown file in the form of an attachment; empty if it is on another server."""
    path = UPLOADED.match(words(media, "url"))
    own = identity(media, "attachment_id") or (path["own"] if path is not None else "")
    if not own:
        return NOTHING
    name = words(item, "name") or (unquote(path["name"]) if path is not None else "")
    return {"description": item.get("description"), "size": item.get("size"), **media, "id": own, "filename": name}


def attachment_ref(file: Raw, source: DiscordSource, *, voice: bool = False) -> MediaRef | None:
    """A file of a message."""
    own = identity(file, "id")
    if not own:
        return None
    mime = _mime(file)
    kind = MediaKind.VOICE if voice and not mime.startswith(("image/", "video/")) else kind_of(mime)
    return source.ref(
        item=own,
        kind=kind,
        mime=mime,
        file_name=_name(file),
        size=count(file, "size"),
        duration=measure(file, "duration_secs"),
        width=count(file, "width"),
        height=count(file, "height"),
        caption=words(file, "description").strip()[:CAPTION_CHARS] or None,
        locator={"channel": source.channel, "message": source.message_id, "attachment": own},
    )


def _attachments(message: Raw, source: DiscordSource) -> Iterator[MediaRef]:
    voice = bool((count(message, "flags") or 0) & VOICE_MESSAGE)
    # The writer of a card chooses the id in its link; the ids of attachments are Discord's.
    given = {identity(file, "id") for file in tables(message, "attachments")}
    for file in files_in(message):
        if (ref := attachment_ref(file, source, voice=voice)) is not None:
            yield replace(ref, file_id=ref.item) if ref.item in given else ref


def _stickers(message: Raw, source: DiscordSource) -> Iterator[MediaRef]:
    for sticker in tables(message, "sticker_items") or tables(message, "stickers"):
        own, form = identity(sticker, "id"), STICKERS.get(count(sticker, "format_type") or 0)
        if not own or form is None:
            continue
        ending, mime = form
        yield source.ref(
            item=own,
            kind=MediaKind.STICKER,
            mime=mime,
            file_name=f"{line(sticker, 'name', most=64) or 'sticker'}.{ending}",
            locator={"sticker": own, "ending": ending},
            file_id=own,
        )


def _name(file: Raw) -> str | None:
    """The sender's file name; if it does not fit into a link, Discord keeps its beginning as a title."""
    name, title = words(file, "filename").strip(), words(file, "title").strip()
    ending = PurePosixPath(name).suffix
    if title and not title.endswith(ending or title):
        title += ending
    return (title or name)[:NAME_CHARS] or None


def _mime(file: Raw) -> str:
    """Discord's MIME type without parameters; without one, the type of the file name."""
    if told := mime_of(file, "content_type", ""):
        return told
    return _types().guess_type(words(file, "filename")[-NAME_CHARS:], strict=False)[0] or UNKNOWN_MIME


@cache
def _types() -> MimeTypes:
    """Python's own table: the same on every machine."""
    return MimeTypes()


class DiscordDownload(LinkedFile):
    """Downloads a file by the current link in its message."""

    gone = frozenset({401, 403, 404, 410})
    """The answer to an expired link or a wrong signature."""

    def __init__(
        self, client: DiscordClient, clock: Clock, ref: MediaRef, *, limit: int, cdn_url: str, official: bool
    ) -> None:
        super().__init__(ref, clock, get=client.file)
        self._client = client
        self._limit = limit
        self._cdn_url = cdn_url.rstrip("/")
        self._official = official

    async def first_link(self) -> str:
        """The link; a file that is too large by Discord's own figure is refused without a call."""
        if self._ref.size is not None and self._ref.size > self._limit:
            raise MediaTooLarge(f"the file is over {self._limit} bytes", limit=self._limit)
        return await super().first_link()

    async def link(self) -> str:
        where = self._ref.locator
        if sticker := as_identity(where.get("sticker")):
            return self._sticker_link(sticker, where.get("ending", ""))
        if path := where.get("path"):
            return self._checked(await self._refreshed(path))
        return self._checked(await self._from_message(where.get("channel", ""), where.get("message", "")))

    def _sticker_link(self, sticker: str, ending: str) -> str:
        if ending not in ("png", "gif", "json"):
            raise self._expired()
        base = GIF_URL if ending == "gif" and self._official else self._cdn_url
        return f"{base}/stickers/{sticker}.{ending}"

    async def _from_message(self, channel: str, message: str) -> str:
        """The link in the message as it is now: deleted messages and files are respected."""
        try:
            told = as_table(await self._client.call("GET", "/channels/{}/messages/{}", channel, message))
        except DiscordRefused as error:
            raise self._refusal(error) from error
        wanted = self._ref.locator.get("attachment", "")
        for holder in (told, *carried(told)):
            for file in files_in(holder):
                if identity(file, "id") == wanted:
                    return words(file, "url")
        raise self._expired()

    async def _refreshed(self, path: str) -> str:
        """A new signature for a file that no message holds; Discord's documentation does not promise one."""
        plain = f"{self._cdn_url}/{path}"
        try:
            told = as_table(
                await self._client.call("POST", "/attachments/refresh-urls", fields={"attachment_urls": [plain]})
            )
        except DiscordRefused as error:
            if error.status == 404:
                return plain
            raise self._refusal(error) from error
        return next((words(each, "refreshed") for each in tables(told, "refreshed_urls")), "")

    def _checked(self, url: str) -> str:
        """A link on Discord's hosts; a self-hosted server may name any host that the guard allows."""
        if not url:
            raise self._expired()
        parts = urlsplit(url)
        if self._official and (parts.scheme != "https" or parts.netloc.lower() not in CDN_HOSTS):
            raise AddressRefused("Discord named a file outside its own servers, which belino does not fetch")
        return url

    def _refusal(self, error: DiscordRefused) -> Exception:
        if error.status == 403:
            return MediaExpired(
                f"the bot no longer sees the message with {self.shown}; its role needs View Channel and "
                "Read Message History"
            )
        return self._expired()

    def _expired(self) -> MediaExpired:
        return MediaExpired(f"Discord no longer has {self.shown}; ask the sender to send it again")

    def dead(self, status: int) -> MediaExpired:
        return self._expired()
