"""Anthropic: describes pictures and reads their text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from belino.domain.provider import ProviderContext
from belino.domain.reading import Material, Read, ReadingOptions, Skill
from belino.net.json_fields import Raw, has, table, tables, words
from belino.net.model_api import InlineFile, JsonBody, ModelApi, RemoteConfig
from belino.net.model_api import hosts as hosts
from belino.net.model_text import finished, frame_label, prompt_for, token_count

KEY_VARIABLE = "ANTHROPIC_API_KEY"
OFFICIAL_URL = "https://api.anthropic.com"
VISION_MODEL = "claude-haiku-5-5"
VERSION = "2023-06-01"

# 5 MB of base64: https://platform.claude.com/docs/en/build-with-claude/vision
IMAGE_BYTES = 5 * 1024 * 1024 // 4 * 3
OUTPUT_TOKENS = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(RemoteConfig):
    """Settings of Anthropic."""

    base_url: str = field(default=OFFICIAL_URL, metadata={"says": "The URL of the API, without `/v1`."})


class Provider:
    """Claude, by the Messages API."""

    skills = frozenset({Skill.DESCRIBE, Skill.READ_TEXT})
    local = False
    languages: frozenset[str] | None = None

    def __init__(self, config: Config, context: ProviderContext) -> None:
        self._config = config
        self._api = ModelApi(
            "Anthropic",
            config,
            context,
            own_url=OFFICIAL_URL,
            sign=lambda key: {"x-api-key": key},
        )

    def model(self, skill: Skill) -> str:
        return self._config.model or VISION_MODEL

    async def read(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        self._api.check_sizes(material, IMAGE_BYTES)
        content = [*_parts(material), {"type": "text", "text": prompt_for(skill, material, options)}]
        body = JsonBody(
            {
                "model": self.model(skill),
                "max_tokens": OUTPUT_TOKENS,
                "messages": [{"role": "user", "content": content}],
            }
        )
        async with self._api.within(options.timeout):
            answer = await self._api.post(
                "/v1/messages", body, seconds=options.timeout, headers={"anthropic-version": VERSION}
            )
        read = Read(text=self._text(answer), model=self.model(skill), tokens=_tokens(answer))
        return finished(read, options)

    def _text(self, answer: Raw) -> str:
        if not has(answer, "content"):
            raise self._api.error("its answer contains no content")
        if words(answer, "stop_reason") == "refusal":
            raise self._api.error("the model declined")
        said = [block for block in tables(answer, "content") if words(block, "type") == "text"]
        if not said and words(answer, "stop_reason") == "max_tokens":
            raise self._api.error("the model used up its tokens before it answered")
        return "".join(words(block, "text") for block in said)


def _parts(material: Sequence[Material]) -> Iterator[Mapping[str, object]]:
    for file in material:
        if (label := frame_label(file)) is not None:
            yield {"type": "text", "text": label}
        source = {"type": "base64", "media_type": file.mime, "data": InlineFile(material=file)}
        yield {"type": "image", "source": source}


def _tokens(answer: Raw) -> int | None:
    counts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    return token_count(table(answer, "usage"), *counts)
