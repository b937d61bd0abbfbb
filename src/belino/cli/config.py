"""belino config show|check|init: print the settings, check them, or write a first file."""

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from belino.cli import OK
from belino.cli.show import show_json, show_table
from belino.config import as_table, load, template
from belino.domain.errors import ConfigError
from belino.storage.home import Home


def config_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="show|check|init", help="what to do")
    for name, says in (
        ("show", "print every current setting"),
        ("check", "check whether the configuration is valid"),
        ("init", "write a commented belino.toml with every default"),
    ):
        action = actions.add_parser(name, help=says, description=f"{says.capitalize()}.")
        action.add_argument("--config", type=Path, metavar="FILE", help="use this file instead of the state folder's")


def run_config(args: Namespace) -> int:
    home = Home.at(args.home)
    if args.action == "init":
        return _init(args.config or home.path / "belino.toml", as_json=args.json)
    config = load(home, args.config)
    if args.action == "show":
        _show(as_table(config), as_json=args.json)
        return OK
    file = args.config or home.config_file
    says = f"{file} is valid" if file.exists() else f"there is no {file}; all defaults apply"
    if args.json:
        show_json({"ok": True, "file": str(file), "exists": file.exists()})
    else:
        print(says)
    return OK


def _show(table: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        show_json(table)
    else:
        show_table(("key", "value"), [*_flat(table, "")], empty="nothing is set")


def _flat(value: object, path: str) -> list[tuple[str, object]]:
    if isinstance(value, dict) and value:
        return [row for key, inner in value.items() for row in _flat(inner, f"{path}.{key}" if path else str(key))]
    if isinstance(value, list) and value and all(isinstance(inner, dict) for inner in value):
        return [row for i, inner in enumerate(value) for row in _flat(inner, f"{path}[{i}]")]
    return [(path, "unset" if value is None else value)]


def _init(file: Path, *, as_json: bool) -> int:
    try:
        # O_EXCL: an existing configuration is never overwritten.
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise ConfigError(f"{file} already exists; edit it, or move it first") from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from None
    with os.fdopen(handle, "w", encoding="utf-8") as opened:
        opened.write(template())
    if as_json:
        show_json({"file": str(file)})
    else:
        print(f"wrote {file}")
    return OK
