"""belino retry: a failed message tried again by the command line, with a gateway and without one."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from belino.domain.message import Author, ConversationKey, Message
from belino.domain.outcome import Standing, TurnState
from belino.domain.stored import ClaimedTurn, TurnEnd, Verdict
from belino.net.clock import SystemClock
from belino.storage.home import Home
from belino.storage.store import open_store
from belino.testing import GatewayProcess
from cli.shell import Belino, read

pytestmark = pytest.mark.slow

MAIN = ConversationKey(platform="web", account="default", channel="main")
ASKED = Verdict(standing=Standing.MAY_COMMAND, reason="the owner", answer=True)


def leave(home: Path, *names: str, ends: tuple[TurnState | None, ...]) -> None:
    """Leave messages behind whose turns ended so; None leaves one waiting."""

    async def act() -> None:
        clock = SystemClock()
        store = await open_store(Home.at(home), clock=clock)
        try:
            for name, end in zip(names, ends, strict=True):
                author = Author(id="owner", name="You")
                said = Message(conversation=MAIN, id=name, author=author, sent=datetime.now(UTC), text="hi")
                await store.take_in(said, ASKED)
                if end is not None:
                    turn = await store.claim_turn(MAIN, clock.now())
                    assert isinstance(turn, ClaimedTurn)
                    await store.finish_turn(turn.id, TurnEnd(state=end, reason="as the test wants it"))
        finally:
            await store.close()

    asyncio.run(act())


def test_without_a_gateway_a_failed_message_waits_for_the_next_start(belino: Belino, home: Path) -> None:
    leave(home, "failed", "stopped", "late", ends=(TurnState.FAILED, TurnState.ABORTED, None))
    done = belino("retry", f"{MAIN}/failed")
    assert (done.returncode, done.stdout) == (0, f"{MAIN}/failed is queued to be answered again\n")
    for name, why in (
        ("failed", "is already queued"),
        ("stopped", "did not fail: it is aborted; only a failed message can be retried"),
        ("late", "is already queued"),
    ):
        refused = belino("retry", name)
        assert (refused.returncode, refused.stderr) == (1, f"belino: {MAIN}/{name} {why}\n")
    unknown = belino("retry", "nothing", "--json")
    assert unknown.returncode == 1
    assert unknown.stderr.startswith("belino: there is no message 'nothing' here")
    with GatewayProcess(home) as gateway:
        while read(belino("explain", "failed", "--json"))["outcome"] != "answered":
            pass
        assert gateway.stop() == 0


def test_with_a_gateway_a_failed_message_is_answered_at_once(belino: Belino, home: Path) -> None:
    leave(home, "failed", "answered", ends=(TurnState.FAILED, TurnState.ANSWERED))
    with GatewayProcess(home):
        refused = belino("retry", "answered")
        says = f"{MAIN}/answered did not fail: it is answered; only a failed message can be retried"
        assert (refused.returncode, refused.stderr) == (1, f"belino: {says}\n")
        unknown = belino("retry", "nothing")
        assert (unknown.returncode, unknown.stderr.startswith("belino: there is no message 'nothing'")) == (1, True)
        told = json.loads(belino("retry", "failed", "--json").stdout)
        assert (told["name"], told["messages"]) == (f"{MAIN}/failed", ["failed"])
        while (story := read(belino("explain", "failed", "--json")))["outcome"] != "answered":
            pass
    assert "retried" in {step["outcome"] for step in story["steps"]}
