"""An answer and its files: together in the outbox, filed away by their fate, and never at the cost of the words."""

import asyncio
import hashlib
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from belino.delivery.folders import Folders
from belino.domain.errors import StoreFull, Undeliverable
from belino.domain.limits import FileLimit, Limits, Markup, Once, SendAs
from belino.domain.media import TextBlock
from belino.domain.message import ConversationKey
from belino.domain.outcome import Stage
from belino.testing import ScriptedAgent, ToolCall
from belino.testing.files import make_png
from gateway.house import House, Wire, until

LIMITS = Limits(
    text_chars=4_000,
    once=Once.KEY,
    markup=Markup.MARKDOWN,
    caption_chars=1_000,
    files={form: FileLimit(max_bytes=1_000_000) for form in SendAs},
)
HERE = ConversationKey(platform="memory", account="default", channel="dm")
PICTURE = make_png(40, 30)


@pytest.fixture
def wire(house: House) -> Wire:
    wire = house.prepare()
    wire.limits = LIMITS
    return wire


def put(house: House, path: str, content: bytes = PICTURE) -> Path:
    place = house.home.outgoing(HERE) / path
    place.write_bytes(content)
    os.utime(place, (1_000_000_000, 1_000_000_000))
    return place


def names(house: House, folder: str) -> list[str]:
    return sorted(path.name for path in (house.home.outgoing(HERE) / folder).iterdir())


async def filed(house: House, folder: str, *expected: str) -> None:
    await until(lambda: names(house, folder) == sorted(expected))


def sent_names(wire: Wire) -> list[str]:
    return [file.name for parcel in wire.seen for file in parcel.files]


async def test_a_named_file_a_handed_one_and_a_pending_one_go_out_before_the_text(house: House, wire: Wire) -> None:
    named = put(house, "named.png")
    put(house, "pending/waiting.txt", b"waiting")
    (house.home.incoming(HERE) / "got.txt").write_bytes(b"got")
    calls = ToolCall(name="send_media", arguments={"path": "got.txt", "caption": "as asked"})
    house.agent = agent = ScriptedAgent([calls, f"Here they are: {named}"])
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        await filed(house, "sent", "waiting.txt")
        said = await house.history(gateway)
    assert sent_names(wire) == ["got.txt", "named.png", "waiting.txt"]
    assert wire.seen[0].files[0].caption == "as asked"
    assert wire.seen[-1].text == "Here they are: named.png"
    assert [ref.file_name for message in said for ref in message.media] == ["got.txt", "named.png", "waiting.txt"]
    assert names(house, "pending") == []
    assert named.exists()
    (told,) = agent.answers[0]
    assert isinstance(told, TextBlock)
    assert told.text == "got.txt: text/plain, 3B. It goes out with your answer as a document."


async def test_the_bytes_that_leave_are_those_that_were_there_when_the_turn_ended(house: House, wire: Wire) -> None:
    place = put(house, "report.txt", b"as it was")
    house.agent = ScriptedAgent("see report.txt")
    wire.refusals.append(Undeliverable("not yet"))
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        place.write_bytes(b"changed later")
    offered = wire.offered[0].files[0]
    assert offered.sha256 == hashlib.sha256(b"as it was").hexdigest()


async def test_a_file_that_was_sent_is_not_sent_again_by_its_name_nor_after_a_restart(house: House, wire: Wire) -> None:
    report = put(house, "report.txt", b"a report")
    put(house, "graph.png")
    by_tool = ToolCall(name="send_media", arguments={"path": f"{report}"})
    again = "I already sent you report.txt yesterday; as said in graph.png, sales grew."
    house.agent = ScriptedAgent(
        [by_tool, "Here it is, with graph.png."], again, again, "Once more: outgoing/report.txt"
    )
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        assert sent_names(wire) == ["report.txt", "graph.png"]
        await house.ask(gateway, house.say())
    async with house.at_work() as gateway:
        (house.home.outgoing(HERE) / "graph.png").touch()  # as if drawn again, exactly as it was
        await house.ask(gateway, house.say())
        assert sent_names(wire) == ["report.txt", "graph.png"]
        assert wire.texts()[-1] == again
        story = await gateway.store.story(HERE, "m3")
        await house.ask(gateway, house.say())
    assert sent_names(wire) == ["report.txt", "graph.png", "report.txt"]
    assert wire.texts()[-1] == "Once more: report.txt"
    assert story is not None
    named = {step.subject: step.reason for step in story.steps if step.outcome == "only named"}
    assert named == dict.fromkeys(
        ("outgoing/report.txt", "outgoing/graph.png"),
        "this conversation already has it; send_media or its path in the answer sends it",
    )


async def test_the_name_of_a_file_from_before_the_last_turn_is_only_text(house: House, wire: Wire) -> None:
    house.clock.shift(timedelta(days=3650).total_seconds())  # so that the file is older than the first answer
    put(house, "notes.txt", b"never sent")
    house.agent = ScriptedAgent("I made notes.", "They are in notes.txt.", "Here: outgoing/notes.txt")
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        await house.ask(gateway, house.say())
        assert sent_names(wire) == []
        await house.ask(gateway, house.say())
    assert sent_names(wire) == ["notes.txt"]


async def test_the_name_of_a_file_that_someone_sent_sends_none_of_ours(house: House, wire: Wire) -> None:
    put(house, "photo.png")
    house.agent = ScriptedAgent("Your photo.png is sharp.")
    async with house.at_work() as gateway:
        message = house.say("is it sharp?")
        await house.ask(gateway, replace(message, media=(house.picture(message, name="photo.png"),)))
    assert sent_names(wire) == []
    assert wire.texts() == ["Your photo.png is sharp."]


async def test_a_picture_that_was_made_to_fit_is_not_sent_again_by_its_name(house: House, wire: Wire) -> None:
    wire.limits = replace(LIMITS, files={SendAs.PHOTO: FileLimit(max_bytes=1_000_000, max_side=20)})
    put(house, "chart.png")
    house.agent = ScriptedAgent("Look: chart.png", "As chart.png shows, it rains.")
    async with house.at_work() as gateway:
        for _ in range(2):
            await house.ask(gateway, house.say())
    assert [(file.name, file.width) for parcel in wire.seen for file in parcel.files] == [("chart.png", 20)]


async def test_a_file_the_platform_refuses_ends_in_error_and_the_words_go_out(house: House, wire: Wire) -> None:
    put(house, "pending/chart.png")
    house.agent = ScriptedAgent("look at this")
    wire.refusals.append(Undeliverable("the platform takes no charts"))
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        await filed(house, "error", "chart.png", "chart.png.error.txt")
    reason = (house.home.outgoing(HERE) / "error" / "chart.png.error.txt").read_text()
    assert "the platform takes no charts" in reason
    assert any("look at this" in text for text in wire.texts())
    assert names(house, "pending") == []


async def test_what_the_platform_cannot_take_is_told_with_the_reason_and_put_aside(house: House, wire: Wire) -> None:
    put(house, "pending/big.bin", b"x" * 1_000_001)
    house.agent = ScriptedAgent("done")
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        story = await gateway.store.story(HERE, "m1")
    (parcel,) = wire.seen
    assert parcel.text.startswith("done\n\n`big.bin` was not sent: ")
    assert names(house, "error") == ["big.bin", "big.bin.error.txt"]
    assert story is not None
    steps = [step for step in story.steps if step.stage is Stage.REPLY]
    assert ("not sent", "big.bin") in [(step.outcome, step.subject) for step in steps]


async def test_a_pending_file_is_not_sent_again_while_it_is_on_its_way_nor_after_a_restart(
    house: House, wire: Wire
) -> None:
    put(house, "pending/chart.png")
    house.agent = ScriptedAgent("first", "second")
    wire.hung.add("dm")
    async with house.at_work() as gateway:
        await gateway.accept(house.say())
        await until(lambda: wire.offered)
        await gateway.accept(house.say())
        await until(lambda: sum(gateway.counters.turns.values()) == 2)
        assert (await gateway.flush(HERE))[0].sent == []
        assert len([parcel for parcel in await gateway.store.parcels() if parcel.kind == "files"]) == 1
    assert names(house, "pending") == ["chart.png"]
    wire.hung.clear()
    async with house.at_work() as gateway:
        await filed(house, "sent", "chart.png")
        await until(lambda: len(wire.seen) == 3)
    assert sent_names(wire) == ["chart.png"]


async def test_a_file_that_was_sent_just_before_we_died_is_filed_away_at_the_next_start(
    house: House, wire: Wire
) -> None:
    place = put(house, "pending/chart.png")
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        await filed(house, "sent", "chart.png")
    # As if the move had not happened any more: back where it was, as it was.
    (house.home.outgoing(HERE) / "sent" / "chart.png").rename(place)
    os.utime(place, (1_000_000_000, 1_000_000_000))
    async with house.at_work():
        await filed(house, "sent", "chart.png")
    assert sent_names(wire) == ["chart.png"]


async def test_pending_files_go_out_at_once_when_flushed_and_are_messages(house: House, wire: Wire) -> None:
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        put(house, "pending/a.txt", b"a")
        put(house, "pending/b.txt", b"b")
        (house.home.outgoing(HERE) / "pending" / "c.txt").symlink_to("a.txt")
        os.utime(house.home.outgoing(HERE) / "pending" / "c.txt", (1, 1), follow_symlinks=False)
        (flushed,) = await gateway.flush()
        await filed(house, "sent", "a.txt", "b.txt")
        await until(lambda: len(wire.seen) == 4)
        assert not await gateway.flush()
        assert (await gateway.flush(HERE))[0].sent == []
        async with asyncio.timeout(60):
            while len(said := await house.history(gateway)) < 5:
                await asyncio.sleep(0)
    assert (flushed.conversation, flushed.sent, flushed.waiting) == (HERE, ["a.txt", "b.txt"], 0)
    assert flushed.refused == [("c.txt", "it is a link")]
    assert sent_names(wire) == ["a.txt", "b.txt"]
    assert wire.seen[-1].text == "`c.txt` was not sent: it is a link."
    assert all(message.author.is_agent for message in said[-3:])


async def test_more_than_fit_into_one_reply_are_flushed_in_rounds(house: House, wire: Wire) -> None:
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        for number in range(45):
            put(house, f"pending/{number:02}.txt", str(number).encode())
        (flushed,) = await gateway.flush(HERE)
        assert len(flushed.sent) == 45
        await until(lambda: len(sent_names(wire)) == 45)
        await until(lambda: names(house, "pending") == [])


async def test_a_turn_and_a_flush_at_the_same_time_send_a_file_once(house: House, wire: Wire) -> None:
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        put(house, "pending/chart.png")
        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(gateway.flush(HERE))
            group.create_task(house.ask(gateway, house.say()))
        await filed(house, "sent", "chart.png")
    assert sent_names(wire) == ["chart.png"]


async def test_a_file_sent_by_a_program_outside_of_any_turn_goes_out_now(house: House, wire: Wire) -> None:
    (house.home.incoming(HERE) / "got.txt").write_bytes(b"got")
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        (told,) = await gateway.toolbox(HERE).call("send_media", {"path": "got.txt", "caption": "here"})
        await until(lambda: sent_names(wire) == ["got.txt"])
    assert isinstance(told, TextBlock)
    assert told.text == "got.txt: text/plain, 3B. It goes out now as a document."


async def test_a_reply_of_files_alone_is_an_answer(house: House, wire: Wire) -> None:
    put(house, "pending/chart.png")
    house.agent = ScriptedAgent("")
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        story = await gateway.store.story(HERE, "m1")
    assert sent_names(wire) == ["chart.png"]
    assert story is not None
    assert "the agent had nothing to say" not in [step.reason for step in story.steps]


async def test_a_disk_that_keeps_no_file_does_not_cost_the_words(
    house: House, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(house, "pending/chart.png")
    house.agent = ScriptedAgent("the words")
    async with house.at_work() as gateway:

        async def full(*_: object, **__: object) -> None:
            raise StoreFull("the disk is full; the bytes were not kept")

        monkeypatch.setattr(gateway.store, "keep", full)
        await house.ask(gateway, house.say())
        story = await gateway.store.story(HERE, "m1")
    assert wire.texts() == ["the words"]
    assert names(house, "pending") == ["chart.png"]
    assert story is not None
    assert ("files not collected", "the disk is full; the bytes were not kept") in [
        (step.outcome, step.reason) for step in story.steps
    ]


async def test_a_broken_folder_does_not_cost_the_words(
    house: House, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Folders, "waiting", broken)  # not the jail, which maintenance opens as well
    house.agent = ScriptedAgent("the words")
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
    assert wire.texts() == ["the words"]


async def test_the_tool_takes_as_many_files_as_a_reply_brings_along(house: House, wire: Wire) -> None:
    folder = house.home.incoming(HERE)
    for number in range(21):
        (folder / f"{number}.txt").write_bytes(str(number).encode())
    calls = [ToolCall(name="send_media", arguments={"path": f"{number}.txt"}) for number in range(20)]
    again = ToolCall(name="send_media", arguments={"path": "3.txt"})
    house.agent = ScriptedAgent([*calls, again, "all of them"])
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
    assert len(sent_names(wire)) == 20


async def test_one_file_too_many_is_refused_by_the_tool(house: House, wire: Wire) -> None:
    for number in range(21):
        (house.home.incoming(HERE) / f"{number}.txt").write_bytes(str(number).encode())
    calls = [ToolCall(name="send_media", arguments={"path": f"{number}.txt"}) for number in range(21)]
    house.agent = ScriptedAgent([*calls, "all of them"])
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        story = await gateway.store.story(HERE, "m1")
    assert story is not None
    refused = [step.reason for step in story.steps if step.outcome == "refused"]
    assert refused == ["path=20.txt: a reply brings along 20 files at most; send this one with the next"]


async def test_what_was_filed_away_long_ago_is_swept(house: House, wire: Wire) -> None:
    put(house, "pending/chart.png")
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
        await filed(house, "sent", "chart.png")
        house.clock.shift(timedelta(days=31).total_seconds())
        assert await gateway._turns._replies.sweep(house.clock.now() - timedelta(days=30)) == 1
    assert names(house, "sent") == []


async def test_among_several_people_an_answer_is_a_reply_to_what_it_answers_and_only_its_first_message_is(
    house: House, wire: Wire
) -> None:
    wire.limits = Limits(text_chars=10, once=Once.KEY)
    house.agent = ScriptedAgent(["one two three four"])
    async with house.at_work() as gateway:
        question = house.say("what comes next?", channel="team", addressed=True)
        await house.ask(gateway, question)
        assert [parcel.reply_to for parcel in wire.seen] == [question.id, None]
        first, *_ = [message for message in await house.history(gateway, "team") if message.author.is_agent]
        assert (first.reply_to, first.root) == (question.id, question.id)


async def test_between_two_people_an_answer_is_no_reply(house: House, wire: Wire) -> None:
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
    assert [parcel.reply_to for parcel in wire.seen] == [None]


async def test_the_files_of_an_answer_come_first_and_are_the_reply(house: House, wire: Wire) -> None:
    where = ConversationKey(platform="memory", account="default", channel="team")
    chart = house.home.outgoing(where) / "chart.png"
    chart.write_bytes(PICTURE)
    house.agent = ScriptedAgent([f"Here is {chart}"])
    async with house.at_work() as gateway:
        question = house.say("draw it", channel="team", addressed=True)
        await house.ask(gateway, question)
    assert [(len(parcel.files), parcel.reply_to) for parcel in wire.seen] == [(1, question.id), (0, None)]


async def test_an_apology_says_whom_it_is_for(house: House, wire: Wire) -> None:
    house.agent = ScriptedAgent([ValueError("broken")])
    async with house.at_work() as gateway:
        question = house.say("and?", channel="team", addressed=True)
        await house.ask(gateway, question)
    assert [(parcel.text[:5], parcel.reply_to) for parcel in wire.seen] == [("Sorry", question.id)]
