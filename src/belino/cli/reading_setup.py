"""Setup of reading: ask for a provider that reads media, try it on a sample of our own, and store its entry."""

import asyncio
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import belino.understanding
from belino import registry
from belino.cli import FAILED, OK
from belino.cli.client import is_locked
from belino.cli.config import apply_to_running
from belino.cli.setup import asked, asked_secretly, laid_down, pair_of, typed
from belino.cli.show import clean, show_json, show_marks
from belino.config import Config, from_table
from belino.config.edit import edited, with_entry, write_config
from belino.config.media_tools import ENTRY_KEYS
from belino.config.read import read_table
from belino.domain.errors import BelinoError, ConfigError
from belino.domain.outcome import Finding
from belino.domain.ports import Question
from belino.domain.reading import MediaCapability, ReadingForm
from belino.storage.home import Home
from belino.understanding.config import CapabilityTools, MediaTools, ModelEntry

if TYPE_CHECKING:
    from belino.understanding.read import Understanding

SPEECH = Path(belino.understanding.__file__).with_name("samples") / "speech.ogg"
SAID = "We meet again on Thursday at ten."
"""What is said in it, by a synthesizer."""
LOCAL = "local_"
AHEAD = ("off", "local")
CHECK_SECONDS = 180.0
"""A local model is loaded first."""
_DEFAULTS = {MediaCapability.AUDIO: "local_moonshine", MediaCapability.DOCUMENT: "local_tesseract"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """The entry to be stored, and the key that belongs to it."""

    kind: MediaCapability
    provider: str
    entry: Mapping[str, Any]
    profile: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    read_ahead: str = ""
    """Whether media is read before it is asked for; empty leaves the setting as it is."""

    @property
    def path(self) -> list[str]:
        return ["tools", "media", self.kind.value, "models"]


def set_up_reading(args: Namespace, home: Home) -> int:
    """belino setup reading [--kind audio] [--provider NAME]"""
    wanted = _wanted(args, home)
    with laid_down(home, wanted.secrets) as keep:
        meant, text = _edited(home, wanted)
        config = from_table(meant, secrets=home.secrets)
        findings = () if args.no_check else asyncio.run(_tried(config, home, wanted))
        ok = all(finding.ok for finding in findings)
        if ok:
            write_config(home.config_file, text)
            keep()
    _tell(args, home, wanted, findings, ok=ok)
    return OK if ok else FAILED


def _wanted(args: Namespace, home: Home) -> _Wanted:
    kinds = ", ".join(MediaCapability)
    kind = args.kind or asked(args, Question(key="kind", ask=f"Which media shall be read? ({kinds})"), "audio")
    if (kind or "audio") not in [*MediaCapability]:
        raise ConfigError(f"--kind must be one of {kinds}, not {kind!r}")
    capability = MediaCapability(kind or "audio")
    known = registry.known("providers")
    question = Question(key="provider", ask=f"Which provider shall read it? ({', '.join(known)})")
    usual = _DEFAULTS.get(capability, "openai")
    provider = args.provider or asked(args, question, usual) or usual
    plugin = registry.find("providers", provider)
    entry = {"provider": provider, **_given(args, plugin)}
    profile, secrets = _key(args, home, plugin)
    if profile:
        entry["profile"] = provider
    ahead = _read_ahead(args) if provider.startswith(LOCAL) else ""
    return _Wanted(kind=capability, provider=provider, entry=entry, profile=profile, secrets=secrets, read_ahead=ahead)


def _read_ahead(args: Namespace) -> str:
    """What is said about reading ahead, which only local providers do."""
    question = Question(
        key="read_ahead", ask=f"Read media between turns, so that search finds it? ({', '.join(AHEAD)})"
    )
    said: str = args.read_ahead or asked(args, question, AHEAD[0])
    if said and said not in AHEAD:
        raise ConfigError(f"--read-ahead must be one of {', '.join(AHEAD)}, not {said!r}")
    return said


def _given(args: Namespace, plugin: registry.Plugin) -> dict[str, Any]:
    """The keys of the entry, as they are given; the configuration checks their values."""
    hints = {name: hint for name, hint in get_type_hints(ModelEntry).items() if name in ENTRY_KEYS}
    hints |= get_type_hints(plugin.config_type)
    given = dict(pair_of(text) for text in args.set)
    if unknown := sorted(given.keys() - hints.keys()):
        raise ConfigError(f"{plugin.name} has no key {unknown[0]!r}; known keys: {', '.join(sorted(hints))}")
    return {key: typed(hints[key], key, text) for key, text in given.items()}


def _key(args: Namespace, home: Home, plugin: registry.Plugin) -> tuple[dict[str, str], dict[str, str]]:
    """The profile with the key of a remote provider, and the secret that it names."""
    if "key" not in {each.name for each in fields(plugin.config_type)}:
        return {}, {}
    if args.token_env:
        return {"key": f"env:{args.token_env[-1].rpartition('=')[2]}"}, {}
    there = read_table(home.config_file) if home.config_file.exists() else {}
    kept = plugin.name in there.get("profiles", {})
    question = Question(key="key", ask=f"The key of {plugin.name}:", secret=True)
    if secret := asked_secretly(args, question, kept=kept):
        name = f"reading.{plugin.name}"
        return {"key": f"file:{name}"}, {name: secret}
    return dict(there["profiles"][plugin.name]), {}


def _edited(home: Home, wanted: _Wanted) -> tuple[dict[str, Any], str]:
    file = home.config_file
    if wanted.profile:
        meant, text = edited(file, ["profiles", wanted.provider], wanted.profile)
    elif wanted.read_ahead:
        meant, text = edited(file, ["tools", "media"], {"read_ahead": wanted.read_ahead})
    else:
        meant = dict(read_table(file)) if file.exists() else {}
        text = file.read_text(encoding="utf-8") if file.exists() else ""
    return with_entry(file, meant, text, wanted.path, wanted.entry)


async def _tried(config: Config, home: Home, wanted: _Wanted) -> tuple[Finding, ...]:
    """What the doctor finds about the new entry, and about no other."""
    from belino.gateway.understanding import opened_understanding

    entry = config.tools.media.of(wanted.kind).models[-1]
    only: dict[str, Any] = {kind.value: CapabilityTools(enabled=False) for kind in MediaCapability}
    only[wanted.kind.value] = CapabilityTools(models=(entry,))
    alone = replace(config, tools=replace(config.tools, media=MediaTools(**only)))
    try:
        async with opened_understanding(alone, home) as understanding, asyncio.timeout(CHECK_SECONDS):
            if wanted.kind is MediaCapability.AUDIO:
                return (await _heard(understanding, wanted.provider),)
            return tuple(await understanding.check())
    except TimeoutError:
        return (Finding(name=wanted.provider, ok=False, says=f"no answer within {CHECK_SECONDS:.0f} seconds"),)
    except BelinoError as error:
        return (Finding(name=wanted.provider, ok=False, says=str(error)),)


async def _heard(understanding: "Understanding", provider: str) -> Finding:
    """What the provider hears in our own sample of speech."""
    read = await understanding.read_file(SPEECH, "audio/ogg", ReadingForm.TRANSCRIPT)
    heard = " ".join(read.text.split())
    says = f"{read.model or provider} heard “{heard}”; we said “{SAID}”" if heard else f"it heard nothing in “{SAID}”"
    return Finding(name=provider, ok=bool(heard), says=says)


def _tell(args: Namespace, home: Home, wanted: _Wanted, findings: Sequence[Finding], *, ok: bool) -> None:
    table = ".".join(wanted.path)
    done, applied = apply_to_running(home) if ok else (None, "")
    if args.json:
        found = [{"name": f.name, "ok": f.ok, "says": f.says, "cure": f.cure} for f in findings]
        restart = is_locked(home) and (done is None or bool(done["restart"]))
        told = {"file": str(home.config_file), "table": table, "restart": restart, "reloaded": done}
        show_json({"ok": ok, **told, "findings": found})
        return
    show_marks([(f.ok, f.name, f"{f.says}. {f.cure}" if f.cure else f.says) for f in findings])
    if not ok:
        print("Nothing was changed.")
        return
    print(clean(f"Added [[{table}]] to {home.config_file}."))
    if wanted.read_ahead:
        print(f"tools.media.read_ahead is {wanted.read_ahead}.")
    print(clean(applied))
    print(f"Try it on a file of yours: belino media {_COMMANDS[wanted.kind]} FILE")


_COMMANDS = {
    MediaCapability.AUDIO: "transcribe",
    MediaCapability.VIDEO: "transcribe",
    MediaCapability.IMAGE: "describe",
    MediaCapability.DOCUMENT: "text",
}
