"""OpenAI: transcribes speech, describes pictures and reads their text; also any server with the same API."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from belino.domain.ports import ProviderContext
from belino.domain.reading import Material, Read, ReadingOptions, Skill
from belino.net import openai_api
from belino.net.model_api import ModelApi, RemoteConfig
from belino.net.model_api import hosts as hosts

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
    transcript_format: openai_api.TranscriptFormat = field(
        default="auto",
        metadata={"says": "The format of transcripts; `auto` chooses by the model, `verbose_json` has times."},
    )
    reasoning_effort: str | None = field(
        default=None,
        metadata={"says": "How much a vision model reasons; unset: `none` for the default model, else its default."},
    )


class Provider:
    """OpenAI's models, by its API."""

    skills = frozenset({Skill.TRANSCRIBE, Skill.DESCRIBE, Skill.READ_TEXT})
    local = False
    languages: frozenset[str] | None = None

    def __init__(self, config: Config, context: ProviderContext) -> None:
        self._config = config
        self._api = ModelApi(
            "OpenAI" if config.base_url.rstrip("/") == OFFICIAL_URL else "the server at base_url",
            config,
            context,
            own_url=OFFICIAL_URL,
        )

    def model(self, skill: Skill) -> str:
        return self._config.model or (SPEECH_MODEL if skill is Skill.TRANSCRIBE else VISION_MODEL)

    async def read(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        model = self.model(skill)
        async with self._api.within(options.timeout):
            if skill is Skill.TRANSCRIBE:
                self._api.check_sizes(material, SPEECH_BYTES)
                form = self._config.transcript_format
                return await openai_api.transcribe(self._api, material, options, model=model, form=form)
            self._api.check_sizes(material, IMAGE_BYTES)
            responds = self._config.api == "responses" or (self._config.api == "auto" and self._api.is_official)
            request = openai_api.PictureRequest(
                model=model, skill=skill, material=material, options=options, settings=self._settings(model, responds)
            )
            return await (openai_api.respond if responds else openai_api.chat)(self._api, request)

    def _settings(self, model: str, responds: bool) -> dict[str, object]:
        effort = self._config.reasoning_effort or ("none" if model == VISION_MODEL else None)
        if responds:
            return {"reasoning": {"effort": effort}} if effort else {}
        # OpenAI's own models refuse the older name of this field, and many other servers know only that one.
        limit = "max_completion_tokens" if self._api.is_official else "max_tokens"
        return {limit: openai_api.OUTPUT_TOKENS, **({"reasoning_effort": effort} if effort else {})}
