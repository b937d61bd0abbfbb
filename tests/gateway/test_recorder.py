"""The recorder: what it writes, when it stops itself, and that it costs nothing while it is off."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from belino.cassette.journal import Journal, Wishes
from belino.cassette.pseudonyms import Secrets
from belino.domain.message import Author, ConversationKey, Message
from belino.domain.outcome import MessageOutcome
from belino.domain.ports import Taken
from belino.gateway.recorder import MOST_BYTES, MOST_HOURS, Recorder, RecordingRefused
from belino.testing import START, FakeClock

WHERE = ConversationKey(platform="memory", account="default", channel="team")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def recorder(tmp_path: Path, clock: FakeClock) -> Iterator[Recorder]:
    made = Recorder(Journal(tmp_path / "cassettes"), secrets=Secrets(["hush-hush"]), clock=clock)
    yield made
    made.journal.close()


def said(text: str = "hello") -> Message:
    return Message(conversation=WHERE, id="m-1", author=Author(id="ann", name="Ann"), sent=START, text=text)


def begin(recorder: Recorder, **wishes: object) -> None:
    recorder.start(Wishes(started=START.isoformat(), **wishes))  # type: ignore[arg-type]


def arrive(recorder: Recorder, message: Message, outcome: MessageOutcome = MessageOutcome.WAITING) -> None:
    recorder.parsed({"said": message.text}, dict, [message])
    recorder.arrived(message, Taken(outcome=outcome))


def test_while_it_is_off_nobody_is_asked_what_they_know_and_nothing_is_written(recorder: Recorder) -> None:
    def known() -> dict[str, object]:
        raise AssertionError("asked while nothing is recorded")

    recorder.parsed({}, known, [said()])
    recorder.arrived(said(), Taken(outcome=MessageOutcome.WAITING))
    assert not recorder.wants(WHERE)
    assert not recorder.journal.folder.exists()


def test_a_denied_arrival_and_its_payload_are_forgotten(recorder: Recorder) -> None:
    begin(recorder)
    arrive(recorder, said("denied words"), MessageOutcome.DENIED)
    assert not recorder.wants(WHERE)
    arrive(recorder, said("kept words hush-hush"))
    assert recorder.wants(WHERE)
    (record,) = recorder.journal.records()
    assert record["payload"] == {"said": "kept words HIDDEN"}


def test_only_one_recording_runs_at_a_time(recorder: Recorder) -> None:
    with pytest.raises(RecordingRefused, match="record start"):
        recorder.take()
    begin(recorder)
    with pytest.raises(RecordingRefused, match="record stop"):
        begin(recorder)


def test_a_forgotten_recording_stops_itself_after_a_day_and_the_doctor_says_so(
    recorder: Recorder, clock: FakeClock
) -> None:
    begin(recorder)
    assert [finding.ok for finding in recorder.findings()] == [True]
    clock.turn(timedelta(hours=MOST_HOURS, seconds=1))
    arrive(recorder, said())
    assert not recorder.on
    (finding,) = recorder.findings()
    assert not finding.ok
    assert "24 hours" in finding.says
    assert "record stop" in finding.cure


def test_a_recording_that_grows_too_large_stops_itself_and_stays_so_after_a_restart(
    recorder: Recorder, clock: FakeClock
) -> None:
    begin(recorder)
    for _ in range(MOST_BYTES // 1_000_000 + 1):
        recorder.journal.append({"record": "call", "body": "x" * 1_000_000})
    arrive(recorder, said())
    state = recorder.state()
    assert state is not None
    assert "64 MB" in state.ended
    again = Recorder(Journal(recorder.journal.folder), secrets=Secrets(()), clock=clock)
    again.resume()
    assert not again.on
    assert again.state() == state


def test_a_line_that_a_crash_cut_off_is_left_out(recorder: Recorder, clock: FakeClock) -> None:
    begin(recorder, conversation=str(WHERE))
    arrive(recorder, said())
    with (recorder.journal.folder / "recording.jsonl").open("a") as file:
        file.write('{"record": "arr')
    again = Recorder(Journal(recorder.journal.folder), secrets=Secrets(()), clock=clock)
    again.resume()
    assert again.wants(WHERE)
    arrive(again, said("after the crash"))
    assert [record["arrival"]["text"] for record in again.journal.records()] == ["hello", "after the crash"]
    again.journal.close()
