"""What every agent of the journeys does with a message: which tools it calls, and what it says then.

The standard library is enough for it, because it is also a program: the agent `command` runs it.
"""

import base64
import hashlib
import json
import os
import re
import sys
import time
import urllib.request
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DRAWING = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAQAAAADCAIAAAA7ljmRAAAAEElEQVR4nGPQqDgBRww4OQBBxhDhzXmo9QAAAABJRU5ErkJggg=="
)
SLEEP_SECONDS = 600

Content = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Call:
    """A tool that it calls; the generator goes on with the content of the result, as MCP has it."""

    tool: str
    arguments: Mapping[str, object]


@dataclass(frozen=True)
class Wait:
    """It works until it is stopped."""


@dataclass(frozen=True)
class Said:
    """Its answer."""

    text: str
    draws: bool = False
    """Whether a file goes with it."""


Steps = Generator[Call | Wait, Content, Said]


def answer(prompt: str, session: str, flag: Path, *, has_hands: bool = True) -> Steps:
    """Work on a message; at one that says "wait" it waits, unless the flag is set. Without hands, it makes no files."""
    asked = prompt.rpartition("text:\n")[2]
    ref = (re.findall(r"ref:([a-z0-9]+_[a-z0-9]{12})\b", prompt) or [""])[-1]
    if "wait" in asked:
        if not flag.exists():
            yield Wait()
        return Said("waited")
    if "picture" in asked:
        shown = yield Call("fetch_media", {"ref": ref})
        return Said("I see " + " ".join(seen(block) for block in shown if block["type"] == "image"))
    if "page" in asked:
        return Said(words((yield Call("fetch_media", {"ref": ref, "as": "text", "pages": "2"}))))
    if "find" in asked:
        return Said(words((yield Call("channel_context", {"intent": "boiler"}))))
    if "voice" in asked:
        return Said("I heard: " + " ".join(re.findall(r"we meet again[^\n\"\\]*", prompt)[:1]))
    if "draw" in asked:
        if not has_hands:
            listed = words((yield Call("list_media", {"kind": "image"})))
            yield Call("send_media", {"ref": re.findall(r"\b([a-z0-9]+_[a-z0-9]{12})\b", listed)[-1]})
        return Said("Here it is.", draws=has_hands)
    return Said(f"session {session}")


def seen(picture: Mapping[str, Any]) -> str:
    """What it knows a picture by."""
    return f"{picture['mimeType']} {hashlib.sha256(base64.b64decode(picture['data'])).hexdigest()[:8]}"


def words(content: Content) -> str:
    return " ".join(block["text"] for block in content if block["type"] == "text")


def run(steps: Steps, call: Callable[[Call], Content], wait: Callable[[], Content]) -> Said:
    """Take all steps, one after the other."""
    try:
        step = next(steps)
        while True:
            step = steps.send(wait() if isinstance(step, Wait) else call(step))
    except StopIteration as end:
        said: Said = end.value
        return said


def call_tool(url: str, token: str, call: Call) -> Content:
    """Call a tool of the turn over MCP."""
    params = {"name": call.tool, "arguments": dict(call.arguments)}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answered:
        content: Content = json.load(answered)["result"]["content"]
        return content


def main(flag: Path, session: str) -> None:
    """Answer one turn as a program."""
    url, token = os.environ["BELINO_MCP_URL"], os.environ["BELINO_MCP_TOKEN"]

    def wait() -> Content:
        flag.write_text(token)
        time.sleep(SLEEP_SECONDS)
        return ()

    steps = answer(sys.stdin.read(), session, flag)
    said = run(steps, lambda call: call_tool(url, token, call), wait)
    if said.draws:
        (Path(os.environ["BELINO_OUTGOING"]) / "drawing.png").write_bytes(DRAWING)
    sys.stdout.write(said.text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
