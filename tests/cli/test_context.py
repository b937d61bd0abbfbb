"""belino context and belino search, with a gateway and without."""

import asyncio
from dataclasses import asdict
from pathlib import Path

import pytest

from belino.domain.message import Author, ConversationKey, Message
from belino.domain.outcome import Standing
from belino.domain.stored import Verdict
from belino.net.clock import SystemClock
from belino.storage.home import Home
from belino.storage.store import open_store
from belino.testing import GatewayProcess
from cli.shell import Belino, read
from shown_session import show_pictures

pytestmark = pytest.mark.slow


PAGE = Path(__file__).parents[2] / "docs" / "context.md"
MAIN = "web:default:main"
WORDS = ("good morning", "the rollout waits for\x1b[31m the migration", "lunch?")


def talk(home: Path, name: str = "Ana") -> None:
    async def say() -> None:
        store = await open_store(Home.at(home), clock=SystemClock())
        where, author = ConversationKey.parse(MAIN), Author(id="7", name=name)
        for number, text in enumerate(WORDS):
            sent = SystemClock().now()
            message = Message(conversation=where, id=f"m{number}", author=author, sent=sent, text=text)
            await store.take_in(message, Verdict(standing=Standing.MAY_COMMAND, reason="test"))
        await store.close()

    asyncio.run(say())


def test_without_a_gateway_the_store_is_asked(belino: Belino, home: Path) -> None:
    talk(home)
    told = read(belino("context", MAIN, "--at", "m2", "--json"))
    assert told["message_id"] == "m2" and any("good morning" in text for text in told["told"])
    shown = belino("context", MAIN).stdout
    assert "a session that begins with message m2" in shown and "\x1b" not in shown
    assert [line.split()[0] for line in shown.splitlines() if line.startswith(("PART", "tools", "channel", "all"))]
    found = read(belino("search", MAIN, "rollout", "--since", "3d", "--author", "Ana", "--json"))
    assert [one["message_id"] for one in found["results"]][:1] == ["m1"]
    shown = belino("search", MAIN, "rollout").stdout
    assert "Ana" in shown and "1 of 1 found, 2 nearby, in 3 messages" in shown and "\x1b" not in shown


def test_a_channel_of_which_all_is_recalled_from_its_platform_is_searched(belino: Belino, home: Path) -> None:
    async def recall() -> None:
        store = await open_store(Home.at(home), clock=SystemClock())
        where, sent = ConversationKey.parse(MAIN), SystemClock().now()
        author = Author(id="7", name="Ana")
        said = [
            Message(conversation=where, id=f"m{number}", author=author, sent=sent, text=text)
            for number, text in enumerate(WORDS)
        ]
        await store.take_history(where, said)
        await store.close()

    asyncio.run(recall())
    found = read(belino("search", MAIN, "rollout", "--json"))
    assert [one["message_id"] for one in found["results"]][:1] == ["m1"]
    nothing = belino("search", MAIN, "zyzzyva").stdout
    assert nothing.startswith("nothing matches in 3 messages")


def test_the_page_about_it_tells_what_tools_and_instructions_cost(belino: Belino, home: Path) -> None:
    talk(home)
    costs = [line for line in belino("context", MAIN).stdout.splitlines() if line.startswith(("tools", "instructions"))]
    assert len(costs) == 2
    assert "\n".join(costs) in PAGE.read_text(encoding="utf-8")


def test_what_is_not_there_is_said_in_a_sentence(belino: Belino, home: Path) -> None:
    talk(home)
    for arguments, sentence in (
        (("context", MAIN, "--at", "m9"), "there is no message 'm9'"),
        (("context", "web:default:nowhere"), "there are no recent messages"),
        (("search", MAIN, "x", "--since", "soon"), "since must be an ISO 8601 time"),
        (("search", "main", "x"), "does not name a conversation"),
        (("search", "web:default:nowhere", "x"), "there is no channel web:default:nowhere"),
        (("context", "web:default:%ff"), "does not name a conversation"),
        (("context", "web:default:\udcff"), "does not name a conversation"),
    ):
        done = belino(*arguments)
        assert done.returncode == 1 and sentence in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("context", MAIN, "--at", ""), "'' is not a text of 1 to 256 characters"),
        (("context", MAIN, "--at", "\udcff"), "is not a text of 1 to 256 characters"),
        (("search", MAIN, " "), "' ' is not a text of 1 to 2000 characters"),
        (("search", MAIN, "\udcff"), "is not a text of 1 to 2000 characters"),
        (("search", MAIN, "x", "--limit", "0"), "'0' is not a whole number from 1 to 50"),
        (("search", MAIN, "x", "--limit", "51"), "'51' is not a whole number from 1 to 50"),
        (("search", MAIN, "x", "--author", ""), "'' is not a text of 1 to 256 characters"),
        (("search", MAIN, "x", "--since", ""), "'' is not a text of 1 to 256 characters"),
        (("search", MAIN, "x", "--cursor", ""), "'' is not a text of 1 to 256 characters"),
    ],
    ids=["at-nothing", "at-no-text", "nothing", "no-text", "none", "too-many", "nobody", "never", "nowhere"],
)
def test_what_says_nothing_is_refused_before_anybody_is_asked(
    belino: Belino, home: Path, arguments: tuple[str, ...], what: str
) -> None:
    done = belino(*arguments)
    assert done.returncode == 2 and what in done.stderr, done.stderr


def test_a_running_gateway_gives_the_same_answers(belino: Belino, home: Path) -> None:
    talk(home, "Roe, Jane 100%25")
    asked = (
        ("search", MAIN, "rollout"),
        ("search", MAIN, "dinner", "--author", "Roe, Jane 100%25"),
        ("context", MAIN, "--at", "m1"),
    )
    resting = [read(belino(*arguments, "--json")) for arguments in asked]
    with GatewayProcess(home):
        running = [read(belino(*arguments, "--json")) for arguments in asked]
        missing = belino("context", MAIN, "--at", "m9")
        unknown = belino("search", "web:default:nowhere", "x")
    assert running == resting
    signals = {one["relevance_signal"] for one in running[1]["results"]}
    assert signals == {"author:Roe, Jane 100%25", "keyword:lunch"}
    assert unknown.returncode == 1 and "there is no channel web:default:nowhere" in unknown.stderr
    assert missing.returncode == 1 and "there is no message 'm9' in web:default:main" in missing.stderr


@pytest.mark.parametrize("compacted", [False, True])
def test_the_manifest_is_shown_with_what_was_lost_and_what_is_attached_again(
    belino: Belino, home: Path, compacted: bool
) -> None:
    cat, dog, owl = entries = show_pictures(home, compacted=compacted)
    again = [dog.artifact_id] if compacted else [owl.artifact_id, dog.artifact_id]
    session = {
        "turns": 4,
        "has_context": True,
        "compacted": compacted,
        "manifest": [asdict(entry) for entry in entries],
        "lost": [cat.artifact_id, dog.artifact_id],
        "reattach": again,
    }
    assert read(belino("context", MAIN, "--json"))["session"] == session
    assert read(belino("explain", "m1", "--json"))["session"] == session
    for command in (("context", MAIN), ("explain", "m1")):
        shown = belino(*command).stdout
        for entry in entries:
            (row,) = [line for line in shown.splitlines() if line.startswith(entry.artifact_id)]
            assert {str(value) for value in asdict(entry).values() if value is not None} <= set(row.split()), row
            assert row.endswith("lost" if entry is not owl else "yes")
        before = "its next turn attaches again" if compacted else "these are attached again"
        assert f"{before}: {', '.join(again)}" in shown


def test_a_session_without_media_has_an_empty_manifest(belino: Belino, home: Path) -> None:
    talk(home)
    session = read(belino("context", MAIN, "--json"))["session"]
    assert (session["manifest"], session["lost"], session["reattach"]) == ([], [], [])
    assert "Media shown" not in belino("context", MAIN).stdout
