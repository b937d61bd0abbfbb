"""Records as lines whose fields can be told apart again."""

import re

from hypothesis import given
from hypothesis import strategies as st

from belino.context.line_format import line


def split(text: str) -> list[str]:
    """Undo what `line` did."""
    plain = {"\\\\": "\\", "\\|": "|", "\\n": "\n"}
    fields = re.findall(r"((?:\\.|[^|\\])*)(?:\||\Z)", text)[: len(re.sub(r"\\.", "", text).split("|"))]
    return [re.sub(r"\\.", lambda found: plain[found.group()], field) for field in fields]


@given(st.lists(st.text(alphabet="a|\\n\n[") | st.text(), min_size=1, max_size=5))
def test_no_field_can_end_early_or_begin_another(fields: list[str]) -> None:
    written = line(fields)
    assert "\n" not in written
    assert split(written) == fields
