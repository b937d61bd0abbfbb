"""belino models ls|get NAME: list local speech models, and fetch one after asking."""

import asyncio
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from belino.cli import FAILED, OK
from belino.cli.show import clean, progress_bar, show_json
from belino.domain.units import format_size
from belino.storage.home import Home
from belino.understanding.models import MODELS, SOURCE, NamedModel, Progress, fetch_model, is_fetched, named


def models_arguments(parser: ArgumentParser) -> None:
    doing = parser.add_subparsers(dest="doing", required=True, metavar="ls|get", help="list the models, or fetch one")
    doing.add_parser("ls", help="list the models", description="List the models, and which of them are here.")
    getting = doing.add_parser(
        "get", help="fetch a model", description="Fetch a model into the state folder, after asking."
    )
    getting.add_argument("name", metavar="NAME", help=f"one of {', '.join(MODELS)}")
    getting.add_argument("--yes", action="store_true", help="do not ask")
    getting.add_argument("--source", metavar="URL", default=SOURCE, help=f"a mirror of {SOURCE}")


def run_models(args: Namespace) -> int:
    return _list(args) if args.doing == "ls" else _get(args)


def _list(args: Namespace) -> int:
    folder = Home.at(args.home).models
    if args.json:
        show_json([_as_json(model, fetched=is_fetched(model, folder)) for model in MODELS.values()])
        return OK
    for model in MODELS.values():
        state = "here" if is_fetched(model, folder) else format_size(model.size)
        print(f"{model.name:<14} {state:>8}  {model.says}")
    print('use one with [[tools.media.audio.models]] provider = "local_whisper", model = "NAME"')
    return OK


def _as_json(model: NamedModel, *, fetched: bool) -> dict[str, object]:
    return {
        "name": model.name, "says": model.says, "provider": model.provider, "bytes": model.size,
        "license": model.license, "fetched": fetched,
    }  # fmt: skip


def _get(args: Namespace) -> int:
    model, folder = named(args.name), Home.at(args.home).models
    if not is_fetched(model, folder) and not args.yes and not _agrees(model, args.source):
        print("belino: nothing was fetched", file=sys.stderr)
        return FAILED
    with progress_bar(model.name, quiet=args.json) as told:
        path = asyncio.run(_fetched(model, args, told))
    if args.json:
        show_json({"name": model.name, "folder": str(path)})
    else:
        print(clean(f"{model.name} is in {path}"))
    return OK


def _agrees(model: NamedModel, source: str) -> bool:
    host = source.partition("://")[2].partition("/")[0]
    print(
        f"Fetch {format_size(model.size)} of {model.repository} ({model.license} license) from {clean(host)}? [y/N] ",
        end="", file=sys.stderr, flush=True,
    )  # fmt: skip
    return sys.stdin.readline().strip().lower() in ("y", "yes")


async def _fetched(model: NamedModel, args: Namespace, told: Progress) -> Path:
    from belino.config import load
    from belino.net.client import Client
    from belino.net.clock import SystemClock
    from belino.net.guard import Guard

    home = Home.at(args.home)
    http = Client(guard=Guard(load(home).net.allow))
    try:
        return await fetch_model(model, home.models, http, SystemClock(), source=args.source, progress=told)
    finally:
        await http.close()
