"""Killed at every step of a delivery, in every class of platform: nothing is lost, and no duplicate is silent."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from belino.delivery.send import PERHAPS_TWICE
from faults.looking import SOAK, check_state_folder

PROGRAM = Path(__file__).with_name("dying.py")
LIVES = 3 if SOAK else 2
ROUND_SECONDS = 60 * (60 if SOAK else 3)
STEPS = {
    "before finish_turn",
    "after finish_turn",
    "before claim_parcel",
    "after claim_parcel",
    "before the call",
    "the platform has all of it",
    "the platform shows it",
    "the answer is here",
    "before confirm_parcel",
    "after confirm_parcel",
}


def rounds(folder: Path, kind: str, policy: str, trouble: str, way: str = "pending") -> list[dict[str, Any]]:
    """What was left after every round."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder), kind, policy, trouble, str(LIVES), way],
        capture_output=True,
        text=True,
        timeout=ROUND_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_round(left: dict[str, Any]) -> None:
    """What holds whatever the platform is like: all is accounted for, and told as it was shown."""
    where = f"killed {left['killed']} in round {left['round']}"
    states = {parcel["key"]: parcel["state"] for parcel in left["parcels"]}
    assert states, where
    shown = Counter(left["shown"])
    for key, state in states.items():
        assert shown[key] or state != "sent", f"{key} is lost: {where}"
    assert not set(shown) - set(states), where
    assert len(left["said"]) == len(set(left["said"])) == list(states.values()).count("sent"), where
    check_state_folder(Path(left["home"]))
    files = [path for path in Path(left["home"]).glob("media/*/outgoing/*/report.txt") if path.is_file()]
    there = sorted(str(path.relative_to(left["home"])) for path in Path(left["home"]).glob("media/*/*/**/*"))
    assert len(files) == 1, f"{where}: {there}"
    assert files[0].parent.name != "sent" or left["parcels"][0]["state"] == "sent", where


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "trouble"), [("key", "none"), ("read-back", "none"), ("read-back", "busy")])
def test_killed_at_any_step_everything_is_shown_once_and_in_order_where_duplicates_can_be_told(
    tmp_path: Path, kind: str, trouble: str
) -> None:
    all_left = rounds(tmp_path, kind, "hold", trouble)
    assert {left["killed"] for left in all_left} >= STEPS
    for left in all_left:
        check_round(left)
        keys = [parcel["key"] for parcel in left["parcels"]]
        assert left["shown"] == keys, f"killed {left['killed']} in round {left['round']}"
        assert [(parcel["files"], parcel["state"]) for parcel in left["parcels"]] == [(1, "sent"), (0, "sent")]


@pytest.mark.slow
def test_killed_at_any_step_a_file_that_two_answers_name_is_sent_once(tmp_path: Path) -> None:
    all_left = rounds(tmp_path, "key", "hold", "none", "named")
    assert {left["killed"] for left in all_left} >= STEPS
    for left in all_left:
        where = f"killed {left['killed']} in round {left['round']}"
        assert left["shown"] == [parcel["key"] for parcel in left["parcels"]], where
        states = [(parcel["files"], parcel["state"]) for parcel in left["parcels"]]
        assert states == [(1, "sent"), (0, "sent"), (0, "sent")], where
        check_state_folder(Path(left["home"]))


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "trouble"), [("hold", "none"), ("resend", "none"), ("resend", "busy")])
def test_killed_at_any_step_every_possible_duplicate_is_flagged_where_none_can_be_told(
    tmp_path: Path, policy: str, trouble: str
) -> None:
    all_left = rounds(tmp_path, "neither", policy, trouble)
    assert {left["killed"] for left in all_left} >= STEPS
    flagged = 0
    for left in all_left:
        check_round(left)
        shown = Counter(left["shown"])
        for parcel in left["parcels"]:
            where = f"{parcel}, killed {left['killed']} in round {left['round']}"
            flag = parcel["state"] == "uncertain" or parcel["reason"] == PERHAPS_TWICE
            flagged += flag
            assert shown[parcel["key"]] <= (1 if policy == "hold" else 2), where
            assert flag or shown[parcel["key"]] == 1, where
            assert parcel["state"] in ("sent", "uncertain"), where
            assert policy == "hold" or shown[parcel["key"]] or LIVES > 2, where
    assert flagged


@pytest.mark.slow
def test_killed_at_any_step_a_file_that_cannot_be_sent_is_told_of_once_and_the_words_go_out(tmp_path: Path) -> None:
    all_left = rounds(tmp_path, "key", "hold", "never")
    assert "after end_parcel" in {left["killed"] for left in all_left}
    for left in all_left:
        where = f"killed {left['killed']} in round {left['round']}"
        assert len(left["shown"]) == len(set(left["shown"])), where
        ends = Counter((parcel["files"], parcel["state"]) for parcel in left["parcels"])
        given_up = ends[1, "dead"] + ends[1, "uncertain"]
        told = [parcel["text"] for parcel in left["parcels"] if "could not be sent" in parcel["text"]]
        assert given_up + ends[1, "sent"] == 1, where
        assert len(told) == ends[1, "dead"], where
        assert left["parcels"][1]["text"] == "the answer", where
        check_state_folder(Path(left["home"]))
