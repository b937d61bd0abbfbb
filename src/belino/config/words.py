"""Words for keys, types and defaults in the documentation and in error messages."""

import json
from dataclasses import MISSING
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from belino.net.redact import Secret

UNSET = "unset"


def default_of(f: Any) -> str:
    return f"; the default is {shown(f.default)}" if f.default is not MISSING else ""


def shown(value: object) -> str:
    if value is None:
        return UNSET
    if isinstance(value, tuple):
        return "[" + ", ".join(shown(inner) for inner in value) + "]"
    return json.dumps(value) if isinstance(value, bool | int | float) else json.dumps(str(value), ensure_ascii=False)


def is_union(hint: object) -> bool:
    return get_origin(hint) in (Union, UnionType)


def in_words(hint: Any) -> str:
    plain = {int: "integer", float: "number", str: "string", bool: "boolean", Path: "path", Secret: "secret"}
    if hint in plain:
        return plain[hint]
    if is_union(hint):
        return " or ".join(in_words(inner) for inner in get_args(hint) if inner is not NoneType)
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(json.dumps(choice) for choice in get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return "one of " + ", ".join(json.dumps(str(choice.value)) for choice in hint)
    if get_origin(hint) is tuple:
        return f"list of {in_words(get_args(hint)[0])}s"
    return "table"
