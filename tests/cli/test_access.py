"""`belino pair` and `belino token` on a state folder on which no gateway runs."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from belino.cli import main
from belino.domain.message import Author, ConversationKey
from belino.net.clock import SystemClock
from belino.storage.home import Home
from belino.storage.store import open_store

TEAM = ConversationKey(platform="telegram", account="default", channel="-100")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A state folder in which a group asks for access."""

    async def ask() -> None:
        store = await open_store(Home.at(tmp_path / "home"), clock=SystemClock())
        await store.ask_group(TEAM, "Harbour", Author(id="7", name="Ann"))
        await store.close()

    asyncio.run(ask())
    return tmp_path / "home"


class Shell:
    """Commands in this process."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._home = home
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str]:
        code = main([*arguments, "--home", str(self._home)])
        shown = self._capsys.readouterr()
        return code, shown.out + shown.err

    def read(self, *arguments: str) -> Any:
        code, shown = self(*arguments, "--json")
        assert code == 0, shown
        return json.loads(shown)


@pytest.fixture
def belino(home: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(home, capsys)


def test_a_group_that_asks_is_listed_with_who_added_the_agent(belino: Shell) -> None:
    (group,) = belino.read("pair")["groups"]
    assert (group["group"], group["name"], group["state"]) == (str(TEAM), "Harbour", "waiting")
    assert group["inviter"] == {"id": "7", "name": "Ann"}
    shown = belino("pair")[1]
    assert "Harbour" in shown and group["code"] in shown and "Ann" in shown


@pytest.mark.parametrize("by", ["group", "code"])
def test_a_group_is_allowed_by_its_name_or_its_code(belino: Shell, by: str) -> None:
    (group,) = belino.read("pair")["groups"]
    _, shown = belino("pair", group[by].lower() if by == "code" else group[by])
    assert "Ann and owners may command the agent there" in shown
    assert belino.read("pair")["groups"][0]["state"] == "allowed"
    assert belino.read("pair", str(TEAM), "--everyone")["group"]["everyone"] is True
    assert belino.read("pair", "--revoke", str(TEAM)) == {"revoked": True}
    assert belino.read("pair")["groups"] == []
    code, shown = belino("pair", "--revoke", str(TEAM))
    assert code == 1 and "neither paired nor a group that asked" in shown


def test_a_group_is_refused_and_its_name_forgotten(belino: Shell) -> None:
    assert "does not ask again" in belino("pair", str(TEAM), "--refuse")[1]
    (group,) = belino.read("pair")["groups"]
    assert (group["state"], group["name"], group["inviter"]) == ("refused", "", None)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("telegram:default:-200",), "there is no group telegram:default:-200"),
        (("ABCDEF", "--everyone"), "there is no group ABCDEF"),
        ((str(TEAM), "--everyone", "--refuse"), "contradict each other"),
        (("AAAA-AAAA",), "there is no request with this code"),
    ],
)
def test_what_cannot_be_decided_says_why(belino: Shell, arguments: tuple[str, ...], says: str) -> None:
    code, shown = belino("pair", *arguments)
    assert code == 1 and says in shown


def test_a_monitors_token_is_made_and_listed(belino: Shell) -> None:
    made = belino.read("token", "create", "--monitor", "--note", "uptime")
    assert (made["kind"], made["conversation"], bool(made["token"])) == ("monitor", None, True)
    assert [token["note"] for token in belino.read("token", "ls")["tokens"]] == ["uptime"]
