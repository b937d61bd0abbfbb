"""Messages, edits, deletions and reactions in any order and any number of times: the store ends as the platform is."""

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from belino.domain.message import Arrival, Author, ConversationKey, Deletion, Edit, Message, Reaction
from belino.domain.outcome import MessageOutcome, Standing
from belino.domain.stored import ScreenedArrival, Verdict
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing.clock import START, FakeClock
from faults.looking import SOAK

T = TypeVar("T")

WHERE = ConversationKey(platform="memory", account="default", channel="room")
PEOPLE = tuple(Author(id=name, name=name.title()) for name in ("ann", "bob"))
EMOJI = ("👍", "🎉")
FEW = 3
"""So few messages that changes of the same one meet."""
OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")


@dataclass(slots=True)
class Said:
    """A message as the platform has it."""

    id: str
    author: Author
    text: str
    deleted: bool = False
    edits: int = 0
    edited: datetime | None = None
    reactions: set[tuple[str, str]] = field(default_factory=set)


class Interleavings(RuleBasedStateMachine):
    """The platform tells of everything at least once, in whatever order; the gateway restarts now and then."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp(prefix="belino-order-"))
        self._loop = asyncio.new_event_loop()
        self._clock = FakeClock()
        self._store: Store = self._run(open_store(Home.at(self._folder / "home"), clock=self._clock))
        self._time = 0
        self.platform: dict[str, Said] = {}
        self.untold: list[Arrival] = []
        self.told: list[Arrival] = []
        self.snapshots: list[tuple[Message, ...]] = []

    @initialize()
    def begin(self) -> None:
        self.post(PEOPLE[0])

    @precondition(lambda self: len(self.platform) < FEW)
    @rule(author=st.sampled_from(PEOPLE))
    def post(self, author: Author) -> None:
        said = Said(id=f"m{len(self.platform)}", author=author, text=f"words {len(self.platform)}")
        self.platform[said.id] = said
        self.untold.append(self._message(said))

    @precondition(lambda self: self.platform)
    @rule(data=st.data(), times=st.integers(1, 3))
    def edit(self, data: st.DataObject, times: int) -> None:
        said = self._pick(data)
        for _ in range(0 if said.deleted else times):
            said.edits += 1
            said.text = f"words of {said.id}, edition {said.edits}"
            said.edited = self._tell(Edit, said, f"{said.id}@{said.edits}", author=said.author, text=said.text)

    @precondition(lambda self: self.platform)
    @rule(data=st.data(), really=st.sampled_from((False, False, True)))
    def delete(self, data: st.DataObject, really: bool) -> None:
        said = self._pick(data)
        if really and not said.deleted:
            said.deleted, said.text = True, ""
            self._tell(Deletion, said, f"{said.id}-gone", author=None)

    @precondition(lambda self: self.platform)
    @rule(data=st.data(), emoji=st.sampled_from(EMOJI), author=st.sampled_from(PEOPLE), added=st.booleans())
    def react(self, data: st.DataObject, emoji: str, author: Author, added: bool) -> None:
        said = self._pick(data)
        if said.deleted or ((emoji, author.id) in said.reactions) == added:
            return
        (said.reactions.add if added else said.reactions.discard)((emoji, author.id))
        self._tell(Reaction, said, f"r{self._time}", author=author, emoji=emoji, added=added)

    @precondition(lambda self: self.untold)
    @rule(data=st.data(), count=st.integers(1, 4), at_once=st.booleans())
    def arrive(self, data: st.DataObject, count: int, at_once: bool) -> None:
        """Some of what was not told yet comes, in any order, together or one after the other."""
        order = data.draw(st.permutations(range(len(self.untold))), label="order")[:count]
        coming = [self.untold[place] for place in order]
        self.untold = [one for place, one in enumerate(self.untold) if place not in order]
        for some in [coming] if at_once else [[one] for one in coming]:
            self._take(some)

    @precondition(lambda self: any(isinstance(one, Edit) for one in self.untold))
    @rule(data=st.data())
    def miss_edit(self, data: st.DataObject) -> None:
        """An edit that is never told, as while the gateway does not listen; only history shows it."""
        edits = [place for place, one in enumerate(self.untold) if isinstance(one, Edit)]
        del self.untold[data.draw(st.sampled_from(edits), label="which edit")]

    @precondition(lambda self: self.told)
    @rule(data=st.data())
    def arrive_again(self, data: st.DataObject) -> None:
        again = self.told[data.draw(st.integers(0, len(self.told) - 1), label="which again")]
        (taken,) = self._run(self._store.take_in_all([ScreenedArrival(arrival=again, verdict=OBSERVE)]))
        assert taken.outcome is MessageOutcome.DUPLICATE

    @rule()
    def ask_for_history(self) -> None:
        """What the platform shows now; it may be stored much later."""
        self.snapshots.append(tuple(self._message(said) for said in self.platform.values() if not said.deleted))

    @precondition(lambda self: self.snapshots)
    @rule(data=st.data())
    def store_history(self, data: st.DataObject) -> None:
        snapshot = self.snapshots.pop(data.draw(st.integers(0, len(self.snapshots) - 1), label="which snapshot"))
        self._run(self._store.take_history(WHERE, snapshot))

    @rule()
    def restart(self) -> None:
        self._run(self._store.close())
        self._store = self._run(open_store(Home.at(self._folder / "home"), clock=self._clock))

    @invariant()
    def nothing_is_there_twice(self) -> None:
        names = [message.id for message in self._run(self._store.history(WHERE, limit=1_000))]
        assert len(names) == len(set(names))

    def teardown(self) -> None:
        try:
            self.ask_for_history()
            self._take(self.untold)
            for snapshot in self.snapshots:
                self._run(self._store.take_history(WHERE, snapshot))
            self._check()
        finally:
            self._run(self._store.close())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()
            shutil.rmtree(self._folder)

    def _check(self) -> None:
        kept = {message.id: message for message in self._run(self._store.messages(WHERE, list(self.platform)))}
        for said in self.platform.values():
            found = kept.get(said.id)
            if said.deleted:
                assert found is None or (found.deleted is not None and found.text == ""), f"{said} is not gone"
                continue
            assert found is not None, f"{said} is lost"
            assert (found.text, found.deleted) == (said.text, None)
            assert dict(found.reactions) == Counter(emoji for emoji, _ in said.reactions)

    def _message(self, said: Said) -> Message:
        number = int(said.id[1:])
        sent = START + timedelta(seconds=number)
        return Message(
            conversation=WHERE, id=said.id, author=said.author, sent=sent, text=said.text, edited=said.edited
        )

    def _tell(self, kind: Any, said: Said, event: str, **more: Any) -> datetime:
        self._time += 1
        sent = START + timedelta(hours=1, seconds=self._time)
        self.untold.append(kind(conversation=WHERE, id=event, message_id=said.id, sent=sent, **more))
        return sent

    def _take(self, arrivals: list[Arrival]) -> None:
        self._run(self._store.take_in_all([ScreenedArrival(arrival=one, verdict=OBSERVE) for one in arrivals]))
        self.told += arrivals

    def _pick(self, data: st.DataObject) -> Said:
        return self.platform[data.draw(st.sampled_from(sorted(self.platform)), label="message")]

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(
    max_examples=10_000 if SOAK else 20,
    stateful_step_count=40,
    derandomize=not SOAK,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
