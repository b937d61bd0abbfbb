"""Han characters: traditional Chinese ones replaced by the simplified ones, so that each finds the other.

The table is `han.txt` in this folder: groups of a simplified character and the traditional ones that it stands for.
"""

import re
from functools import cache
from importlib import resources

HAN = re.compile(r"[\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def simplified(text: str) -> str:
    """A text with simplified characters only."""
    return text.translate(_table()) if HAN.search(text) else text


@cache
def _table() -> dict[int, str]:
    lines = resources.files("belino.search").joinpath("han.txt").read_text(encoding="utf-8").splitlines()
    groups = (group for line in lines if not line.startswith("#") for group in line.split())
    return {ord(traditional): group[0] for group in groups for traditional in group[1:]}
