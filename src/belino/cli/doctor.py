"""belino doctor and belino audit: report problems and their remedies, through the running gateway or without one.

`doctor --repair` salvages a damaged database; `audit` checks that every arrival, attachment, parcel and blob is
accounted for.
"""

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.cli import FAILED, OK
from belino.cli.client import ask, needed_gateway, running_gateway
from belino.cli.show import clean, counted, show_json, show_marks, show_table
from belino.domain.errors import BelinoError, StoreError, StoreInUse
from belino.domain.outcome import Finding
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.config import Config
    from belino.domain.audit import Repaired, SalvagedTable
    from belino.storage.store import Store

DOCTOR_SECONDS = 300.0
"""Time limit of the gateway: it tries every provider, and local models are loaded first."""
AUDIT_SECONDS = 600.0
"""Time limit of the gateway: it reads every row of the store once."""


def doctor_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="use this file instead of the state folder's")
    parser.add_argument(
        "--repair",
        action="store_true",
        help="salvage what can be read of a damaged database into a new one; the old file is kept",
    )
    parser.add_argument(
        "--live",
        metavar="ACCOUNT",
        help="send a picture, a voice note, a document and an album on this account (platform:account), read them "
        "back, compare and delete them",
    )
    parser.add_argument(
        "--to", metavar="CONVERSATION", help="with --live: where to send them (default: the owner's direct messages)"
    )
    parser.add_argument(
        "--take-over",
        metavar="ACCOUNT",
        help="have the platform hand this account's events to belino instead of another program, such as a webhook",
    )


def run_doctor(args: Namespace) -> int:
    if args.repair:
        return _repair(args)
    if args.live is not None:
        return _check_media(args)
    if args.take_over is not None:
        return _take_over(args)
    home = Home.at(args.home)
    config, checked = _checked_config(home, args.config)
    findings = [_as_json(finding) for finding in checked]
    try:
        findings += _examined(args, home, config)
    except BelinoError as error:
        findings.append(_as_json(Finding(name="store", ok=False, says=str(error))))
    return _show_findings(args, findings)


def _show_findings(args: Namespace, findings: list[dict[str, Any]]) -> int:
    ok = all(finding["ok"] for finding in findings)
    if args.json:
        show_json({"ok": ok, "findings": findings})
    else:
        show_marks([(f["ok"], f["name"], f"{f['says']}. {f['cure']}" if f["cure"] else f["says"]) for f in findings])
    return OK if ok else FAILED


def _take_over(args: Namespace) -> int:
    done = needed_gateway(Home.at(args.home)).ask("POST", "/api/take-over", {"account": args.take_over})
    if args.json:
        show_json(done)
    else:
        print(clean(f"{args.take_over} gets its events now; before, {done['from']} got them"))
    return OK


def _check_media(args: Namespace) -> int:
    """Have the running gateway send media on an account and compare what the platform stored."""
    wish = {"account": args.live, **({} if args.to is None else {"to": args.to})}
    found = needed_gateway(Home.at(args.home)).ask("POST", "/api/doctor/live", wish, seconds=DOCTOR_SECONDS)
    return _show_findings(args, found["findings"])


def _checked_config(home: Home, path: Path | None) -> "tuple[Config | None, tuple[Finding, ...]]":
    """The configuration, if it can be read, and findings about it and about who has access."""
    from belino.config import load

    try:
        config = load(home, path)
    except BelinoError as error:
        cure = "Correct it; `belino config check` checks it again."
        return None, (Finding(name="config", ok=False, says=str(error), cure=cure),)
    running = "a gateway runs" if running_gateway(home) else "no gateway runs"
    right = Finding(name="config", ok=True, says=f"the configuration is valid; {running}")
    return config, (right, *_open_doors(config))


def _open_doors(config: "Config") -> Iterator[Finding]:
    for adapter in config.adapters:
        lists = {"direct messages": adapter.access.senders}
        lists |= {f"channel {channel}": access.senders for channel, access in adapter.access.channels.items()}
        for where, senders in lists.items():
            if "*" in senders:
                yield Finding(
                    name="access",
                    ok=True,
                    says=f"everyone may command the agent in {where} of {adapter.platform}:{adapter.account}",
                    cure="List the senders by id unless this is intended.",
                )


def _examined(args: Namespace, home: Home, config: "Config | None") -> list[dict[str, Any]]:
    async def resting(store: "Store") -> list[dict[str, Any]]:
        from belino.gateway.doctor import examine, examine_adapters, examine_agents, examine_reading
        from belino.gateway.maintenance import check_backups, check_database
        from belino.gateway.voice import examine_voice
        from belino.net.clock import SystemClock

        required = config is not None and config.media.sandbox == "required"
        backups = () if config is None else check_backups(config.backup, home, datetime.now(UTC))
        soundness = (await check_database(store, SystemClock()), *await _strays(store), *backups)
        findings = await examine(home=home, store=store, sandbox_required=required, soundness=soundness)
        if config is not None:
            findings += (*await examine_adapters(config, home), *await examine_agents(config.agent))
            findings += await examine_voice(config, home, store)
            findings += await examine_reading(config, home)
        return [_as_json(finding) for finding in findings]

    found: list[dict[str, Any]] = ask(
        args,
        running=lambda gateway: gateway.ask("GET", "/api/doctor", seconds=DOCTOR_SECONDS)["findings"],
        resting=resting,
    )
    return found


async def _strays(store: "Store") -> tuple[Finding, ...]:
    from belino.gateway.maintenance import check_strays

    try:
        await store.tidy(dry_run=True)
    except StoreError as error:
        return (Finding(name="strays", ok=False, says=f"could not be counted: {error}"),)
    return check_strays(store.strays)


def _as_json(finding: Finding) -> dict[str, Any]:
    return {"name": finding.name, "ok": finding.ok, "says": finding.says, "cure": finding.cure}


def _repair(args: Namespace) -> int:
    """Repair the database of the state folder; refused while a gateway runs."""
    from belino.storage.store import repair_store

    try:
        done = repair_store(Home.at(args.home), now=datetime.now(UTC))
    except StoreInUse as error:
        raise StoreError(f"{error}; stop it first, nothing was changed") from None
    except OSError as error:
        raise StoreError(f"the database could not be repaired: {error.strerror}") from None
    if args.json:
        show_json({**asdict(done), "old": None if done.old is None else str(done.old)})
    else:
        _show_repaired(done)
    return OK


def _show_repaired(done: "Repaired") -> None:
    if not done.was_damaged:
        print("the database is intact; nothing was changed")
        return
    width = max(len(table.name) for table in done.tables)
    for table in done.tables:
        if table.kept or table.lost or table.bad_pages:
            print(f"{table.name:<{width}}  {_table_words(table)}")
    print("the search index is rebuilt")
    if done.held:
        print(f"held, because it may have been sent already: {counted(done.held, 'answer')}; see `belino outbox`")
    if done.old is not None:
        print(clean(f"the damaged database is kept as {done.old}; delete it when you do not need it"))


def _table_words(table: "SalvagedTable") -> str:
    lost = [counted(table.lost, "row")] * bool(table.lost)
    lost += [f"what {counted(table.bad_pages, 'damaged page')} held"] * bool(table.bad_pages)
    kept = f"{counted(table.kept, 'row')} kept"
    return f"{kept}, lost: {' and '.join(lost)}" if lost else kept


def run_audit(args: Namespace) -> int:
    found = _audited(Home.at(args.home))
    if args.json:
        show_json(found)
    else:
        _show_audit(found)
    return OK if found["ok"] else FAILED


def _audited(home: Home) -> dict[str, Any]:
    """Through the running gateway, or from the files; neither changes anything."""
    client = running_gateway(home)
    if client is not None:
        told: dict[str, Any] = client.ask("GET", "/api/audit", seconds=AUDIT_SECONDS)
        return told
    from belino.storage.audit import audit_home

    return audit_home(home).as_json()


def _show_audit(found: dict[str, Any]) -> None:
    single = {name: found[name] for name in ("attachments", "readings", "parcels") if name in found}
    rows = [_audit_row("arrivals", found["arrivals"])]
    rows += [_audit_row(name, [balance]) for name, balance in single.items()]
    show_table(["what", "taken", "forgotten", "difference", "outcomes"], rows, empty="")
    blobs = found["blobs"]
    told = [f"{counted(blobs['files'], 'blob file')}", f"{counted(blobs['rows'], 'row')}"]
    told += [f"{blobs[name]} {name}" for name in ("unused", "aside") if blobs[name]]
    print(", ".join(told))
    for each in (*found["arrivals"], *single.values()):
        if each["difference"]:
            print(clean(f"{each['name']}: {each['taken']} taken, {each['difference']:+d} not accounted for"))
    for each in found["discrepancies"]:
        print(clean(f"{each['kind']}: {each['says']}. {each['cure']}"))
        for subject in each["subjects"]:
            print(clean(f"  {subject}"))
    if found["ok"]:
        print("everything is accounted for")


def _audit_row(name: str, balances: list[dict[str, Any]]) -> list[object]:
    outcomes: Counter[str] = Counter()
    for balance in balances:
        outcomes.update(balance["outcomes"])
    told = ", ".join(f"{times} {outcome}" for outcome, times in outcomes.items() if times)
    sums = [sum(balance[key] for balance in balances) for key in ("taken", "forgotten")]
    return [name, *sums, sum(abs(balance["difference"]) for balance in balances), told or "none"]
