"""Recorded readings: what a header tells of entries comes back, and answers come in their order."""

from dataclasses import replace
from typing import Any

import pytest

from belino.cassette.file import Unreadable, as_json
from belino.config import from_table
from belino.domain.reading import MediaCapability, Read, ReadingForm, ReadPiece, ReadSegment, Skill
from belino.gateway.recorded_readings import (
    NOT_RECORDED,
    RecordedAnswers,
    RecordedEntries,
    reading_header,
    reading_record,
    reading_table,
)
from belino.understanding.config import ModelEntry
from belino.understanding.policy import Candidate

PIECE = ReadPiece(sha256="a" * 64, form=ReadingForm.TRANSCRIPT, provider="ear", model="m-1", window="120s-0")
HEARD = Read(text="hello", model="m-1", segments=(ReadSegment(text="hello", start=0.5, end=1.25, speaker="A"),))


class Ear:
    skills = frozenset({Skill.TRANSCRIBE})
    local = False
    languages = frozenset({"en"})

    def model(self, skill: Skill) -> str:
        return f"{skill}-1"


class Entered:
    """The part of media understanding that a header tells of."""

    def candidates(self) -> dict[MediaCapability, tuple[Candidate, ...]]:
        ear: Any = Ear()
        usable = Candidate(
            entry=ModelEntry(provider="ear", prompt="private", max_bytes=9, usd_per_minute=0.5),
            skills=ear.skills,
            languages=ear.languages,
            readers=(ear,),
        )
        broken = Candidate(entry=ModelEntry(provider="nose"), unusable="it has no key")
        return {MediaCapability.AUDIO: (usable, broken)}


def record(piece: ReadPiece, said: Read | str) -> dict[str, Any]:
    return {"record": "reading", **as_json(reading_record(piece, said))}


def test_entries_come_back_with_what_decides_about_them_and_without_what_is_private() -> None:
    understanding: Any = Entered()
    header = reading_header(from_table({}).tools.media, understanding)
    assert "private" not in str(header)
    entries = RecordedEntries({"reading": header})
    ear, nose = entries.candidates(MediaCapability.AUDIO)
    assert (ear.entry.provider, ear.entry.max_bytes, ear.entry.usd_per_minute) == ("ear", 9, 0.5)
    assert (ear.skills, ear.local, ear.languages) == (Ear.skills, False, Ear.languages)
    assert ear.readers[0].model(Skill.TRANSCRIBE) == "transcribe-1"
    assert (nose.unusable, nose.readers) == ("it has no key", ())
    assert entries.candidates(MediaCapability.IMAGE) == ()


def test_settings_come_back_as_they_were() -> None:
    told = {
        "turn_seconds": 30,
        "echo_transcript": True,
        "echo_format": "heard: {transcript}",
        "scope": {"default": "deny", "rules": [{"action": "allow", "chat_type": "direct"}]},
        "audio": {"language": "de", "attachments": {"mode": "first"}},
        "video": {"enabled": False},
    }
    understanding: Any = Entered()
    tools = from_table({"tools": {"media": told}}).tools.media
    header = {"reading": reading_header(tools, understanding)}
    assert from_table({"tools": {"media": reading_table(header)}}).tools.media == tools


def test_answers_to_a_piece_come_in_their_order_and_the_last_one_again() -> None:
    other = replace(PIECE, window="120s-1")
    answers = RecordedAnswers([record(PIECE, "the API answers 503"), record(PIECE, HEARD), {"record": "turn"}])
    assert [answers(PIECE) for _ in range(3)] == ["the API answers 503", HEARD, HEARD]
    assert answers(other) == NOT_RECORDED


def test_a_model_that_is_a_file_is_recorded_without_its_folder() -> None:
    told = reading_record(replace(PIECE, model="/ann/models/mine.bin"), replace(HEARD, model="/ann/models/mine.bin"))
    assert "ann" not in str(told) and told["model"] == "mine.bin"
    assert reading_record(replace(PIECE, model="openai/whisper"), "busy")["model"] == "openai/whisper"


@pytest.mark.parametrize(
    "header",
    [
        {"entries": {"audio": {}}},
        {"entries": {"audio": [{"provider": 5}]}},
        {"entries": {"audio": [{"provider": "a", "skills": [{"skill": "fly", "model": ""}]}]}},
    ],
)
def test_a_damaged_header_is_refused(header: dict[str, Any]) -> None:
    with pytest.raises(Unreadable):
        RecordedEntries({"reading": header})
