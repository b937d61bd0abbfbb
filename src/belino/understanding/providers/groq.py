"""Groq: transcribes speech with Whisper, describes pictures and reads their text."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from belino.domain.provider import ProviderContext
from belino.domain.reading import Material, Read
from belino.net.model_api import RemoteConfig
from belino.net.model_api import hosts as hosts
from belino.net.openai_api import OUTPUT_TOKENS, OpenAiModels, PictureRequest, chat

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


class Provider(OpenAiModels):
    """Groq's models, by OpenAI's API."""

    official_url = OFFICIAL_URL
    speech_model, vision_model = SPEECH_MODEL, VISION_MODEL
    speech_bytes, image_bytes = SPEECH_BYTES, IMAGE_BYTES

    def __init__(self, config: Config, context: ProviderContext) -> None:
        super().__init__("Groq", config, context)

    async def _see(self, request: PictureRequest) -> Read:
        fitting = _fitting(request.material)
        return await chat(self._api, replace(request, material=fitting, settings=_settings(request.model)))


def _fitting(material: Sequence[Material]) -> Sequence[Material]:
    """As many pictures as one request may hold, evenly chosen."""
    most = max(1, min(MOST_IMAGES, IMAGE_BYTES // max(file.size for file in material)))
    if len(material) <= most:
        return material
    return [material[index * len(material) // most] for index in range(most)]


def _settings(model: str) -> dict[str, object]:
    # The default model would otherwise think before it describes: https://console.groq.com/docs/reasoning
    thinking = {"reasoning_effort": "none"} if model == VISION_MODEL else {}
    return {"max_completion_tokens": OUTPUT_TOKENS, **thinking}
