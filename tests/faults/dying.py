"""A gateway that is killed at every step of a delivery: a program of its own, so that a kill is one.

`python dying.py FOLDER KIND POLICY TROUBLE LIVES WAY` lets one answer with a file go out, counts the steps that takes,
and does the same again for each step, killed there; with three lives, killed a second time at each step of the second.
What was left in the end is printed as a line of JSON for each round. Lives are forked: starting Python takes longer.

The file waits in the folder `pending`, or two answers name it (WAY is `named`).
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from belino.config import AccessConfig, AdapterConfig, AgentConfig, Config
from belino.delivery.send import DeliveryConfig
from belino.domain.limits import FileLimit, SendAs
from belino.domain.message import Author, ChatType, ConversationKey, Message
from belino.domain.ports import Adapter, AdapterContext
from belino.domain.reply import Parcel, ParcelState, Receipt
from belino.gateway.gateway import Gateway
from belino.storage.home import Home
from belino.testing import START, ForgetfulMemoryAdapter, MemoryAdapter, ReadableMemoryAdapter, ScriptedAgent
from belino.testing.memory import Config as MemoryConfig
from belino.testing.memory import MemoryPlatform

KINDS = {"key": MemoryAdapter, "read-back": ReadableMemoryAdapter, "neither": ForgetfulMemoryAdapter}
WHERE = ConversationKey(platform="memory", account="default", channel="dm")
ANN = Author(id="ann", name="Ann")
VERBS = ("finish_turn", "claim_parcel", "confirm_parcel", "delay_parcel", "end_parcel")
LIFE_SECONDS = 60.0
ANSWERS = {"pending": ["the answer"], "named": ["the answer is in report.txt"] * 2}
TROUBLES: dict[str, list[tuple[int, dict[str, str]]]] = {
    "none": [],
    # In every life: a third of them would use up the six tries of three lives, and the parcel be given up.
    "busy": [(500, {}), (429, {"Retry-After": "0"})],
    "never": [(400, {})] * 7,  # the first is said to who asks for history
}


class Impatient(Random):
    """Draws the shortest of all waits."""

    def uniform(self, a: float, b: float) -> float:
        return min(a, b)


class Shown(dict[str, Parcel]):
    """What people on the platform see; it outlives us."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file
        for line in file.read_text().splitlines() if file.exists() else ():
            message_id, key = json.loads(line)
            super().__setitem__(message_id, Parcel(key=key, conversation=WHERE))

    def __setitem__(self, message_id: str, parcel: Parcel) -> None:
        super().__setitem__(message_id, parcel)
        with self._file.open("a") as file:
            file.write(json.dumps([message_id, parcel.key]) + "\n")

    def setdefault(self, message_id: str, parcel: Parcel) -> Parcel:
        if message_id not in self:
            self[message_id] = parcel
        return self[message_id]


class Steps:
    """Counts what happens, and ends the process when its number comes up."""

    def __init__(self, last: int | None, grave: Path) -> None:
        self.names: list[str] = []
        self._last = last
        self._grave = grave

    def __call__(self, name: str) -> None:
        self.names.append(name)
        if len(self.names) == self._last:
            self._grave.write_text(name)
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        async def counted(*given: Any, **more: Any) -> Any:
            self(f"before {name}")
            result = await act(*given, **more)
            self(f"after {name}")
            return result

        return counted


def life(folder: Path, kind: str, policy: str, trouble: str, way: str, last: int | None) -> None:
    """One run of the gateway until nothing is on its way any more, or until its last step."""
    asyncio.run(asyncio.wait_for(_life(folder, kind, policy, trouble, way, last), LIFE_SECONDS))


async def _life(folder: Path, kind: str, policy: str, trouble: str, way: str, last: int | None) -> None:
    steps = Steps(last, folder / "killed")
    far_side = MemoryPlatform()
    far_side.sent = Shown(folder / "shown")
    far_side.refusals = list(TROUBLES[trouble])
    home = Home.at(folder / "home")
    gateway = Gateway(_config(far_side, policy), home, agent=ScriptedAgent(*ANSWERS[way]), rng=Impatient(),
                      make_adapter=lambda config, desk: _adapter(kind, config, desk, steps))  # fmt: skip
    async with gateway, asyncio.TaskGroup() as group:
        for verb in VERBS:
            setattr(gateway.store, verb, steps.around(verb, getattr(gateway.store, verb)))
        working = group.create_task(gateway.run())
        _drop_file(home, way)
        for number, _ in enumerate(ANSWERS[way], start=1):
            await gateway.accept(
                Message(
                    conversation=WHERE, id=f"m{number}", author=ANN, sent=START, text="hi", chat_type=ChatType.DIRECT
                )
            )
            while not await _is_quiet(gateway):
                await asyncio.sleep(0.005)
        gateway.stop()
        await working
        await _tell(gateway, folder, steps)


def _config(far_side: MemoryPlatform, policy: str) -> Config:
    access = AccessConfig(senders=("ann",))
    account = AdapterConfig(platform="memory", access=access, options=MemoryConfig(far_side=far_side))
    delivery = DeliveryConfig(uncertain=policy)  # type: ignore[arg-type]
    return Config(agent=AgentConfig(options=None), adapters=(account,), delivery=delivery)


def _adapter(kind: str, config: AdapterConfig, desk: AdapterContext, steps: Steps) -> Adapter:
    adapter = KINDS[kind](config.options, desk)
    adapter.limits = replace(adapter.limits, files={SendAs.DOCUMENT: FileLimit(max_bytes=1_000_000)})
    send, keep = adapter.send, adapter._keep

    def kept(parcel: Parcel) -> str:
        steps("the platform has all of it")
        message_id = keep(parcel)
        steps("the platform shows it")
        return message_id

    async def sent(parcel: Parcel) -> Receipt:
        steps("before the call")
        receipt = await send(parcel)
        steps("the answer is here")
        return receipt

    adapter.send, adapter._keep = sent, kept  # type: ignore[method-assign]
    if isinstance(adapter, ReadableMemoryAdapter):
        adapter.find_sent = steps.around("looking", adapter.find_sent)  # type: ignore[method-assign]
    return adapter


def _drop_file(home: Home, way: str) -> None:
    """What the answer brings along; put there once, long ago."""
    home.outgoing(WHERE)
    outgoing = home.folder(WHERE) / "outgoing"
    if any(path.is_file() for path in outgoing.rglob("*")):
        return
    file = outgoing / ("pending" if way == "pending" else "") / "report.txt"
    file.write_text("a report")
    os.utime(file, (1_700_000_000, 1_700_000_000))


async def _is_quiet(gateway: Gateway) -> bool:
    counts = await gateway.store.counts()
    busy = ("turns_waiting", "turns_running", "parcels_ready", "parcels_sending")
    return not any(counts[what] for what in busy)


async def _tell(gateway: Gateway, folder: Path, steps: Steps) -> None:
    parcels = [
        {"key": one.key, "state": one.state, "reason": one.reason, "files": len(one.files), "text": one.text}
        for one in reversed(await gateway.store.parcels())
    ]
    assert all(one["state"] not in (ParcelState.READY, ParcelState.SENDING) for one in parcels)
    said = [message.id for message in await gateway.store.history(WHERE) if message.author.is_agent]
    shown = [parcel.key for parcel in Shown(folder / "shown").values()]
    told = {"parcels": parcels, "said": said, "shown": shown, "steps": steps.names}
    (folder / "told").write_text(json.dumps(told))


def lived(folder: Path, *given: Any) -> int:
    """How a life ended: 0, or the signal that ended it."""
    folder.mkdir(parents=True, exist_ok=True)
    child = os.fork()
    if not child:
        try:
            life(folder, *given)
        except BaseException as error:  # noqa: BLE001 - told to the parent, which has nothing else of us
            sys.stderr.write(f"{folder.name}: {error!r}\n")
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(folder: Path, kind: str, policy: str, trouble: str, lives: int, way: str) -> None:
    given = (kind, policy, trouble, way)
    (folder / "whole").mkdir(parents=True)
    life(folder / "whole", *given, None)  # not forked: what is imported on first use is there for all others then
    count = len(json.loads((folder / "whole" / "told").read_text())["steps"])
    for last in range(1, count + 1):
        again: list[int | None] = [None] if lives < 3 else [None, *range(1, count + 1)]
        for second in again:
            round_folder = folder / f"{last}-{second or 0}"
            ended = lived(round_folder, *given, last)
            if ended == 0:
                continue  # it stopped before it looked for more: that step was not taken this time
            assert ended == -signal.SIGKILL
            killed = (round_folder / "killed").read_text()
            second_ended = lived(round_folder, *given, second) if second is not None else None
            assert lived(round_folder, *given, None) == 0
            told = json.loads((round_folder / "told").read_text())
            home = str(round_folder / "home")
            left = {**told, "killed": killed, "round": round_folder.name, "home": home}
            sys.stdout.write(json.dumps(left) + "\n")
            if second_ended == 0:
                break  # it had no more steps to be killed at


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]), sys.argv[6])
