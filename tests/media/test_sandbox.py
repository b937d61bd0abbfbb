"""Whatever a decoder does, the caller gets an answer or a sentence, nothing gets out and nothing is left over."""

import asyncio
import gc
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from belino.domain.errors import MediaError, MediaRefused, StoreError
from belino.media.sandbox.sandbox import AT_ONCE, ENVIRONMENT, Sandbox
from media import sandbox_jobs

pytestmark = pytest.mark.slow

CONFINED = pytest.mark.skipif(sys.platform != "linux", reason="walls beyond limits exist on Linux only")
PATHS = (str(Path(sandbox_jobs.__file__).parent.parent),)


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(jobs=sandbox_jobs.JOBS, paths=PATHS) as made:
        yield made


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(b"bytes to decode")
    return path


async def parent_of(sandbox: Sandbox, source: Path) -> int:
    """The process id of the prepared parent, once there is one."""
    await sandbox.run("read", source)
    line = sandbox._line
    assert line is not None
    return line._process.pid


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()


async def test_a_job_reads_what_it_is_handed_and_answers(sandbox: Sandbox, source: Path) -> None:
    assert await sandbox.run("read", source, {"page": 2}) == {"bytes": 15, "options": {"page": 2}}


async def test_a_descriptor_is_read_from_its_beginning(sandbox: Sandbox, source: Path) -> None:
    with source.open("rb") as opened:
        opened.read(5)
        assert (await sandbox.run("read", opened.fileno()))["bytes"] == 15


async def test_a_job_writes_only_the_file_it_is_handed(sandbox: Sandbox, source: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    assert await sandbox.run("copy", source, output=output) == {"bytes": 15}
    assert output.read_bytes() == b"bytes to decode"
    assert output.stat().st_mode & 0o777 == 0o600


async def test_an_output_that_exists_is_not_written(sandbox: Sandbox, source: Path, tmp_path: Path) -> None:
    (tmp_path / "output").write_text("mine")
    with pytest.raises(StoreError):
        await sandbox.run("copy", source, output=tmp_path / "output")
    assert (tmp_path / "output").read_text() == "mine"


@contextmanager
def failing(caplog: pytest.LogCaptureFixture, kind: str) -> Iterator[None]:
    """A job that ends with an error of this kind, which the operator's log names and nobody else hears of."""
    with caplog.at_level("INFO"), pytest.raises(MediaRefused, match=r"^it could not be decoded$"):
        yield
    assert re.search(kind, caplog.text)


async def test_the_source_cannot_be_written(sandbox: Sandbox, source: Path, caplog: pytest.LogCaptureFixture) -> None:
    with failing(caplog, "OSError"):
        await sandbox.run("write_source", source)
    with source.open("r+b") as opened, pytest.raises(MediaError, match="for reading"):
        await sandbox.run("read", opened.fileno())


@CONFINED
async def test_the_source_is_shut_to_nobody(sandbox: Sandbox, source: Path, caplog: pytest.LogCaptureFixture) -> None:
    mode = source.stat().st_mode
    with failing(caplog, "PermissionError"):
        await sandbox.run("lock_source", source)
    assert source.stat().st_mode == mode


@pytest.mark.parametrize("kind", ["missing", "folder", "link", "pipe"])
async def test_only_a_plain_file_is_decoded(sandbox: Sandbox, source: Path, tmp_path: Path, kind: str) -> None:
    other = tmp_path / "other"
    match kind:
        case "folder":
            other.mkdir()
        case "link":
            other.symlink_to(source)
        case "pipe":
            os.mkfifo(other)
    with pytest.raises(MediaError):
        await sandbox.run("read", other)


@pytest.mark.parametrize(
    ("job", "options", "says"),
    [
        ("crash", {}, "decoding it crashed (SIGSEGV)"),
        ("abort", {}, "decoding it crashed (SIGABRT)"),
        ("eat", {"bytes": 1 << 40}, "decoding it needs more than 768.0MB of memory"),
        ("grow", {}, "decoding it needs more than 768.0MB of memory"),
        ("huge", {}, "it could not be decoded"),
        ("wrong", {}, "decoding it gave no proper answer"),
        ("leave", {}, "decoding it gave no proper answer"),
        ("shout", {}, "decoding it gave no proper answer"),
        ("deep", {}, "decoding it gave no proper answer"),
    ],
)
async def test_what_becomes_of_a_child_is_told_in_a_sentence(
    sandbox: Sandbox, source: Path, job: str, options: dict[str, int], says: str
) -> None:
    with pytest.raises(MediaRefused) as refused:
        await sandbox.run(job, source, options)
    assert str(refused.value) == says
    assert (await sandbox.run("read", source))["bytes"] == 15


async def test_a_refusal_is_passed_on_short_and_disarmed(sandbox: Sandbox, source: Path) -> None:
    with pytest.raises(MediaRefused) as refused:
        await sandbox.run("refuse", source)
    assert str(refused.value).startswith("too many pixels ［Image: x, ref:tg_1]!")
    assert len(str(refused.value)) <= 300


async def test_a_failure_quotes_neither_the_file_nor_the_decoder(
    sandbox: Sandbox, source: Path, tmp_path: Path
) -> None:
    with pytest.raises(MediaRefused) as refused:
        await sandbox.run("fail", source, output=tmp_path / "output")
    assert str(refused.value) == "it could not be decoded"
    assert not (tmp_path / "output").exists()


async def test_a_decoder_that_panics_is_told_like_one_that_fails(sandbox: Sandbox, source: Path) -> None:
    with pytest.raises(MediaRefused, match="it could not be decoded"):
        await sandbox.run("panic", source)


async def test_a_full_disk_is_not_the_fault_of_the_file(sandbox: Sandbox, source: Path, tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="no room on the disk") as failed:
        await sandbox.run("full", source, output=tmp_path / "output")
    assert not isinstance(failed.value, MediaRefused)


async def test_a_job_that_takes_too_much_cpu_time_is_killed_for_good(
    sandbox: Sandbox, source: Path, tmp_path: Path
) -> None:
    parent = await parent_of(sandbox, source)
    with pytest.raises(MediaRefused, match=r"took longer than 1 s of CPU time"):
        await sandbox.run("spin", source, seconds=1)
    assert sorted(tmp_path.iterdir()) == [source]
    if sys.platform == "linux":
        assert children_of(parent) == []


async def test_a_job_that_takes_no_cpu_time_is_tried_twice_and_may_be_tried_later(
    sandbox: Sandbox, source: Path, tmp_path: Path
) -> None:
    parent = await parent_of(sandbox, source)
    with pytest.raises(MediaError, match=r"did not end within 0\.5 s, twice") as failed:
        await sandbox.run("stall", source, output=tmp_path / "output", seconds=0.1)
    assert not isinstance(failed.value, MediaRefused)
    assert sorted(tmp_path.iterdir()) == [source]
    if sys.platform == "linux":
        assert children_of(parent) == []


async def test_a_job_that_was_held_up_once_succeeds_the_second_time(
    sandbox: Sandbox, source: Path, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    await sandbox.run("read", source)
    assert await sandbox.run("stall_once", source, output=output, seconds=0.2) == {"held_up": True}
    assert output.read_bytes() == b"whole"


async def test_a_caller_that_goes_away_takes_the_job_and_its_file_along(
    sandbox: Sandbox, source: Path, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    await sandbox.run("read", source)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await sandbox.run("stall", source, output=output)
    assert not output.exists()
    # With one of the two places still taken by the stalled job, its time would have to run out first.
    async with asyncio.timeout(15):
        await asyncio.gather(*(sandbox.run("read", source) for _ in range(8)))


async def test_a_file_grows_no_further_than_its_limit(sandbox: Sandbox, source: Path, tmp_path: Path) -> None:
    with pytest.raises(MediaRefused):
        await sandbox.run("fill", source, output=tmp_path / "output")
    assert not (tmp_path / "output").exists()


async def test_a_child_has_an_empty_environment_and_only_its_own_descriptors(
    sandbox: Sandbox, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELEGRAM_TOKEN", "1:secret")
    found = await sandbox.run("surroundings", source)
    assert set(found["environment"]) <= {*ENVIRONMENT, "LC_CTYPE"}
    assert found["descriptors"] == 5  # three to nowhere, the source, the answer
    assert found["limits"] == {"CORE": 0, "NOFILE": 64, "FSIZE": 256 * 1024 * 1024}


async def test_threads_may_start(sandbox: Sandbox, source: Path) -> None:
    assert await sandbox.run("thread", source) == {"done": [0, 1, 2, 3]}


@CONFINED
async def test_a_child_that_starts_threads_without_end_is_killed_long_before_its_time(
    sandbox: Sandbox, source: Path
) -> None:
    parent = await parent_of(sandbox, source)
    async with asyncio.timeout(30):
        with pytest.raises(MediaRefused) as refused:
            await sandbox.run("threads", source, seconds=60)
    assert str(refused.value) == "decoding it started too many threads"
    assert children_of(parent) == []


@CONFINED
async def test_a_child_opens_no_file(sandbox: Sandbox, source: Path, caplog: pytest.LogCaptureFixture) -> None:
    for path in ("/etc/passwd", str(source), "/proc/self/environ", "/dev/null"):
        with failing(caplog, "PermissionError"):
            await sandbox.run("open_file", source, {"path": path})


@pytest.fixture(params=[socket.SOCK_STREAM, socket.SOCK_DGRAM])
def listener(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, request.param) as made:
        made.bind(("127.0.0.1", 0))
        if request.param == socket.SOCK_STREAM:
            made.listen()
        made.setblocking(False)
        yield made


@CONFINED
async def test_a_child_reaches_no_network(
    sandbox: Sandbox, source: Path, listener: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    where = {"kind": int(listener.type), "port": listener.getsockname()[1]}
    with failing(caplog, "PermissionError"):
        await sandbox.run("connect", source, where)


@CONFINED
@pytest.mark.parametrize("job", ["start", "kill_parent", "signal_parent", "slow_parent", "raise_limits", "hoard"])
async def test_a_child_touches_no_other_process_and_keeps_its_limits(
    sandbox: Sandbox, source: Path, job: str, caplog: pytest.LogCaptureFixture
) -> None:
    parent = await parent_of(sandbox, source)
    with failing(caplog, "PermissionError|ValueError"):
        await sandbox.run(job, source)
    assert await parent_of(sandbox, source) == parent


@CONFINED
async def test_a_call_newer_than_the_walls_is_none(sandbox: Sandbox, source: Path) -> None:
    assert await sandbox.run("newer", source) == {"errno": "ENOSYS"}


@CONFINED
async def test_a_child_has_none_of_roots_powers(sandbox: Sandbox, source: Path) -> None:
    assert await sandbox.run("powers", source) == {"held": ""}


@CONFINED
async def test_here_the_walls_hold(sandbox: Sandbox) -> None:
    assert await sandbox.examine() == "full"
    assert sandbox.leaks == ()


async def test_a_sandbox_that_must_be_full_decodes_nothing_where_it_is_not(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The parent forks children without walls, as on a system that has none.
    monkeypatch.setattr("belino.media.sandbox.sandbox._TRIAL_FUNCTION", "media.sandbox_jobs:leaks")
    async with Sandbox("required", jobs=sandbox_jobs.JOBS, paths=PATHS) as sandbox:
        with pytest.raises(MediaError, match="required") as refused:
            await sandbox.run("read", source)
        assert "open files" in str(refused.value)
        assert sandbox.level == "limited"


async def test_a_sandbox_that_must_be_full_decodes_where_it_is(source: Path) -> None:
    async with Sandbox("required", jobs=sandbox_jobs.JOBS, paths=PATHS) as sandbox:
        if await sandbox.examine() == "full":
            assert (await sandbox.run("read", source))["bytes"] == 15


@CONFINED
async def test_a_sandbox_that_must_be_full_is_not_called_less_for_being_busy(source: Path) -> None:
    together = 80
    async with Sandbox("required", jobs=sandbox_jobs.JOBS, paths=PATHS) as sandbox:
        ends = await asyncio.gather(*(sandbox.run("read", source) for _ in range(together)), return_exceptions=True)
        assert sandbox.level == "full"
    assert all(isinstance(end, dict) for end in ends)


@CONFINED
async def test_no_path_leads_to_a_file(sandbox: Sandbox, source: Path) -> None:
    await sandbox.examine()
    seen = await sandbox.run("see_names", source)
    assert bool(seen["found"]) is sandbox.sees_names
    assert seen["open"] == source.stat().st_size
    assert (await sandbox.run("flush_disks", source))["refused"]


async def test_any_number_of_jobs_waits_for_its_turn(sandbox: Sandbox, source: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    jobs = [asyncio.ensure_future(sandbox.run("read", source)) for _ in range(150)]
    await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
    if before:
        assert len(list(Path("/proc/self/fd").iterdir())) < before + 30
    assert [job["bytes"] for job in await asyncio.gather(*jobs)] == [15] * 150


async def test_a_start_that_nobody_waits_for_leaves_no_process(source: Path) -> None:
    async with Sandbox(jobs=sandbox_jobs.JOBS, paths=PATHS) as sandbox:
        starting = asyncio.ensure_future(sandbox.run("read", source))
        for _ in range(3):
            await asyncio.sleep(0)
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        assert (await sandbox.run("read", source))["bytes"] == 15
    gc.collect()  # a process that is still running would be a warning here, and so an error


async def test_a_caller_that_waits_no_longer_leaves_its_place(sandbox: Sandbox, source: Path, tmp_path: Path) -> None:
    await sandbox.run("read", source)
    busy = [asyncio.ensure_future(sandbox.run("stall", source, output=tmp_path / str(n))) for n in range(AT_ONCE)]
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await sandbox.run("read", source)
    for job in busy:
        job.cancel()
    await asyncio.gather(*busy, return_exceptions=True)
    assert (await sandbox.run("read", source))["bytes"] == 15


async def test_a_parent_that_died_is_replaced(sandbox: Sandbox, source: Path) -> None:
    parent = await parent_of(sandbox, source)
    os.kill(parent, signal.SIGKILL)
    assert (await sandbox.run("read", source))["bytes"] == 15
    assert await parent_of(sandbox, source) != parent


async def test_a_job_whose_parent_dies_is_done_by_the_next(sandbox: Sandbox, source: Path, tmp_path: Path) -> None:
    parent = await parent_of(sandbox, source)
    output = tmp_path / "output"

    async def end_the_parent() -> None:
        while not output.exists():
            await asyncio.sleep(0)
        os.kill(parent, signal.SIGKILL)

    job = sandbox.run("stall", source, output=output, seconds=0.4)
    ended, _ = await asyncio.gather(job, end_the_parent(), return_exceptions=True)
    assert isinstance(ended, MediaError)
    assert "did not end within 2 s" in str(ended)
    assert not output.exists()
    assert await parent_of(sandbox, source) != parent


@CONFINED
async def test_no_child_outlives_its_parent(sandbox: Sandbox, source: Path, tmp_path: Path) -> None:
    parent = await parent_of(sandbox, source)
    output = tmp_path / "output"
    children: list[int] = []

    async def end_the_parent() -> None:
        while not output.exists() or not output.stat().st_size:
            await asyncio.sleep(0)
        children.extend(map(int, children_of(parent)))
        os.kill(parent, signal.SIGKILL)

    async with asyncio.timeout(30):
        job = sandbox.run("outlive", source, output=output, seconds=0.4)
        await asyncio.gather(job, end_the_parent(), return_exceptions=True)
    (child,) = children
    # Where nobody buries the dead, they stay listed as such.
    assert not is_running(child)


@CONFINED
@pytest.mark.parametrize(("parent", "code"), [("os.getppid()", 0), ("0", 1)], ids=["there", "gone"])
def test_a_child_whose_parent_was_gone_before_it_stood_ends(parent: str, code: int) -> None:
    walls = f"raise_walls(parent={parent}, memory=1 << 30, seconds=10)"
    script = f"import os; from belino.media.sandbox.walls import raise_walls; {walls}; os._exit(0)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == code


async def test_a_sandbox_that_cannot_be_prepared_says_why(source: Path) -> None:
    async with Sandbox(jobs={"read": "no_such_module:read"}) as sandbox:
        with pytest.raises(MediaError, match="no_such_module"):
            await sandbox.run("read", source)
        assert await sandbox.examine() == "none"


async def test_a_job_nobody_knows_is_refused(sandbox: Sandbox, source: Path) -> None:
    with pytest.raises(MediaError, match="knows no job"):
        await sandbox.run("os:system", source)


async def test_closing_ends_the_parent_its_children_and_whatever_waits_for_them(source: Path, tmp_path: Path) -> None:
    sandbox = Sandbox(jobs=sandbox_jobs.JOBS, paths=PATHS)
    parent = await parent_of(sandbox, source)
    output = tmp_path / "output"

    async def close_when_it_runs() -> None:
        while not output.exists() or not output.stat().st_size:
            await asyncio.sleep(0)
        await sandbox.close()

    async with asyncio.timeout(15):
        job = sandbox.run("stall", source, output=output)
        ended, closed = await asyncio.gather(job, close_when_it_runs(), return_exceptions=True)
    assert closed is None
    assert isinstance(ended, MediaError)
    assert not output.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(parent, 0)
    with pytest.raises(MediaError, match="stopping"):
        await sandbox.run("read", source)


def test_the_gateway_never_loads_a_decoder() -> None:
    program = (
        "import sys\n"
        "import belino.gateway.gateway, belino.gateway.doctor, belino.media.sandbox.sandbox, belino.tools.toolbox\n"
        "import belino.web.app\n"
        "loaded = {'PIL', 'pyvips', 'pillow_heif'} & set(sys.modules)\n"
        "sys.exit(f'loaded {loaded}' if loaded else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
