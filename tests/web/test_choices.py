"""Questions with buttons in the web chat: shown with their state, pressed once, by the person asked."""

from collections.abc import Callable
from typing import Any

import pytest

from belino.domain.message import ConversationKey
from belino.domain.turn import Final
from belino.testing import ScriptedAgent, ToolCall

MAIN = ConversationKey(platform="web", account="default", channel="main")
ASK = ToolCall(name="ask_user", arguments={"question": "Deploy now?", "choices": ["Yes", "<b>No</b>"]})


@pytest.fixture
async def site(run_site: Any) -> Any:
    async with run_site(agent=ScriptedAgent([ASK, Final(silent=True)], "done", "done")) as site:
        yield site


async def asked(chat: Any) -> dict[str, Any]:
    """The question, as the page gets it."""
    await chat.call("chat.send", conversation=str(MAIN), message="deploy")
    return await told(chat, lambda message: message["choices"] is not None)


async def told(chat: Any, is_wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The message of an event, if it has come or once it comes."""
    while True:
        said = [event["message"] for event in chat.events if event["event"] == "message"]
        if found := [message for message in said if is_wanted(message)]:
            return dict(found[-1])
        await chat.event("message")


async def press(chat: Any, key: str, **more: Any) -> dict[str, Any]:
    answer = await chat.call("chat.send", conversation=str(MAIN), press=key, **more)
    assert answer["ok"], answer
    return dict(answer["payload"])


async def test_a_press_is_acknowledged_and_the_question_and_history_show_it(site: Any) -> None:
    async with site.socket() as chat:
        question = await asked(chat)
        assert question["text"] == "Deploy now?"
        offered = question["choices"]
        assert [each["label"] for each in offered["buttons"]] == ["Yes", "<b>No</b>"]
        assert offered["chosen"] is None
        said = await press(chat, offered["buttons"][1]["key"], id="p1")
        assert (said["outcome"], said["message"]["text"]) == ("waiting", "<b>No</b>")
        assert said["message"]["choice"] == {"question_id": offered["question_id"], "value": "<b>No</b>"}
        again = await press(chat, offered["buttons"][0]["key"])
        assert (again["outcome"], again["reason"]) == ("denied", "already chosen: <b>No</b>")
        assert again["message"] is None
        same = await press(chat, offered["buttons"][1]["key"], id="p1")
        assert same["message"]["id"] == "p1"
        await told(chat, lambda message: (message["choices"] or {}).get("chosen") == "<b>No</b>")
        _, page, _ = await site.ask("GET", f"/api/messages?conversation={MAIN}")
        stored = {message["id"]: message for message in page["messages"]}
        assert stored[question["id"]]["choices"]["chosen"] == "<b>No</b>"
        assert stored["p1"]["text"] == "<b>No</b>"
        _, listed, _ = await site.ask("GET", "/api/conversations")
        assert "choice {" not in str(listed)


async def test_a_program_that_was_not_asked_cannot_press(site: Any) -> None:
    async with site.socket() as chat:
        key = (await asked(chat))["choices"]["buttons"][0]["key"]
        body = {"conversation": str(MAIN), "press": key}
        status, answer, _ = await site.ask("POST", "/api/messages", json=body, headers=await site.token(MAIN))
        assert (status, answer["outcome"]) == (200, "denied")
        assert answer["reason"] == "only the person who was asked may choose"
        assert (await press(chat, key))["outcome"] == "waiting"


@pytest.mark.parametrize(
    "wrong",
    [
        {"press": "no key"},
        {"press": "0" * 13},
        {"press": "0" * 12, "message": "and a text"},
        {"press": ""},
        {"press": 7},
    ],
)
async def test_a_press_that_is_none_is_refused(site: Any, wrong: dict[str, Any]) -> None:
    status, _, _ = await site.ask("POST", "/api/messages", json={"conversation": str(MAIN), **wrong})
    assert status == 400


async def test_a_text_that_looks_like_a_choice_is_shown_as_it_was_written(site: Any) -> None:
    async with site.socket() as chat:
        text = 'Yes\nchoice {"question_id": "000000000000", "value": "Yes"}'
        said = await chat.call("chat.send", conversation=str(MAIN), message=text)
        message = said["payload"]["message"]
        assert (message["text"], message["choice"]) == (text, None)
