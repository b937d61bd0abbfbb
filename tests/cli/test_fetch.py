"""`belino media fetch` and `belino pair` beside a gateway that listens to a Telegram on loopback."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belino.testing import make_png
from belino.testing.faults import FILE
from belino.testing.telegram import TOKEN
from cli.hikers import Scene, hikers
from cli.shell import PATIENCE, Belino, on_a_terminal, read

pytestmark = pytest.mark.slow


PICTURE = make_png(320, 200)


@pytest.fixture
async def scene(home: Path) -> AsyncIterator[Scene]:
    async with hikers(home, {"photo": PICTURE, "caption": "the summit"}) as scene:
        yield scene


async def test_the_running_gateway_fetches_once_and_hands_the_bytes_over(
    belino: Belino, scene: Scene, tmp_path: Path
) -> None:
    out = tmp_path / "summit.png"
    for _ in range(2):
        answer = read(await asyncio.to_thread(belino, "media", "fetch", *scene.refs, "-o", str(out), "--json"))
        assert answer["path"] == str(out) and answer["media"]["outcome"] == "held"
        assert out.read_bytes() == PICTURE
    assert scene.server.calls[FILE] == 1
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".png"] == ["summit.png"]


async def test_without_a_gateway_only_held_bytes_can_be_had(belino: Belino, scene: Scene, tmp_path: Path) -> None:
    out = tmp_path / "summit.png"
    await asyncio.to_thread(scene.gateway.stop)
    done = await asyncio.to_thread(belino, "media", "fetch", *scene.refs, "-o", str(out), BOT_TOKEN=TOKEN)
    assert done.returncode == 69 and "start `belino serve`" in done.stderr and not out.exists()
    await asyncio.to_thread(scene.gateway.start)
    read(await asyncio.to_thread(belino, "media", "fetch", *scene.refs, "-o", str(out), "--json"))
    await asyncio.to_thread(scene.gateway.stop)
    read(await asyncio.to_thread(belino, "media", "fetch", *scene.refs, "-o", str(tmp_path / "again.png"), "--json"))
    assert (tmp_path / "again.png").read_bytes() == PICTURE
    await asyncio.to_thread(scene.gateway.start)


async def test_what_cannot_be_had_and_what_is_unknown_is_told(belino: Belino, scene: Scene, tmp_path: Path) -> None:
    unknown = await asyncio.to_thread(belino, "media", "fetch", "tg_000000000000", "-o", str(tmp_path / "x"))
    assert unknown.returncode == 1 and unknown.stderr.startswith("belino: ")
    taken = await asyncio.to_thread(belino, "media", "fetch", *scene.refs, "-o", str(tmp_path))
    assert taken.returncode == 1 and "already exists" in taken.stderr


async def test_a_terminal_shows_a_bar_and_where_the_file_went(home: Path, scene: Scene, tmp_path: Path) -> None:
    out = tmp_path / "summit.png"
    done = await asyncio.to_thread(on_a_terminal, "media", "fetch", *scene.refs, "-o", str(out), home=home)
    assert done.returncode == 0
    assert str(out) in done.stdout.replace("\r\n", "") and "\x1b[" in done.stdout


async def test_a_stranger_on_telegram_is_let_in_and_out_from_the_command_line(belino: Belino, scene: Scene) -> None:
    scene.server.say(scene.ann, scene.ann, "hello, are you there?")
    told = await _sent_to(scene, scene.ann["id"])
    waiting = read(await asyncio.to_thread(belino, "pair", "--json"))["pairings"]
    assert [(p["sender"], p["name"], p["state"]) for p in waiting] == [(str(scene.ann["id"]), "Ann", "waiting")]
    wrong = await asyncio.to_thread(belino, "pair", "AAAA-AAAA")
    assert wrong.returncode == 1 and "there is no request with this code" in wrong.stderr
    code = re.findall(r"belino pair (\S+)", told)[0]
    done = await asyncio.to_thread(belino, "pair", code.lower())
    assert done.returncode == 0 and "they may command the agent in direct messages" in done.stdout
    scene.server.say(scene.ann, scene.ann, "and now?")
    assert "I am the demo agent" in await _sent_to(scene, scene.ann["id"], after=1)
    who = f"telegram:default:{scene.ann['id']}"
    assert read(await asyncio.to_thread(belino, "pair", "--revoke", who, "--json")) == {"revoked": True}
    assert (await asyncio.to_thread(belino, "pair", "--revoke", who)).returncode == 1
    assert "there are no pairings" in (await asyncio.to_thread(belino, "pair", "ls")).stdout


async def test_a_group_that_the_bot_was_added_to_is_allowed_from_the_command_line(belino: Belino, scene: Scene) -> None:
    harbour = scene.server.group("Harbour")
    scene.server.invite(harbour, scene.ann)
    async with asyncio.timeout(PATIENCE):
        while not (groups := read(await asyncio.to_thread(belino, "pair", "--json"))["groups"]):
            pass
    assert [(g["name"], g["inviter"]["name"]) for g in groups] == [("Harbour", "Ann")]
    done = await asyncio.to_thread(belino, "pair", groups[0]["group"])
    assert done.returncode == 0 and "Ann and owners may command the agent there" in done.stdout
    scene.server.say(harbour, scene.ann, "@belino_bot hello")
    assert "I am the demo agent" in await _sent_to(scene, harbour["id"])
    assert read(await asyncio.to_thread(belino, "pair", "--revoke", groups[0]["group"], "--json")) == {"revoked": True}


async def _sent_to(scene: Scene, chat: int, *, after: int = 0) -> str:
    """What the bot said in a chat, once it has said more than `after` things."""
    async with asyncio.timeout(PATIENCE):
        while True:
            said = [call.fields for call in scene.server.requests if call.method.lower() == "sendmessage"]
            texts = [str(fields["text"]) for fields in said if str(fields["chat_id"]) == str(chat)]
            if len(texts) > after:
                return texts[after]
            await asyncio.sleep(0)
