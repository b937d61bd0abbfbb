"""belino status: whether a gateway runs here, and what it holds; belino channels: what it holds of each channel."""

from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from belino import __version__
from belino.cli import OK
from belino.cli.client import GatewayClient, ask
from belino.cli.show import clean, counted, local_time, paint, show_json, show_table
from belino.domain.units import format_size
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.storage.store import Store

CHANNELS_SHOWN = 5
"""The channels that cost most if everything were fetched; --json lists all."""
_STATES = {"turns": "turns", "parcels": "answers"}
"""Counts that are given by state."""
_ONE = {"messages": "message", "channels": "channel", "conversations": "conversation", "uploads_open": "upload open"}


def run_status(args: Namespace) -> int:
    answer = {"home": str(Home.at(args.home).path), **ask(args, running=_running, resting=_resting)}
    if args.json:
        show_json(answer)
    else:
        _show(answer)
    return OK


def _running(gateway: GatewayClient) -> dict[str, Any]:
    return {"running": True, "url": gateway.url, **gateway.get("/api/status")}


async def _resting(store: "Store") -> dict[str, Any]:
    from belino.gateway.savings import as_json

    return {
        "running": False,
        "version": __version__,
        "waiting": await store.waiting_turns(),
        "counts": dict(await store.counts()),
        "savings": as_json(await store.media_tallies()),
    }


def _show(answer: dict[str, Any]) -> None:
    if answer["running"]:
        _show_running(answer)
    else:
        print(f"{paint('not running', 'yellow')}; start it with `belino serve`")
    print(f"state    {answer['home']}")
    print(f"waiting  {counted(answer['waiting'], 'turn')}")
    if answer["savings"]["media"]:
        print(f"savings  {answer['savings']['says']}")
        for channel in answer["savings"]["channels"][:CHANNELS_SHOWN]:
            print(clean(f"         {channel['channel']}: {channel['says']}"))
    for label, told in _counts(answer["counts"]).items():
        if told:  # --json includes zero counts
            print(f"{label:<8} {', '.join(told)}")


def _show_running(answer: dict[str, Any]) -> None:
    since = local_time(answer["started"])
    print(f"{paint('running', 'green')} at {answer['url']} since {since}, version {answer['version']}")
    agent = answer["agent"]
    print(clean(f"agent    {agent['name']} ({agent['kind']})"))
    for adapter in answer["adapters"]:
        print(_account_line(adapter))
    config = answer["config"]
    if config["rejected"]:
        instead = "the copy that worked last" if config["is_last_good"] else "the running configuration"
        print(f"{paint('config', 'red')}   {clean(f'rejected, {instead} is in use: ' + config['rejected'])}")
    elif config["restart"]:
        print(clean(f"config   needs a restart for: {', '.join(config['restart'])}"))
    for notice in answer["notices"]:
        print(f"{paint('notice', 'yellow')}   {clean(notice['text'].partition(chr(10))[0])}")
    if recording := answer.get("recording"):
        where = recording["conversation"] or "every conversation"
        how = f"stopped by itself: {recording['ended']}" if recording["ended"] else f"{where} is being recorded"
        print(clean(f"record   {how}; `belino record stop` writes the cassette"))
    if answer["retention_days"]:
        print(f"kept     messages for {answer['retention_days']} days")
    damage = {finding["name"]: finding["says"] for finding in answer["soundness"] if not finding["ok"]}
    for where, trouble in {**answer.get("troubles", {}), **damage}.items():
        print(f"{paint('trouble', 'red')}  {clean(f'{where}: {trouble}')}")


def _account_line(account: Mapping[str, Any]) -> str:
    """An account: in red, since when and why, if it does not work; else with what there is to know."""
    name = f"{account['platform']}:{account['account']}"
    if account["works"]:
        note = f" ({account['reason']})" if account["reason"] else ""
        return clean(f"account  {name} is {account['state']}{note}")
    why = f"{name} is {account['state']} since {local_time(account['since'])}: {account['reason']}"
    return f"{paint('account', 'red')}  {clean(why)}"


def _counts(counts: Mapping[str, int]) -> dict[str, list[str]]:
    """The store's counts in words; unknown ones keep the store's name."""
    some = {name: count for name, count in counts.items() if count}
    told: dict[str, list[str]] = {label: [] for label in ("stored", *_STATES.values(), "denied", "noise")}
    for name, count in sorted(some.items(), key=lambda one: (one[0] != "messages", one[0])):
        kind, _, state = name.partition("_")
        if kind in _STATES:
            told[_STATES[kind]].append(f"{count} {state}")
        elif name == "denied":
            told["denied"].append(f"{counted(count, 'arrival')}, not kept")
        elif name == "noise":
            told["noise"].append(f"{counted(count, 'platform event')} about no message, not kept")
        elif name == "blobs":
            told["stored"].append(f"{counted(count, 'file')} ({format_size(counts['blob_bytes'])})")
        elif name == "refs":
            told["stored"].append(f"{count} media ({counts['refs_held']} held)")
        elif name not in ("blob_bytes", "refs_held"):
            told["stored"].append(f"{count} {name.replace('_', ' ')}" if count > 1 else f"1 {_ONE.get(name, name)}")
    return told


def run_channels(args: Namespace) -> int:
    answer = ask(args, running=lambda gateway: gateway.get("/api/channels"), resting=_stored_channels)
    if args.json:
        show_json(answer)
        return OK
    rows = [
        (c["channel"], c["name"], c["messages"], c["media"], c["media_held"], local_time(c["last"]))
        for c in answer["channels"]
    ]
    show_table(("channel", "name", "messages", "media", "held", "last"), rows, empty="no channel yet")
    return OK


async def _stored_channels(store: "Store") -> dict[str, Any]:
    from belino.web.wire import channel_json

    return {"channels": [channel_json(summary) for summary in await store.channels()]}
