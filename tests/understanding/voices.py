"""Voices for tests: a program that hums as long as a text takes, and services with the documented rules."""

import io
import json
import math
import struct
import sys
import wave
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from belino.testing.platform_server import Loopback

KEY = "sk-test-1234567890"
OPENAI_VOICES = frozenset(
    ["alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage", "shimmer", "verse"]
)
FORMATS = {"mp3": "mp3", "opus": "ogg", "flac": "flac", "wav": "wav", "aac": "adts"}
CODECS = {"mp3": "mp3", "opus": "libopus", "flac": "flac", "wav": "pcm_s16le", "aac": "aac"}

HUM = """
import math, struct, sys, wave
text = {text}
with wave.open({output}, "wb") as sound:
    sound.setparams((1, 2, 16000, 0, "NONE", ""))
    sound.writeframes(b"".join(struct.pack("<h", int({loud} * math.sin(at / 9))) for at in range(len(text) * 1000)))
"""


def hum(seconds: float, *, rate: int = 24_000, loud: int = 9_000) -> bytes:
    """A WAV file with a hum in it."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((1, 2, rate, 0, "NONE", ""))
        samples = (int(loud * math.sin(at / 9)) for at in range(int(rate * seconds)))
        sound.writeframes(b"".join(struct.pack("<h", sample) for sample in samples))
    return file.getvalue()


def encoded(content: bytes, form: str) -> bytes:
    """A WAV file in another format, by the real encoder."""
    import av
    from av.audio.stream import AudioStream

    written = io.BytesIO()
    with av.open(io.BytesIO(content), "r") as source, av.open(written, "w", format=FORMATS[form]) as target:
        stream = target.add_stream(CODECS[form], rate=48_000 if form == "opus" else 24_000)
        assert isinstance(stream, AudioStream)
        for frame in source.decode(audio=0):
            target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
    return written.getvalue()


def program(folder: Path, *, stdin: bool = True, stdout: bool = True, loud: int = 9_000) -> tuple[str, tuple[str, ...]]:
    """A program that hums for a sixteenth of a second per character: the command and its arguments."""
    file = folder / "hum.py"
    text = "sys.stdin.read().strip()" if stdin else "open(sys.argv[1]).read()"
    output = "sys.stdout.buffer" if stdout else "sys.argv[-1]"
    file.write_text(HUM.format(text=text, output=output, loud=loud))
    words = (str(file), *(() if stdin else ("{{TextPath}}",)), *(() if stdout else ("{{OutputPath}}",)))
    return sys.executable, ("-I", "-S", *words)


def length_of(text: str) -> float:
    """How long our voices take for a text."""
    return len(text) / 16


@dataclass(slots=True, kw_only=True)
class VoiceServer:
    """OpenAI's and Deepgram's speech interfaces, with their limits and error bodies."""

    keys: set[str] = field(default_factory=lambda: {KEY})
    asked: list[dict[str, Any]] = field(default_factory=list)
    """Every accepted request."""
    seen: list[str] = field(default_factory=list)
    """The key of every request."""
    broke: set[str] = field(default_factory=set)
    """Keys that have used up their limit."""
    instead: Callable[[str], web.StreamResponse] | None = None
    """What is answered instead of a sound."""
    url: str = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["VoiceServer"]:
        app = web.Application()
        app.router.add_post("/v1/audio/speech", self._openai)
        app.router.add_post("/v1/speak", self._deepgram)
        async with Loopback(app) as loopback:
            self.url = f"{loopback.urls[0]}/v1"
            yield self

    async def _openai(self, request: web.Request) -> web.StreamResponse:
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.seen.append(key)
        if key not in self.keys:
            return _openai_error(401, "Incorrect API key provided.", "invalid_request_error", "invalid_api_key")
        if key in self.broke:
            return _openai_error(429, "You exceeded your current quota.", "insufficient_quota", "insufficient_quota")
        body = json.loads(await request.read())
        if set(body) - {"model", "input", "voice", "response_format", "speed", "instructions", "stream_format"}:
            return _openai_error(400, "Unrecognized request argument", "invalid_request_error", None)
        if body["model"] not in ("tts-1", "tts-1-hd", "gpt-4o-mini-tts") or body["voice"] not in OPENAI_VOICES:
            return _openai_error(400, "Invalid value", "invalid_request_error", "invalid_value")
        if not 1 <= len(body["input"]) <= 4096:
            return _openai_error(400, "String too long", "invalid_request_error", "string_too_long")
        return self._spoken(body, body["input"], body.get("response_format", "mp3"))

    async def _deepgram(self, request: web.Request) -> web.StreamResponse:
        key = request.headers.get("Authorization", "").removeprefix("Token ")
        self.seen.append(key)
        if key not in self.keys:
            return _deepgram_error(401, "INVALID_AUTH", "Invalid credentials.")
        body = json.loads(await request.read())
        if set(body) != {"text"} or not body["text"].strip():
            return _deepgram_error(400, "PAYLOAD_ERROR", "Failed to deserialize JSON payload.")
        if len(body["text"]) > 2000:
            return _deepgram_error(413, "PAYLOAD_ERROR", "Input text exceeds maximum character limit of 2000.")
        asked = dict(request.query)
        if not asked.get("model", "").startswith("aura-") or asked.get("encoding") not in FORMATS:
            return _deepgram_error(400, "INVALID_QUERY_PARAMETER", "Failed to deserialize query parameters.")
        return self._spoken({**asked, **body}, body["text"], asked["encoding"])

    def _spoken(self, asked: dict[str, Any], text: str, form: str) -> web.StreamResponse:
        self.asked.append(asked)
        if self.instead is not None:
            return self.instead(text)
        return web.Response(body=encoded(hum(length_of(text)), form), content_type="audio/mpeg")


def _openai_error(status: int, message: str, kind: str, code: str | None) -> web.Response:
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return web.json_response(body, status=status)


def _deepgram_error(status: int, code: str, message: str) -> web.Response:
    return web.json_response({"err_code": code, "err_msg": message, "request_id": "r-1"}, status=status)
