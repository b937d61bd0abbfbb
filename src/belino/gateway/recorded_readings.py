"""Recorded readings: what a cassette holds of media understanding, and how a replay reads media from it.

A replay makes the same decisions and decodes the same media; only the providers are not asked.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from belino.cassette.file import Unreadable, as_json, read
from belino.domain.errors import ProviderError
from belino.domain.message import ConversationKey
from belino.domain.reading import Material, MediaCapability, Read, ReadingOptions, ReadPiece, Skill
from belino.understanding.calls import model_of
from belino.understanding.config import MediaTools, ModelEntry, ReadingLimits
from belino.understanding.entries import Entries
from belino.understanding.policy import Candidate, EntryChoice

if TYPE_CHECKING:
    from belino.understanding.read import Understanding

SETTINGS = ("auto", "turn_seconds", "echo_transcript", "echo_format", "audio_preflight", "attachments", "scope")
KIND_SETTINGS = ("enabled", "max_chars", "max_bytes", "timeout_seconds", "language", "attachments", "scope")
"""The settings of a kind of media: no provider, no command, no prompt."""
NOT_RECORDED = "the cassette has no answer to this"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSkill:
    """A skill of a provider, and the model it uses."""

    skill: Skill
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEntry:
    """An entry that might read, without its address, key, command and prompt."""

    provider: str
    skills: tuple[RecordedSkill, ...] = ()
    local: bool = False
    languages: tuple[str, ...] | None = None
    unusable: str = ""
    language: str | None = None
    max_chars: int | None = None
    max_bytes: int | None = None
    timeout_seconds: float | None = None
    usd_per_minute: float | None = None
    usd_per_page: float | None = None
    usd_per_mtok: float | None = None


def reading_header(tools: MediaTools, understanding: "Understanding") -> Json:
    """The part of a cassette's header about readings: settings, and the entries for each kind of media."""
    table = _settings(tools, SETTINGS) | {
        kind.value: _settings(tools.of(kind), KIND_SETTINGS) for kind in MediaCapability
    }
    entries = {
        kind.value: [as_json(_recorded(candidate)) for candidate in candidates]
        for kind, candidates in understanding.candidates().items()
    }
    return {"tools": table, "entries": entries}


def reading_record(piece: ReadPiece, said: Read | str) -> Json:
    """A piece of media, and what its provider read or why it read nothing."""
    answer = {"failed": said} if isinstance(said, str) else {"read": replace(said, model=_named(said.model))}
    return {**as_json(replace(piece, model=_named(piece.model))), **answer}


def reading_table(header: Mapping[str, Any]) -> Json:
    """The table `tools.media` of a cassette; one that was made before media was read has every kind switched off."""
    told = header.get("reading")
    if not isinstance(told, Mapping) or not isinstance(tools := told.get("tools"), Mapping):
        return {kind.value: {"enabled": False} for kind in MediaCapability}
    table = {name: tools[name] for name in SETTINGS if name in tools}
    for kind in MediaCapability:
        own = tools.get(kind.value)
        table[kind.value] = {name: own[name] for name in KIND_SETTINGS if name in own} if isinstance(own, dict) else {}
    return table


class RecordedEntries(Entries):
    """The entries of a cassette: they decide who would read, and read nothing."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        told = header.get("reading")
        entries = told.get("entries") if isinstance(told, Mapping) else None
        self._recorded = {
            kind: tuple(_candidate(read(RecordedEntry, each)) for each in _list(entries, kind.value))
            for kind in MediaCapability
        }

    def candidates(
        self, capability: MediaCapability, conversation: ConversationKey | None = None
    ) -> tuple[Candidate, ...]:
        """The recorded entries."""
        return self._recorded[capability]

    def configured(self) -> Iterator[tuple[str, Candidate]]:
        """None: a replay has nothing to try."""
        return iter(())

    async def close(self) -> None:
        """Nothing is open."""


class RecordedAnswers:
    """What providers said: each piece in the order of the recording, and its last answer again after that."""

    def __init__(self, records: Iterable[Json]) -> None:
        self._waiting: defaultdict[ReadPiece, deque[Read | str]] = defaultdict(deque)
        for record in records:
            if record.get("record") == "reading":
                said = record.get("read")
                answer = str(record.get("failed", "")) or NOT_RECORDED
                self._waiting[read(ReadPiece, record)].append(answer if said is None else read(Read, said))

    def __call__(self, piece: ReadPiece) -> Read | str:
        """The next answer to this piece, or the reason why there is none."""
        waiting = self._waiting.get(piece)
        if not waiting:
            return NOT_RECORDED
        return waiting.popleft() if len(waiting) > 1 else waiting[0]


class _RecordedReader:
    """A provider that is in a cassette; its answers come from there."""

    def __init__(self, told: RecordedEntry) -> None:
        self.skills = frozenset(each.skill for each in told.skills)
        self.local = told.local
        self.languages = None if told.languages is None else frozenset(told.languages)
        self._models = {each.skill: each.model for each in told.skills}

    def model(self, skill: Skill) -> str:
        return self._models.get(skill, "?")

    async def read(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        raise ProviderError("a replay asks no provider")


def _settings(value: object, names: Iterable[str]) -> Json:
    return {name: as_json(held) for name in names if (held := getattr(value, name)) is not None}


def _recorded(candidate: Candidate) -> RecordedEntry:
    entry = candidate.entry
    return RecordedEntry(
        provider=entry.provider,
        skills=tuple(
            RecordedSkill(skill=skill, model=_named(model_of(candidate.readers[0], _choice(candidate, skill))))
            for skill in sorted(candidate.skills)
        ),
        local=candidate.local,
        languages=None if candidate.languages is None else tuple(sorted(candidate.languages)),
        unusable=candidate.unusable,
        language=entry.language,
        max_chars=entry.max_chars,
        max_bytes=entry.max_bytes,
        timeout_seconds=entry.timeout_seconds,
        usd_per_minute=entry.usd_per_minute,
        usd_per_page=entry.usd_per_page,
        usd_per_mtok=entry.usd_per_mtok,
    )


def _choice(candidate: Candidate, skill: Skill) -> EntryChoice:
    limits = ReadingLimits(max_bytes=0, max_chars=None, timeout=0.0)
    return EntryChoice(candidate=candidate, skill=skill, limits=limits, prompt=None, language=None)


def _candidate(told: RecordedEntry) -> Candidate:
    entry = ModelEntry(
        provider=told.provider,
        language=told.language,
        max_chars=told.max_chars,
        max_bytes=told.max_bytes,
        timeout_seconds=told.timeout_seconds,
        usd_per_minute=told.usd_per_minute,
        usd_per_page=told.usd_per_page,
        usd_per_mtok=told.usd_per_mtok,
    )
    reader = _RecordedReader(told)
    return Candidate(
        entry=entry,
        skills=reader.skills,
        local=reader.local,
        languages=reader.languages,
        unusable=told.unusable,
        readers=() if told.unusable else (reader,),
    )


def _named(model: str) -> str:
    """A model's name; of one that is a file only the file's, as folders may have the names of people."""
    return model.rpartition("/")[2] if model.startswith(("/", "~", ".")) else model


def _list(entries: object, name: str) -> list[Any]:
    told = entries.get(name, []) if isinstance(entries, Mapping) else []
    if not isinstance(told, list):
        raise Unreadable("the cassette's header has entries for media that are not a list; it is damaged")
    return told
