"""OpenAI's API format, which many servers have: chat completions, responses and audio transcriptions."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from belino.domain.errors import ProviderError
from belino.domain.provider import ProviderContext
from belino.domain.reading import Material, Read, ReadingOptions, Skill
from belino.net.json_fields import Raw, has, real, table, tables, words
from belino.net.model_api import JsonBody, ModelApi, RemoteConfig, data_url, outgoing
from belino.net.model_text import (
    TimedWord,
    finished,
    frame_label,
    joined_text,
    language_tag,
    prompt_for,
    segment_of,
    segments_of_words,
    token_count,
)
from belino.net.rest import Form

TranscriptFormat = Literal["auto", "json", "verbose_json", "diarized_json"]

# A description or a page of text is far shorter; this bounds the price of a model that does not stop.
OUTPUT_TOKENS = 8192

# Whisper's own thresholds for silence and for text that it does not trust.
NO_SPEECH = 0.6
DOUBTFUL_LOGPROB = -1.0

_THOUGHT = re.compile(r"\s*<think>.*?</think>", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureRequest:
    """Pictures to describe, or to read the text of."""

    model: str
    skill: Skill
    material: Sequence[Material]
    options: ReadingOptions
    settings: Mapping[str, object] = field(default_factory=dict)
    """Further fields of the request."""

    @property
    def prompt(self) -> str:
        return prompt_for(self.skill, self.material, self.options)


class OpenAiModels(ABC):
    """The models of one service with this API; a provider adds how a request for pictures is made."""

    skills = frozenset({Skill.TRANSCRIBE, Skill.DESCRIBE, Skill.READ_TEXT})
    local = False
    languages: frozenset[str] | None = None
    official_url: ClassVar[str]
    speech_model: ClassVar[str]
    vision_model: ClassVar[str]
    speech_bytes: ClassVar[int]
    image_bytes: ClassVar[int]
    transcript_format: TranscriptFormat = "auto"

    def __init__(self, name: str, config: RemoteConfig, context: ProviderContext) -> None:
        self._chosen = config.model
        self._api = ModelApi(name, config, context, own_url=self.official_url)

    def model(self, skill: Skill) -> str:
        return self._chosen or (self.speech_model if skill is Skill.TRANSCRIBE else self.vision_model)

    async def read(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        model = self.model(skill)
        async with self._api.within(options.timeout):
            if skill is Skill.TRANSCRIBE:
                self._api.check_sizes(material, self.speech_bytes)
                return await transcribe(self._api, material, options, model=model, form=self.transcript_format)
            self._api.check_sizes(material, self.image_bytes)
            return await self._see(PictureRequest(model=model, skill=skill, material=material, options=options))

    @abstractmethod
    async def _see(self, request: PictureRequest) -> Read:
        """Send the request with the settings of this service."""


async def chat(api: ModelApi, request: PictureRequest) -> Read:
    """Read pictures by a chat completion."""
    content = [*_chat_parts(request.material), {"type": "text", "text": request.prompt}]
    body = {"model": request.model, "messages": [{"role": "user", "content": content}], **request.settings}
    answer = await api.post("/chat/completions", JsonBody(body), seconds=request.options.timeout)
    choices = tables(answer, "choices")
    message = table(choices[0], "message") if choices else {}
    if (choices and words(choices[0], "finish_reason") == "content_filter") or words(message, "refusal"):
        raise api.error("the model declined")
    if not choices or "content" not in message:
        raise api.error("its answer contains no message")
    text = _THOUGHT.sub("", words(message, "content"), count=1)
    _check_complete(api, text, words(choices[0], "finish_reason") == "length")
    return finished(Read(text=text, model=request.model, tokens=_tokens(answer)), request.options)


def _chat_parts(material: Sequence[Material]) -> Iterator[Mapping[str, object]]:
    for file in material:
        if (label := frame_label(file)) is not None:
            yield {"type": "text", "text": label}
        yield {"type": "image_url", "image_url": {"url": data_url(file)}}


async def respond(api: ModelApi, request: PictureRequest) -> Read:
    """Read pictures by a response, which OpenAI is asked not to store."""
    content = [*_response_parts(request.material), {"type": "input_text", "text": request.prompt}]
    body = {
        "model": request.model,
        "input": [{"role": "user", "content": content}],
        "store": False,
        "max_output_tokens": OUTPUT_TOKENS,
        **request.settings,
    }
    answer = await api.post("/responses", JsonBody(body), seconds=request.options.timeout)
    if words(answer, "status") not in ("completed", "incomplete"):
        raise api.error("the model failed")
    parts = [part for item in tables(answer, "output") for part in tables(item, "content")]
    if any(words(part, "type") == "refusal" for part in parts):
        raise api.error("the model declined")
    said = [part for part in parts if words(part, "type") == "output_text"]
    if not has(answer, "output"):
        raise api.error("its answer contains no output")
    text = "".join(words(part, "text") for part in said)
    _check_complete(api, text, words(answer, "status") == "incomplete")
    return finished(Read(text=text, model=request.model, tokens=_tokens(answer)), request.options)


def _response_parts(material: Sequence[Material]) -> Iterator[Mapping[str, object]]:
    for file in material:
        if (label := frame_label(file)) is not None:
            yield {"type": "input_text", "text": label}
        yield {"type": "input_image", "image_url": data_url(file)}


def _check_complete(api: ModelApi, text: str, cut: bool) -> None:
    """A long description that was cut is still one; nothing at all is not a blank page."""
    if cut and not text.strip():
        raise api.error("the model used up its tokens before it answered")


def transcript_format(model: str, chosen: TranscriptFormat) -> str:
    """The format with the most details that a model has; unknown ones have the plain one."""
    if chosen != "auto":
        return chosen
    if "diarize" in model:
        return "diarized_json"
    return "verbose_json" if "whisper" in model else "json"


async def transcribe(
    api: ModelApi,
    material: Sequence[Material],
    options: ReadingOptions,
    *,
    model: str,
    form: TranscriptFormat = "auto",
) -> Read:
    """Read speech; with times and speakers where the model has them."""
    if len(material) != 1:
        raise ProviderError(f"{api.name} transcribes one recording at a time, and got {len(material)}")
    (sound,) = material
    fields = dict(_transcription_fields(model, options, transcript_format(model, form)))
    body = Form(fields, {"file": outgoing(sound)})
    answer = await api.post("/audio/transcriptions", body, seconds=options.timeout)
    if not isinstance(answer.get("text"), str):
        raise api.error("its answer contains no text")
    found = tables(answer, "segments")
    spoken = [raw for raw in found if not _is_silence(raw)]
    segments = tuple(map(segment_of, spoken)) or tuple(segments_of_words(_words(answer)))
    read = Read(
        text=words(answer, "text") if len(spoken) == len(found) else joined_text(segments),
        model=model,
        segments=segments,
        language=_language(answer),
        uncertain=_is_doubtful(spoken),
        tokens=_tokens(answer),
    )
    return finished(read, options, seconds=sound.seconds)


def _transcription_fields(model: str, options: ReadingOptions, form: str) -> Iterator[tuple[str, str]]:
    # https://platform.openai.com/docs/api-reference/audio/createTranscription
    yield "model", model
    yield "response_format", form
    if form == "verbose_json":
        yield "timestamp_granularities[]", "segment"
    if form == "diarized_json":
        yield "chunking_strategy", "auto"
    elif options.prompt:
        yield "prompt", options.prompt
    if options.language is not None:
        several = model.startswith("gpt-transcribe")
        yield ("languages[]" if several else "language"), options.language.partition("-")[0].lower()


def _words(answer: Raw) -> Iterator[TimedWord]:
    for raw in tables(answer, "words"):
        word = segment_of(raw, text="word")
        yield TimedWord(text=word.text, start=word.start, end=word.end, speaker=word.speaker)


def _is_silence(raw: Raw) -> bool:
    """Whether Whisper invents words for silence."""
    silence, trust = real(raw, "no_speech_prob"), real(raw, "avg_logprob")
    return silence is not None and trust is not None and silence > NO_SPEECH and trust < DOUBTFUL_LOGPROB


def _is_doubtful(spoken: Sequence[Raw]) -> bool:
    trusts = [trust for raw in spoken if (trust := real(raw, "avg_logprob")) is not None]
    return bool(trusts) and sum(trusts) / len(trusts) < DOUBTFUL_LOGPROB


def _language(answer: Raw) -> str | None:
    found = tables(answer, "languages")
    return language_tag(words(found[0], "code") if found else words(answer, "language"))


def _tokens(answer: Raw) -> int | None:
    return token_count(table(answer, "usage"), "total_tokens")
