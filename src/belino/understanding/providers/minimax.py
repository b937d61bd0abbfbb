"""MiniMax: describes pictures and reads their text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from belino.domain.provider import ProviderContext
from belino.domain.reading import Material, Read, ReadingOptions, Skill
from belino.net.json_fields import Raw, table, whole
from belino.net.model_api import ApiAnswer, ModelApi, RemoteConfig
from belino.net.model_api import hosts as hosts
from belino.net.openai_api import PictureRequest, chat

KEY_VARIABLE = "MINIMAX_API_KEY"
OFFICIAL_URL = "https://api.minimax.io/v1"
VISION_MODEL = "MiniMax-M3"

IMAGE_BYTES = 10 * 1024 * 1024

# It reports these with status 200: https://platform.minimax.io/docs/api-reference/errorcode
CODES: Mapping[int, int] = {1002: 429, 1039: 429, 2056: 429, 1004: 401, 2049: 401, 1008: 402}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(RemoteConfig):
    """Settings of MiniMax."""

    base_url: str = field(default=OFFICIAL_URL, metadata={"says": "The URL of the API, up to `/v1`."})


class _Api(ModelApi):
    def parsed(self, answer: ApiAnswer) -> Raw:
        value = super().parsed(answer)
        code = whole(table(value, "base_resp"), "status_code")
        if code:
            raise self.refusal(CODES.get(code, 400), answer.headers, value)
        return value


class Provider:
    """MiniMax's models, by OpenAI's API."""

    skills = frozenset({Skill.DESCRIBE, Skill.READ_TEXT})
    local = False
    languages: frozenset[str] | None = None

    def __init__(self, config: Config, context: ProviderContext) -> None:
        self._config = config
        self._api = _Api("MiniMax", config, context, own_url=OFFICIAL_URL)

    def model(self, skill: Skill) -> str:
        return self._config.model or VISION_MODEL

    async def read(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        self._api.check_sizes(material, IMAGE_BYTES)
        async with self._api.within(options.timeout):
            request = PictureRequest(
                model=self.model(skill),
                skill=skill,
                material=material,
                options=options,
                settings={"reasoning_split": True},  # its thoughts are then in a field of their own, not in the text
            )
            return await chat(self._api, request)
