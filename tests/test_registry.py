"""Plugins are found by name, ours first, and only the one that is named is loaded."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from belino import registry
from belino.domain.errors import ConfigError


def offer(folder: Path, *, name: str, module: str, code: str, group: str = "belino.adapters") -> None:
    """Install a distribution by hand: a module, its metadata and its entry point."""
    (folder / f"{module}.py").write_text(code, encoding="utf-8")
    about = folder / f"{module}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}\n", encoding="utf-8")


PLUGIN = "class Config: ...\nclass Adapter: ...\n"


def test_our_own_adapter_is_found_by_its_file_name() -> None:
    plugin = registry.find("adapters", "web")
    assert plugin.name == "web"
    assert plugin.make is plugin.module.Adapter
    assert plugin.config_type is plugin.module.Config


def test_an_unknown_name_is_told_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"no adapter named 'telepathy'; known ones: .*\bweb\b"):
        registry.find("adapters", "telepathy")


def test_an_unknown_provider_is_told_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"no provider named 'x'; known ones: .*\bopenai\b"):
        registry.find("providers", "x")


@pytest.mark.parametrize("name", ["", "web.x", "../web", "Web", "__init__", "web\0", "os;import"])
def test_a_name_that_is_no_plain_word_is_never_imported(name: str) -> None:
    with pytest.raises(ConfigError, match="there is no adapter named"):
        registry.find("adapters", name)


def test_an_installed_package_is_found_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(tmp_path, name="zalo", module="acme_zalo_found", code=PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert registry.find("adapters", "zalo").module.__name__ == "acme_zalo_found"
    assert "zalo" in registry.known("adapters")
    assert "zalo" not in registry.built_in("adapters")


def test_installed_packages_are_read_once_however_many_names_are_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(tmp_path, name="zalo", module="acme_zalo_once", code=PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    read, readings = metadata.entry_points, []

    def counted(**wanted: Any) -> Any:
        readings.append(wanted)
        return read(**wanted)

    monkeypatch.setattr(metadata, "entry_points", counted)
    assert [registry.ref_letters(name) for name in ("icq", "msn", "icq")] == [None, None, None]
    assert (registry.known("agents"), registry.find("adapters", "zalo").name) == (registry.built_in("agents"), "zalo")
    assert len(readings) == 1


def test_a_package_cannot_take_the_place_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(tmp_path, name="web", module="acme_web_false", code="raise SystemExit('loaded')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert registry.find("adapters", "web").module.__name__ == "belino.adapters.web"


def test_a_package_that_is_not_named_is_not_loaded(tmp_path: Path) -> None:
    offer(tmp_path, name="spy", module="acme_spy", code="raise SystemExit('loaded')")
    code = "from belino import registry; registry.find('adapters', 'web'); print(*registry.known('adapters'))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "spy" in done.stdout.split()


def test_a_plugin_that_lacks_its_parts_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(tmp_path, name="half", module="acme_half", code="class Config: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match="acme_half defines no Adapter"):
        registry.find("adapters", "half")


def test_a_plugin_whose_library_is_missing_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(tmp_path, name="hungry", module="acme_hungry", code="import library_nobody_has\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match="needs the package 'library_nobody_has'"):
        registry.find("adapters", "hungry")
