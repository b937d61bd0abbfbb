"""Media as text, through a real gateway, with a provider that another package brings."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from belino.testing import GatewayProcess, make_png
from faults.looking import history, until_idle
from journeys.scribe import MAIN, SAID, Scribe, configure, send, send_voice

pytestmark = pytest.mark.slow


@pytest.fixture
def scribe(tmp_path: Path) -> Scribe:
    scribe = Scribe(tmp_path)
    scribe.says("transcribe", SAID, (0.0, "we meet again."), (1.0, "on Thursday at ten"))
    return scribe


def story(gateway: GatewayProcess, message: str) -> dict[str, Any]:
    status, told = gateway.call("GET", f"/api/explain?message={quote(f'{MAIN}/{message}', safe='')}")
    assert status == 200, told
    return dict(told)


def test_a_voice_message_is_answered_by_what_was_said_and_everything_about_it_can_be_seen(
    tmp_path: Path, scribe: Scribe
) -> None:
    home = tmp_path / "home"
    configure(home, "audio")
    with GatewayProcess(home, environment=scribe.environment) as gateway:
        send_voice(gateway)
        until_idle(gateway)
        question, answer = history(gateway, MAIN)
        assert SAID in answer["text"] and scribe.calls() == ["transcribe"]
        (reading,) = question["readings"]
        assert (reading["kind"], reading["attachment_index"]) == ("audio.transcription", 0)
        assert (reading["text"], reading["provider"], reading["model"]) == (SAID, "scribe", "quill")
        assert [segment["text"] for segment in reading["segments"]] == ["we meet again.", "on Thursday at ten"]
        steps = [step for step in story(gateway, "v1")["steps"] if step["stage"] == "reading"]
        assert [(step["outcome"], step["subject"]) for step in steps] == [("read", question["media"][0]["ref"])]
        assert "scribe quill" in steps[0]["reason"]
        assert story(gateway, "v1")["readings"][0]["provider"] == "scribe"
        ref = question["media"][0]["ref"]
        status, told = gateway.call("GET", f"/api/readings/{ref}")
        assert status == 200 and told["readings"][0]["text"] == SAID
        assert [attempt["outcome"] for attempt in told["attempts"]] == ["success"]

        send_voice(gateway, "again", key="v2")  # the same bytes
        until_idle(gateway)
        assert scribe.calls() == ["transcribe"]
        assert SAID in history(gateway, MAIN)[-1]["text"]

        status, found = gateway.call("GET", f"/api/search?conversation={MAIN}&intent=Thursday")
        assert status == 200 and "0:01" in json.dumps(found)
        assert gateway.stop() == 0


def test_a_document_that_belino_reads_itself_counts_as_read(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        send(gateway, "when?", "notes.txt", "text/plain", b"The ferry leaves at nine.\n", key="d1")
        until_idle(gateway)
        (step,) = [step for step in story(gateway, "d1")["steps"] if step["stage"] == "reading"]
        assert (step["outcome"], step["reason"]) == ("read", "document by belino")


def test_a_failing_provider_costs_the_reading_and_not_the_answer(tmp_path: Path, scribe: Scribe) -> None:
    home = tmp_path / "home"
    configure(home, "audio")
    (scribe.folder / "transcribe.json").unlink()
    with GatewayProcess(home, environment=scribe.environment) as gateway:
        send_voice(gateway, "what is this?")
        until_idle(gateway)
        question, answer = history(gateway, MAIN)
        assert question["outcome"] == "answered" and question["readings"] == [] and answer["text"]
        outcomes = [(s["outcome"], s["reason"]) for s in story(gateway, "v1")["steps"] if s["stage"] == "reading"]
        assert outcomes and outcomes[0][0] == "failed" and "no ink" in outcomes[0][1]


def test_a_provider_that_hangs_holds_the_turn_no_longer_than_its_deadline(tmp_path: Path, scribe: Scribe) -> None:
    home = tmp_path / "home"
    configure(home, "audio", more="[tools.media]\nturn_seconds = 1\n")
    scribe.hold()
    with GatewayProcess(home, environment=scribe.environment) as gateway:
        send_voice(gateway, "hello")
        until_idle(gateway)
        question, _ = history(gateway, MAIN)
        assert question["outcome"] == "answered" and not scribe.calls()
        assert any(step["stage"] == "reading" for step in story(gateway, "v1")["steps"])
        scribe.go_on()


def test_a_picture_is_described_on_request_and_once(tmp_path: Path, scribe: Scribe) -> None:
    home = tmp_path / "home"
    configure(home, "image")
    scribe.says("describe", "a blue rectangle")
    with GatewayProcess(home, environment=scribe.environment) as gateway:
        send(gateway, "look", "p.png", "image/png", make_png(64, 48), key="p1")
        until_idle(gateway)
        assert not scribe.calls(), "the demo agent sees pictures itself"
        ref = history(gateway, MAIN)[0]["media"][0]["ref"]
        _, me = gateway.call("GET", "/api/me")
        assert {"as": "description", "usd": 0.0, "local": True} in me["reads"]["image"]
        for _ in range(2):
            status, told = gateway.call("POST", "/api/media/read", {"ref": ref, "as": "description"})
            assert (status, told["reading"]["text"]) == (200, "a blue rectangle")
        assert scribe.calls() == ["describe"]
        assert history(gateway, MAIN)[0]["readings"][0]["kind"] == "image.description"
        status, refused = gateway.call("POST", "/api/media/read", {"ref": ref, "as": "transcript"})
        assert status == 409 and ref in refused["error"]["message"]
        assert gateway.call("POST", "/api/media/read", {"ref": "web_000000000000", "as": "text"})[0] == 404
        assert gateway.call("POST", "/api/media/read", {"ref": ref, "as": "song"})[0] == 400
