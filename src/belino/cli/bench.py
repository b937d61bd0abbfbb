"""belino bench NAME: measure this machine, compared with the simplest alternative."""

import pkgutil
from argparse import ArgumentParser, Namespace
from importlib import import_module
from pathlib import Path

from belino import bench
from belino.cli import FAILED, OK
from belino.cli.show import show_json
from belino.domain.errors import BelinoError

OPTIONS = {"minutes": "soak", "rate": "soak", "weights": "understanding"}
"""Options of one bench only."""


def bench_arguments(parser: ArgumentParser) -> None:
    names = sorted(module.name for module in pkgutil.iter_modules(bench.__path__) if not module.name.startswith("_"))
    parser.add_argument("name", metavar="NAME", choices=names, help=f"what to measure: {', '.join(names)}")
    parser.add_argument("--minutes", type=float, metavar="N", help="how long `soak` runs; judged from 30 on")
    parser.add_argument("--rate", type=float, metavar="N", help="how many messages a second `soak` sends")
    parser.add_argument(
        "--corpus", type=Path, metavar="FOLDER", help="measure on these files instead of generated ones"
    )
    parser.add_argument("--weights", type=Path, metavar="FOLDER", help="a Whisper model that `understanding` compares")


def run_bench(args: Namespace) -> int:
    for folder in (args.corpus, args.weights):
        if folder is not None and not folder.is_dir():
            raise BelinoError(f"{folder} is not a folder")
    given = {name: value for name in OPTIONS if (value := getattr(args, name)) is not None}
    for name in given:
        if args.name != OPTIONS[name]:
            raise BelinoError(f"--{name} is for `belino bench {OPTIONS[name]}` only")
    if any(given.get(name, 1) <= 0 for name in ("minutes", "rate")):
        raise BelinoError("--minutes and --rate must be above 0")
    rows = import_module(f"belino.bench.{args.name}").run(corpus=args.corpus, **given)
    if args.json:
        show_json(bench.as_json(rows))
    else:
        print(bench.table(rows))
    return OK if all(row.ok is not False for row in rows) else FAILED
