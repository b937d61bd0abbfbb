"""Media of a linked device: encrypted files by WhatsApp's links, in and out, in constant memory."""

import hashlib
import secrets
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import quote

from belino.adapters.whatsapp.linked.client import LinkedClient, as_errors
from belino.adapters.whatsapp.linked.content import ONCE
from belino.adapters.whatsapp.linked.crypto import KEY_BYTES, file_keys
from belino.aio.companion import CompanionError
from belino.domain.errors import MediaExpired, MediaRefused, Unauthorized, Undeliverable
from belino.domain.media import MediaRef
from belino.domain.ports import Clock, HttpAnswer, HttpClient
from belino.domain.reply import OutgoingFile
from belino.net.client import error_for
from belino.net.encrypted_stream import FileEncryption, FileHashes, decrypted, encrypted_size
from belino.net.guard import host_of
from belino.net.json_fields import from_json, words
from belino.net.rest import FileBody, as_upload_errors
from belino.net.stream import range_headers, resumed

SITE = "whatsapp.net"
_HEADERS = {"Origin": "https://web.whatsapp.com", "Referer": "https://web.whatsapp.com/"}
# WhatsApp keeps a file for some weeks; then its link is refused, or unknown.
_GONE = frozenset({403, 404, 410})
ANSWER_BYTES = 64 * 1024
REUPLOAD_SECONDS = 30.0


class LinkedDownload:
    """The file of a ref, decrypted; one that WhatsApp has no more is asked for on the phone, once."""

    def __init__(self, client: LinkedClient, http: HttpClient, clock: Clock, ref: MediaRef, *, media_url: str) -> None:
        self._client, self._http, self._clock, self._ref = client, http, clock, ref
        self._base = media_url.rstrip("/")
        self._path = ref.locator.get("path", "")

    @asynccontextmanager
    async def open(self) -> AsyncIterator[AsyncIterator[bytes]]:
        """The plain bytes."""
        locator = self._ref.locator
        if ONCE in locator:
            raise MediaRefused("it may be viewed only once, on the phone: belino does not fetch it")
        key = _bytes(self._ref.sealed.get("key", ""))
        keys = file_keys(key, locator.get("type", ""))
        hashes = FileHashes(plain=_bytes(locator.get("plain", "")), encrypted=_bytes(locator.get("encrypted", "")))
        if not self._path.startswith("/"):
            raise MediaRefused("the message does not say where its file is")
        async with (
            aclosing(resumed(self._open_at, clock=self._clock)) as chunks,
            aclosing(decrypted(chunks, keys, hashes)) as plain,
        ):
            yield plain

    @asynccontextmanager
    async def _open_at(self, offset: int, validator: str | None) -> AsyncIterator[HttpAnswer]:
        headers = {**_HEADERS, **range_headers(offset, validator)}
        async with self._http.request("GET", self._link(), headers=headers) as answer:
            if answer.status not in _GONE:
                yield answer
                return
        self._path = await self._uploaded_again()
        async with self._http.request("GET", self._link(), headers=headers) as answer:
            if answer.status in _GONE:
                raise self._expired()
            yield answer

    def _link(self) -> str:
        """The link of the file: https://github.com/tulir/whatsmeow builds the same."""
        locator = self._ref.locator
        joint = "&" if "?" in self._path else "?"
        digest = quote(urlsafe_b64encode(_bytes(locator["encrypted"])).decode())
        return f"{self._base}{self._path}{joint}hash={digest}&mms-type={locator['type']}&__wa-mms="

    async def _uploaded_again(self) -> str:
        """Have the phone upload the file again, and return its new path."""
        ref = self._ref
        arguments = {"chat": ref.channel_id, "id": ref.message_id, "key": ref.sealed["key"]}
        try:
            told = await self._client.call("reupload", arguments, seconds=REUPLOAD_SECONDS)
        except CompanionError:
            raise self._expired() from None
        if not (path := words(told, "path")).startswith("/"):
            raise self._expired()
        return path

    def _expired(self) -> MediaExpired:
        shown = self._ref.id or "this file"
        return MediaExpired(f"WhatsApp no longer has {shown}, and the phone does not send it again; ask the sender to")


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploaded:
    """A file at WhatsApp, as its message names it."""

    url: str
    path: str
    key: bytes = field(repr=False)
    hashes: FileHashes

    @property
    def fields(self) -> Mapping[str, object]:
        """The fields of its message."""
        text = {"mediaKey": self.key, "fileSHA256": self.hashes.plain, "fileEncSHA256": self.hashes.encrypted}
        fields = {name: b64encode(value).decode() for name, value in text.items()}
        return {**fields, "URL": self.url, "directPath": self.path, "fileLength": str(self.hashes.size)}


async def upload(
    client: LinkedClient, http: HttpClient, file: OutgoingFile, *, media_type: str, media_url: str
) -> Uploaded:
    """Encrypt and upload a file. It is read twice: WhatsApp wants the checksum of the ciphertext before its bytes."""
    key = secrets.token_bytes(KEY_BYTES)
    keys = file_keys(key, media_type)
    checked = FileEncryption(keys)
    async for _ in checked.chunks(FileBody(file).chunks()):
        pass
    token = urlsafe_b64encode(checked.hashes.encrypted).decode()
    with as_errors():
        ticket = await client.call("media", {})
    host = words(ticket, "host")
    if host != host_of(media_url) and not host.endswith(f".{SITE}"):
        raise Undeliverable("WhatsApp named a host for uploads that is not its own")
    scheme = media_url.partition("://")[0] if host == host_of(media_url) else "https"
    url = f"{scheme}://{host}/mms/{media_type}/{quote(token)}?auth={quote(words(ticket, 'auth'), safe='')}&token={quote(token)}"
    body = FileBody(file)
    headers = {**_HEADERS, "Content-Type": "application/octet-stream", "Content-Length": str(encrypted_size(file.size))}
    with as_upload_errors(body):
        chunks = FileEncryption(keys).chunks(body.chunks())
        async with aclosing(chunks), http.request("POST", url, headers=headers, body=chunks) as answer:
            if answer.status == 413:
                raise Undeliverable(f"WhatsApp refuses {file.name}: it is too large")
            if (refusal := error_for(answer.status, answer.headers)) is not None:
                raise refusal
            told = from_json(await answer.read(ANSWER_BYTES))
    if not words(told, "direct_path"):
        raise Undeliverable(f"WhatsApp took {file.name} and did not say where it is")
    return Uploaded(url=words(told, "url"), path=words(told, "direct_path"), key=key, hashes=checked.hashes)


def _bytes(text: str) -> bytes:
    with suppress(ValueError):
        return b64decode(text, validate=True)
    return b""
