"""belino audit: check that every arrival, attachment, parcel and blob is accounted for."""

from argparse import Namespace
from collections import Counter
from typing import Any

from belino.cli import FAILED, OK
from belino.cli.client import running_gateway
from belino.cli.show import clean, counted, show_json, show_table
from belino.storage.home import Home

AUDIT_SECONDS = 600.0
"""Time limit of the gateway: it reads every row of the store once."""


def run_audit(args: Namespace) -> int:
    found = _audited(Home.at(args.home))
    if args.json:
        show_json(found)
    else:
        _show(found)
    return OK if found["ok"] else FAILED


def _audited(home: Home) -> dict[str, Any]:
    """Through the running gateway, or from the files; neither changes anything."""
    client = running_gateway(home)
    if client is not None:
        told: dict[str, Any] = client.ask("GET", "/api/audit", seconds=AUDIT_SECONDS)
        return told
    from belino.storage.audit import audit_home

    return audit_home(home).as_json()


def _show(found: dict[str, Any]) -> None:
    rows = [_row("arrivals", found["arrivals"]), _row("attachments", [found["attachments"]])]
    rows.append(_row("parcels", [found["parcels"]]))
    show_table(["what", "taken", "forgotten", "difference", "outcomes"], rows, empty="")
    blobs = found["blobs"]
    told = [f"{counted(blobs['files'], 'blob file')}", f"{counted(blobs['rows'], 'row')}"]
    told += [f"{blobs[name]} {name}" for name in ("unused", "aside") if blobs[name]]
    print(", ".join(told))
    for each in (*found["arrivals"], found["attachments"], found["parcels"]):
        if each["difference"]:
            print(clean(f"{each['name']}: {each['taken']} taken, {each['difference']:+d} not accounted for"))
    for each in found["discrepancies"]:
        print(clean(f"{each['kind']}: {each['says']}. {each['cure']}"))
        for subject in each["subjects"]:
            print(clean(f"  {subject}"))
    if found["ok"]:
        print("everything is accounted for")


def _row(name: str, balances: list[dict[str, Any]]) -> list[object]:
    outcomes: Counter[str] = Counter()
    for balance in balances:
        outcomes.update(balance["outcomes"])
    told = ", ".join(f"{times} {outcome}" for outcome, times in outcomes.items() if times)
    sums = [sum(balance[key] for balance in balances) for key in ("taken", "forgotten")]
    return [name, *sums, sum(abs(balance["difference"]) for balance in balances), told or "none"]
