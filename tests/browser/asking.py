"""An agent that asks with buttons, and tells what was chosen."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from belino.domain.choice import Choice
from belino.domain.turn import Accepted, Final, ReplyPart, Turn

HOSTILE = "<img src=x onerror=alert(1)> **No**"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The asking agent has no settings."""


class Agent:
    """Asks whether to deploy."""

    remembers = False
    sees_images = False

    def __init__(self, config: Config) -> None:
        pass

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        yield Accepted()
        if chosen := turn.message.choice:
            yield Final(text=f"You chose {chosen.value}.")
        elif turn.message.text == "Stay silent":
            yield Final(text="nothing to ask", silent=True)
        else:
            choices = (
                Choice(label="Yes", value="y", style="primary"),
                Choice(label=HOSTILE, value="n", style="danger"),
            )
            yield Final(text=f"{turn.message.text}: shall I deploy?", choices=choices)
