"""What a command prints goes where it can, and where it cannot that is told in a sentence or not at all."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.shell import PATIENCE, Belino, Done, read

pytestmark = pytest.mark.slow

FULL = Path("/dev/full")


@pytest.fixture
def nobody_reads() -> Iterator[int]:
    """A pipe whose other end is closed."""
    ours, theirs = os.pipe()
    os.close(ours)
    yield theirs
    os.close(theirs)


def run(*arguments: str, home: Path, stdout: int = subprocess.PIPE, without: int | None = None) -> Done:
    """A command with its output there, and one of its streams closed."""
    return subprocess.run(
        [sys.executable, "-m", "belino", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        preexec_fn=None if without is None else lambda: os.close(without),
        env={"PATH": os.environ["PATH"], "BELINO_HOME": str(home)},
    )


@pytest.mark.parametrize("arguments", [("--help",), ("outbox", "--help"), ("config", "show")], ids=" ".join)
def test_a_reader_who_has_gone_is_no_error_worth_a_word(
    home: Path, nobody_reads: int, arguments: tuple[str, ...]
) -> None:
    assert run(*arguments, home=home, stdout=nobody_reads).stderr == ""


@pytest.mark.skipif(not FULL.exists(), reason="this system has no disk that is always full")
@pytest.mark.parametrize("arguments", [("--help",), ("config", "show", "--json")], ids=" ".join)
def test_a_disk_too_full_to_print_to_is_told_in_a_sentence(home: Path, arguments: tuple[str, ...]) -> None:
    with FULL.open("w") as full:
        done = run(*arguments, home=home, stdout=full.fileno())
    told = "belino: the output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, told)


def test_a_command_works_without_a_stream_to_print_to(home: Path) -> None:
    done = run("status", home=home, without=1)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_goes_wrong_is_not_printed_among_the_answers_when_stderr_is_closed(home: Path) -> None:
    done = run("explain", "nothing", home=home, without=2)
    assert (done.returncode, done.stdout) == (1, "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_output_that_lacks_letters_still_gets_every_line_and_all_of_the_json(
    belino: Belino, tmp_path: Path, encoding: str
) -> None:
    paper = tmp_path / "résumé 🌄 \udcff.txt"
    paper.write_text("日本語", encoding="utf-8")
    plain = belino("media", "sniff", str(paper), PYTHONIOENCODING=encoding)
    assert (plain.returncode, len(plain.stdout.splitlines()), plain.stderr) == (0, 2, "")
    wide, narrow = (
        read(belino("media", "text", str(paper), "--json", PYTHONIOENCODING=each)) for each in ("utf-8", encoding)
    )
    assert wide == narrow
    assert (narrow["file"], narrow["text"]) == (str(paper), "日本語")
    findings = belino("doctor", PYTHONIOENCODING=encoding).stdout.splitlines()
    assert {line[:2] for line in findings} == {"+ "}


def test_nobody_is_asked_where_there_is_nothing_to_answer_by(home: Path) -> None:
    done = run("setup", "telegram", home=home, without=0)
    assert (done.returncode, done.stdout) == (78, "")
    assert done.stderr.startswith("belino: token is needed")
