"""belino replay FILE: run a cassette offline through a whole gateway, and show the differences."""

import asyncio
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from belino.cli import FAILED, OK
from belino.cli.show import clean, counted, paint, show_json
from belino.config import AgentConfig, load
from belino.domain.errors import ConfigError
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.gateway.replay import Replayed

SCRIPTED = "recorded"


def replay_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="a cassette, as `belino record stop` writes it")
    parser.add_argument(
        "--agent", metavar="NAME", default=SCRIPTED, help="who answers: recorded (default), demo, or one of belino.toml"
    )


def run_replay(args: Namespace) -> int:
    from belino.cassette.file import read_cassette
    from belino.gateway.replay import replay

    cassette = read_cassette(args.file)
    replayed = asyncio.run(replay(cassette, _agent(args)))
    if args.json:
        show_json(_as_json(replayed))
    else:
        _show(replayed)
    return FAILED if replayed.differences else OK


def _agent(args: Namespace) -> AgentConfig | None:
    """The agent that replaces the recorded one, by kind, name or position in the configuration."""
    if args.agent == SCRIPTED:
        return None
    if args.agent == "demo":
        return AgentConfig()
    agent = load(Home.at(args.home)).agent
    known = {name: each for each in (*agent.places.values(), agent) for name in (each.kind, each.name)}
    found = (known | dict(agent.places)).get(args.agent)
    if found is None:
        raise ConfigError(f"there is no agent {args.agent!r}; known ones: {', '.join([SCRIPTED, 'demo', *known])}")
    return AgentConfig(kind=found.kind, name=found.name, options=found.options)


def _as_json(replayed: "Replayed") -> dict[str, object]:
    return {
        "same": not replayed.differences,
        "counts": dict(replayed.counts),
        "differences": [
            {"what": each.what, "where": each.where, "recorded": each.recorded, "replayed": each.replayed}
            for each in replayed.differences
        ],
        "left_out": dict(replayed.left_out),
    }


def _show(replayed: "Replayed") -> None:
    for each in replayed.differences:
        print(clean(f"{paint('differs', 'red')}  {each.where}"))
        for line in each.diff:
            print(clean(f"    {line}"))
    for sha256, why in replayed.left_out.items():
        print(clean(f"not in the cassette: {sha256[:12]}: {why}"))
    counts = ", ".join(counted(count, kind) for kind, count in sorted(replayed.counts.items()))
    found = counted(len(replayed.differences), "difference") if replayed.differences else "nothing differs"
    print(f"{found} ({counts or 'the cassette is empty'})")
