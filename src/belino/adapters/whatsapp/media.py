"""Media of messages: files as refs that hold ids only, and their bytes by URLs that are valid for five minutes."""

import re

from belino.adapters.whatsapp.client import CloudClient
from belino.adapters.whatsapp.errors import NO_SUCH_OBJECT, WhatsAppRefused
from belino.domain.errors import MediaError, MediaExpired, MediaRefused
from belino.domain.media import MediaKind, MediaRef, kind_of
from belino.domain.message import SourceMessage
from belino.net.guard import host_of, parse_url
from belino.net.json_fields import UNKNOWN_MIME, Raw, count, from_base64, line, mime, table, words, yes
from belino.net.rest import LinkedFile

FILES_HOST = "lookaside.fbsbx.com"
FILE_PATH = "/whatsapp_business/attachments/"  # the token is sent to no other page of that host
NAME_CHARS = 255
_MEDIA_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_HEX = re.compile(r"[0-9a-fA-F]{64}")
_STEPS = re.compile(r"(?i)/(?:\.|%2e){1,2}(?:[/?]|%2f|$)|\\|%5c|%00")
_USUAL = {"image": "image/jpeg", "video": "video/mp4", "audio": "audio/ogg", "sticker": "image/webp"}


def refs_of(message: Raw, source: SourceMessage) -> tuple[MediaRef, ...]:
    """The file of a message, which has at most one."""
    kind = words(message, "type")
    file = table(message, kind)
    media_id = words(file, "id")
    if kind not in (*_USUAL, "document") or not _MEDIA_ID.fullmatch(media_id):
        return ()
    told = mime(file, "mime_type", _USUAL.get(kind, UNKNOWN_MIME))
    is_voice = kind == "audio" and yes(file, "voice")
    form = kind_of(told) if kind == "document" else MediaKind.VOICE if is_voice else MediaKind(kind)
    checksum = as_sha256(words(file, "sha256"))
    return (
        source.ref(
            item=media_id,
            kind=form,
            mime=told,
            locator={"media": media_id, **({"sha256": checksum} if checksum else {})},
            file_name=line(file, "filename", most=NAME_CHARS) or None,
            size=count(file, "file_size"),
            caption=words(file, "caption") or None,
            file_id=checksum or None,
        ),
    )


def as_sha256(told: str) -> str:
    """A checksum in lower-case hex: webhooks have it in base64, and answers in hex; empty if it is neither."""
    if _HEX.fullmatch(told):
        return told.lower()
    raw = from_base64(told)
    return raw.hex() if len(raw) == 32 else ""


class CloudDownload(LinkedFile):
    """Downloads a file: its id gives a fresh URL, whose bytes must have the checksum that Meta tells."""

    gone = frozenset({401, 403, 404, 410})
    lasting = (WhatsAppRefused,)  # Meta blocks who asks often for files that it no longer has

    def __init__(self, client: CloudClient, ref: MediaRef, *, files_host: str) -> None:
        """`files_host` is the only one that gets the token; a server of one's own may have other paths."""
        super().__init__(ref, client.clock, get=client.file)
        self._client = client
        self._files_host = files_host
        self._checksums = {ref.locator.get("sha256", "")} - {""}

    async def link(self) -> str:
        media_id = self._ref.locator.get("media", "")
        if not _MEDIA_ID.fullmatch(media_id):
            raise MediaRefused(f"{self.shown} names no file of WhatsApp")
        try:
            told = (await self._client.look(media_id, phone_number_id=self._client.number)).told
        except WhatsAppRefused as error:
            if error.code == NO_SUCH_OBJECT:
                raise self.dead(0) from error
            raise MediaRefused(f"WhatsApp does not hand out {self.shown}: {error}") from error
        if checksum := as_sha256(words(told, "sha256")):
            self._checksums.add(checksum)
        return self._checked(words(told, "url"))

    def _checked(self, url: str) -> str:
        """The URL, if it leads to Meta's files and nowhere else, where the token would be shown."""
        rest = parse_url(url).rest
        is_file = rest.startswith(FILE_PATH) or self._files_host != FILES_HOST
        if host_of(url) != self._files_host or not is_file or _STEPS.search(rest):
            raise MediaRefused("Meta named no URL of its own for this file")
        return url

    def dead(self, status: int) -> MediaError:
        return MediaExpired(
            f"WhatsApp no longer has {self.shown}: it keeps files for a week; ask the sender to send it again"
        )
