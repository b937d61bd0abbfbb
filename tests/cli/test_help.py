"""Help is static, complete and cheap; misuse is told."""

import importlib
import pkgutil
import subprocess
import sys
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from pathlib import Path

import pytest

from belino import __version__, cli
from belino.cli.command import make_parser
from cli.shell import Done

HEAVY = [
    "argparse",
    "asyncio",
    "pydantic",
    "starlette",
    "uvicorn",
    "aiohttp",
    "rich",
    "sqlite3",
    "logging",
    "belino.config",
]


def belino(*arguments: str) -> Done:
    return subprocess.run([sys.executable, "-m", "belino", *arguments], capture_output=True, text=True, timeout=60)


def test_help_lists_every_command_and_imports_none_of_them() -> None:
    code = (
        "import sys; from belino.__main__ import main; code = main(['--help']); "
        f"print(code, [name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr.strip() == "0 []"
    for name, says in cli.COMMANDS.items():
        assert f"  {name} " in done.stdout
        assert says in done.stdout


def test_help_fits_a_terminal_of_eighty_columns() -> None:
    assert [line for line in cli.help_text().splitlines() if len(line) > 80] == []


def test_help_of_a_command_may_be_asked_for_in_both_orders(capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for asked in (["help", "media", "fit"], ["media", "fit", "--help"]):
        assert cli.main(asked) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert told[0].startswith("usage: belino media fit")


def test_an_option_before_the_command_is_told_its_place() -> None:
    done = belino("--home", "somewhere", "status")
    assert (done.returncode, done.stdout) == (2, "")
    assert "options follow the command, like belino status --home" in done.stderr


def test_the_tables_list_exactly_the_commands_and_their_modules() -> None:
    found: dict[str, str] = {}
    for name in (module.name for module in pkgutil.iter_modules(cli.__path__)):
        module = importlib.import_module(f"belino.cli.{name}")
        own = [each for each in vars(module).values() if getattr(each, "__module__", "") == module.__name__]
        runs = [getattr(each, "__name__", "") for each in own]
        found |= {run.removeprefix("run_"): name for run in runs if run.startswith("run_") and run != "run_command"}
    assert found == {command: cli.GROUPS.get(command, command) for command in cli.COMMANDS}


def test_every_command_has_a_row_on_its_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    assert [name for name in cli.COMMANDS if f"| `belino {name}" not in page] == []


def parsers(parser: ArgumentParser) -> Iterator[ArgumentParser]:
    """The parser and all below it."""
    yield parser
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for inner in action.choices.values():
                yield from parsers(inner)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_and_subcommand_explains_itself_and_all_it_takes(name: str) -> None:
    for parser in parsers(make_parser(name)):
        assert (parser.description or "").endswith("."), f"{parser.prog} has no description"
        for action in parser._actions:
            assert action.help, f"{parser.prog} does not say what {action.metavar or action.dest} is"
            listed = {row.dest: row.help for row in getattr(action, "_choices_actions", ())}
            subcommands = action.choices if isinstance(action, _SubParsersAction) else ()
            assert [inner for inner in subcommands if not listed.get(inner)] == [], parser.prog


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_and_subcommand_takes_json_and_home(name: str) -> None:
    for parser in parsers(make_parser(name)):
        shown = parser.format_help()
        assert "--json" in shown, parser.prog
        assert "--home FOLDER" in shown, parser.prog


def test_help_of_a_command_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["outbox", "show", "--help"]) == 0
    assert "Show one parcel" in capsys.readouterr().out


def test_the_version_is_told() -> None:
    assert belino("--version").stdout == f"belino {__version__}\n"


@pytest.mark.parametrize("arguments", [(), ("sevre",), ("media",), ("serve", "--port", "70000"), ("explain",)])
def test_misuse_exits_with_two_and_says_what_is_wrong(arguments: tuple[str, ...]) -> None:
    done = belino(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr


@pytest.mark.parametrize(
    ("arguments", "limits"),
    [
        (("serve", "--port", "70000"), "from 0 to 65535"),
        (("demo", "--port", "http"), "from 0 to 65535"),
        (("media", "ls", "--limit", "0"), "from 1 to 200"),
        (("media", "fit", "a.png", "--max-bytes", "0", "-o", "b.png"), "at least 1"),
        (("token", "create", "--conversation", "web:default:main", "--days", "0"), "from 1 to 3650"),
    ],
)
def test_a_number_out_of_its_limits_is_refused_with_them(arguments: tuple[str, ...], limits: str) -> None:
    done = belino(*arguments)
    assert done.returncode == 2
    assert f"is not a whole number {limits}" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain", ""),
        ("explain", "\udcff"),
        ("outbox", "show", "\udcff"),
        ("token", "revoke", "\udcff"),
        ("token", "create", "--conversation", "web:default:main", "--note", "\udcff"),
        ("pair", "\udcff"),
        ("media", "fetch", "\udcff"),
    ],
    ids=["nothing", "explain", "outbox", "token", "note", "pair", "media"],
)
def test_what_is_no_text_is_refused_before_anybody_is_asked(arguments: tuple[str, ...]) -> None:
    done = belino(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not a text of " in done.stderr


@pytest.mark.parametrize("pace", ["-1", "61", "nan", "soon"])
def test_a_time_out_of_its_limits_is_refused_with_them(pace: str) -> None:
    done = belino("demo", f"--pace={pace}")
    assert done.returncode == 2
    assert f"{pace!r} is not a number of seconds from 0 to 60" in done.stderr


def test_files_to_measure_on_must_be_there(tmp_path: Path) -> None:
    done = belino("bench", "sniff", "--corpus", str(tmp_path / "none"))
    assert (done.returncode, done.stderr) == (1, f"belino: {tmp_path / 'none'} is not a folder\n")


def test_a_mistyped_command_is_told_with_the_nearest_one() -> None:
    assert "Did you mean serve?" in belino("sevre").stderr


def test_the_entry_script_leads_to_the_same_place() -> None:
    script = Path(sys.executable).with_name("belino")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"belino {__version__}\n"
