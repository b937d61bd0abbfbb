"""OpenAI: transcribes speech, describes pictures and reads their text; also any server with the same API."""

from dataclasses import dataclass, field, replace
from typing import Literal

from belino.domain.provider import ProviderContext
from belino.domain.reading import Read
from belino.net.model_api import RemoteConfig
from belino.net.model_api import hosts as hosts
from belino.net.openai_api import OUTPUT_TOKENS, OpenAiModels, PictureRequest, TranscriptFormat, chat, respond

KEY_VARIABLE = "OPENAI_API_KEY"
OFFICIAL_URL = "https://api.openai.com/v1"
SPEECH_MODEL = "gpt-transcribe"
VISION_MODEL = "gpt-6-luna"

# https://platform.openai.com/docs/guides/speech-to-text
SPEECH_BYTES = 25 * 1024 * 1024
# Base64 makes a third more of it: 50 MB per request, https://platform.openai.com/docs/guides/images-vision
IMAGE_BYTES = 20 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(RemoteConfig):
    """Settings of OpenAI, or of a server with its API: Mistral, Ollama, vLLM and others."""

    base_url: str = field(default=OFFICIAL_URL, metadata={"says": "The URL of the API, up to `/v1`."})
    api: Literal["auto", "chat", "responses"] = field(
        default="auto",
        metadata={"says": "The API for pictures; `auto` is `responses` at OpenAI and `chat` elsewhere."},
    )
    transcript_format: TranscriptFormat = field(
        default="auto",
        metadata={"says": "The format of transcripts; `auto` chooses by the model, `verbose_json` has times."},
    )
    reasoning_effort: str | None = field(
        default=None,
        metadata={"says": "How much a vision model reasons; unset: `none` for the default model, else its default."},
    )


class Provider(OpenAiModels):
    """OpenAI's models, by its API."""

    official_url = OFFICIAL_URL
    speech_model, vision_model = SPEECH_MODEL, VISION_MODEL
    speech_bytes, image_bytes = SPEECH_BYTES, IMAGE_BYTES

    def __init__(self, config: Config, context: ProviderContext) -> None:
        is_own = config.base_url.rstrip("/") == OFFICIAL_URL
        super().__init__("OpenAI" if is_own else "the server at base_url", config, context)
        self._config = config
        self.transcript_format = config.transcript_format

    async def _see(self, request: PictureRequest) -> Read:
        responds = self._config.api == "responses" or (self._config.api == "auto" and self._api.is_official)
        request = replace(request, settings=self._settings(request.model, responds))
        return await (respond if responds else chat)(self._api, request)

    def _settings(self, model: str, responds: bool) -> dict[str, object]:
        effort = self._config.reasoning_effort or ("none" if model == VISION_MODEL else None)
        if responds:
            return {"reasoning": {"effort": effort}} if effort else {}
        # OpenAI's own models refuse the older name of this field, and many other servers know only that one.
        limit = "max_completion_tokens" if self._api.is_official else "max_tokens"
        return {limit: OUTPUT_TOKENS, **({"reasoning_effort": effort} if effort else {})}
