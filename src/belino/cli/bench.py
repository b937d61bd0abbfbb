"""belino bench NAME: measure this machine, compared with the simplest alternative."""

import pkgutil
from argparse import ArgumentParser, Namespace
from importlib import import_module
from pathlib import Path

from belino import bench
from belino.cli import FAILED, OK
from belino.cli.show import show_json
from belino.domain.errors import BelinoError


def bench_arguments(parser: ArgumentParser) -> None:
    names = sorted(module.name for module in pkgutil.iter_modules(bench.__path__) if not module.name.startswith("_"))
    parser.add_argument("name", metavar="NAME", choices=names, help=f"what to measure: {', '.join(names)}")
    parser.add_argument("--minutes", type=float, metavar="N", help="how long `soak` runs; judged from 30 on")
    parser.add_argument("--rate", type=float, metavar="N", help="how many messages a second `soak` sends")
    parser.add_argument(
        "--corpus", type=Path, metavar="FOLDER", help="measure on these files instead of generated ones"
    )


def run_bench(args: Namespace) -> int:
    if args.corpus is not None and not args.corpus.is_dir():
        raise BelinoError(f"{args.corpus} is not a folder")
    given = {name: value for name in ("minutes", "rate") if (value := getattr(args, name)) is not None}
    if given and args.name != "soak":
        raise BelinoError(f"--{next(iter(given))} is for `belino bench soak` only")
    if any(value <= 0 for value in given.values()):
        raise BelinoError("--minutes and --rate must be above 0")
    rows = import_module(f"belino.bench.{args.name}").run(corpus=args.corpus, **given)
    if args.json:
        show_json(bench.as_json(rows))
    else:
        print(bench.table(rows))
    return OK if all(row.ok is not False for row in rows) else FAILED
