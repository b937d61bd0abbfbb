"""What the page shows while an agent works, and how a person stops it."""

import json
import random
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, WebSocketRoute, expect

from belino.testing import GatewayProcess
from browser.acting import Enter, answered, bubbles, card, hum, no_violation, play, say, send, wait_for_held

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The file the patient agent waits for."""

    path: Path

    def go(self) -> None:
        self.path.touch()

    def calm_down(self) -> None:
        """From now on nothing makes it fail."""
        self.path.write_text("calm")


@pytest.fixture
def patience(tmp_path: Path) -> Patience:
    return Patience(path=tmp_path / "go")


@pytest.fixture
def gateway(tmp_path: Path, patience: Patience) -> Iterator[GatewayProcess]:
    """A gateway whose agent is found as an installed package's would be."""
    package = tmp_path / "installed" / "patient-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: patient\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[belino.agents]\npatient = browser.patient\n")
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    elsewhere = {"web:default:kitchen": {"name": "Julia"}}
    config = {"agent": {"kind": "patient", "name": "Ada", "go": str(patience.path), "places": elsewhere}}
    (home / "belino.json").write_text(json.dumps(config))
    environment = {"PYTHONPATH": f"{package.parent}:{TESTS}"}
    # The same port after a restart: the page only knows this one.
    with GatewayProcess(home, arguments=("--port", str(free_port())), environment=environment) as gateway:
        yield gateway


def free_port() -> int:
    """A port that the system gives to nobody by itself, so that none takes it while the gateway is down."""
    for port in random.sample(range(20_000, 32_000), 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


def test_a_working_agent_is_shown_with_what_it_does_also_after_a_reload(
    page: Page, enter: Enter, patience: Patience
) -> None:
    enter(page)
    send(page, "hello")
    expect(page.get_by_text("looking at photo.jpg")).to_be_visible()
    no_violation(page)
    page.reload()
    expect(page.get_by_text("Ada is writing")).to_be_visible()
    patience.go()
    answered(page)
    expect(bubbles(page, "theirs").locator(".words")).to_have_text("answer 1")


def test_the_list_of_conversations_shows_where_the_agent_works_also_if_only_history_tells(
    page: Page, enter: Enter, patience: Patience
) -> None:
    enter(page)
    send(page, "hello")
    mark = page.get_by_role("link", name="Main").locator(".mark.busy")
    expect(mark).to_be_visible()
    held: list[Route] = []
    page.route("**/api/messages?*", lambda route: held.append(route), times=2)
    page.reload()
    wait_for_held(page, held)
    held[0].continue_()
    wait_for_held(page, held, 2)  # after a connection nothing is believed that was heard before
    expect(page.locator("#connection")).to_have_attribute("data-state", "connected")
    expect(mark).to_be_hidden()
    held[1].continue_()
    expect(page.get_by_text("Ada is writing")).to_be_visible()
    expect(mark).to_be_visible()
    patience.go()
    answered(page)
    expect(mark).to_be_hidden()


def test_an_answer_is_shown_while_it_is_written_and_then_once(page: Page, enter: Enter, patience: Patience) -> None:
    enter(page)
    send(page, "think aloud")
    draft = page.locator("#draft")
    expect(draft.locator(".words")).to_have_text("Let me think… 😀 aloud")
    expect(draft.locator("strong")).to_have_text("Let me")
    no_violation(page)
    patience.go()
    answered(page)
    expect(draft).to_be_hidden()
    expect(bubbles(page, "theirs").locator(".words")).to_have_text("answer 1")


def test_a_page_that_missed_the_beginning_of_an_answer_shows_none_of_it_until_it_is_whole(
    page: Page, enter: Enter, patience: Patience
) -> None:
    enter(page)
    send(page, "think aloud")
    expect(page.locator("#draft")).to_contain_text("aloud")
    page.reload()
    expect(page.get_by_text("Ada is writing")).to_be_visible()
    expect(page.locator("#draft")).to_be_hidden()
    patience.go()
    answered(page)


def test_the_agent_of_another_place_works_and_answers_under_its_own_name(
    page: Page, enter: Enter, patience: Patience
) -> None:
    enter(page)
    expect(page.locator("#room-agent")).to_have_text("with Ada")
    page.get_by_role("button", name="New conversation").click()
    page.get_by_label("Name").fill("Kitchen")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("#room-agent")).to_have_text("with Julia")
    send(page, "think aloud")
    expect(page.locator("#draft .author")).to_have_text("Julia")
    patience.go()
    answered(page)
    expect(bubbles(page, "theirs").locator(".author")).to_contain_text("Julia")


def test_a_page_on_another_conversation_sees_in_its_list_that_the_agent_works_and_has_answered(
    page: Page, enter: Enter, gateway: GatewayProcess, patience: Patience
) -> None:
    enter(page)
    gateway.call("POST", "/api/conversations", {"name": "Kitchen"})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    say(gateway, "hello from elsewhere", conversation="web:default:kitchen")
    kitchen = page.get_by_role("link", name="Kitchen")
    expect(kitchen.locator(".mark.busy")).to_be_visible()
    expect(kitchen).to_contain_text("hello from elsewhere")
    asked.clear()
    patience.go()
    expect(kitchen.locator(".mark:not(.busy)")).to_be_visible()
    expect(kitchen).to_contain_text("answer 1")
    # All of it came in the overview: no answer in a conversation that is not shown makes the page ask for anything.
    assert asked == []
    kitchen.click()
    answered(page)
    expect(kitchen.locator(".mark")).to_be_hidden()


def test_an_answer_being_written_is_still_there_when_a_person_comes_back_to_it(
    page: Page, enter: Enter, gateway: GatewayProcess, patience: Patience
) -> None:
    gateway.call("POST", "/api/conversations", {"name": "Kitchen"})
    enter(page)
    send(page, "think aloud")
    expect(page.locator("#draft")).to_contain_text("aloud")
    page.get_by_role("link", name="Kitchen").click()
    expect(page.locator("#room-name")).to_have_text("Kitchen")
    expect(page.locator("#draft")).to_be_hidden()
    expect(page.get_by_role("link", name="Main").locator(".mark.busy")).to_be_visible()
    page.get_by_role("link", name="Main").click()
    expect(page.locator("#draft .words")).to_have_text("Let me think… 😀 aloud")
    patience.go()
    answered(page)
    expect(page.locator("#draft")).to_be_hidden()


def test_stop_ends_the_turn_and_the_message_says_so(page: Page, enter: Enter) -> None:
    enter(page)
    send(page, "hello")
    page.get_by_role("button", name="Stop").click()
    expect(bubbles(page, "mine")).to_contain_text("Stopped")
    expect(page.locator("#turn")).to_be_hidden()
    page.reload()
    expect(bubbles(page, "mine")).to_contain_text("Stopped")
    expect(bubbles(page, "theirs")).to_have_count(0)


def test_a_turn_that_only_waits_is_stopped_once_it_can_be(page: Page, enter: Enter) -> None:
    early: list[str] = []

    def meet(line: WebSocketRoute) -> None:
        gateway = line.connect_to_server()

        def pass_on(frame: str | bytes) -> None:
            asked = json.loads(frame)
            if asked["method"] != "chat.abort" or early:
                gateway.send(frame)
                return
            early.append(asked["id"])  # as the gateway answers where no turn runs yet
            line.send(json.dumps({"type": "res", "id": asked["id"], "ok": True, "payload": {"aborted": False}}))

        line.on_message(pass_on)

    page.route_web_socket("**/ws", meet)
    enter(page)
    send(page, "hello")
    page.get_by_role("button", name="Stop").click()
    expect(bubbles(page, "mine")).to_contain_text("Stopped")
    assert early


def test_a_sound_plays_on_while_its_message_is_drawn_anew(page: Page, enter: Enter, gateway: GatewayProcess) -> None:
    say(gateway, "", ("hum.wav", "audio/wav", hum()))
    enter(page)
    play(card(page, "hum.wav"))
    page.get_by_role("button", name="Stop").click()
    expect(bubbles(page, "mine")).to_contain_text("Stopped")
    assert page.locator("audio").evaluate("audio => !audio.paused && !audio.ended")


def test_a_failed_turn_is_told_in_the_conversation(page: Page, enter: Enter, patience: Patience) -> None:
    enter(page)
    patience.go()
    send(page, "please fail")
    answered(page)
    expect(bubbles(page, "mine")).to_contain_text("Not answered")
    expect(bubbles(page, "theirs")).to_contain_text("the agent lost its patience")


def test_a_failed_message_is_tried_again_by_keyboard_and_its_answer_follows_the_apology(
    page: Page, enter: Enter, patience: Patience
) -> None:
    enter(page)
    patience.go()
    send(page, "please fail")
    answered(page)
    again = bubbles(page, "mine").get_by_role("button", name="Try again to answer the message of")
    expect(again).to_be_visible()
    no_violation(page)
    patience.calm_down()
    again.focus()
    page.keyboard.press("Enter")
    answered(page, 2)
    expect(again).to_have_count(0)
    expect(bubbles(page, "mine")).not_to_contain_text("Not answered")
    expect(bubbles(page, "mine").locator(".why-button")).to_be_focused()
    expect(bubbles(page, "theirs").nth(0)).to_contain_text("the agent lost its patience")
    expect(bubbles(page, "theirs").nth(1).locator(".words")).to_have_text("answer 1")
    expect(bubbles(page, "theirs").nth(1).locator(".quote")).to_contain_text("please fail")


def test_a_retry_that_is_refused_says_why_and_can_be_pressed_again(
    page: Page, enter: Enter, patience: Patience
) -> None:
    enter(page)
    patience.go()
    send(page, "please fail")
    answered(page)
    refusal = {"error": {"code": "busy", "message": "too many messages wait for their turn"}}
    page.route("**/api/retry", lambda route: route.fulfill(status=503, json=refusal), times=1)
    again = bubbles(page, "mine").get_by_role("button", name="Try again")
    again.click()
    expect(page.get_by_role("alert").filter(has_text="too many messages wait for their turn")).to_be_visible()
    patience.calm_down()
    again.click()
    answered(page, 2)


def test_messages_sent_during_a_turn_are_answered_in_order(page: Page, enter: Enter, patience: Patience) -> None:
    enter(page)
    send(page, "one")
    expect(page.locator("#turn")).to_be_visible()
    for text in ("two", "three"):
        send(page, text)
    expect(bubbles(page, "mine")).to_have_count(3)
    patience.go()
    answered(page, 3)
    expect(bubbles(page, "theirs").locator(".words")).to_have_text(["answer 1", "answer 2", "answer 3"])


def test_a_message_that_waits_says_so_and_the_command_stop_stops_all(page: Page, enter: Enter) -> None:
    enter(page)
    send(page, "one")
    expect(page.locator("#turn")).to_be_visible()
    send(page, "two")
    expect(bubbles(page, "mine").nth(1)).to_contain_text("Waiting")
    send(page, "/stop")
    answered(page)
    expect(bubbles(page, "theirs").locator(".words")).to_have_text(["Stopped."])
    for number in (0, 1):
        expect(bubbles(page, "mine").nth(number)).to_contain_text("Stopped")
    expect(page.locator("#turn")).to_be_hidden()


def test_a_page_finds_a_restarted_gateway_and_the_answer_once(
    page: Page, enter: Enter, gateway: GatewayProcess, patience: Patience
) -> None:
    enter(page)
    send(page, "hello")
    expect(page.get_by_text("looking at photo.jpg")).to_be_visible()
    gateway.kill()
    expect(page.locator("#connection")).to_have_attribute("data-state", "waiting")
    send(page, "are you there?")
    patience.go()
    gateway.start()
    answered(page, 2)
    expect(bubbles(page, "mine").locator(".words")).to_have_text(["hello", "are you there?"])
    expect(bubbles(page, "theirs").locator(".words")).to_have_text(["answer 1", "answer 2"])
