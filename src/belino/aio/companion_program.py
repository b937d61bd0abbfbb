"""Companion program: the program's side of a companion's lines, for code with threads; imports nothing of belino."""

import json
import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

CALLS_AT_ONCE = 8
SAYS_CHARS = 300
_URL = re.compile(r"(?:https?|wss?)://\S+")

Call = Callable[[Mapping[str, Any]], object]


class CallFailed(Exception):
    """A call cannot be done; its kind is one of `failure` in companion."""

    def __init__(self, kind: str, says: str) -> None:
        super().__init__(says)
        self.kind = kind


def said_by(error: Exception) -> str:
    """What a library's error says, without addresses, which may hold tickets."""
    return _URL.sub("…", str(error))[:SAYS_CHARS]


def explained(call: Call, errors: type[Exception], kinds: Mapping[str, str]) -> Call:
    """A call whose errors are told by their kind, which is found by a pattern in what they say."""

    def tried(told: Mapping[str, Any]) -> object:
        try:
            return call(told)
        except errors as error:
            says = said_by(error)
            kind = next((kind for mark, kind in kinds.items() if re.search(mark, says)), "refused")
            raise CallFailed(kind, says) from None

    return tried


class CompanionLines:
    """What the program writes: answers at once, events one by one."""

    def __init__(self) -> None:
        os.umask(0o077)
        # Libraries print to the standard output, too.
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        self._writing, self._telling = threading.Lock(), threading.Lock()
        self._acked = threading.Semaphore(0)
        self._count = 0

    def tell(self, event: str, data: object) -> None:
        """Write an event and wait until it was processed; from any thread."""
        with self._telling:
            self._count += 1
            self._write({"n": self._count, "event": event, "data": data})
            self._acked.acquire()

    def keep(self, connect: Callable[[], object], errors: type[Exception]) -> None:
        """Connect on a thread of its own; that it ended is the event `stopped`."""

        def kept() -> None:
            try:
                connect()
                self.tell("stopped", {})
            except errors as error:
                self.tell("stopped", {"Message": said_by(error)})

        threading.Thread(target=kept, daemon=True).start()

    def serve(self, start: Callable[["CompanionLines", Mapping[str, Any]], Mapping[str, Call]]) -> None:
        """Begin the task, answer calls until the input ends, and end the process, whatever its threads do.

        If the task fails by CallFailed, its kind is the event that says why.
        """
        calls: Mapping[str, Call] = {}
        try:
            calls = start(self, json.loads(sys.stdin.readline()))
        except CallFailed as error:
            threading.Thread(target=self.tell, args=(error.kind, {"Message": str(error)}), daemon=True).start()
        workers = ThreadPoolExecutor(CALLS_AT_ONCE)
        for line in sys.stdin:
            told = json.loads(line)
            if "ack" in told:
                self._acked.release()
            else:
                workers.submit(self._answer, calls, told)
        os._exit(0)

    def _answer(self, calls: Mapping[str, Call], told: Mapping[str, Any]) -> None:
        answer: dict[str, object] = {"answer": told["call"]}
        try:
            if (call := calls.get(told["name"])) is None:
                raise CallFailed("unsupported", f"there is no call {told['name']}")
            answer["result"] = call(told.get("arguments") or {})
        except CallFailed as error:
            answer |= {"error": error.kind, "says": str(error)}
        except Exception as error:  # noqa: BLE001 - a foreign library; the caller is told
            answer |= {"error": "refused", "says": type(error).__name__}
        self._write(answer)

    def _write(self, told: object) -> None:
        with self._writing:
            self._out.write(json.dumps(told) + "\n")
            self._out.flush()
