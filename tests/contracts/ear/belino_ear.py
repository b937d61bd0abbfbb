"""Ear: a provider in a package of its own, for a speech server with a small API."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from belino.domain.provider import ProviderContext
from belino.domain.reading import Material, Read, ReadingOptions, Skill
from belino.net.json_fields import tables, words
from belino.net.model_api import FileUpload, ModelApi, RemoteConfig
from belino.net.model_api import hosts as hosts
from belino.net.model_text import finished, segment_of

KEY_VARIABLE = "EAR_KEY"
URL = "https://ear.example.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(RemoteConfig):
    """Settings of Ear."""

    base_url: str = field(default=URL, metadata={"says": "Where Ear listens."})


class Provider:
    """Ear."""

    skills = frozenset({Skill.TRANSCRIBE})
    local = False
    languages: frozenset[str] | None = frozenset({"en", "de"})

    def __init__(self, config: Config, context: ProviderContext) -> None:
        self._config = config
        self._api = ModelApi("Ear", config, context, own_url=URL, sign=lambda key: {"X-Ear": key})

    def model(self, skill: Skill) -> str:
        return self._config.model or "ear-1"

    async def read(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        (sound,) = material
        async with self._api.within(options.timeout):
            answer = await self._api.post("/hear", FileUpload(sound), seconds=options.timeout)
        if "text" not in answer:
            raise self._api.error("its answer contains no text")
        segments = tuple(segment_of(raw) for raw in tables(answer, "segments"))
        read = Read(text=words(answer, "text"), model=self.model(skill), segments=segments)
        return finished(read, options, seconds=sound.seconds)
