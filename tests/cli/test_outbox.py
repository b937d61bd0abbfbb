"""belino outbox: seen and decided about by the command line, with a gateway and without one."""

import asyncio
import json
from pathlib import Path

import pytest

from belino.domain.message import ConversationKey
from belino.domain.reply import Parcel, ParcelState
from belino.net.clock import SystemClock
from belino.storage.home import Home
from belino.storage.store import open_store
from belino.testing import GatewayProcess
from cli.shell import Belino

pytestmark = pytest.mark.slow

MAIN = ConversationKey(platform="web", account="default", channel="main")


def give_up(home: Path, *keys: str) -> None:
    """Leave parcels behind that were held, as after a long pause."""

    async def act() -> None:
        store = await open_store(Home.at(home), clock=SystemClock())
        try:
            for key in keys:
                await store.put_parcels([Parcel(key=key, conversation=MAIN, text=f"I am {key}", trace="t")])
                await store.end_parcel(key, ParcelState.HELD, "it waited too long")
        finally:
            await store.close()

    asyncio.run(act())


def test_without_a_gateway_what_waits_is_seen_asked_for_and_dropped(belino: Belino, home: Path) -> None:
    assert belino("outbox").stdout == "nothing is waiting, and nothing is on record as sent\n"
    assert belino("outbox", "ls", "--all").stdout == "nothing is waiting, and nothing is on record as sent\n"
    give_up(home, "a", "b")
    listed = belino("outbox", "ls").stdout.splitlines()
    assert [line.split()[:3] for line in listed] == [
        ["STATE", "KEY", "CONVERSATION"],
        ["held", "b", str(MAIN)],
        ["held", "a", str(MAIN)],
    ]
    assert listed[1].endswith("it waited too long")
    shown = belino("outbox", "show", "a").stdout
    assert shown.startswith("a: held, 0 tries\nit waited too long\n")
    assert shown.endswith("I am a\n")
    assert belino("outbox", "retry", "a").stdout == "a will be sent: I am a\n"
    assert belino("outbox", "drop", "b").stdout == "b is dropped: I am b\n"
    again = belino("outbox", "retry", "b")
    assert (again.returncode, again.stderr) == (1, "belino: This parcel is already dropped.\n")
    states = {one["key"]: one["state"] for one in json.loads(belino("outbox", "--json").stdout)["parcels"]}
    assert states == {"a": "ready"}
    kept = json.loads(belino("outbox", "ls", "--all", "--json").stdout)["parcels"]
    assert [(one["key"], one["dropped"]) for one in kept] == [("b", True), ("a", False)]
    for action in ("show", "retry", "drop"):
        unknown = belino("outbox", action, "nothing", "--json")
        told = "belino: there is no parcel nothing; see `belino outbox`\n"
        assert (unknown.returncode, unknown.stdout, unknown.stderr) == (1, "", told)


def test_a_running_gateway_sends_what_is_asked_for_at_once(belino: Belino, home: Path) -> None:
    belino("status")
    give_up(home, "a", "b")
    with GatewayProcess(home) as gateway:
        assert [one["key"] for one in json.loads(belino("outbox", "--json").stdout)["parcels"]] == ["b", "a"]
        assert json.loads(belino("outbox", "retry", "a", "--json").stdout)["key"] == "a"
        assert belino("outbox", "drop", "b").returncode == 0
        assert belino("outbox", "show", "c").returncode == 1
        sent = False
        while not sent:
            sent = json.loads(belino("outbox", "show", "a", "--json").stdout)["state"] == "sent"
        assert belino("outbox", "ls").stdout == "nothing is waiting: everything was sent or dropped\n"
        refused = belino("outbox", "retry", "a")
        assert (refused.returncode, "already sent" in refused.stderr) == (1, True)
        assert gateway.stop() == 0
