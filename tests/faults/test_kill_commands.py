"""Killed while it carries out a command, belino shows its answer once, or says that it may be missing."""

import asyncio
import json
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from belino.testing import SlackServer, TelegramServer
from belino.testing.discord import DiscordServer
from faults.forked import ForkedGateway, Nursery
from faults.looking import check_state_folder
from journeys.busy_group import BusyGroup
from journeys.busy_place import BusyPlace, until
from journeys.busy_server import BusyServer
from journeys.busy_workspace import BusyWorkspace

pytestmark = pytest.mark.slow
SENDING = ("parcel.send.before", "parcel.send.after", "parcel.confirm.before")
STORING = ("intake.screened", "intake.store.before", "intake.store.after")


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as nursery:
        yield nursery


async def killed_at(nursery: Nursery, busy: BusyPlace, at: str, give: Callable[[], object]) -> list[dict[str, Any]]:
    """Give a command to a gateway that ends at a failpoint and starts again; returns the parcels that came of it."""
    (busy.home.path / "belino.json").write_text(json.dumps(busy.table()), encoding="utf-8")
    gateway = ForkedGateway(nursery, busy.home.path, busy.environment)
    gateway.failpoint = f"{at}:1"
    await asyncio.to_thread(gateway.start)
    await until(lambda: busy.is_heard() and (busy.platform != "discord" or has_cursor(busy.home.path)))
    give()
    await until(lambda: gateway.ended is not None)
    assert gateway.ended == -signal.SIGKILL
    gateway.failpoint = ""
    await asyncio.to_thread(gateway.start)
    await until(busy.is_heard)
    try:
        return await settled(gateway, wants=at in SENDING)
    finally:
        await asyncio.to_thread(gateway.stop)
        check_state_folder(busy.home.path)


def has_cursor(home: Path) -> bool:
    """Whether a session is on disk, which Discord resumes."""
    with closing(sqlite3.connect(home / "belino.db")) as database:
        return bool(database.execute("SELECT count(*) FROM cursors").fetchone()[0])


async def settled(gateway: ForkedGateway, *, wants: bool) -> list[dict[str, Any]]:
    parcels: list[dict[str, Any]] = []

    def looked() -> bool:
        nonlocal parcels
        _, told = gateway.call("GET", "/api/outbox?limit=200")
        parcels = told["parcels"]
        return (bool(parcels) or not wants) and all(each["state"] in {"sent", "uncertain"} for each in parcels)

    await until(lambda: asyncio.to_thread(looked))
    return parcels


@pytest.mark.parametrize("at", [*STORING, *SENDING])
async def test_a_written_command_is_answered_once_or_in_doubt(tmp_path: Path, nursery: Nursery, at: str) -> None:
    async with TelegramServer() as server:
        group = BusyGroup(server, tmp_path / "home")
        parcels = await killed_at(nursery, group, at, lambda: group.write("/help"))
        if at in STORING:
            await until(lambda: server.sent)  # Telegram hands the message out again
        shown = len(server.sent)
    states = [each["state"] for each in parcels]
    assert shown == 1 or (shown == 0 and states == ["uncertain"])


@pytest.mark.parametrize("at", ["intake.store.before", *SENDING])
async def test_a_slash_command_is_answered_once_or_in_doubt_or_slack_says_it_failed(
    tmp_path: Path, nursery: Nursery, at: str
) -> None:
    async with SlackServer() as slack:
        office = BusyWorkspace(slack, tmp_path / "home")
        parcels = await killed_at(
            nursery, office, at, lambda: slack.command(office.room, office.ann, "/belino", "help")
        )
        shown = len(slack.command_answers) + len(slack.ephemeral)
        failed = bool(slack.deliveries.lost)
    states = [each["state"] for each in parcels]
    assert shown <= 1
    assert slack.sent == []
    assert shown == 1 or states == ["uncertain"] or failed


@pytest.mark.parametrize("at", ["intake.store.before", *SENDING])
async def test_a_discord_command_is_answered_once_or_in_doubt(tmp_path: Path, nursery: Nursery, at: str) -> None:
    async with DiscordServer() as discord:
        club = BusyServer(discord, tmp_path / "home")
        parcels = await killed_at(nursery, club, at, lambda: discord.command(club.room, club.ann, "help"))
        if at == "intake.store.before":
            await until(lambda: discord.messages[club.room["id"]])  # Discord resumes the session
        shown = [each["content"] for each in discord.messages[club.room["id"]].values()]
    states = [each["state"] for each in parcels]
    assert len(shown) <= 1
    assert len(shown) == 1 or states == ["uncertain"]
