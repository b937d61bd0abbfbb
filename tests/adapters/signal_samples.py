"""Signal's samples, and the context in which they are parsed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from belino.adapters.signal.authors import SignalAccount, SignalParseContext
from belino.testing.clock import START

FOLDER = Path(__file__).parent.parent / "samples" / "signal"
SAMPLES = sorted(path.stem for path in FOLDER.glob("*.json"))
ME = SignalAccount(number="+4915100000000", uuid="9b1c2a30-7d44-4c0a-8a36-1f2e3d4c5b6a")
NAMES = {"5f0d7c52-6f0e-4a55-9d0b-0d5f4a1c9e01": "Ann", ME.uuid: "belino"}


def sample(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def view(
    *, bare: bool = False, aliases: Mapping[str, str] | None = None, places: Mapping[str, str] | None = None
) -> SignalParseContext:
    """What parsing knows; a bare one knows no names and not who we are."""
    if bare:
        return SignalParseContext(account="default", me=SignalAccount(), received=START)
    return SignalParseContext(
        account="default", me=ME, received=START, names=NAMES, aliases=aliases or {}, places=places or {}
    )
