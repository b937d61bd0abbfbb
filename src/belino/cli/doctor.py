"""belino doctor: report problems and their remedies, through the running gateway or without one."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belino.cli import FAILED, OK
from belino.cli.client import ask, running_gateway
from belino.cli.show import show_json, show_marks
from belino.config import Config, load
from belino.domain.errors import BelinoError, StoreError
from belino.domain.outcome import Finding
from belino.storage.home import Home

if TYPE_CHECKING:
    from belino.storage.store import Store


def doctor_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="use this file instead of the state folder's")
    parser.add_argument(
        "--repair",
        action="store_true",
        help="salvage what can be read of a damaged database into a new one; the old file is kept",
    )


def run_doctor(args: Namespace) -> int:
    if args.repair:
        from belino.cli.repair import repair_database

        return repair_database(args)
    home = Home.at(args.home)
    findings = [_as_json(finding) for finding in check_configuration(home, args.config)]
    try:
        findings += _examined(args, home, _config(home, args.config))
    except BelinoError as error:
        findings.append(_as_json(Finding(name="store", ok=False, says=str(error))))
    ok = all(finding["ok"] for finding in findings)
    if args.json:
        show_json({"ok": ok, "findings": findings})
    else:
        show_marks([(f["ok"], f["name"], f"{f['says']}. {f['cure']}" if f["cure"] else f["says"]) for f in findings])
    return OK if ok else FAILED


def check_configuration(home: Home, path: Path | None = None) -> tuple[Finding, ...]:
    """Check that the configuration can be read, and who has access."""
    try:
        config = load(home, path)
    except BelinoError as error:
        return (Finding(name="config", ok=False, says=str(error), cure="Mend it; `belino config check` looks again."),)
    running = "a gateway runs" if running_gateway(home) else "no gateway runs"
    return (Finding(name="config", ok=True, says=f"the configuration is right; {running}"), *_open_doors(config))


def _open_doors(config: Config) -> Iterator[Finding]:
    for adapter in config.adapters:
        lists = {"direct messages": adapter.access.senders}
        lists |= {f"channel {channel}": access.senders for channel, access in adapter.access.channels.items()}
        for where, senders in lists.items():
            if "*" in senders:
                yield Finding(
                    name="access",
                    ok=True,
                    says=f"everybody may command the agent in {where} of {adapter.platform}:{adapter.account}",
                    cure="Name the senders by id unless that is meant.",
                )


def _config(home: Home, path: Path | None) -> Config | None:
    try:
        return load(home, path)
    except BelinoError:
        return None  # already reported


def _examined(args: Namespace, home: Home, config: Config | None) -> list[dict[str, Any]]:
    async def resting(store: "Store") -> list[dict[str, Any]]:
        from belino.gateway.doctor import examine, examine_adapters, examine_agents
        from belino.gateway.maintenance import check_backups, check_database
        from belino.net.clock import SystemClock

        required = config is not None and config.media.sandbox == "required"
        backups = () if config is None else check_backups(config.backup, home, datetime.now(UTC))
        soundness = (await check_database(store, SystemClock()), *await _strays(store), *backups)
        findings = await examine(home=home, store=store, sandbox_required=required, soundness=soundness)
        if config is not None:
            findings += (*await examine_adapters(config), *await examine_agents(config.agent))
        return [_as_json(finding) for finding in findings]

    found: list[dict[str, Any]] = ask(
        args, running=lambda gateway: gateway.get("/api/doctor")["findings"], resting=resting
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
