"""Readings as the gateway tells them to pages: put into its answers, so that a page meets every one of their shapes."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page, Route, WebSocketRoute

Json = dict[str, Any]

READS = {
    "image": [{"as": "description", "usd": 0}, {"as": "text", "usd": 0}],
    "audio": [{"as": "transcript", "usd": 0}],
    "video": [{"as": "transcript", "usd": 0}, {"as": "description", "usd": "0.006 per minute"}],
    "document": [{"as": "text", "usd": 0}],
}


def reading(kind: str, text: str, *segments: Json, **more: object) -> Json:
    """A reading in its documented form."""
    return {
        "kind": kind,
        "attachment_index": 0,
        "text": text or " ".join(segment["text"] for segment in segments),
        "provider": "local_moonshine",
        "model": "base-en",
        "uncertain": False,
        "segments": list(segments),
        **more,
    }


def spoken(start: float, text: str, speaker: str = "") -> Json:
    """A stretch of speech."""
    return {"start": start, "end": start + 1.0, "text": text, "speaker": speaker}


@dataclass
class ReadingWire:
    """What stands between one page and its gateway."""

    place: str
    readings: dict[str, list[Json]] = field(default_factory=dict)
    """By the name of the first file of a message."""
    attempts: list[Json] = field(default_factory=list)
    asked: list[Json] = field(default_factory=list)
    """What the page asked to have read."""
    reads: Json = field(default_factory=lambda: dict(READS))
    by_agent: set[str] = field(default_factory=set)
    """Files that the agent sent."""
    answer: Callable[[Route], None] | None = None
    """How a request to read is answered."""
    _socket: WebSocketRoute | None = None

    def join(self, page: Page) -> None:
        """Stand between this page and the gateway."""
        page.route("**/api/me", self._me)
        page.route("**/api/messages?*", self._history)
        page.route("**/api/explain?*", self._explain)
        page.route("**/api/media/read", self._read)
        page.route_web_socket("**/ws", self._meet)

    def event(self, ref: str, form: str, state: str, **more: object) -> None:
        """Tell the page how a reading goes on."""
        told: Json = {"type": "event", "event": "reading", "conversation": self.place, "ref": ref, "as": form}
        told |= {"message_id": "", "attachment_index": 0, "done": None, "total": None, "provider": "", "reason": ""}
        self.send({**told, "state": state, **more})

    def changed(self, message: Json) -> None:
        """Tell the page that a message has changed."""
        told = {"type": "event", "event": "message", "conversation": self.place, "message": self._with(message)}
        self.send(told)

    def send(self, event: Json) -> None:
        """Send the page a frame."""
        assert self._socket is not None, "the page is not connected"
        self._socket.send(json.dumps(event))

    def _with(self, message: Json) -> Json:
        names = [media["file_name"] for media in message["media"]]
        told = [one for name in names[:1] for one in self.readings.get(name, [])]
        author = {**message["author"], "is_agent": message["author"]["is_agent"] or bool(self.by_agent & set(names))}
        return {**message, "readings": told, "author": author}

    def _meet(self, page: WebSocketRoute) -> None:
        gateway = page.connect_to_server()
        self._socket = page

        def forward(frame: str | bytes) -> None:
            told = json.loads(frame)
            if told.get("event") == "message":
                told["message"] = self._with(told["message"])
            page.send(json.dumps(told))

        gateway.on_message(forward)

    def _me(self, route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, json={**response.json(), "reads": self.reads} if response.ok else None)

    def _history(self, route: Route) -> None:
        response = route.fetch()
        found = response.json()
        route.fulfill(response=response, json={**found, "messages": [self._with(one) for one in found["messages"]]})

    def _explain(self, route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, json={**response.json(), "readings": self.attempts})

    def _read(self, route: Route) -> None:
        self.asked.append(json.loads(route.request.post_data or "{}"))
        assert self.answer is not None, "nothing was expected to be read"
        self.answer(route)


def reads_as(*answers: Json | str) -> Callable[[Route], None]:
    """Answer one request after the other: with a reading, or with the reason why there is none."""
    left: Sequence[Json | str] = answers

    def answer(route: Route) -> None:
        nonlocal left
        first, *left = left
        asked = json.loads(route.request.post_data or "{}")
        ref = asked["ref"]
        if isinstance(first, str):
            told = f"{ref} cannot be read as {asked['as']}: {first}"
            route.fulfill(status=409, json={"error": {"code": "conflict", "message": told}})
        else:
            route.fulfill(json={"ref": ref, "reading": first})

    return answer
