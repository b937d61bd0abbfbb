"""belino bench NAME: measure this machine, beside the simplest thing that could do the same."""

import pkgutil
from argparse import ArgumentParser, Namespace
from importlib import import_module
from pathlib import Path

from belino import bench
from belino.cli import FAILED, OK
from belino.cli.show import show_json
from belino.domain.errors import BelinoError


def add_arguments(parser: ArgumentParser) -> None:
    names = sorted(module.name for module in pkgutil.iter_modules(bench.__path__) if not module.name.startswith("_"))
    parser.add_argument("name", metavar="NAME", choices=names, help=f"what to measure: {', '.join(names)}")
    parser.add_argument("--corpus", type=Path, metavar="FOLDER", help="measure on these files instead of made ones")


def run(args: Namespace) -> int:
    if args.corpus is not None and not args.corpus.is_dir():
        raise BelinoError(f"{args.corpus} is not a folder")
    rows = import_module(f"belino.bench.{args.name}").run(corpus=args.corpus)
    if args.json:
        show_json(bench.as_json(rows))
    else:
        print(bench.table(rows))
    return OK if all(row.ok is not False for row in rows) else FAILED
