"""Groq: transcribes speech with Whisper, describes pictures and reads their text."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from belino.domain.ports import ProviderContext
from belino.domain.reading import Material, Read, ReadingOptions, Skill
from belino.net import openai_api
from belino.net.model_api import ModelApi, RemoteConfig
from belino.net.model_api import hosts as hosts

KEY_VARIABLE = "GROQ_API_KEY"
OFFICIAL_URL = "https://api.groq.com/openai/v1"
SPEECH_MODEL = "whisper-large-v3-turbo"
VISION_MODEL = "qwen/qwen3.8-27b"

# The free tier's limit: https://console.groq.com/docs/speech-to-text
SPEECH_BYTES = 25 * 1024 * 1024
# A request with base64 is limited to 4 MB and five pictures: https://console.groq.com/docs/vision
IMAGE_BYTES = 3 * 1000 * 1000
MOST_IMAGES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(RemoteConfig):
    """Settings of Groq."""

    base_url: str = field(default=OFFICIAL_URL, metadata={"says": "The URL of the API, up to `/v1`."})


class Provider:
    """Groq's models, by OpenAI's API."""

    skills = frozenset({Skill.TRANSCRIBE, Skill.DESCRIBE, Skill.READ_TEXT})
    local = False
    languages: frozenset[str] | None = None

    def __init__(self, config: Config, context: ProviderContext) -> None:
        self._config = config
        self._api = ModelApi("Groq", config, context, own_url=OFFICIAL_URL)

    def model(self, skill: Skill) -> str:
        return self._config.model or (SPEECH_MODEL if skill is Skill.TRANSCRIBE else VISION_MODEL)

    async def read(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        model = self.model(skill)
        async with self._api.within(options.timeout):
            if skill is Skill.TRANSCRIBE:
                self._api.check_sizes(material, SPEECH_BYTES)
                return await openai_api.transcribe(self._api, material, options, model=model)
            request = openai_api.PictureRequest(
                model=model, skill=skill, material=self._fitting(material), options=options, settings=_settings(model)
            )
            return await openai_api.chat(self._api, request)

    def _fitting(self, material: Sequence[Material]) -> Sequence[Material]:
        """As many pictures as one request may hold, evenly chosen."""
        self._api.check_sizes(material, IMAGE_BYTES)
        most = max(1, min(MOST_IMAGES, IMAGE_BYTES // max(file.size for file in material)))
        if len(material) <= most:
            return material
        return [material[index * len(material) // most] for index in range(most)]


def _settings(model: str) -> dict[str, object]:
    # The default model would otherwise think before it describes: https://console.groq.com/docs/reasoning
    thinking = {"reasoning_effort": "none"} if model == VISION_MODEL else {}
    return {"max_completion_tokens": openai_api.OUTPUT_TOKENS, **thinking}
