"""Deepgram: transcribes speech, with speakers, times and the language."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from belino.domain.errors import ProviderError
from belino.domain.provider import ProviderContext
from belino.domain.reading import Material, Read, ReadingOptions, ReadSegment, Skill
from belino.net.json_fields import Raw, count, measure, real, table, tables, words
from belino.net.model_api import FileUpload, ModelApi, RemoteConfig
from belino.net.model_api import hosts as hosts
from belino.net.model_text import TimedWord, finished, language_tag, segments_of_words

KEY_VARIABLE = "DEEPGRAM_API_KEY"
OFFICIAL_URL = "https://api.deepgram.com"
SPEECH_MODEL = "nova-3"

# https://developers.deepgram.com/docs/supported-audio-formats
SPEECH_BYTES = 2 * 1024**3
DOUBTFUL = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(RemoteConfig):
    """Settings of Deepgram."""

    base_url: str = field(default=OFFICIAL_URL, metadata={"says": "The URL of the API, without `/v1`."})
    diarize: bool = field(default=True, metadata={"says": "Whether speakers are told apart."})
    smart_format: bool = field(default=True, metadata={"says": "Whether numbers, dates and the like are formatted."})
    detect_language: bool = field(
        default=True, metadata={"says": "Whether the language is recognised where none is configured; else English."}
    )


class Provider:
    """Deepgram's models, by its API for recordings."""

    skills = frozenset({Skill.TRANSCRIBE})
    local = False
    languages: frozenset[str] | None = None

    def __init__(self, config: Config, context: ProviderContext) -> None:
        self._config = config
        self._api = ModelApi(
            "Deepgram",
            config,
            context,
            own_url=OFFICIAL_URL,
            sign=lambda key: {"Authorization": f"Token {key}"},
        )

    def model(self, skill: Skill) -> str:
        return self._config.model or SPEECH_MODEL

    async def read(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        if len(material) != 1:
            raise ProviderError(f"Deepgram transcribes one recording at a time, and got {len(material)}")
        (sound,) = material
        self._api.check_sizes(material, SPEECH_BYTES)
        path = f"/v1/listen?{urlencode([*self._query(options)])}"
        async with self._api.within(options.timeout):
            answer = await self._api.post(path, FileUpload(sound), seconds=options.timeout)
        channels = tables(table(answer, "results"), "channels")
        alternatives = tables(channels[0], "alternatives") if channels else ()
        if not alternatives or not isinstance(alternatives[0].get("transcript"), str):
            raise self._api.error("its answer contains no transcript")
        best = alternatives[0]
        trust = real(best, "confidence")
        text = words(best, "transcript")
        read = Read(
            text=text,
            model=self.model(skill),
            segments=tuple(_segments(answer, best)),
            language=options.language or language_tag(words(channels[0], "detected_language")),
            uncertain=bool(text.strip()) and trust is not None and trust < DOUBTFUL,
        )
        return finished(read, options, seconds=sound.seconds)

    def _query(self, options: ReadingOptions) -> Iterator[tuple[str, str]]:
        """The settings of one request; Deepgram takes no prompt."""
        yield "model", self._config.model or SPEECH_MODEL
        yield "punctuate", "true"
        yield "utterances", "true"
        if self._config.smart_format:
            yield "smart_format", "true"
        if self._config.diarize:
            yield "diarize", "true"
        if options.language is not None:
            yield "language", options.language
        elif self._config.detect_language:
            yield "detect_language", "true"


def _segments(answer: Raw, best: Raw) -> Iterator[ReadSegment]:
    """Its utterances; without them, its words at their pauses."""
    utterances = tables(table(answer, "results"), "utterances")
    for raw in utterances:
        start, end = measure(raw, "start") or 0.0, measure(raw, "end") or 0.0
        yield ReadSegment(text=words(raw, "transcript").strip(), start=start, end=end, speaker=_speaker(raw))
    if not utterances:
        yield from segments_of_words(_words(best))


def _words(best: Raw) -> Iterator[TimedWord]:
    for raw in tables(best, "words"):
        start, end = measure(raw, "start") or 0.0, measure(raw, "end") or 0.0
        text = words(raw, "punctuated_word") or words(raw, "word")
        yield TimedWord(text=text, start=start, end=end, speaker=_speaker(raw))


def _speaker(raw: Raw) -> str:
    number = count(raw, "speaker")
    return "" if number is None else f"Speaker {number + 1}"
