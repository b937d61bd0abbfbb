"""Speech API: remote services that speak text, by OpenAI's interface or Deepgram's."""

from collections.abc import Mapping
from urllib.parse import urlencode

from belino.net.model_api import ApiContext, JsonBody, ModelApi, RemoteConfig, bearer
from belino.net.redact import Secret
from belino.understanding.speech import SERVICES, SpeechConfig

DEEPGRAM = "deepgram"
ANY_VOICE = "alloy"
"""The voice of a server with OpenAI's interface, which demands one."""


def request_for(config: SpeechConfig, text: str) -> tuple[str, Mapping[str, object]]:
    """The path and the JSON body of the call that speaks a text."""
    if config.provider == DEEPGRAM:
        return f"/speak?{urlencode({'model': model_of(config), 'encoding': 'mp3'})}", {"text": text}
    wish = {"model": model_of(config), "voice": _voice(config), "input": text, "response_format": config.format}
    return "/audio/speech", wish


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


class SpeechApi:
    """A service with one key."""

    def __init__(self, config: SpeechConfig, key: Secret | None, context: ApiContext) -> None:
        self._config = config
        known = SERVICES.get(config.name)
        self._api = ModelApi(
            config.name,
            RemoteConfig(base_url=base_url(config), key=key),
            context,
            own_url=known.base_url if known is not None else "",
            sign=_token if config.provider == DEEPGRAM else bearer,
            task="speak",
        )

    async def speak(self, text: str, *, most_bytes: int) -> bytes:
        """The sound of a text, of whatever type. ProviderError, RateLimited or Unauthorized if the service refuses."""
        path, wish = request_for(self._config, text)
        answer = await self._api.call(
            "POST",
            path,
            JsonBody(wish),
            seconds=self._config.timeout_seconds,
            headers={"Accept": "audio/*"},
            most_bytes=most_bytes,
        )
        return answer.body


def _token(key: str) -> Mapping[str, str]:
    return {"Authorization": f"Token {key}"}
