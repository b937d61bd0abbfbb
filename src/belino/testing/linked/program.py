"""Program of a fake linked device: the lines of a companion, each passed on to a LinkedWorld on loopback."""

import json
import os
import sys
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from belino.aio.companion_program import Call, CallFailed, CompanionLines

CALLS = ("send", "read", "typing", "groups", "media", "reupload")
SECONDS = 600.0


def ask(url: str, told: object) -> Any:
    """One request; None if it ended."""
    request = Request(url, data=json.dumps(told).encode(), headers={"Content-Type": "application/json"})  # noqa: S310
    with urlopen(request, timeout=SECONDS) as answer:  # noqa: S310 - a server on loopback
        return json.loads(answer.read() or b"null")


def follow(url: str, device: str, session: Path, lines: CompanionLines) -> None:
    """Pass events on, each once the one before was processed."""
    while True:
        try:
            event = ask(f"{url}/device/next", {"device": device})
        except OSError:
            os._exit(1)  # the platform is gone, or another program has the session
        if event["event"] == "paired":
            session.write_text(event["data"]["session"], encoding="ascii")
        lines.tell(event["event"], event["data"])
        try:
            ask(f"{url}/device/ack", {"device": device, "number": event["number"]})
        except OSError:
            os._exit(1)


def call(url: str, device: str, name: str, arguments: Mapping[str, Any]) -> object:
    """Make a call of the world."""
    try:
        told = ask(f"{url}/device/call", {"device": device, "name": name, "arguments": arguments})
    except HTTPError as error:
        raise CallFailed("unanswered", f"status {error.code}") from None
    except OSError:
        raise CallFailed("unreached", "the platform cannot be reached") from None
    if "error" in told:
        raise CallFailed(told["error"], told["says"])
    return told["result"]


def main(url: str) -> None:
    """Serve one session until the input ends."""

    def start(lines: CompanionLines, task: Mapping[str, Any]) -> Mapping[str, Call]:
        session = Path(task["session"])
        held = session.read_text(encoding="ascii") if session.exists() else ""
        session.touch()
        device = ask(f"{url}/device/open", {"session": held, "phone": task.get("phone", "")})["device"]
        threading.Thread(target=follow, args=(url, device, session, lines), daemon=True).start()
        return {name: partial(call, url, device, name) for name in CALLS}

    CompanionLines().serve(start)


if __name__ == "__main__":
    main(sys.argv[1])
