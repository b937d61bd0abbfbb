"""Registry: find an adapter, agent or provider by name, in belino first, then by entry point."""

import importlib
import importlib.util
import pkgutil
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any, Literal

from belino.domain.errors import ConfigError

Group = Literal["adapters", "agents", "providers"]

MAKERS: dict[Group, str] = {"adapters": "Adapter", "agents": "Agent", "providers": "Provider"}
PACKAGES: dict[Group, str] = {
    "adapters": "belino.adapters",
    "agents": "belino.agents",
    "providers": "belino.understanding.providers",
}

# A name becomes a module name: anything else (a dot, a slash) could reach other modules.
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A named adapter, agent or provider, and its constructor."""

    name: str
    module: ModuleType
    config_type: type[Any]
    """The dataclass of its table in belino.toml."""
    make: Callable[..., Any]
    """`Adapter(config, context)`, `Agent(config)` or `Provider(config, context)`."""


def find(group: Group, name: str) -> Plugin:
    """The plugin of this name; no other is imported."""
    module_name = _module_of(group, name)
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        missing = f"needs the package {error.name!r}" if error.name and error.name != module_name else "fails"
        raise ConfigError(
            f"the {_singular(group)} {name!r} cannot be imported: {module_name} {missing}; "
            f"install it (maybe as the extra belino[{name}]) or remove {name!r} from the configuration"
        ) from error
    maker = MAKERS[group]
    lacks = [attribute for attribute in ("Config", maker) if not hasattr(module, attribute)]
    if lacks:
        raise ConfigError(
            f"the {_singular(group)} {name!r} cannot be used: {module_name} defines no {' and no '.join(lacks)}"
        )
    return Plugin(name=name, module=module, config_type=module.Config, make=getattr(module, maker))


def ref_letters(platform: str) -> str | None:
    """The prefix of a platform's ref ids, if its adapter defines one."""
    try:
        return getattr(find("adapters", platform).module, "REF_LETTERS", None)
    except ConfigError:
        return None


def known(group: Group) -> tuple[str, ...]:
    """Every name that `find` accepts, sorted; imports nothing."""
    return tuple(sorted({*built_in(group), *_entry_points(group)}))


def built_in(group: Group) -> tuple[str, ...]:
    """The names of belino's own plugins."""
    package = importlib.util.find_spec(PACKAGES[group])
    if package is None or package.submodule_search_locations is None:
        return ()
    return tuple(sorted(module.name for module in pkgutil.iter_modules(package.submodule_search_locations)))


def _module_of(group: Group, name: str) -> str:
    if _NAME.fullmatch(name):
        if name in built_in(group):
            return f"{PACKAGES[group]}.{name}"
        offered = _entry_points(group).get(name)
        if offered is not None:
            return offered
    names = ", ".join(known(group)) or "none"
    raise ConfigError(f"there is no {_singular(group)} named {name!r}; known ones: {names}")


def _entry_points(group: Group) -> dict[str, str]:
    return _installed(tuple(sys.path))[group]


@lru_cache(maxsize=1)
def _installed(path: tuple[str, ...]) -> dict[Group, dict[str, str]]:
    # Scans every installed package, 10 to 30 ms: once, and not at all for our own names.
    from importlib.metadata import entry_points

    found = entry_points()
    return {group: {each.name: each.module for each in found.select(group=f"belino.{group}")} for group in MAKERS}


def _singular(group: Group) -> str:
    return group.removesuffix("s")
