"""Which words of a text name a file that is there."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belino.delivery.collect import find_named, replaced

PATHS = (
    "outgoing/chart.png",
    "outgoing/pending/my report.pdf",
    "outgoing/pending/图.png",
    "outgoing/notes",
    "outgoing/sub/3.5",
    "outgoing/a_b-c.tar.gz",
)
ROOTS = (("outgoing", "/h/outgoing/"), ("outgoing", ""), ("outgoing/pending", ""))


def names(text: str) -> list[str]:
    return [text[one.start : one.end] for one in find_named(text, PATHS, ROOTS)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("See chart.png.", ["chart.png"]),
        ("See chart.png, and /h/outgoing/chart.png!", ["chart.png", "/h/outgoing/chart.png"]),
        ("It is at `/h/outgoing/pending/my report.pdf`.", ["/h/outgoing/pending/my report.pdf"]),
        ("my report.pdf", ["my report.pdf"]),
        ("pending/my report.pdf", ["pending/my report.pdf"]),
        ("./chart.png", ["./chart.png"]),
        ("```\nchart.png\n```", ["chart.png"]),
        ("![a chart](/h/outgoing/chart.png)", ["/h/outgoing/chart.png"]),
        ("[report](pending/my%20report.pdf)", ["pending/my%20report.pdf"]),
        ("“chart.png”", ["chart.png"]),
        ("请看chart.png吧", ["chart.png"]),
        ("图.png", ["图.png"]),
        ("**chart.png**: the chart", ["chart.png"]),
        ('He said "chart.png."', ["chart.png"]),
        ("`notes`", ["notes"]),
        ("a_b-c.tar.gz", ["a_b-c.tar.gz"]),
        ("sub/3.5", ["sub/3.5"]),
    ],
)
def test_a_file_is_named_wherever_its_path_stands_by_itself(text: str, found: list[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "mychart.png",
        "chart.png.exe",
        "chart.pngx",
        "xchart.png",
        "../chart.png",
        "/etc/chart.png",
        "/h/outgoing-evil/chart.png",
        "/h/outgoing/../outgoing/chart.png",
        "~/chart.png",
        "file:///h/outgoing/chart.png",
        "file:chart.png",
        "MEDIA:/h/outgoing/chart.png",
        "https://host.test/chart.png",
        "\\\\host\\share\\chart.png",
        "C:\\chart.png",
        "%2e%2e/chart.png",
        "chart%2epng",
        "地图.png",
        "I took notes.",
        "user@chart.png",
        "chart.png/inner",
        "chart.png:12",
    ],
)
def test_what_only_holds_the_name_of_a_file_is_text(text: str) -> None:
    assert names(text) == []


def test_a_path_becomes_the_name_and_a_link_its_words() -> None:
    text = "At /h/outgoing/chart.png; ![x](/h/outgoing/chart.png) [open it](chart.png) [chart.png](./chart.png)"
    named = find_named(text, PATHS, ROOTS)
    told = replaced(text, named, {"outgoing/chart.png": "chart.png"})
    assert told == "At chart.png; chart.png open it (chart.png) chart.png"
    assert replaced(text, named, {}) == text


@given(st.text(alphabet='ab./ \n`()[]!"chartpng图', max_size=200))
def test_no_text_breaks_it_and_what_is_not_attached_is_untouched(text: str) -> None:
    named = find_named(text, PATHS, ROOTS)
    assert replaced(text, named, {}) == text
    assert all(one.start < one.end <= len(text) for one in named)
    assert all(before.end <= after.start for before, after in pairwise(named))


def test_a_name_that_is_no_text_hides_no_other_file() -> None:
    paths = ["outgoing/bad\udcff.txt", "outgoing/chart.png"]
    found = find_named("See chart.png and [that](bad%FF.txt).", paths, [("outgoing", "")])
    assert [named.path for named in found] == ["outgoing/chart.png", "outgoing/bad\udcff.txt"]
