"""Record a conversation, replay its cassette: nothing differs, unless something does."""

import asyncio
import json
from collections.abc import AsyncIterator
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from belino.cassette.file import Cassette, read_cassette
from belino.config import AgentConfig
from belino.domain.media import TextBlock
from belino.domain.ports import Hook, TakesHooks
from belino.domain.turn import Final, ReplyPart, Turn
from belino.gateway.gateway import Gateway
from belino.gateway.replay import Replayed, replay
from belino.testing import ScriptedAgent, SlackServer, ToolCall, check_cassette
from journeys.busy_group import BOT, BusyGroup
from journeys.busy_place import BusyPlace, Curious, until
from journeys.busy_workspace import BusyWorkspace
from journeys.recording import PHOTO, answered, place_on, readings, record, show_photo

pytestmark = pytest.mark.slow

SAMPLES = sorted((Path(__file__).parent.parent / "samples").glob("*/*.cassette.jsonl.gz"))


def told(replayed: Replayed) -> str:
    return "\n".join("\n".join([each.where, *each.diff]) for each in replayed.differences)


def kinds(replayed: Replayed) -> set[str]:
    return {each.what for each in replayed.differences}


async def talk_back_and_forth(place: BusyPlace, gateway: Gateway) -> None:
    """A message that is only observed, a question about it, an edit, and another question."""
    assert isinstance(place, BusyGroup)
    said = place.server.say(place.chat, place.bob, "we meet at 8, ask Ann")
    place.server.say(place.chat, place.ann, f"{BOT} when do we meet?")
    await answered(gateway)
    place.server.edit(said, "we meet at 9, ask Ann")
    place.server.say(place.chat, place.bob, f"{BOT} and now?", reply_to=said)
    await answered(gateway, 2)


@pytest.mark.parametrize("platform", ["telegram", "discord", "slack", "line", "web"])
async def test_a_recorded_conversation_replays_without_a_difference(platform: str, tmp_path: Path) -> None:
    async with place_on(platform, tmp_path / "home") as place:
        written = await record(place)
    cassette = read_cassette(written.path)
    assert {record["record"] for record in cassette.records} >= {"arrival", "exchange", "turn", "parcel"}
    assert list(cassette.media.values()) == ([] if platform == "web" else [PHOTO])
    assert written.path.stat().st_mode & 0o777 == 0o600
    assert told(await replay(cassette)) == ""


async def test_edits_replies_and_an_agent_that_remembers_replay_without_a_difference(tmp_path: Path) -> None:
    async with place_on("telegram", tmp_path / "home") as place:
        agent = ScriptedAgent("at 8", [ToolCall(name="list_media"), "at 9"])
        written = await record(place, agent, talk_back_and_forth)
    cassette = read_cassette(written.path)
    assert [record["arrival"]["kind"] for record in cassette.records if record["record"] == "arrival"] == [
        "message", "message", "edit", "message",
    ]  # fmt: skip
    assert told(await replay(cassette)) == ""


async def talk_in_a_row(place: BusyPlace, gateway: Gateway) -> None:
    """Three lines and a forward of one sender, a command in between, and a question that waits."""
    assert isinstance(place, BusyGroup)
    place.server.say(place.ann, place.ann, "first line")
    place.server.say(place.ann, place.ann, "second line")
    place.server.say(place.ann, place.ann, "third line")
    await answered(gateway)
    place.server.say(place.ann, place.ann, "/help")
    await until(lambda: len(place.server.sent) == 2)
    place.server.say(place.ann, place.ann, "a last question")
    await answered(gateway, 3)


async def test_a_joined_turn_replays_without_a_difference(tmp_path: Path) -> None:
    async with place_on("telegram", tmp_path / "home") as place:
        assert isinstance(place, BusyGroup)
        written = await record(place, ScriptedAgent(), talk_in_a_row)
    cassette = read_cassette(written.path)
    turns = [each for each in cassette.records if each["record"] == "turn"]
    assert [len(turn["messages"]) for turn in turns] == [3, 1]
    assert told(await replay(cassette)) == ""


class Reader:
    """Reads the first line of its channel in full, by the short id that it was told."""

    remembers = False
    sees_images = False

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        lines = "\n".join(block.text for block in turn.blocks if isinstance(block, TextBlock)).splitlines()
        first = next(after for line, after in pairwise(lines) if line.startswith("id|time|")).partition("|")[0]
        (told,) = await turn.toolbox.call("channel_messages", {"message_ids": [first]})
        assert isinstance(told, TextBlock) and "Not found" not in told.text
        yield Final(text="read")


async def test_a_message_that_the_agent_named_by_its_short_id_is_found_in_the_replay(tmp_path: Path) -> None:
    async with place_on("telegram", tmp_path / "home") as place:
        written = await record(place, Reader(), talk_back_and_forth)
    assert told(await replay(read_cassette(written.path))) == ""


async def test_an_answer_that_was_shown_while_it_was_written_replays_without_a_difference(tmp_path: Path) -> None:
    async def in_private(place: BusyPlace, gateway: Gateway) -> None:
        place.write("tell me a story")

    async with place_on("telegram", tmp_path / "home") as place:
        written = await record(place, ScriptedAgent("once upon a time"), in_private)
    assert told(await replay(read_cassette(written.path))) == ""


@pytest.fixture
async def cassette(tmp_path: Path) -> Cassette:
    """A recorded question about a photo."""
    async with place_on("telegram", tmp_path / "home") as place:
        return read_cassette((await record(place)).path)


async def test_another_agent_differs_in_what_it_says_and_not_in_what_it_is_told(cassette: Cassette) -> None:
    replayed = await replay(cassette, AgentConfig())
    assert {"call", "parcel"} <= kinds(replayed)
    assert not kinds(replayed) & {"arrival", "outcome", "prompt"}
    assert "looked" in told(replayed)


async def test_a_prompt_that_was_another_one_is_shown_with_the_lines_that_differ(cassette: Cassette) -> None:
    records = deepcopy(list(cassette.records))
    exchange = next(record for record in records if record["record"] == "exchange")
    message = next(block for block in exchange["blocks"] if block.get("text", "").startswith("<<<message"))
    message["text"] = message["text"].replace("from:", "by:")
    replayed = await replay(replace(cassette, records=tuple(records)))
    assert kinds(replayed) == {"prompt"}
    assert "-by: " in told(replayed)


async def test_a_sender_who_is_no_longer_let_in_is_an_outcome_that_differs(cassette: Cassette) -> None:
    header = deepcopy(cassette.header)
    for adapter in header["adapters"]:
        adapter["access"] = {"senders": [], "direct": "list", "channels": []}
    replayed = await replay(replace(cassette, header=header))
    assert {"arrival", "outcome", "prompt", "parcel"} <= kinds(replayed)


async def test_a_photo_that_is_missing_is_a_tool_result_that_differs(cassette: Cassette) -> None:
    replayed = await replay(replace(cassette, media={}))
    assert "tool" in kinds(replayed)


async def test_without_text_and_media_the_structure_is_left_and_replays(tmp_path: Path) -> None:
    async with place_on("telegram", tmp_path / "home") as place:
        written = await record(place, without_text=True, without_media=True)
    cassette = read_cassette(written.path)
    text = json.dumps(cassette.records)
    assert " does " not in text
    assert "looked" not in text
    assert not cassette.media
    assert list(cassette.left_out.values()) == ["the recording was made without media"]
    assert told(await replay(cassette)) == ""


async def test_a_recording_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with place_on("telegram", tmp_path / "home") as place:
        async with place.gateway(Curious()) as gateway:
            await gateway.record(place.channel())
            await show_photo(place, gateway)
            await answered(gateway)
        async with place.gateway(Curious()) as gateway:
            state = gateway.recorder.state()
            assert state is not None
            assert state.conversation == str(place.channel())
            await show_photo(place, gateway, "and again?")
            await answered(gateway, 2)
            written = await gateway.stop_recording()
            assert gateway.recorder.state() is None
    cassette = read_cassette(written.path)
    assert sum(record["record"] == "turn" for record in cassette.records) == 2
    assert told(await replay(cassette)) == ""


async def test_a_conversation_that_had_begun_before_is_compared_by_its_messages(tmp_path: Path) -> None:
    async with place_on("telegram", tmp_path / "home") as place, place.gateway(Curious()) as gateway:
        assert isinstance(place, BusyGroup)
        place.server.say(place.chat, place.ann, f"{BOT} before anybody recorded")
        await answered(gateway)
        await gateway.record()
        await show_photo(place, gateway, "and now?")
        await answered(gateway, 1)
        while len(await gateway.store.parcels()) < 2 or not any(
            record["record"] == "parcel" for record in gateway.recorder.journal.records()
        ):
            await asyncio.sleep(0.01)
        written = await gateway.stop_recording()
    cassette = read_cassette(written.path)
    assert len(cassette.header["older"]) == 1
    assert told(await replay(cassette)) == ""


class Hooked(BusyWorkspace):
    """The same workspace, which posts its events."""

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "BELINO_TEST_SIGNING": self.slack.signing_secret}

    def is_heard(self) -> bool:
        return True

    def hook(self, event: dict[str, Any]) -> Hook:
        body = json.dumps({"type": "event_callback", "event_id": "Ev0471100", "event": event}).encode()
        stamp = str(int(self.slack.clock.now().timestamp()))
        proof = {"x-slack-request-timestamp": stamp, "x-slack-signature": self.slack.hooks.signature(body, stamp)}
        headers = {"content-type": "application/json", **proof}
        return Hook(method="POST", path="/hooks/slack/default", query="", headers=headers, body=body)


async def test_events_that_slack_posts_are_recorded_like_those_of_its_socket(tmp_path: Path) -> None:
    async def by_hook(place: BusyPlace, gateway: Gateway) -> None:
        assert isinstance(place, Hooked)
        adapter = gateway.adapters["slack", "default"]
        assert isinstance(adapter, TakesHooks)
        where, ts = place.private.channel, f"{place.slack.clock.now().timestamp():.6f}"
        said = {"type": "message", "channel": where, "channel_type": "im", "user": place.ann["id"], "ts": ts}
        await until(lambda: gateway.health()["slack", "default"].state == "running")
        assert (await adapter.take_hook(place.hook({**said, "text": "hello, says Ann"}))).status == 200

    async with SlackServer() as slack:
        settings = {"mode": "http", "signing_secret": "env:BELINO_TEST_SIGNING", "drafts": "never"}
        written = await record(Hooked(slack, tmp_path / "home", **settings), talk=by_hook)
        secret = slack.signing_secret
    cassette = read_cassette(written.path)
    assert cassette.header["adapters"][0]["options"]["mode"] == "http"
    assert not [reading for reading in readings(written.path) if secret in reading]
    assert told(await replay(cassette)) == ""


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.parent.name)
async def test_a_cassette_of_every_platform_replays_without_a_difference(path: Path) -> None:
    counts: Any = await check_cassette(path)
    assert counts["arrival"] >= 1
    assert counts["turn"] >= 1


def test_every_platform_has_a_cassette() -> None:
    assert {path.parent.name for path in SAMPLES} == {"discord", "line", "slack", "telegram", "web"}
