"""Google: transcribes speech, describes pictures and videos, and reads text in pictures, with Gemini."""

import asyncio
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import quote

from belino.domain.errors import AdapterError, ProviderError
from belino.domain.provider import ProviderContext
from belino.domain.reading import Material, Read, ReadingOptions, ReadSegment, Skill
from belino.net.client import header
from belino.net.json_fields import Raw, from_json, line, table, tables, words
from belino.net.model_api import FileUpload, InlineFile, JsonBody, ModelApi, RemoteConfig
from belino.net.model_api import hosts as hosts
from belino.net.model_text import finished, frame_label, joined_text, language_tag, prompt_for, token_count

KEY_VARIABLE = "GEMINI_API_KEY"
OFFICIAL_URL = "https://generativelanguage.googleapis.com"
MODEL = "gemini-3.5-flash-lite"

# A request was long limited to 20 MB, with base64; what is larger is uploaded first and deleted afterwards:
# https://ai.google.dev/gemini-api/docs/file-input-methods
INLINE_BYTES = 14 * 1024 * 1024
FILE_BYTES = 2 * 1024**3
POLL_SECONDS = 2.0
# A turn hardly waits for deletions: what is left is deleted before the next reading, and by Google after two days.
DELETE_SECONDS = 0.8
LATER_SECONDS = 5.0
MOST_UNDELETED = 100
OUTPUT_TOKENS = 32_768
GONE = frozenset({403, 404})

_TIME = re.compile(r"(?:(\d{1,3}):)?(\d{1,3}):(\d{1,2}(?:\.\d{1,3})?)")
_TIMED = (
    "Return segments of one or two sentences, each with the time at which it begins as MM:SS, and with a label such as "
    "`Speaker 1` where several people speak; and the language of the speech as a tag such as `en`."
)
_SCHEMA = {
    "type": "OBJECT",
    "properties": {
        "language": {"type": "STRING"},
        "segments": {
            "type": "ARRAY",
            "items": {
                "type": "OBJECT",
                "properties": {
                    "start": {"type": "STRING"},
                    "speaker": {"type": "STRING"},
                    "text": {"type": "STRING"},
                },
                "required": ["start", "text"],
            },
        },
    },
    "required": ["segments"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(RemoteConfig):
    """Settings of Google's Gemini API."""

    base_url: str = field(default=OFFICIAL_URL, metadata={"says": "The URL of the API, without `/v1beta`."})
    inline_bytes: int = field(
        default=INLINE_BYTES,
        metadata={"says": "Above so many bytes files are uploaded, and deleted after the reading.", "least": 0},
    )


class Provider:
    """Gemini, by `generateContent` and the Files API."""

    skills = frozenset({Skill.TRANSCRIBE, Skill.DESCRIBE, Skill.DESCRIBE_VIDEO, Skill.READ_TEXT})
    local = False
    languages: frozenset[str] | None = None

    def __init__(self, config: Config, context: ProviderContext) -> None:
        self._config = config
        self._clock = context.clock
        self._undeleted: list[str] = []
        self._api = ModelApi("Google", config, context, own_url=OFFICIAL_URL, sign=lambda key: {"x-goog-api-key": key})

    def model(self, skill: Skill) -> str:
        return self._config.model or MODEL

    async def read(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        self._api.check_sizes(material, FILE_BYTES)
        if sum(file.size for file in material) <= self._config.inline_bytes:
            async with self._api.within(options.timeout):
                await self._delete(LATER_SECONDS)
                inline = [{"inlineData": {"mimeType": f.mime, "data": InlineFile(material=f)}} for f in material]
                return await self._generate(skill, material, inline, options)
        return await self._read_uploaded(skill, material, options)

    async def close(self) -> None:
        """Delete uploads whose deletion failed before."""
        await self._delete(LATER_SECONDS)

    async def _read_uploaded(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        """Upload the files, read them, and delete them however that ends."""
        begun: list[str] = []
        try:
            async with self._api.within(options.timeout):
                await self._delete(LATER_SECONDS)
                linked = []
                for file in material:
                    begun.append(f"files/{secrets.token_hex(16)}")
                    uri = await self._upload(file, begun[-1], options.timeout)
                    linked.append({"fileData": {"mimeType": file.mime, "fileUri": uri}})
                return await self._generate(skill, material, linked, options)
        finally:
            self._undeleted = [*self._undeleted, *begun][-MOST_UNDELETED:]
            await self._delete(DELETE_SECONDS)

    async def _generate(
        self,
        skill: Skill,
        material: Sequence[Material],
        files: Sequence[Mapping[str, object]],
        options: ReadingOptions,
    ) -> Read:
        asked = prompt_for(skill, material, options)
        settings: dict[str, object] = {"maxOutputTokens": OUTPUT_TOKENS}
        if skill is Skill.TRANSCRIBE:
            asked = f"{asked}\n{_TIMED}"
            settings |= {"responseMimeType": "application/json", "responseSchema": _SCHEMA}
        parts = [*_labelled(material, files), {"text": asked}]
        body = {"contents": [{"role": "user", "parts": parts}], "generationConfig": settings}
        path = f"/v1beta/models/{quote(self.model(skill), safe='')}:generateContent"
        answer = await self._api.post(path, JsonBody(body), seconds=options.timeout)
        text = self._text(answer)
        read = Read(text=text, model=self.model(skill), tokens=_tokens(answer))
        if skill is Skill.TRANSCRIBE:
            read = self._transcript(read)
        return finished(read, options, seconds=material[0].seconds if len(material) == 1 else None)

    def _text(self, answer: Raw) -> str:
        if words(table(answer, "promptFeedback"), "blockReason"):
            raise self._api.error("the request was blocked")
        candidates = tables(answer, "candidates")
        if not candidates:
            raise self._api.error("its answer contains no candidate")
        reason = words(candidates[0], "finishReason")
        parts = tables(table(candidates[0], "content"), "parts")
        text = "".join(words(part, "text") for part in parts if part.get("thought") is not True)
        if reason not in ("STOP", "MAX_TOKENS", ""):
            raise self._api.error("the model declined")
        if reason == "MAX_TOKENS" and not text.strip():
            raise self._api.error("the model used up its tokens before it answered")
        return text

    def _transcript(self, read: Read) -> Read:
        """The segments in a JSON text."""
        value = from_json(read.text)
        if not isinstance(value.get("segments"), list):
            raise self._api.error("its transcript is not in the requested form, or breaks off")
        segments = tuple(_timed(tables(value, "segments")))
        return Read(
            text=joined_text(segments),
            model=read.model,
            segments=segments,
            language=language_tag(words(value, "language")),
            tokens=read.tokens,
        )

    async def _upload(self, file: Material, name: str, seconds: float) -> str:
        """Upload a file under a name of our own, known even if the answer is lost; its URI once it is ready."""
        start = await self._api.call(
            "POST",
            "/upload/v1beta/files",
            JsonBody({"file": {"name": name}}),
            seconds=seconds,
            headers={
                "X-Goog-Upload-Protocol": "resumable",
                "X-Goog-Upload-Command": "start",
                "X-Goog-Upload-Header-Content-Length": str(file.size),
                "X-Goog-Upload-Header-Content-Type": file.mime,
            },
        )
        place = header(start.headers, "X-Goog-Upload-URL")
        if not self._api.is_own(place):
            raise self._api.error("it names no place of its own for the upload")
        commands = {"X-Goog-Upload-Offset": "0", "X-Goog-Upload-Command": "upload, finalize"}
        answer = await self._api.post(place, FileUpload(file), seconds=seconds, headers=commands)
        state = table(answer, "file")
        while words(state, "state") == "PROCESSING":
            await self._clock.sleep(POLL_SECONDS)
            state = await self._api.get(f"/v1beta/{name}", seconds=seconds)
        if words(state, "state") not in ("ACTIVE", "") or not words(state, "uri"):
            raise self._api.error("it could not process the upload")
        return words(state, "uri")

    async def _delete(self, seconds: float) -> None:
        """Delete what was uploaded; what cannot be deleted now is tried again later."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for name in [*self._undeleted]:
                    with suppress(ProviderError, AdapterError):
                        # 403 is its answer for a file that never arrived.
                        await self._api.call("DELETE", f"/v1beta/{name}", None, seconds=seconds, fine=GONE)
                        self._undeleted = [other for other in self._undeleted if other != name]


def _labelled(material: Sequence[Material], files: Sequence[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
    for file, part in zip(material, files, strict=True):
        if (label := frame_label(file)) is not None:
            yield {"text": label}
        yield part


def _timed(segments: Sequence[Raw]) -> Iterator[ReadSegment]:
    starts = [_seconds(words(raw, "start")) for raw in segments]
    for raw, start, end in zip(segments, starts, [*starts[1:], starts[-1] if starts else 0.0], strict=True):
        yield ReadSegment(
            text=words(raw, "text").strip(), start=start, end=max(start, end), speaker=line(raw, "speaker", most=60)
        )


def _seconds(said: str) -> float:
    """A time such as `02:05` or `1:02:05` in seconds; 0 for anything else."""
    found = _TIME.fullmatch(said.strip())
    if found is None:
        return 0.0
    return int(found[1] or 0) * 3600 + int(found[2]) * 60 + float(found[3])


def _tokens(answer: Raw) -> int | None:
    return token_count(table(answer, "usageMetadata"), "totalTokenCount")
