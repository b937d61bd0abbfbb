"""belino setup PLATFORM, agent or reading: ask for the settings, test them, store them, and print the next steps."""

import asyncio
import getpass
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from belino import registry
from belino.cli import FAILED, OK
from belino.cli.client import is_locked
from belino.cli.config import apply_to_running
from belino.cli.show import clean, show_json, show_marks
from belino.config import Config, from_table
from belino.config.edit import edited, write_config
from belino.config.read import AGENT_KEYS, read_table
from belino.config.secrets import read_secret, write_secret
from belino.domain.errors import AdapterError, BelinoError, ConfigError
from belino.domain.linking import LinksDevice
from belino.domain.outcome import Finding
from belino.domain.ports import Checks, Closes, Question, TakesOver
from belino.net.redact import Secret
from belino.storage.home import Home

AGENT = "agent"
READING = "reading"
WEB = "web"
"""Needs no setup."""
CHECK_SECONDS = 30.0


@dataclass(slots=True, kw_only=True)
class SetupAnswers:
    """The new values of the platform's table, and its secrets."""

    values: dict[str, Any] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    """By file name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedSettings:
    """What is being set up, and where it is stored."""

    plugin: registry.Plugin
    path: Sequence[str]
    there: Mapping[str, Any]
    """The current table."""
    values: Mapping[str, Any] = field(default_factory=dict)
    without: Sequence[str] = ()
    """Keys that do not apply to it."""
    made: Callable[[Config], AbstractAsyncContextManager[object]]
    """An instance with these settings, to be checked."""
    who: str
    then: str


def setup_arguments(parser: ArgumentParser) -> None:
    ours = ", ".join(name for name in registry.built_in("adapters") if name != WEB)
    parser.add_argument(
        "platform",
        metavar="PLATFORM",
        help=f"what to connect: {ours}, or an installed one; or agent: who answers; or reading: who reads media",
    )
    parser.add_argument("--kind", metavar="KIND", help="of agent, like claude or llm; of media to read, like audio")
    parser.add_argument("--provider", metavar="NAME", help="with reading: the provider, like deepgram")
    parser.add_argument(
        "--read-ahead",
        metavar="off|local",
        help="with reading by a local provider: read media between turns, so that search finds it",
    )
    parser.add_argument("--account", default="default", metavar="NAME", help="which account, if there are several")
    parser.add_argument(
        "--token-env",
        action="append",
        default=[],
        metavar="[KEY=]NAME",
        help="read a secret from this environment variable; KEY names it if there are several",
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting")
    parser.add_argument("--yes", action="store_true", help="ask nothing: take defaults for what is not given")
    parser.add_argument("--no-check", action="store_true", help="do not test it on the platform")
    parser.add_argument(
        "--take-over",
        action="store_true",
        help="have the platform hand events to belino instead of another program, such as a webhook",
    )


def run_setup(args: Namespace) -> int:
    home = Home.at(args.home)
    if args.platform == READING:
        from belino.cli.reading_setup import set_up_reading

        return set_up_reading(args, home)
    wanted = _agent(args, home) if args.platform == AGENT else _platform(args, home)
    questions: Sequence[Question] = getattr(wanted.plugin.module, "SETUP", ())
    if not questions and not (args.platform == AGENT and hasattr(wanted.plugin.module, "SETUP")):
        raise ConfigError(f"{wanted.plugin.name} needs no setup")
    answers = _answers(args, wanted.plugin, questions, wanted.there)
    with laid_down(home, answers.secrets) as keep:
        values = {**wanted.values, **answers.values}
        meant, text = edited(home.config_file, wanted.path, values, without=wanted.without)
        config = from_table(meant, secrets=home.secrets)
        findings = () if args.no_check else asyncio.run(_findings(args, wanted, config))
        # Credential findings come first; later findings are warnings.
        ok = not findings or findings[0].ok
        if ok:
            write_config(home.config_file, text)
            keep()
    _tell(args, home, wanted, findings, ok=ok)
    return OK if ok else FAILED


def _platform(args: Namespace, home: Home) -> WantedSettings:
    plugin = registry.find("adapters", args.platform)
    path = ["adapters", plugin.name] + ([] if args.account == "default" else ["accounts", args.account])

    @asynccontextmanager
    async def made(config: Config) -> AsyncIterator[object]:
        from belino.gateway.adapter_context import AccountContext
        from belino.net.clock import SystemClock
        from belino.net.guard import Guard

        own = next(each for each in config.adapters if (each.platform, each.account) == (plugin.name, args.account))
        context = AccountContext(own, SystemClock(), Guard(config.net.allow), home=home)
        try:
            yield plugin.make(own.options, context)
        finally:
            await context.http.close()

    return WantedSettings(
        plugin=plugin,
        path=path,
        there=_there(home.config_file, path),
        made=made,
        who=f"{plugin.name}:{args.account}",
        then="Then write to the agent there: it answers with a code, and `belino pair CODE` gives you access.",
    )


def _agent(args: Namespace, home: Home) -> WantedSettings:
    there = _there(home.config_file, [AGENT])
    kinds = [kind for kind in registry.built_in("agents") if hasattr(registry.find("agents", kind).module, "SETUP")]
    usual = "claude"
    question = Question(key="kind", ask=f"Which kind of agent shall answer? ({', '.join(kinds)})", default=usual)
    kind = args.kind or asked(args, question, there.get("kind", usual)) or str(there.get("kind", usual))
    plugin = registry.find("agents", kind)
    known = {field.name for field in fields(plugin.config_type)} | set(AGENT_KEYS)

    @asynccontextmanager
    async def made(config: Config) -> AsyncIterator[object]:
        agent = plugin.make(config.agent.options)
        try:
            yield agent
        finally:
            if isinstance(agent, Closes):
                await agent.close()

    return WantedSettings(
        plugin=plugin,
        path=[AGENT],
        there=there if there.get("kind") == kind else {},
        values={"kind": kind},
        without=sorted(there.keys() - known),
        made=made,
        who=f"{AGENT} {kind}",
        then="Then write to it in the web chat.",
    )


def _there(file: Path, path: Sequence[str]) -> Mapping[str, Any]:
    """The current table."""
    table: Any = read_table(file) if file.exists() else {}
    for step in path:
        table = table.get(step, {}) if isinstance(table, Mapping) else {}
    return table if isinstance(table, Mapping) else {}


def _answers(
    args: Namespace, plugin: registry.Plugin, questions: Sequence[Question], there: Mapping[str, Any]
) -> SetupAnswers:
    given = dict(pair_of(text) for text in args.set)
    hints = get_type_hints(plugin.config_type)
    unknown = sorted(given.keys() - hints.keys())
    if unknown:
        raise ConfigError(f"{plugin.name} has no key {unknown[0]!r}; known keys: {', '.join(sorted(hints))}")
    answers = SetupAnswers(values={key: typed(hints[key], key, text) for key, text in given.items()})
    defaults = {each.name: each.default for each in fields(plugin.config_type)}
    meant = {**defaults, **there, **answers.values}
    questions = [each for each in questions if each.when is None or meant.get(each.when[0]) == each.when[1]]
    answers.values |= _in_environment(args.token_env, plugin.name, questions, hints)
    for question in questions:
        if question.key in answers.values:
            continue
        if question.secret:
            _answer_secret(args, question, there, answers)
        else:
            text = asked(args, question, there.get(question.key, question.default))
            if text != "":
                answers.values[question.key] = typed(hints.get(question.key, str), question.key, text)
    return answers


def _in_environment(
    named: Sequence[str], who: str, questions: Sequence[Question], hints: Mapping[str, Any]
) -> Mapping[str, str]:
    """The secrets that are given as environment variables, by key; a single secret needs no key."""
    asked = [question.key for question in questions if question.secret]
    secrets = [key for key, hint in hints.items() if Secret in (hint, *get_args(hint))]
    found: dict[str, str] = {}
    for text in named:
        key, _, name = text.rpartition("=")
        if not key and len(asked) > 1:
            each = " ".join(f"--token-env {one}=NAME" for one in asked)
            raise ConfigError(f"{who} has several secrets; name the variable of each: {each}")
        key = key or next(iter(asked), "")
        if key not in secrets:
            raise ConfigError(f"{who} has no secret {key!r}; its secrets: {', '.join(secrets) or 'none'}")
        found[key] = f"env:{name}"
    return found


def _answer_secret(args: Namespace, question: Question, there: Mapping[str, Any], answers: SetupAnswers) -> None:
    """A secret's name goes into the configuration; the secret itself into a file of its own, or nowhere."""
    secret = asked_secretly(args, question, kept=question.key in there)
    if secret:
        account = "" if args.account == "default" else f"{args.account}."
        name = f"{args.platform}.{account}{question.key}"
        answers.values[question.key] = f"file:{name}"
        answers.secrets[name] = secret


def asked(args: Namespace, question: Question, default: object) -> str:
    if _silent(args):
        if default is None:
            raise ConfigError(f"{question.key} is needed; give it with --set {question.key}=VALUE")
        return ""
    _tell_first(question)
    shown = "" if default in (None, "") else f" [{default}]"
    print(f"{question.ask}{shown} ", end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise _no_answer()
    return line.strip()


def asked_secretly(args: Namespace, question: Question, *, kept: bool) -> str:
    if _silent(args):
        if kept or question.default is not None:
            return ""
        raise ConfigError(
            f"{question.key} is needed; put it into an environment variable and name that with "
            f"--token-env {question.key}=NAME, or run this in a terminal to be asked"
        )
    _tell_first(question)
    hint = " (Enter keeps the current one)" if kept else ""
    try:
        secret = getpass.getpass(f"{question.ask}{hint} ").strip()
    except EOFError:
        raise _no_answer() from None
    if not secret and not kept and question.default is None:
        raise ConfigError(f"{question.key} is needed; nothing was changed")
    return secret


def _no_answer() -> BelinoError:
    """Ctrl-D: the user ends the questions."""
    print(file=sys.stderr)  # the cursor is still behind the question
    return BelinoError("no answer came; nothing was changed")


def _tell_first(question: Question) -> None:
    if question.tells:
        print(f"{question.tells}\n", file=sys.stderr)


def _silent(args: Namespace) -> bool:
    return bool(args.yes or args.json or not sys.stdin.isatty())


def pair_of(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ConfigError(f"--set takes KEY=VALUE, not {text!r}")
    return key, value


def typed(hint: Any, key: str, text: str) -> Any:
    """An answer in the type of its key; the configuration validates the value."""
    kinds = {hint, *get_args(hint)}
    if bool in kinds:
        return text.strip().lower() in ("true", "yes", "y", "on", "1")
    if int in kinds:
        try:
            return int(text)
        except ValueError:
            raise ConfigError(f"{key} must be a whole number") from None
    if tuple in kinds or any(getattr(kind, "__origin__", None) is tuple for kind in kinds):
        return [item.strip() for item in text.split(",") if item.strip()]
    return text


@contextmanager
def laid_down(home: Home, secrets: Mapping[str, str]) -> Iterator[Any]:
    """New secrets, in place while the configuration that names them is tested; restored unless kept."""
    before: dict[str, str | None] = {}
    kept = False

    def keep() -> None:
        nonlocal kept
        kept = True

    try:
        for name, secret in secrets.items():
            before[name] = _old(name, home.secrets)
            write_secret(home.secrets, name, secret)
        yield keep
    finally:
        if not kept:
            for name, old in before.items():
                if old is None:
                    (home.secrets / name).unlink(missing_ok=True)
                else:
                    write_secret(home.secrets, name, old)


def _old(name: str, folder: Path) -> str | None:
    try:
        return read_secret(name, folder)
    except ValueError:
        return None


async def _findings(args: Namespace, wanted: WantedSettings, config: Config) -> tuple[Finding, ...]:
    """Findings of an adapter or agent with these settings, after it took over from another program, if that is wanted.

    Where the credentials are wrong, the first finding says so.
    """
    try:
        async with wanted.made(config) as made:
            if isinstance(made, LinksDevice) and (unlinked := await _linked(args, wanted.who, made)) is not None:
                return (unlinked,)
            async with asyncio.timeout(CHECK_SECONDS):
                found = tuple(await made.check()) if isinstance(made, Checks) else ()
                rival = await made.rival() if isinstance(made, TakesOver) and (not found or found[0].ok) else ""
            if not rival or not isinstance(made, TakesOver) or not _may_take_over(args, wanted.who, rival):
                return found
            async with asyncio.timeout(CHECK_SECONDS):
                await made.take_over()
                return tuple(await made.check()) if isinstance(made, Checks) else ()
    except TimeoutError:
        return (Finding(name=wanted.who, ok=False, says=f"no answer within {CHECK_SECONDS:.0f} seconds"),)
    except BelinoError as error:
        from belino.net.redact import redact

        return (Finding(name=wanted.who, ok=False, says=redact(str(error))),)


async def _linked(args: Namespace, who: str, made: LinksDevice) -> Finding | None:
    """Link a device if none is linked, by codes that are shown in the terminal; the finding says why none is."""
    from belino.gateway.linking import in_terminal, qr_rows

    async with asyncio.timeout(CHECK_SECONDS):
        try:
            if not await made.needs_link():
                return None
        except AdapterError:
            return None  # the check says what is wrong
    if _silent(args):
        cure = "Run this in a terminal, or link it in the page under Status."
        return Finding(
            name=f"{who} device", ok=False, says="no device is linked, and its code needs a screen", cure=cure
        )
    async for code in made.link():
        if code.scan:
            print(f"{in_terminal(qr_rows(code.scan))}\nScan it in the app, under its linked devices.", file=sys.stderr)
        if code.type_in:
            print(f"Or type this code there: {code.type_in}", file=sys.stderr)
    print("The device is linked.", file=sys.stderr)
    return None


def _may_take_over(args: Namespace, who: str, rival: str) -> bool:
    """Whether the operator agrees: by the flag, or by an answer; without a terminal, no."""
    if args.take_over or _silent(args):
        return bool(args.take_over)
    question = f"The events of {who} go to {rival}. Remove it, so that belino gets them? The program there gets none."
    return asked(args, Question(key="take_over", ask=question), "no").lower() in ("y", "yes")


def _tell(args: Namespace, home: Home, wanted: WantedSettings, findings: Sequence[Finding], *, ok: bool) -> None:
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
    print(clean(f"Wrote [{table}] to {home.config_file}."))
    print(clean(applied))
    print(wanted.then)
