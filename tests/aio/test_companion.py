"""Companions: a program's calls and events, its refusals, its death, and ours."""

import asyncio
import sys
from pathlib import Path

import pytest

from belino.aio.companion import companion
from belino.domain.errors import RateLimited, Unanswered, Undeliverable, Unreached

PROGRAM = """
import os, sys, threading, time
from belino.aio.companion_program import CallFailed, CompanionLines
own = CompanionLines()
print("noise of a library", flush=True)
def refuse(told):
    raise CallFailed("limited", "too fast")
def start(lines, task):
    def follow():
        for number in range(task["events"]):
            lines.tell("news", {"number": number})
    threading.Thread(target=follow, daemon=True).start()
    return {"echo": lambda told: told, "refuse": refuse, "break": lambda told: 1 / 0, "die": lambda told: os._exit(3),
            "hang": lambda told: threading.Event().wait()}
own.serve(start)
"""


def program(folder: Path) -> list[str]:
    file = folder / "program.py"
    file.write_text(PROGRAM, encoding="utf-8")
    return [sys.executable, str(file)]


async def test_calls_are_answered_and_refusals_have_their_kind(tmp_path: Path) -> None:
    async with companion(program(tmp_path), {"events": 0}, folder=tmp_path) as running:
        assert await running.call("echo", {"text": "ä\n"}) == {"text": "ä\n"}
        for name, error in (("refuse", RateLimited), ("break", Undeliverable), ("unknown", Undeliverable)):
            with pytest.raises(error):
                await running.call(name, {})
        with pytest.raises(Unanswered):
            await running.call("hang", {}, seconds=0.01)


async def test_many_calls_at_once_get_their_own_answers(tmp_path: Path) -> None:
    async with companion(program(tmp_path), {"events": 0}, folder=tmp_path) as running:
        answers = await asyncio.gather(*[running.call("echo", {"number": number}) for number in range(100)])
    assert [answer["number"] for answer in answers] == list(range(100))


async def test_events_come_in_order_and_one_by_one(tmp_path: Path) -> None:
    async with companion(program(tmp_path), {"events": 50}, folder=tmp_path) as running:
        seen = []
        async for event in running.events():
            data = event["data"]
            assert isinstance(data, dict)
            seen.append(data["number"])
            assert running._events.empty(), "the next one comes after the acknowledgement"
            if len(seen) == 50:
                break
    assert seen == list(range(50))


async def test_the_end_of_the_program_ends_events_and_calls(tmp_path: Path) -> None:
    async with companion(program(tmp_path), {"events": 0}, folder=tmp_path) as running:
        with pytest.raises(Unanswered):
            await running.call("die", {})
        with pytest.raises(Unreached):
            _ = [event async for event in running.events()]
        with pytest.raises(Unreached):
            await running.call("echo", {})


async def test_the_program_ends_with_the_block_whatever_it_does(tmp_path: Path) -> None:
    async with companion(program(tmp_path), {"events": 1}, folder=tmp_path) as running:
        await anext(running.events())
        process = running.process
    assert process.returncode == 0


async def test_a_cancellation_ends_the_program(tmp_path: Path) -> None:
    started = asyncio.get_running_loop().create_future()

    async def stays() -> None:
        async with companion(program(tmp_path), {"events": 0}, folder=tmp_path) as running:
            started.set_result(running.process)
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(stays())
        process = await started
        task.cancel()
    assert process.returncode is not None


async def test_a_program_that_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Unreached, match="cannot be started"):
        async with companion(["/nonexistent"], {}, folder=tmp_path):
            pass


async def test_lines_that_are_no_json_are_the_end(tmp_path: Path) -> None:
    with pytest.raises(Unreached):
        async with companion(["sh", "-c", "read task; echo hello; cat"], {}, folder=tmp_path) as running:
            _ = [event async for event in running.events()]
