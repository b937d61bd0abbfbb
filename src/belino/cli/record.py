"""belino record: write what happens in a conversation to a file; belino replay FILE: run it offline and compare."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.cli import FAILED, OK
from belino.cli.client import needed_gateway
from belino.cli.show import clean, counted, local_time, paint, show_json
from belino.domain.errors import ConfigError
from belino.domain.message import ConversationKey
from belino.domain.units import format_size
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.config import AgentConfig
    from belino.gateway.replay import Replayed

PATH = "/api/recording"
SCRIPTED = "recorded"


def record_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="start|stop|status", help="what to do (default: status)")
    start = actions.add_parser(
        "start", help="begin", description="Record until `belino record stop`, also across restarts of the gateway."
    )
    start.add_argument(
        "--conversation", metavar="CONVERSATION", help="platform:account:channel[:thread] (default: all)"
    )
    start.add_argument("--without-text", action="store_true", help="replace what people and agents wrote, too")
    start.add_argument("--without-media", action="store_true", help="leave out the bytes of media")
    actions.add_parser("stop", help="end it", description="End the recording and write its cassette.")
    actions.add_parser("status", help="show its state", description="Show what is being recorded.")


def run_record(args: Namespace) -> int:
    gateway = needed_gateway(Home.at(args.home))
    match args.action:
        case "start":
            where = ConversationKey.parse(args.conversation) if args.conversation else None
            wishes = {"without_text": args.without_text, "without_media": args.without_media}
            told = gateway.post(PATH, wishes | ({"conversation": str(where)} if where else {}))
            lines = _state(told["recording"])
        case "stop":
            told = gateway.delete(PATH)
            lines = _written(told)
        case _:
            told = gateway.get(PATH)
            lines = _state(told["recording"])
    if args.json:
        show_json(told)
    else:
        for line in lines:
            print(clean(line))
    return OK


def _state(recording: dict[str, Any] | None) -> list[str]:
    if recording is None:
        return ["nothing is being recorded; `belino record start` begins"]
    where, size = recording["conversation"] or "every conversation", format_size(recording["bytes"])
    if recording["ended"]:
        return [f"the recording stopped by itself: {recording['ended']}", "`belino record stop` writes its cassette"]
    since = local_time(recording["started"])
    return [f"recording {where} since {since} ({size})", "`belino record stop` ends it and writes the cassette"]


def _written(written: dict[str, Any]) -> list[str]:
    lines = [written["path"]]
    held = f"{counted(written['records'], 'record')} and {counted(written['media'], 'file')}"
    lines.append(f"it holds {held} ({format_size(written['bytes'])}); read docs/cassettes.md before you share it")
    if written["ended"]:
        lines.append(f"the recording had stopped by itself: {written['ended']}")
    lines += [f"not included: {sha256[:12]}: {why}" for sha256, why in written["left_out"].items()]
    return lines


def replay_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="a cassette, as `belino record stop` writes it")
    parser.add_argument(
        "--agent", metavar="NAME", default=SCRIPTED, help="who answers: recorded (default), demo, or one of belino.toml"
    )


def run_replay(args: Namespace) -> int:
    import asyncio

    from belino.cassette.file import read_cassette
    from belino.gateway.replay import replay

    cassette = read_cassette(args.file)
    replayed = asyncio.run(replay(cassette, _agent(args)))
    if args.json:
        show_json(_replayed_json(replayed))
    else:
        _show_replayed(replayed)
    return FAILED if replayed.differences else OK


def _agent(args: Namespace) -> "AgentConfig | None":
    """The agent that replaces the recorded one, by kind, name or position in the configuration."""
    if args.agent == SCRIPTED:
        return None
    from belino.config import AgentConfig, load

    if args.agent == "demo":
        return AgentConfig()
    agent = load(Home.at(args.home)).agent
    known = {name: each for each in (*agent.places.values(), agent) for name in (each.kind, each.name)}
    found = (known | dict(agent.places)).get(args.agent)
    if found is None:
        raise ConfigError(f"there is no agent {args.agent!r}; known ones: {', '.join([SCRIPTED, 'demo', *known])}")
    return AgentConfig(kind=found.kind, name=found.name, options=found.options)


def _replayed_json(replayed: "Replayed") -> dict[str, object]:
    return {
        "same": not replayed.differences,
        "counts": dict(replayed.counts),
        "differences": [
            {"what": each.what, "where": each.where, "recorded": each.recorded, "replayed": each.replayed}
            for each in replayed.differences
        ],
        "left_out": dict(replayed.left_out),
    }


def _show_replayed(replayed: "Replayed") -> None:
    for each in replayed.differences:
        print(f"{paint('differs', 'red')}  {clean(each.where)}")
        for line in each.diff:
            print(clean(f"    {line}"))
    for sha256, why in replayed.left_out.items():
        print(clean(f"not in the cassette: {sha256[:12]}: {why}"))
    counts = ", ".join(counted(count, kind) for kind, count in sorted(replayed.counts.items()))
    found = counted(len(replayed.differences), "difference") if replayed.differences else "nothing differs"
    print(f"{found} ({counts or 'the cassette is empty'})")
