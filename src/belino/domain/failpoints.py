"""Failpoints: named steps at which a fault test ends, fails or delays the process.

`BELINO_FAILPOINT=NAME:PASS[:ACTION]` arms one for a whole process, for tests only; several are joined by commas. PASS
is the number of the pass that is hit (`3`), a range (`3-6`), or all from one on (`1-`). ACTION is `kill` (the default,
as `kill -9`), `delay=SECONDS`, or the name of an `errno` (`EROFS`), raised as an OSError. Off, a failpoint costs a
function call.
"""

import errno
import logging
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

VARIABLE = "BELINO_FAILPOINT"

FAILPOINTS = frozenset({
    "adapter.cursor.loaded", "adapter.events.received", "adapter.events.stored",
    "backup.blobs.after", "backup.database.after", "backup.manifest.after", "backup.manifest.before",
    "blob.created", "blob.row.after", "blob.rename.after", "blob.rename.before", "blob.sync.before",
    "draft.edit.after", "draft.edit.before", "draft.put.after",
    "fetch.begin", "fetch.bytes", "fetch.row.after", "fetch.row.before",
    "file.move.after", "file.move.before",
    "hook.answer.before", "hook.received",
    "intake.screened", "intake.store.after", "intake.store.before",
    "migrate.step.after", "migrate.step.before",
    "parcel.claim.after", "parcel.claim.before", "parcel.confirm.after", "parcel.confirm.before",
    "parcel.delay.after", "parcel.delay.before", "parcel.end.after", "parcel.end.before",
    "parcel.find.before", "parcel.send.after", "parcel.send.before",
    "reading.asked", "reading.kept",
    "rendition.kept", "rendition.made",
    "reply.collected", "reply.prepared",
    "start.locked", "start.migrated", "start.opened", "start.recovered",
    "stop.begin", "stop.closed", "stop.turns.ended",
    "store.commit.after", "store.commit.before", "store.finish.changed", "store.take_in.cursor", "store.take_in.row",
    "tidy.blob.after", "tidy.row.after",
    "tool.call.after", "tool.call.before",
    "turn.agent.final", "turn.agent.part", "turn.begin", "turn.claim.after", "turn.claim.before", "turn.finish.after",
    "turn.finish.before", "turn.media.read", "turn.prompt.built", "turn.session.loaded",
    "upload.append.after", "upload.append.before", "upload.complete.after", "upload.complete.before",
    "upload.start.after",
})  # fmt: skip
"""Every name. A test checks that each is passed on the way of a message, and that each survives a kill."""

log = logging.getLogger(__name__)

Act = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Armed:
    """The action at some passes of one failpoint."""

    name: str
    first: int
    last: int
    act: Act


class Failpoints:
    """The armed failpoints of a process, and how often each name was passed."""

    def __init__(self, armed: tuple[Armed, ...]) -> None:
        self.passes: Counter[str] = Counter()
        self._armed = armed
        self._lock = threading.Lock()

    def pass_by(self, name: str) -> None:
        """Count one pass, in any thread, and act if it is armed."""
        with self._lock:
            self.passes[name] += 1
            number = self.passes[name]
        for one in self._armed:
            if one.name == name and one.first <= number <= one.last:
                one.act()


_active: Failpoints | None = None


def failpoint(name: str) -> None:
    """One pass of a named step."""
    if _active is not None:
        _active.pass_by(name)


def arm(text: str) -> Failpoints:
    """Arm the failpoints named in a text, replacing all others; without any, passes are only counted."""
    global _active
    _active = Failpoints(tuple(_parse(one) for one in text.split(",") if one))
    return _active


def disarm() -> None:
    """Disable all failpoints, and their counts."""
    global _active
    _active = None


def _parse(text: str) -> Armed:
    name, _, rest = text.partition(":")
    passes, _, action = rest.partition(":")
    if name not in FAILPOINTS:
        raise ValueError(f"{VARIABLE}: there is no failpoint {name!r}; known: {', '.join(sorted(FAILPOINTS))}")
    first, is_range, last = (passes or "1").partition("-")
    try:
        bounds = int(first), int(last or sys.maxsize) if is_range else int(first)
    except ValueError:
        raise ValueError(f"{VARIABLE}: {passes!r} is no pass; write 3, 3-6 or 3-") from None
    return Armed(name=name, first=bounds[0], last=bounds[1], act=_action(action or "kill"))


def _action(text: str) -> Act:
    if text == "kill":
        return lambda: os.kill(os.getpid(), signal.SIGKILL)
    if text.startswith("delay="):
        seconds = float(text.removeprefix("delay="))
        return lambda: time.sleep(seconds)
    number = getattr(errno, text, None)
    if not isinstance(number, int):
        raise ValueError(f"{VARIABLE}: {text!r} is no action; write kill, delay=SECONDS or an errno such as EROFS")

    def fail() -> None:
        raise OSError(number, os.strerror(number))

    return fail


if text := os.environ.get(VARIABLE):
    log.warning("failpoints are armed by %s: this process is made to fail", VARIABLE)
    arm(text)
