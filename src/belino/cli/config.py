"""belino config show|check|init|reload: print the settings, check them, write a first file, or apply the file."""

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from belino.cli import OK
from belino.cli.client import is_locked, needed_gateway
from belino.cli.show import clean, show_json, show_table
from belino.config import as_table, load, template
from belino.domain.errors import BelinoError, ConfigError
from belino.storage.home import Home

RELOAD_SECONDS = 120.0
"""Time limit of the gateway: an adapter that is replaced ends first."""


def config_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="show|check|init|reload", help="what to do")
    for name, says in (
        ("show", "print every current setting"),
        ("check", "check whether the configuration is valid"),
        ("init", "write a commented belino.toml with every default"),
    ):
        action = actions.add_parser(name, help=says, description=f"{says.capitalize()}.")
        action.add_argument("--config", type=Path, metavar="FILE", help="use this file instead of the state folder's")
    says = "apply the configuration file to the running gateway, without dropping turns"
    apply = actions.add_parser("reload", help=says, description=f"{says.capitalize()}.")
    apply.add_argument(
        "--reconnect",
        action="append",
        default=[],
        metavar="ACCOUNT",
        help="connect this account (platform:account) again, even if nothing changed",
    )


def run_config(args: Namespace) -> int:
    home = Home.at(args.home)
    if args.action == "reload":
        return _reload(args, home)
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


def _reload(args: Namespace, home: Home) -> int:
    wish = {"reconnect": args.reconnect}
    done = needed_gateway(home).ask("POST", "/api/config/reload", wish, seconds=RELOAD_SECONDS)
    if args.json:
        show_json(done)
        return OK
    for says in reload_lines(done):
        print(clean(says))
    return OK


def apply_to_running(home: Home) -> tuple[dict[str, Any] | None, str]:
    """Have the running gateway apply the file that was just written: what it did, and a sentence for the person."""
    if not is_locked(home):
        return None, "Start the gateway: belino serve"
    try:
        client = needed_gateway(home)
        done: dict[str, Any] = client.ask("POST", "/api/config/reload", {"reconnect": []}, seconds=RELOAD_SECONDS)
    except BelinoError as error:
        return None, f"The running gateway did not apply it: {error}. Restart it."
    if done["restart"]:
        return done, f"Restart the running gateway: it is needed for {', '.join(done['restart'])}."
    return done, "The running gateway has applied it."


def reload_lines(done: dict[str, Any]) -> list[str]:
    """What a reload did, a line each."""
    lines = [f"applied {', '.join(done['applied'])}"] if done["applied"] else []
    lines += [f"connected {account}" for account in done["reconnected"]]
    lines += [f"removed {account}" for account in done["removed"]]
    lines += [f"needs a restart: {', '.join(done['restart'])}"] if done["restart"] else []
    return lines or ["nothing changed"]


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
