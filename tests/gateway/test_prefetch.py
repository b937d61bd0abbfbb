"""`media.prefetch`: the files of a message are in the session's folder before its turn."""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from belino.agents.command import Config as CommandConfig
from belino.agents.http import Config as HttpConfig
from belino.config import AgentConfig, Config
from belino.gateway.gateway import Gateway
from belino.net.redact import Secret
from belino.testing.files import make_png
from gateway.house import House

LISTS = (
    "import os, sys; told = sys.stdin.read(); "
    "print(sorted(os.listdir('.')), 'not to be had' in told, all(name in told for name in os.listdir('.')))"
)


class CommandHouse(House):
    """A house whose agent is a program that lists its folder."""

    prefetch: Literal["never", "message"] = "message"
    max_bytes = 1_000_000

    def config(self) -> Config:
        config = super().config()
        program = CommandConfig(command=(sys.executable, "-c", LISTS))
        media = replace(config.media, prefetch=self.prefetch, max_bytes=self.max_bytes)
        return replace(config, agent=AgentConfig(kind="command", options=program), media=media)

    def gateway(self) -> Gateway:
        return Gateway(self.config(), self.home, clock=self.clock, make_adapter=self.make_adapter)


async def so(condition: Callable[[], object]) -> None:
    """Wait for a process of its own, which needs real time."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


async def listed(house: CommandHouse) -> str:
    house.prepare()._far_side.files["f1"] = make_png(48, 32)
    async with house.at_work() as gateway:
        message = house.say("what is this?")
        await gateway.accept(replace(message, media=(house.picture(message),)))
        await so(house.wire.texts)
        return str(house.wire.texts()[-1])


async def test_the_files_of_a_message_are_in_the_folder_before_the_turn_and_named_in_it(tmp_path: Path) -> None:
    said = await listed(CommandHouse(tmp_path / "home"))
    assert said.count(".png") == 1 or said.count(".jpg") == 1
    assert said.endswith("False True")


async def test_by_default_nothing_is_fetched_before_an_agent_asks(tmp_path: Path) -> None:
    house = CommandHouse(tmp_path / "home")
    house.prefetch = "never"
    assert await listed(house) == "[] False True"


async def test_a_file_over_the_limit_is_not_fetched_and_the_prompt_says_so(tmp_path: Path) -> None:
    house = CommandHouse(tmp_path / "home")
    house.max_bytes = 10
    assert await listed(house) == "[] True True"


def test_an_agent_that_opens_no_files_is_not_prefetched_for() -> None:
    from belino.agents.http import Agent

    config = HttpConfig(url="https://agent.example/turn", secret=Secret("S", "0123456789abcdef"))
    assert not Agent(config).accepts.files
