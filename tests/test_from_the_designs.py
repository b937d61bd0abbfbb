"""The page about the design ideas names only tools, keys, limits and folders that exist."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import pytest

from belino import registry
from belino.config import reference
from belino.context.json_format import snapshot_json, thread_json
from belino.context.line_format import placeholder
from belino.domain.context import (
    AdjacentMessage,
    ChannelSnapshot,
    ContextMessage,
    ThreadActivity,
    ThreadContext,
    Truncation,
)
from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Author, ConversationKey
from belino.domain.reading import MediaCapability, Reading, ReadingOutcome
from belino.domain.stored import ManifestEntry
from belino.storage.home import Home
from belino.tools.toolbox import SPECS
from belino.turns.prompt import RECOVERY
from belino.understanding.config import DEFAULTS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "from-the-designs.md").read_text(encoding="utf-8")
NAME = re.compile(r"`([^`]+)`")
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HERE = ConversationKey(platform="telegram", account="default", channel="-100")
ANA = Author(id="7", name="Ana")


def rows(*columns: str) -> Iterator[list[str]]:
    """The cells of every table with these columns first."""
    head = "| " + " | ".join(columns) + " |"
    for table in re.findall(r"(?:^\|.*\n)+", PAGE, re.M):
        first, _, *others = table.splitlines()
        if first.startswith(head):
            yield from ([cell.strip() for cell in row.strip("|").split(" | ")] for row in others)


def names(cell: str) -> list[str]:
    return NAME.findall(cell)


def media(**more: object) -> MediaRef:
    known = {"platform": "telegram", "account": "default", "channel_id": "-100", "message_id": "1", "item": "0"}
    return MediaRef(**{**known, "kind": MediaKind.IMAGE, "mime": "image/png", "created": NOW, **more})  # type: ignore[arg-type]


def test_every_setting_has_the_default_that_is_stated() -> None:
    defaults = {key.name: key.default for key in reference()}
    stated = {names(setting)[0]: names(default)[0] for setting, default, _ in rows("setting", "default")}
    assert len(stated) > 10
    assert stated == {name: defaults.get(name) for name in stated}


def test_every_tool_is_there_with_its_arguments() -> None:
    stated = {names(tool)[0]: set(names(arguments)) for tool, arguments, _ in rows("tool", "arguments")}
    known = {spec.name: spec.schema["properties"] for spec in SPECS}
    assert stated.keys() == known.keys()
    for tool, arguments in stated.items():
        assert arguments == set(known[tool]), tool  # type: ignore[call-overload]


def test_every_value_has_the_keys_that_are_stated() -> None:
    message = ContextMessage(message_id="1", ts=NOW, author=ANA, text="Hi", media=(media(),))
    activity = ThreadActivity(reply_count=1, replies_last_1h=1, last_reply_ts=NOW)
    near = AdjacentMessage(message_id="2", ts=NOW, author=ANA, snippet="Ho", thread_activity=activity)
    snapshot = snapshot_json(ChannelSnapshot(channel=HERE, channel_name="Team", anchor=message, adjacent=(near,)))
    thread = thread_json(
        ThreadContext(
            thread_id="1", root=message, replies=(message,), truncation=Truncation(total_replies=1, included_replies=1)
        )
    )
    known: dict[str, set[str]] = {
        "ChannelSnapshot": set(snapshot),
        "ThreadContext": set(thread),
        "manifest": {field.name for field in fields(ManifestEntry)},
        **dict(_inner(snapshot)),
        **dict(_inner(thread)),
    }
    stated = {names(value)[0]: set(names(keys)) for value, keys in rows("value", "keys")}
    assert len(stated) > 10
    for value, keys in stated.items():
        assert keys <= known[value], value
    assert stated["manifest"] == known["manifest"]


def _inner(value: Mapping[str, object]) -> Iterator[tuple[str, set[str]]]:
    for key, inside in value.items():
        held = inside[0] if isinstance(inside, list) and inside else inside
        if isinstance(held, dict):
            yield key, set(held)
            yield from _inner(held)


@pytest.mark.parametrize(
    "ref",
    [
        media(
            id="wa_k3v9d0q2m7xa",
            mime="image/jpeg",
            file_name="sunset.jpg",
            size=2_516_582,
            caption="Beautiful evening",
        ),
        media(id="tg_9xw2m4t0c1ab", kind=MediaKind.VOICE, mime="audio/ogg", duration=12.0),
        media(
            id="sl_h7d1s8k3p5vn",
            kind=MediaKind.DOCUMENT,
            mime="application/pdf",
            file_name="report.pdf",
            size=847 * 1024,
        ),
    ],
)
def test_a_placeholder_reads_as_shown(ref: MediaRef) -> None:
    assert placeholder(ref) in PAGE.splitlines()


def test_the_names_of_readings_are_those_of_the_code() -> None:
    stated = {part: names(those) for part, those in rows("part", "names")}
    keys = {key.name for key in reference()}
    assert stated["kinds"] == [kind.value for kind in MediaCapability]
    assert {f"tools.media.KIND.{key}" for key in stated["keys of a kind"]} <= keys
    assert {f"tools.media.KIND.models.{key}" for key in stated["keys of an entry"]} <= keys
    assert sorted(stated["providers"]) == sorted(registry.built_in("providers"))
    assert set(stated["a reading"]) <= {field.name for field in fields(Reading)}
    assert stated["outcomes"] == [outcome.value for outcome in ReadingOutcome]


def test_the_limits_of_readings_are_those_of_the_code() -> None:
    stated = {kind: limits for kind, *limits in rows("kind", "bytes")}
    known = {}
    for kind, limits in DEFAULTS.items():
        chars = "all" if limits.max_chars is None else f"{limits.max_chars:,}".replace(",", " ")
        known[kind.value] = [f"{limits.max_bytes // 1024**2} MB", chars, f"{limits.timeout:g}"]
    assert stated == known


def test_every_folder_is_made(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "home")
    home.incoming(HERE), home.outgoing(HERE)
    made = {str(path.relative_to(home.folder(HERE))) for path in home.folder(HERE).rglob("*")}
    assert {names(folder)[0] for folder, _ in rows("folder", "holds")} == made


def test_the_line_after_a_compaction_is_the_one_that_is_written() -> None:
    assert RECOVERY.format(3) in PAGE
