"""Doctor: checks of the machine, the state folder, the store, every adapter, every agent and every reader of media."""

import asyncio
import platform
import shutil
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from belino import registry
from belino.config import AgentConfig, Config
from belino.domain.errors import BelinoError, StoreDamaged, StoreError
from belino.domain.outcome import Finding
from belino.domain.ports import Adapter, Checks, ChecksChannels
from belino.gateway.adapter_context import AccountContext
from belino.gateway.health import AdapterHealth
from belino.media.sandbox.sandbox import Sandbox
from belino.net.clock import SystemClock
from belino.net.guard import Guard
from belino.storage.home import Home
from belino.storage.store import Store
from belino.turns.agents import Agents

if TYPE_CHECKING:
    from belino.understanding.read import Understanding

LEAST_FREE_BYTES = 1024**3
CHECK_SECONDS = 15.0
READING_SECONDS = 180.0
"""For all readers of media together: a local model is loaded first."""

NO_CHANNELS: Mapping[tuple[str, str], Sequence[str]] = MappingProxyType({})
NO_TROUBLES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningParts:
    """The parts of a running gateway that the doctor checks."""

    adapters: Mapping[tuple[str, str], Adapter] = field(default_factory=dict)
    health: Mapping[tuple[str, str], AdapterHealth] = field(default_factory=dict)
    channels: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    """The channels that each account is to listen in."""
    agents: Iterable[tuple[str, Checks]] = ()
    speaker: Checks | None = None
    troubles: Mapping[str, str] = field(default_factory=dict)
    """Store calls that are being retried."""
    sandbox: Sandbox | None = None
    understanding: "Understanding | None" = None


NOT_RUNNING = RunningParts()


async def examine(
    *,
    home: Home,
    store: Store,
    running: RunningParts = NOT_RUNNING,
    sandbox_required: bool = False,
    soundness: Iterable[Finding] = (),
) -> tuple[Finding, ...]:
    """Run every check, in the order of diagnosis; without a running gateway `examine_adapters` asks the platforms."""
    return (
        check_python(),
        await check_sandbox(running.sandbox, required=sandbox_required),
        await check_decoders(running.sandbox),
        *check_folder(home.path),
        await check_store(home, store, running.troubles),
        *soundness,
        *await check_adapters(running.adapters, running.health, running.channels),
        *await check_agents(running.agents),
        *(await _ask("speech", running.speaker) if running.speaker is not None else ()),
        *await check_reading(running.understanding),
    )


async def check_reading(understanding: "Understanding | None") -> tuple[Finding, ...]:
    """Let every configured reader of media read a sample of ours."""
    if understanding is None:
        return ()
    try:
        async with asyncio.timeout(READING_SECONDS):
            return tuple(await understanding.check())
    except TimeoutError:
        return (Finding(name="reading", ok=False, says=f"no answer within {READING_SECONDS:.0f} seconds"),)
    except BelinoError as error:
        return (Finding(name="reading", ok=False, says=str(error)),)


async def examine_reading(config: Config, home: Home) -> tuple[Finding, ...]:
    """The same without a running gateway."""
    from belino.gateway.understanding import opened_understanding

    try:
        async with opened_understanding(config, home) as understanding:
            return await check_reading(understanding)
    except BelinoError as error:
        return (Finding(name="reading", ok=False, says=str(error)),)


async def examine_adapters(config: Config, home: Home) -> tuple[Finding, ...]:
    """Check the configured adapters against their platforms, without a running gateway."""
    guard, clock = Guard(config.net.allow), SystemClock()
    findings: list[Finding] = []
    for own in config.adapters:
        who = f"{own.platform}:{own.account}"
        try:
            context = AccountContext(own, clock, guard, home=home)
            adapter = registry.find("adapters", own.platform).make(own.options, context)
        except BelinoError as error:
            findings.append(Finding(name=who, ok=False, says=str(error)))
            continue
        try:
            if isinstance(adapter, Checks):
                findings.extend(await _ask(who, adapter, tuple(own.access.channels)))
        finally:
            await context.http.close()
    return tuple(findings)


async def examine_agents(config: AgentConfig) -> tuple[Finding, ...]:
    """Check the configured agents and their models, without a running gateway."""
    try:
        agents = Agents(config)
    except BelinoError as error:
        return (Finding(name="agent", ok=False, says=str(error)),)
    try:
        return await check_agents(agents.checks())
    finally:
        await agents.close()


async def check_agents(agents: Iterable[tuple[str, Checks]]) -> tuple[Finding, ...]:
    """Run each agent's own check of its model."""
    return tuple([finding for who, agent in agents for finding in await _ask(who, agent)])


def check_python() -> Finding:
    """Check that Python is new enough."""
    return Finding(name="python", ok=sys.version_info >= (3, 11), says=f"Python {platform.python_version()}")


async def check_sandbox(sandbox: Sandbox | None = None, *, required: bool = False) -> Finding:
    """Check what a decoder of hostile files could still do: a sandboxed child process really tries."""
    own = Sandbox(jobs={}) if sandbox is None else None
    tried = own or sandbox
    assert tried is not None
    try:
        level = await tried.examine()
    finally:
        if own is not None:
            await own.close()
    if level == "full":
        names = " (it could see that a file exists, not what is in it)" if tried.sees_names else ""
        says = f"full: a decoder reaches no file{names}, no network, no other process"
        return Finding(name="sandbox", ok=True, says=says)
    says = f"{level}: a decoder could {', '.join(tried.leaks)}" if level == "limited" else "none: it cannot be started"
    return Finding(
        name="sandbox",
        ok=level == "limited" and not required,
        says=says + (', and media.sandbox is "required": nothing is decoded' if required else ""),
        cure="Run belino on Linux 5.13 or newer, with Landlock and seccomp, if strangers may send files.",
    )


async def check_decoders(sandbox: Sandbox | None = None) -> Finding:
    """Check that every kind of file is decoded inside the sandbox, on small files of our own."""
    from belino.media.trial import try_decoders

    own = Sandbox() if sandbox is None else None
    try:
        tried = await try_decoders(own or sandbox)  # type: ignore[arg-type]
    finally:
        if own is not None:
            await own.close()
    if not tried.failures:
        return Finding(name="decoders", ok=True, says=f"{tried.jobs} jobs on small files of every kind succeed")
    failed = "; ".join(tried.failures[:3])
    more = f" and {len(tried.failures) - 3} more" if len(tried.failures) > 3 else ""
    cure = "Install belino and its libraries again; if that does not help, report it."
    return Finding(name="decoders", ok=False, says=f"{failed}{more}", cure=cure)


def check_folder(folder: Path) -> tuple[Finding, ...]:
    """Check that the state folder is accessible to its owner only and has free space."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    open_files = [path.name for path in sorted(folder.iterdir()) if _others_may_read(path)]
    free = shutil.disk_usage(folder).free
    private = not mode & 0o077 and not open_files
    named = ", ".join(open_files[:5]) or "the folder itself"
    return (
        Finding(
            name="modes",
            ok=private,
            says="only you can read the state folder" if private else f"others can reach {named}",
            cure="" if private else "chmod -R go= on the state folder.",
        ),
        Finding(
            name="disk",
            ok=free >= LEAST_FREE_BYTES,
            says=f"{free // 1024**2} MB free",
            cure="" if free >= LEAST_FREE_BYTES else "Free some space: a full disk refuses everything new.",
        ),
    )


def _others_may_read(path: Path) -> bool:
    # Users write the configuration with their own umask; it contains no secret, and the folder is private.
    return path.name not in ("belino.toml", "belino.json") and bool(stat.S_IMODE(path.lstat().st_mode) & 0o077)


async def check_store(home: Home, store: Store, troubles: Mapping[str, str] = NO_TROUBLES) -> Finding:
    """Check that the disk accepts a write, the store answers, and no store call is being retried."""
    try:
        await asyncio.to_thread(home.probe)
        counts = await store.counts()
    except StoreDamaged as error:
        return Finding(name="store", ok=False, says=str(error))
    except StoreError as error:
        return Finding(name="store", ok=False, says=str(error), cure="Check whether the disk is full or read-only.")
    if troubles:
        says = "; ".join(f"{what}: {why}" for what, why in sorted(troubles.items())[:5])
        return Finding(name="store", ok=False, says=says, cure="It is retried until it succeeds.")
    return Finding(name="store", ok=True, says=f"writable, {counts.get('messages', 0)} messages")


async def check_adapters(
    adapters: Mapping[tuple[str, str], Adapter],
    health: Mapping[tuple[str, str], AdapterHealth],
    channels: Mapping[tuple[str, str], Sequence[str]] = NO_CHANNELS,
) -> tuple[Finding, ...]:
    """Each adapter's state, and its own check of its platform."""
    findings: list[Finding] = []
    for key, adapter in sorted(adapters.items(), key=lambda pair: pair[0]):
        who = ":".join(key)
        findings.append(_state(who, health.get(key)))
        if isinstance(adapter, Checks):
            findings.extend(await _ask(who, adapter, channels.get(key, ())))
    return tuple(findings)


def _state(who: str, health: AdapterHealth | None) -> Finding:
    if health is None:
        return Finding(name=who, ok=False, says="not running")
    says = health.state if health.works else f"{health.state} since {health.since:%Y-%m-%d %H:%M} UTC: {health.reason}"
    cure = "Check its credentials in belino.toml." if health.state == "unauthorized" else ""
    return Finding(name=who, ok=health.works, says=says, cure=cure)


async def _ask(who: str, asked: Checks, channels: Sequence[str] = ()) -> Sequence[Finding]:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            found = await asked.check()
            if channels and isinstance(asked, ChecksChannels) and found and found[0].ok:
                found = (*found, *await asked.check_channels(channels))
            return found
    except TimeoutError:
        return (Finding(name=who, ok=False, says=f"no answer within {CHECK_SECONDS:.0f} seconds"),)
    except BelinoError as error:
        return (Finding(name=who, ok=False, says=str(error)),)
