"""Commands on a state folder on which no gateway runs."""

import asyncio
import json
import os
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from belino.domain.message import Author, ChatType, ConversationKey, Message
from belino.domain.outcome import Standing
from belino.domain.stored import Verdict
from belino.net.clock import SystemClock
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from cli.shell import Belino, on_a_terminal, read

pytestmark = pytest.mark.slow


def configure(home: Path, text: str) -> None:
    home.mkdir(mode=0o700)
    file = home / "belino.toml"
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)


def in_store(home: Path, act: Callable[[Store], Awaitable[None]]) -> None:
    async def open_and_act() -> None:
        store = await open_store(Home.at(home), clock=SystemClock())
        try:
            await act(store)
        finally:
            await store.close()

    asyncio.run(open_and_act())


def test_status_says_that_nothing_runs(belino: Belino, home: Path) -> None:
    answer = read(belino("status", "--json"))
    assert (answer["running"], answer["home"], answer["waiting"]) == (False, str(home), 0)
    shown = belino("status").stdout
    assert shown.splitlines() == ["not running; start it with `belino serve`", f"state    {home}", "waiting  0 turns"]
    assert not any(answer["counts"].values())


def test_status_tells_in_words_what_is_stored_and_what_was_not(belino: Belino, home: Path) -> None:
    async def act(store: Store) -> None:
        where, ana = ConversationKey.parse("web:default:main"), Author(id="7", name="Ana")
        await store.keep(pieces(b"x" * 2048), mime="text/plain", limit=4096)
        for number, standing in enumerate((Standing.OBSERVED, Standing.OBSERVED, Standing.DENIED)):
            sent = SystemClock().now()
            message = Message(conversation=where, id=f"m{number}", author=ana, sent=sent, text="hello")
            await store.take_in(message, Verdict(standing=standing, reason="test"))

    in_store(home, act)
    assert belino("status").stdout.splitlines()[2:] == [
        "waiting  0 turns",
        "stored   2 messages, 1 file (2KB), 1 channel, 1 conversation",
        "denied   1 arrival, not kept",
    ]


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    yield content


def test_a_run_file_that_a_killed_gateway_left_is_ignored(belino: Belino, home: Path) -> None:
    read(belino("status", "--json"))
    left = {"url": "http://127.0.0.1:9", "token": "t", "pid": 1, "version": "0", "started": "2026-01-01T00:00:00Z"}
    (home / "run.json").write_text(json.dumps(left), encoding="utf-8")
    assert read(belino("status", "--json"))["running"] is False


def test_the_state_folder_is_made_for_its_owner_alone(belino: Belino, home: Path) -> None:
    read(belino("status", "--json"))
    for path in [home, *home.rglob("*")]:
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


def test_the_home_may_come_from_the_environment(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "belino", "status", "--json"],
        env={**os.environ, "BELINO_HOME": str(tmp_path / "elsewhere")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert read(done)["home"] == str(tmp_path / "elsewhere")


def test_login_needs_a_gateway(belino: Belino) -> None:
    done = belino("login")
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr.count("\n") == 1
    assert "start it with `belino serve`" in done.stderr


def test_a_folder_that_somebody_works_on_without_saying_where_is_told(home: Path, belino: Belino) -> None:
    async def act(store: Store) -> None:
        done = await asyncio.to_thread(belino, "status")
        assert done.returncode == 69
        assert "has not published its address; try again" in done.stderr

    in_store(home, act)


def test_explain_of_nothing_fails_with_a_sentence(belino: Belino) -> None:
    done = belino("explain", "nothing-like-it")
    assert done.returncode == 1
    assert done.stderr.startswith("belino: there is no message 'nothing-like-it'")


def test_a_token_is_made_listed_and_revoked(belino: Belino) -> None:
    made = read(
        belino("token", "create", "--conversation", "web:default:main", "--note", "lab", "--days", "3", "--json")
    )
    assert made["expires"] > made["created"]
    (listed,) = read(belino("token", "ls", "--json"))["tokens"]
    assert (listed["id"], listed["conversation"], listed["note"]) == (made["id"], "web:default:main", "lab")
    assert made["token"] not in belino("token", "ls").stdout
    assert read(belino("token", "revoke", made["id"], "--json")) == {"revoked": True}
    again = belino("token", "revoke", made["id"])
    told = f"belino: there is no token {made['id']}; see `belino token ls`\n"
    assert (again.returncode, again.stdout, again.stderr) == (1, "", told)
    assert belino("token", "ls").stdout == "no token yet\n"


def test_a_token_for_no_conversation_is_refused(belino: Belino) -> None:
    done = belino("token", "create", "--conversation", "main")
    assert done.returncode == 1
    assert "write platform:account:channel[:thread]" in done.stderr


def test_channels_are_listed_and_their_names_cannot_command_the_terminal(belino: Belino, home: Path) -> None:
    async def act(store: Store) -> None:
        key = ConversationKey(platform="web", account="default", channel="main")
        await store.open_conversation(key, "\x1b[31mred\x07\u202egnp\n[bold]x", ChatType.GROUP)

    in_store(home, act)
    assert read(belino("channels", "--json"))["channels"][0]["channel"] == "web:default:main"
    shown = belino("channels").stdout
    assert "[bold]x" in shown
    assert not [c for c in ("\x1b", "\x07", "\u202e") if c in shown]
    assert len(shown.splitlines()) == 2


def test_media_of_an_empty_folder_is_none(belino: Belino) -> None:
    assert read(belino("media", "ls", "--json")) == {"media": []}
    assert belino("media", "ls", "--limit", "5").stdout == "no media yet\n"
    told = belino("media", "ls", "--kind", "image", "--channel", "web:default:main").stdout
    assert told == "no media of kind image in web:default:main yet\n"
    assert belino("media", "ls", "--channel", "nonsense").returncode == 1


def test_config_init_writes_the_defaults_once(belino: Belino, home: Path) -> None:
    before = read(belino("config", "show", "--json"))
    file = Path(read(belino("config", "init", "--json"))["file"])
    assert file == home / "belino.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read(belino("config", "show", "--json")) == before
    assert read(belino("config", "check", "--json")) == {"ok": True, "file": str(file), "exists": True}
    again = belino("config", "init")
    assert (again.returncode, "already exists" in again.stderr) == (78, True)


def test_config_show_names_every_key_and_no_secret(belino: Belino) -> None:
    shown = belino("config", "show").stdout
    assert "server.port" in shown
    assert "8787" in shown


@pytest.mark.parametrize("command", [("config", "check"), ("config", "show"), ("serve",)])
def test_a_bad_configuration_is_one_sentence_and_78(belino: Belino, home: Path, command: tuple[str, ...]) -> None:
    configure(home, "[server]\nprot = 1\n")
    done = belino(*command)
    assert (done.returncode, done.stdout) == (78, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("belino: belino.toml: server.prot is not a key belino knows; did you mean port?")


def test_a_bind_beyond_this_machine_is_refused_on_the_command_line_too(belino: Belino) -> None:
    done = belino("serve", "--bind", "0.0.0.0", "--port", "0")
    assert (done.returncode, done.stdout) == (78, "")
    assert "reaches beyond this machine without encryption" in done.stderr


def test_the_doctor_finds_a_fresh_folder_healthy(belino: Belino) -> None:
    answer = read(belino("doctor", "--json"))
    assert answer["ok"]
    assert {"config", "python", "store", "modes"} <= {finding["name"] for finding in answer["findings"]}
    assert "✓ store" in belino("doctor").stdout


def test_the_doctor_warns_of_a_door_open_to_everybody(belino: Belino, home: Path) -> None:
    configure(home, '[adapters.web.access.channels.C1]\nsenders = ["*"]\n')
    answer = read(belino("doctor", "--json"))
    (warning,) = [finding for finding in answer["findings"] if finding["name"] == "access"]
    assert warning["says"] == "everyone may command the agent in channel C1 of web:default"
    assert warning["cure"]


def test_the_doctor_fails_when_anything_fails(belino: Belino, home: Path) -> None:
    configure(home, "nonsense")
    done = belino("doctor", "--json")
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert not answer["ok"]
    assert [finding["name"] for finding in answer["findings"] if not finding["ok"]] == ["config"]


def test_a_terminal_gets_colour_unless_somebody_said_no(home: Path) -> None:
    assert "\x1b[" in on_a_terminal("status", home=home).stdout
    assert "\x1b[3" not in on_a_terminal("status", home=home, NO_COLOR="1").stdout


def test_search_reads_days_in_the_configured_time_zone(belino: Belino, home: Path) -> None:
    configure(home, '[context]\ntimezone = "Asia/Tokyo"\n')

    async def act(store: Store) -> None:
        where, ana = ConversationKey.parse("web:default:main"), Author(id="7", name="Ana")
        sent = datetime(2026, 7, 20, 23, 0, tzinfo=UTC)
        message = Message(conversation=where, id="m1", author=ana, sent=sent, text="The roof leaked yesterday.")
        await store.take_in(message, Verdict(standing=Standing.OBSERVED, reason="test"))

    in_store(home, act)
    (found,) = read(belino("search", "web:default:main", "what about 20 July 2026?", "--json"))["results"]
    assert found["relevance_signal"] == "date:2026-07-20"


def test_search_re_ranks_where_that_is_configured(belino: Belino, home: Path) -> None:
    async def act(store: Store) -> None:
        where, ana = ConversationKey.parse("web:default:main"), Author(id="7", name="Ana")
        said = [
            "The car is parked next to the bakery.",
            "My car broke down, the engine is damaged and the mechanic cannot repair it.",
            "We washed the car and had ice cream on Sunday.",
            "The car has a nice colour, like the sea in summer.",
        ]
        for number, text in enumerate(said):
            sent = datetime(2026, 7, 20, 23, number, tzinfo=UTC)
            message = Message(conversation=where, id=f"m{number}", author=ana, sent=sent, text=text)
            await store.take_in(message, Verdict(standing=Standing.OBSERVED, reason="test"))

    in_store(home, act)
    asked = ("search", "web:default:main", "problems with the car", "--json")
    assert "similar" not in str(read(belino(*asked)))
    (home / "belino.toml").write_text('[search]\nrerank = "static"\n', encoding="utf-8")
    (home / "belino.toml").chmod(0o600)
    reasons = {found["message_id"]: found["relevance_signal"] for found in read(belino(*asked))["results"]}
    assert reasons["m1"] == "keyword:car+similar"
