"""Choice: an answer that a person picks by a button, or by its number where a platform has no buttons."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

LEAST, MOST = 2, 10
LABEL_CHARS = 40
KEY_CHARS = 12
VALID_DAYS = 7

Style = Literal["", "primary", "danger"]

_NUMBER = re.compile(r"\s*([0-9]{1,2})[.)]?\s*")
KEY = re.compile(rf"[0-9a-f]{{{KEY_CHARS}}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of the answers that a question offers; several make a question of the turn's answer."""

    label: str
    value: str = ""
    """What the agent is told; the label if it is empty."""
    style: Style = ""
    who: str | None = None
    """The id of the only sender who may choose it; None means that of the message that is answered, `*` anyone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """A choice as it goes to a platform, which returns its key when it is pressed."""

    key: str
    label: str
    style: Style = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceMade:
    """A choice that was made, or why it was not."""

    question: str = ""
    label: str = ""
    value: str = ""
    refused: str = ""

    @property
    def text(self) -> str:
        """The message that the press is."""
        told = json.dumps({"question_id": self.question, "value": self.value}, ensure_ascii=False)
        return f"{self.label}\nchoice {told}"


def wrong_choices(choices: Sequence[Choice]) -> str:
    """What is wrong with the choices of a question; empty if nothing is."""
    labels = [choice.label.strip() for choice in choices]
    if not LEAST <= len(labels) <= MOST or len(set(labels)) != len(labels):
        return f"choices must be {LEAST} to {MOST} different labels"
    if any(not 1 <= len(label) <= LABEL_CHARS or not label.isprintable() for label in labels):
        return f"a label has 1 to {LABEL_CHARS} characters in one line"
    return ""


def numbered(question: str, choices: Sequence[Choice]) -> str:
    """A question with its choices as text."""
    lines = (f"{number}. {choice.label}" for number, choice in enumerate(choices, 1))
    return "\n".join((question, "", *lines, "", "Answer with the number."))


def chosen_number(text: str) -> int | None:
    """The number that a message is, if it is nothing else."""
    found = _NUMBER.fullmatch(text)
    return int(found[1]) if found else None
