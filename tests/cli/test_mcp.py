"""belino mcp as a relay: what it says to lines that are no requests, and when there is no gateway."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from belino.cli import NOT_RUNNING, main
from belino.cli.mcp import INVALID_REQUEST, PARSE_ERROR, UNAVAILABLE, Relay
from belino.domain.message import ConversationKey
from belino.storage.home import Home

MAIN = ConversationKey(platform="web", account="default", channel="main")


def answers(home: Path, *lines: str) -> list[dict[str, object]]:
    out = io.StringIO()
    Relay(Home.at(home), MAIN, out).serve(io.StringIO("".join(f"{line}\n" for line in lines)))
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("line", "code"),
    [("{", PARSE_ERROR), ("[1]", INVALID_REQUEST), ("7", INVALID_REQUEST)],
    ids=["cut", "list", "number"],
)
def test_a_line_that_is_no_request_is_answered_with_an_error_and_the_next_is_read(
    tmp_path: Path, line: str, code: int
) -> None:
    request = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "prompts/list"})
    told = {str(answer["id"]): answer["error"] for answer in answers(tmp_path / "home", line, request)}
    assert told["None"]["code"] == code  # type: ignore[index]
    assert told["7"]["code"] == UNAVAILABLE  # type: ignore[index]


def test_lines_are_utf8_whatever_the_locale_says_and_one_that_is_not_ends_nothing(tmp_path: Path) -> None:
    out = io.StringIO()
    sent = b'"\xff\n' + json.dumps({"jsonrpc": "2.0", "id": "é", "method": "prompts/list"}, ensure_ascii=False).encode()
    Relay(Home.at(tmp_path / "home"), MAIN, out).serve(io.TextIOWrapper(io.BytesIO(sent), encoding="ascii"))
    told = {answer["id"]: answer["error"]["code"] for answer in map(json.loads, out.getvalue().splitlines())}
    assert told == {None: PARSE_ERROR, "é": UNAVAILABLE}


def test_a_notification_is_never_answered(tmp_path: Path) -> None:
    assert answers(tmp_path / "home", json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})) == []


def test_empty_lines_are_nothing(tmp_path: Path) -> None:
    assert answers(tmp_path / "home", "", "   ") == []


def test_a_file_that_the_gateway_names_has_its_path_for_a_client_on_this_machine(tmp_path: Path) -> None:
    relay = Relay(Home.at(tmp_path / "home"), MAIN, io.StringIO())
    texts = ["File: incoming/a---web_k3v9d0q2m7xa.pdf (application/pdf)", "File: incoming/../x (y)", "see incoming/a"]
    answer = {"result": {"content": [{"type": "text", "text": text} for text in texts]}}
    located = [content["text"] for content in relay._located(answer)["result"]["content"]]
    folder = Home.at(tmp_path / "home").incoming(MAIN)
    assert located == [f"File: {folder}/a---web_k3v9d0q2m7xa.pdf (application/pdf)", *texts[1:]]


def test_without_a_gateway_a_client_connects_and_every_call_says_that_none_runs(tmp_path: Path) -> None:
    start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    asked = [("initialize", start), ("tools/list", {}), ("tools/call", {"name": "list_media"}), ("resources/list", {})]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": place, "method": method, "params": params})
        for place, (method, params) in enumerate(asked)
    ]
    told: dict[object, Any] = {answer["id"]: answer for answer in answers(tmp_path / "home", *lines)}
    assert told[0]["result"]["protocolVersion"] == "2025-06-18"
    assert told[1]["result"] == {"tools": []}
    assert told[2]["result"]["isError"] and "start it with `belino serve`" in str(told[2])
    assert "start it with `belino serve`" in told[3]["error"]["message"]


def test_a_channel_needs_a_gateway(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "--channel", "--conversation", str(MAIN), "--home", str(tmp_path / "home")]) == NOT_RUNNING
    assert "start it with `belino serve`" in capsys.readouterr().err
