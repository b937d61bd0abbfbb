"""Validate one table into its dataclass, each mistake in one sentence; the only module that uses pydantic."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from belino.config.reference import default_of, is_union
from belino.config.secrets import SECRETS, read_secret
from belino.domain.errors import ConfigError
from belino.net.redact import Secret

if TYPE_CHECKING:
    from pydantic_core import CoreSchema, ErrorDetails

T = TypeVar("T")


def build(kind: type[T], table: object, path: str, *, also: tuple[str, ...] = ()) -> T:
    """Build one dataclass from one table. `also` are keys of the same table that are read elsewhere."""
    from pydantic import PydanticUserError, TypeAdapter, ValidationError

    if not isinstance(table, Mapping):
        raise ConfigError(f"{path} must be a table; write [{path}]")
    clash = sorted({f.name for f in fields(_prepared(kind))} & set(also))
    if clash:
        raise ConfigError(f"{path}.{clash[0]} belongs to belino; {kind.__module__} must name its own key otherwise")
    try:
        # Through JSON, whose strict mode accepts a list for a tuple but never "8787" for a number.
        built = TypeAdapter(kind).validate_json(json.dumps(table, default=str), strict=True)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise ConfigError(_sentence(kind, table, path, problems[0], also) + more) from None
    except PydanticUserError as error:
        raise ConfigError(f"{path} cannot be read: the Config of {kind.__module__} is wrong ({error.code})") from None
    except ConfigError as error:
        raise ConfigError(f"{path}.{error}") from None
    _check_ranges(built, path)
    return built


def _prepared(kind: type[Any]) -> type[Any]:
    """The dataclass, set to refuse unknown keys, with every dataclass inside it; and pydantic support for Secret."""
    from pydantic import ConfigDict, with_config

    if not is_dataclass(kind):
        raise ConfigError(f"the Config of {kind.__module__} must be a dataclass")
    # Set here, so that an adapter's Config can use Secret without depending on the validator.
    Secret.__get_pydantic_core_schema__ = _secret_schema  # type: ignore[attr-defined]
    if "__pydantic_config__" not in vars(kind):
        with_config(ConfigDict(extra="forbid", allow_inf_nan=False))(kind)
        for hint in get_type_hints(kind).values():
            for inner in _dataclasses_in(hint):
                _prepared(inner)
    return kind


def _dataclasses_in(hint: Any) -> Iterator[type[Any]]:
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint
    for inner in get_args(hint):
        yield from _dataclasses_in(inner)


def _secret_schema(_source: object, _handler: Callable[..., object]) -> "CoreSchema":
    from pydantic_core import core_schema

    return core_schema.no_info_plain_validator_function(_open_secret)


def _open_secret(value: object) -> Secret:
    held_in, _, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    if held_in == "env" and name:
        held = os.environ.get(name, "")
        if not held:
            raise ValueError(f"names the environment variable {name}, which is not set; set it and start again")
        return Secret(name, held)
    if held_in == "file" and name:
        return Secret(name, read_secret(name, SECRETS.get()), held_in="file")
    raise ValueError(
        'must be written "env:NAME", with the secret itself in the environment variable NAME, '
        'or "file:NAME", with the secret in the file NAME of the state folder\'s secrets/'
    )


def _check_ranges(built: object, path: str) -> None:
    for f in fields(built):  # type: ignore[arg-type]
        value = getattr(built, f.name)
        for place, inner in _tables_in(value, f"{path}.{f.name}"):
            _check_ranges(inner, place)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        least, most = f.metadata.get("least", 0), f.metadata.get("most")
        if value < least or (most is not None and value > most):
            allowed = f"at least {least}" if most is None else f"from {least} to {most}"
            raise ConfigError(f"{path}.{f.name} must be {allowed}, not {value}{default_of(f)}")


def _tables_in(value: object, path: str) -> Iterator[tuple[str, object]]:
    """The tables in a value, each with its path."""
    if isinstance(value, tuple):
        for number, inner in enumerate(value):
            yield from _tables_in(inner, f"{path}[{number}]")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _tables_in(inner, f"{path}.{name}")
    elif is_dataclass(value) and not isinstance(value, type):
        yield path, value


def _sentence(
    kind: type[Any], table: Mapping[str, Any], path: str, problem: "ErrorDetails", also: tuple[str, ...]
) -> str:
    where = problem["loc"]
    name = path + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in where)
    if problem["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        parent = name.rpartition(".")[0]
        within = _type_at(kind, where[:-1])
        names = tuple(f.name for f in fields(within)) if is_dataclass(within) else ()
        return unknown(parent, str(where[-1]), (*names, *(also if len(where) == 1 else ())))
    says = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    if problem["type"] == "missing":
        return f"{name} is missing; it has no default"
    if problem["type"] == "value_error":
        return f"{name} {says}"
    default = next((default_of(f) for f in fields(kind) if where == (f.name,)), "")
    return f"{name} {says}, not {what(_value_at(table, where))}{default}"


def unknown(parent: str, name: str, known: tuple[str, ...]) -> str:
    full = f"{parent}.{name}" if parent else name
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"{full} is not a key belino knows; {hint}Known keys here: {', '.join(sorted(known)) or 'none'}"


def _type_at(kind: Any, steps: tuple[int | str, ...]) -> Any:
    for step in steps:
        if is_dataclass(kind) and isinstance(kind, type):
            kind = get_type_hints(kind).get(str(step), object)
            kind = next((a for a in get_args(kind) if a is not NoneType), kind) if is_union(kind) else kind
        else:
            kind = next((a for a in reversed(get_args(kind)) if a is not Ellipsis), object)
    return kind


def _value_at(table: object, steps: tuple[int | str, ...]) -> object:
    for step in steps:
        if isinstance(table, Mapping):
            table = table.get(step)
        elif isinstance(table, list) and isinstance(step, int):
            table = table[step]
    return table


def what(value: object) -> str:
    """The type of a value, never the value: it may be a misplaced secret."""
    names = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "a table",
    }
    return names.get(type(value), "something else")
