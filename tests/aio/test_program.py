"""Programs of the operator: what they get, what is taken from them, and that nothing of them stays."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from belino.aio.program import Program
from belino.domain.errors import ProviderError

pytestmark = pytest.mark.slow


def script(folder: Path, code: str, *, most_bytes: int = 1_000) -> Program:
    file = folder / "script.py"
    file.write_text(code)
    return Program(words=(sys.executable, "-I", "-S", str(file)), folder=folder, most_bytes=most_bytes)


async def test_a_program_gets_its_input_and_returns_its_output(tmp_path: Path) -> None:
    program = script(tmp_path, "import sys; sys.stdout.write(sys.stdin.read().upper())")
    assert await program.run(b"--hello") == b"--HELLO"


async def test_a_program_that_reads_nothing_is_no_error(tmp_path: Path) -> None:
    assert await script(tmp_path, "print('done')").run(b"x" * 1_000_000) == b"done\n"


async def test_a_program_does_not_get_our_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "very-secret")
    told = await script(tmp_path, "import os; print(sorted(os.environ))").run(b"")
    assert b"SOME_API_KEY" not in told
    assert b"PATH" in told


async def test_a_failure_names_the_program_its_code_and_its_last_words(tmp_path: Path) -> None:
    program = script(tmp_path, "import sys; print('starting\\nno such voice', file=sys.stderr); sys.exit(3)")
    with pytest.raises(ProviderError, match=r"python\S* ended with code 3: no such voice"):
        await program.run(b"")


async def test_a_program_that_does_not_exist_is_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="no-such-program is not installed; install it"):
        await Program(words=("no-such-program",), folder=tmp_path, most_bytes=1).run(b"")


async def test_a_program_that_writes_too_much_is_killed(tmp_path: Path) -> None:
    program = script(tmp_path, "import sys\nwhile True: sys.stdout.write('x' * 65536)")
    with pytest.raises(ProviderError, match="writes more than 1000B"):
        await program.run(b"")


async def test_a_cancellation_kills_the_program_and_what_it_started(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    child = "import time; open('alive', 'w').write('x'); time.sleep(600)"
    code = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(600)"
    async with asyncio.TaskGroup() as group:
        running = group.create_task(script(tmp_path, code).run(b""))
        # The pipe is read to its end, which comes when the child has written, or has been killed before.
        assert await asyncio.to_thread((tmp_path / "alive").read_bytes) in (b"x", b"")
        running.cancel()
    assert running.cancelled()
