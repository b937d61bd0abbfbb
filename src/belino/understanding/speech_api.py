"""Speech API: remote services that speak text, by OpenAI's interface or Deepgram's."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from belino.domain.errors import ProviderError
from belino.domain.ports import Clock, HttpAnswer, HttpClient
from belino.net.client import error_for
from belino.net.redact import Secret
from belino.understanding.speech import SERVICES, SpeechConfig

DEEPGRAM = "deepgram"
ANY_VOICE = "alloy"
"""The voice of a server with OpenAI's interface, which demands one."""
ERROR_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechRequest:
    """One call of a service."""

    path: str
    json: Mapping[str, object]
    scheme: str = "Bearer"
    """The word before the key."""


def request_for(config: SpeechConfig, text: str) -> SpeechRequest:
    """The call that speaks a text."""
    if config.provider == DEEPGRAM:
        asked = urlencode({"model": model_of(config), "encoding": "mp3"})
        return SpeechRequest(path=f"/speak?{asked}", json={"text": text}, scheme="Token")
    wish = {"model": model_of(config), "voice": _voice(config), "input": text, "response_format": config.format}
    return SpeechRequest(path="/audio/speech", json=wish)


def base_url(config: SpeechConfig) -> str:
    """The address of the configured service."""
    return config.base_url or SERVICES[config.provider or ""].base_url


def model_of(config: SpeechConfig) -> str:
    """The model that speaks. Deepgram has one for each voice, so that either setting may name it."""
    service = SERVICES.get(config.provider or "")
    named = config.model or (config.voice if config.provider == DEEPGRAM else None)
    return named or (service.model if service else "")


def _voice(config: SpeechConfig) -> str:
    service = SERVICES.get(config.provider or "")
    return config.voice or (service.voice if service else ANY_VOICE)


class SpeechService:
    """A service with one key."""

    def __init__(self, config: SpeechConfig, key: Secret | None, *, http: HttpClient, clock: Clock) -> None:
        self._config = config
        self._key = key
        self._http = http
        self._clock = clock

    async def speak(self, text: str, *, most_bytes: int) -> bytes:
        """The sound of a text. ProviderError, RateLimited or Unauthorized if the service refuses."""
        request, seconds = request_for(self._config, text), self._config.timeout_seconds
        headers = {"Authorization": f"{request.scheme} {self._key.reveal()}"} if self._key is not None else {}
        url = base_url(self._config).rstrip("/") + request.path
        async with self._http.request("POST", url, headers=headers, json=request.json, timeout=seconds) as answer:
            if answer.status >= 300:
                raise await self._refusal(answer)
            return await answer.read(most_bytes)

    async def _refusal(self, answer: HttpAnswer) -> Exception:
        await answer.read(ERROR_BYTES)
        found = error_for(answer.status, answer.headers, now=self._clock.now())
        if found is not None and type(found).__name__ in ("RateLimited", "Unauthorized"):
            return found
        return ProviderError(f"{self._config.name} answered with status {answer.status}")
