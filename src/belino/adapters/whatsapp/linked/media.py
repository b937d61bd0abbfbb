"""Media of a linked device: files by WhatsApp's links, decrypted and encrypted in constant memory."""

import secrets
from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from urllib.parse import quote

from belino.adapters.whatsapp.capabilities import TYPES
from belino.adapters.whatsapp.linked.client import LinkedClient
from belino.adapters.whatsapp.linked.content import ONCE, type_in_links
from belino.domain.errors import AdapterError, MediaError, MediaExpired, MediaRefused, Undeliverable
from belino.domain.limits import SendAs
from belino.domain.media import MediaRef
from belino.domain.ports import AdapterContext, HttpAnswer
from belino.domain.reply import OutgoingFile
from belino.net.client import error_for
from belino.net.encrypted_stream import KEY_BYTES, FileEncryption, FileHashes, decrypted, encrypted_size, file_keys
from belino.net.json_fields import from_base64, from_json, words
from belino.net.rest import FileBody, LinkedFile, as_upload_errors

LABELS = {kind: f"WhatsApp {kind.title()} Keys".encode() for kind in ("image", "video", "audio", "document")}
"""By the type of media in WhatsApp's links."""
MEDIA_URL = "https://mmg.whatsapp.net"
_HEADERS = {"Origin": "https://web.whatsapp.com", "Referer": "https://web.whatsapp.com/"}
ANSWER_BYTES = 64 * 1024
REUPLOAD_SECONDS = 30.0
WAVEFORM_POINTS = 64


class LinkedDownload(LinkedFile):
    """The file of a ref, decrypted; one that WhatsApp no longer has is asked for on the phone, once."""

    gone = frozenset({403, 404, 410})
    lasts = True

    def __init__(self, client: LinkedClient | None, context: AdapterContext, ref: MediaRef, *, media_url: str) -> None:
        def get(link: str, headers: Mapping[str, str]) -> AbstractAsyncContextManager[HttpAnswer]:
            return context.http.request("GET", link, headers={**_HEADERS, **headers})

        super().__init__(ref, context.clock, get=get)
        self._client, self._base = client, media_url.rstrip("/")

    @asynccontextmanager
    async def open(self) -> AsyncIterator[AsyncIterator[bytes]]:
        """The plain bytes."""
        if ONCE in self._ref.locator:
            raise MediaRefused("it can be viewed once, on the phone: belino does not fetch it")
        plain, encrypted, key = (from_base64(self._field(name)) for name in ("plain", "encrypted", "key"))
        keys = file_keys(key, LABELS.get(self._field("type"), b""))
        hashes = FileHashes(plain=plain, encrypted=encrypted)
        async with super().open() as chunks, aclosing(decrypted(chunks, keys, hashes)) as opened:
            yield opened

    def _field(self, name: str) -> str:
        return {**self._ref.locator, **self._ref.sealed}.get(name, "")

    async def first_link(self) -> str:
        """The link by the path in the message."""
        if not (path := self._field("path")).startswith("/"):
            raise MediaRefused("the message does not say where its file is")
        return self._at(path)

    async def link(self) -> str:
        """Have the phone upload the file again, under a new path."""
        ref, path = self._ref, ""
        arguments = {"chat": ref.channel_id, "id": ref.message_id, "key": self._field("key")}
        with suppress(AdapterError):
            if self._client is not None:
                path = words(await self._client.call("reupload", arguments, seconds=REUPLOAD_SECONDS), "path")
        if not path.startswith("/"):
            raise self.dead(0)
        return self._at(path)

    def _at(self, path: str) -> str:
        digest = quote(urlsafe_b64encode(from_base64(self._field("encrypted"))).decode())
        mark = "&" if "?" in path else "?"
        return f"{self._base}{path}{mark}hash={digest}&mms-type={self._field('type')}&__wa-mms="

    def dead(self, status: int) -> MediaError:
        return MediaExpired(
            f"WhatsApp no longer has {self.shown}, and the phone does not send it again; ask the sender to"
        )


async def upload(
    client: LinkedClient, context: AdapterContext, file: OutgoingFile, *, media_url: str
) -> tuple[str, Mapping[str, object]]:
    """Encrypt and upload a file, which is read twice: WhatsApp wants the checksum of the ciphertext before its bytes.

    Returns the part of a message that names it.
    """
    key, media_type = secrets.token_bytes(KEY_BYTES), type_in_links(TYPES[file.send_as])
    keys = file_keys(key, LABELS[media_type])
    hashes = await FileEncryption(keys).measured(FileBody(file).chunks())
    ticket = await client.call("media", {})
    token, auth = quote(urlsafe_b64encode(hashes.encrypted).decode()), quote(words(ticket, "auth"), safe="")
    # Of its hosts, WhatsApp names the one of `media_url` as the one that serves everybody.
    url = f"{media_url.rstrip('/')}/mms/{media_type}/{token}?auth={auth}&token={token}"
    headers = {**_HEADERS, "Content-Type": "application/octet-stream", "Content-Length": str(encrypted_size(file.size))}
    body = FileBody(file)
    with as_upload_errors(body):
        async with (
            aclosing(FileEncryption(keys).chunks(body.chunks())) as chunks,
            context.http.request("POST", url, headers=headers, body=chunks) as answer,
        ):
            if answer.status == 413:
                raise Undeliverable(f"WhatsApp refuses {file.name}: it is too large")
            if answer.status in (401, 403):  # of the ticket, not of the session
                raise AdapterError("WhatsApp no longer accepts the ticket for uploads")
            if (refusal := error_for(answer.status, answer.headers)) is not None:
                raise refusal
            told = from_json(await answer.read(ANSWER_BYTES))
    if not words(told, "direct_path"):
        raise Undeliverable(f"WhatsApp took {file.name} and did not say where it is")
    texts = {"mediaKey": key, "fileSHA256": hashes.plain, "fileEncSHA256": hashes.encrypted}
    fields = {name: b64encode(value).decode() for name, value in texts.items()}
    where = {"URL": words(told, "url"), "directPath": words(told, "direct_path"), "fileLength": hashes.size}
    return f"{TYPES[file.send_as]}Message", {**_facts(file), **fields, **where}


def _facts(file: OutgoingFile) -> Mapping[str, object]:
    """What a message says about its file."""
    is_voice, facts = file.send_as is SendAs.VOICE, dict[str, object](mimetype=file.mime, caption=file.caption)
    if file.send_as is SendAs.DOCUMENT:
        facts |= {"fileName": file.name, "title": file.name}
    else:
        facts |= {"width": file.width, "height": file.height, "seconds": round(file.seconds or 0)}
    if is_voice:
        facts |= {"mimetype": "audio/ogg; codecs=opus", "PTT": True}
    if is_voice and file.waveform:  # from 0 to 100, at 64 points
        points = (file.waveform[at * len(file.waveform) // WAVEFORM_POINTS] for at in range(WAVEFORM_POINTS))
        facts["waveform"] = b64encode(bytes(point * 100 // 255 for point in points)).decode()
    return {name: value for name, value in facts.items() if value}
