"""The doctor finds what is wrong, says what it is, and names the cure."""

import resource
from collections import namedtuple
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from belino.domain.errors import AdapterError
from belino.domain.outcome import Finding
from belino.gateway import doctor
from belino.gateway.health import AdapterHealth
from belino.media.sandbox.sandbox import Level, Sandbox
from belino.net.clock import SystemClock
from belino.storage.home import Home
from belino.storage.store import open_store
from belino.testing import FakeContext, MemoryAdapter
from belino.testing.memory import Config as MemoryConfig

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Usage = namedtuple("Usage", "total used free")


class CheckedAdapter(MemoryAdapter):
    """An adapter that can tell how its platform is."""

    error: Exception | None = None

    async def check(self) -> Sequence[Finding]:
        if self.error is not None:
            raise self.error
        return (Finding(name="memory", ok=True, says="it answers"),)


def by_name(findings: Sequence[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


async def test_without_a_gateway_the_machine_the_folder_and_the_store_are_looked_at(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "home")
    store = await open_store(home, clock=SystemClock())
    try:
        findings = by_name(await doctor.examine(home=home, store=store))
    finally:
        await store.close()
    assert set(findings) == {"python", "sandbox", "decoders", "modes", "disk", "store"}
    assert findings["store"].ok


class TriedSandbox(Sandbox):
    """A sandbox whose walls are worth what the test says."""

    def __init__(self, worth: Level, *leaks: str) -> None:
        super().__init__(jobs={})
        self.level, self.leaks = worth, leaks

    async def examine(self) -> Level:
        return self.level


async def test_the_sandbox_is_tried_for_real_and_told_as_it_is() -> None:
    sandbox = await doctor.check_sandbox()
    assert sandbox.name == "sandbox"
    assert sandbox.says.startswith(("full: ", "limited: "))
    assert sandbox.ok


async def test_a_sandbox_that_leaks_is_told_with_what_gets_out() -> None:
    leaking = await doctor.check_sandbox(TriedSandbox("limited", "open files", "run programs"))
    assert leaking.ok
    assert leaking.says == "limited: a decoder could open files, run programs"
    assert leaking.cure


async def test_a_sandbox_that_must_be_full_and_is_not_is_a_fault() -> None:
    refused = await doctor.check_sandbox(TriedSandbox("limited", "open files"), required=True)
    assert not refused.ok
    assert "required" in refused.says
    assert not (await doctor.check_sandbox(TriedSandbox("none", "not be started"))).ok


def test_files_others_can_read_are_named(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "home")
    assert by_name(doctor.check_folder(home.path))["modes"].ok
    (home.path / "belino.toml").touch(0o644)
    assert by_name(doctor.check_folder(home.path))["modes"].ok
    (home.path / "key").touch()
    (home.path / "key").chmod(0o644)
    modes = by_name(doctor.check_folder(home.path))["modes"]
    assert not modes.ok
    assert "key" in modes.says
    assert "chmod" in modes.cure


def test_a_disk_that_is_nearly_full_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _path: Usage(10**12, 10**12 - 10**6, 10**6))
    disk = by_name(doctor.check_folder(tmp_path))["disk"]
    assert not disk.ok
    assert "space" in disk.cure


async def test_a_disk_that_takes_nothing_is_told_with_its_reason(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "home")
    store = await open_store(home, clock=SystemClock())
    free = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        assert (await doctor.check_store(home, store)).ok
        assert not (await doctor.check_store(home, store, {"turn 7": "the disk is full"})).ok
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, free[1]))
        full = await doctor.check_store(home, store)
        assert not full.ok
        assert "takes no writes" in full.says
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, free)
        await store.close()


async def test_an_adapter_is_asked_for_the_channels_that_are_listed() -> None:
    class Travelled(CheckedAdapter):
        async def check_channels(self, channels: Sequence[str]) -> Sequence[Finding]:
            return [Finding(name=channel, ok=False, says="not in it") for channel in channels]

    key = ("memory", "main")
    adapters: dict[tuple[str, str], Any] = {key: Travelled(MemoryConfig(), FakeContext())}
    _, _, *found = await doctor.check_adapters(adapters, {}, {key: ["C1", "C2"], ("memory", "other"): ["C3"]})
    assert [finding.name for finding in found] == ["C1", "C2"]


async def test_an_adapter_is_as_well_as_it_says_and_as_its_platform_is() -> None:
    adapter = CheckedAdapter(MemoryConfig(), FakeContext())
    key = ("memory", "main")
    adapters: dict[tuple[str, str], Any] = {key: adapter}
    (state, check) = await doctor.check_adapters(adapters, {key: AdapterHealth(state="running", since=NOW)})
    assert (state.ok, check.says) == (True, "it answers")
    adapter.error = AdapterError("the platform does not answer")
    hangs = AdapterHealth(state="starting", since=NOW, reason="nobody answers")
    unwell = AdapterHealth(state="unauthorized", since=NOW, reason="refused")
    (state, check) = await doctor.check_adapters(adapters, {key: unwell})
    assert (state.ok, state.says, check.ok) == (False, "unauthorized since 2026-01-01 00:00 UTC: refused", False)
    assert "credentials" in state.cure
    begins = AdapterHealth(state="starting", since=NOW)
    assert [(await doctor.check_adapters(adapters, {key: each}))[0].ok for each in (begins, hangs)] == [True, False]
    (state, _) = await doctor.check_adapters(adapters, {})
    assert state.says == "not running"
