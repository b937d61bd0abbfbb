"""Error text: the message of our own errors, only the type of others, whose messages may hold secrets."""

import traceback
from pathlib import Path

from belino.domain.errors import BelinoError


def reason_of(error: BaseException) -> str:
    """A sentence for people."""
    return (str(error) if isinstance(error, BelinoError) else "") or type(error).__name__


def place_of(error: BaseException) -> str:
    """A line for the log: the type of the error, and the file and line where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"
