"""A local model runs outside the gateway: nothing gets out, a failure fails one reading, an idle process ends."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from belino.domain.errors import ProviderError
from belino.domain.reading import Material
from belino.media.sandbox.sandbox import ParentLine
from belino.understanding.worker import MATERIAL_AT_MOST, JobUsage, ModelWorker
from understanding import worker_jobs

pytestmark = pytest.mark.slow

CONFINED = pytest.mark.skipif(sys.platform != "linux", reason="walls beyond limits exist on Linux only")
PATHS = (str(Path(worker_jobs.__file__).parent.parent),)
MEMORY = 1024 * 1024 * 1024


@pytest.fixture
async def worker() -> AsyncIterator[ModelWorker]:
    made = ModelWorker(paths=PATHS)
    yield made
    await made.close()


@pytest.fixture
def material(tmp_path: Path) -> Material:
    path = tmp_path / "material"
    path.write_bytes(b"plain samples")
    return Material(path=path, mime="audio/wav", size=13)


async def run(worker: ModelWorker, job: str, material: Material, **options: object) -> dict[str, object]:
    done = await worker.run(f"understanding.worker_jobs:{job}", [material], options, seconds=20, memory=MEMORY)
    return dict(done)


def line_of(worker: ModelWorker) -> ParentLine:
    (room,) = worker._rooms.values()
    assert room.line is not None
    return room.line


async def test_a_job_reads_its_material_with_the_model_in_a_process_of_its_own(
    worker: ModelWorker, material: Material, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    model.write_text("weights", encoding="utf-8")
    assert not worker.running
    answer = await run(worker, "read", material, model=str(model))
    assert answer == {"bytes": [13], "model": "weights", "own_process": True, "long": ""}
    assert worker.running == ("understanding.worker_jobs",)


async def test_several_files_and_a_long_answer_fit_into_one_job(worker: ModelWorker, material: Material) -> None:
    function = "understanding.worker_jobs:read"
    answer = await worker.run(
        function, [material] * MATERIAL_AT_MOST, {"long": 1_000_000}, seconds=20, memory=MEMORY
    )  # fmt: skip
    assert answer["bytes"] == [13] * MATERIAL_AT_MOST
    assert len(str(answer["long"])) == 1_000_000
    with pytest.raises(ProviderError, match=f"at most {MATERIAL_AT_MOST} files"):
        await worker.run(function, [material] * (MATERIAL_AT_MOST + 1), {}, seconds=20, memory=MEMORY)


@CONFINED
async def test_a_compromised_model_reaches_no_network_no_file_no_program_and_no_process(
    worker: ModelWorker, material: Material, tmp_path: Path
) -> None:
    model = tmp_path / "model"
    model.write_text("weights", encoding="utf-8")
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        answer = await run(worker, "escape", material, port=port, model=str(model), gateway=os.getpid())
    assert answer["reached"] == []
    assert not {"HOME", "PATH", "USER"} & {*answer["environment"]}  # type: ignore[misc]


@pytest.mark.parametrize(
    ("job", "options", "reason"),
    [
        ("eat", {"bytes": 2 * MEMORY}, r"needs more than 1\.0GB of memory"),
        ("crash", {}, r"the worker crashed \(SIGSEGV\)"),
        ("fail", {}, r"the local model failed \(RuntimeError\)"),
        ("refuse", {}, r"^the sound is too quiet for this model$"),
        ("read", {"model": "/nowhere/tiny"}, r"^there is no model tiny$"),
        ("read", {"long": 5_000_000}, r"failed|no proper answer"),
    ],
)
async def test_a_job_that_fails_says_why_and_the_next_one_is_done(
    worker: ModelWorker, material: Material, job: str, options: dict[str, object], reason: str
) -> None:
    with pytest.raises(ProviderError, match=reason):
        await run(worker, job, material, **options)
    assert (await run(worker, "read", material))["bytes"] == [13]


async def test_a_job_that_takes_too_long_is_killed(worker: ModelWorker, material: Material) -> None:
    with pytest.raises(ProviderError, match=r"took longer than 0\.3 s"):
        await worker.run("understanding.worker_jobs:spin", [material], {}, seconds=0.3, memory=MEMORY)
    assert (await run(worker, "read", material))["bytes"] == [13]


async def test_a_killed_parent_is_replaced(worker: ModelWorker, material: Material) -> None:
    await run(worker, "read", material)
    process = line_of(worker)._process
    process.kill()
    await asyncio.to_thread(process.wait)
    assert (await run(worker, "read", material))["bytes"] == [13]


async def test_a_cancelled_job_leaves_no_process_behind(worker: ModelWorker, material: Material) -> None:
    await run(worker, "read", material)
    children = Path(f"/proc/{line_of(worker)._process.pid}/task/{line_of(worker)._process.pid}/children")
    job = asyncio.create_task(run(worker, "spin", material))
    while sys.platform == "linux" and not children.read_text(encoding="ascii").split():
        await asyncio.sleep(0)
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    while sys.platform == "linux" and children.read_text(encoding="ascii").split():
        await asyncio.sleep(0)


async def test_an_idle_worker_ends_and_the_next_job_starts_it_again(material: Material) -> None:
    worker = ModelWorker(idle_seconds=0.2, paths=PATHS)
    try:
        await run(worker, "read", material)
        first = line_of(worker)._process
        assert await asyncio.to_thread(first.wait, 30) == 0
        while worker.running:
            await asyncio.sleep(0)
        assert (await run(worker, "read", material))["bytes"] == [13]
        assert line_of(worker)._process is not first
    finally:
        await worker.close()


async def test_a_worker_that_is_used_again_in_time_goes_on(worker: ModelWorker, material: Material) -> None:
    await run(worker, "read", material)
    first = line_of(worker)._process
    await run(worker, "read", material)
    assert line_of(worker)._process is first


async def test_a_closed_worker_refuses_jobs_and_its_processes_end(worker: ModelWorker, material: Material) -> None:
    await run(worker, "read", material)
    process = line_of(worker)._process
    await worker.close()
    assert process.poll() == 0
    with pytest.raises(ProviderError, match="belino is stopping"):
        await run(worker, "read", material)


async def test_a_worker_that_is_closed_while_it_starts_leaves_no_process_behind(
    worker: ModelWorker, material: Material, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[ParentLine] = []
    opens = ParentLine.open

    async def open_then_close(*arguments: Any, **options: Any) -> ParentLine:
        opened.append(await opens(*arguments, **options))
        await worker.close()
        return opened[0]

    monkeypatch.setattr(ParentLine, "open", open_then_close)
    with pytest.raises(ProviderError, match="belino is stopping"):
        await run(worker, "read", material)
    assert opened[0]._process.poll() == 0


async def test_the_usage_of_each_job_is_reported(material: Material) -> None:
    used: list[JobUsage] = []
    worker = ModelWorker(paths=PATHS, used=used.append)
    try:
        await run(worker, "eat", material, bytes=200 * 1024 * 1024)
    finally:
        await worker.close()
    (usage,) = used
    assert usage.peak_bytes > 200 * 1024 * 1024
    assert usage.cpu_seconds > 0


async def test_a_worker_whose_library_is_missing_says_so(worker: ModelWorker, material: Material) -> None:
    with pytest.raises(ProviderError, match=r"worker of nowhere cannot run: No module named"):
        await worker.run("understanding.nowhere:read", [material], {}, seconds=20, memory=MEMORY)


async def test_a_worker_ends_when_the_gateway_is_killed(tmp_path: Path) -> None:
    code = """
import asyncio, sys
from pathlib import Path
from belino.domain.reading import Material
from belino.understanding.worker import ModelWorker

async def main():
    worker = ModelWorker(paths=[sys.argv[1]])
    path = Path(sys.argv[2]); path.write_bytes(b"x")
    material = Material(path=path, mime="audio/wav", size=1)
    await worker.run("understanding.worker_jobs:read", [material], {}, seconds=20, memory=2**30)
    (room,) = worker._rooms.values()
    print(room.line._process.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
    gateway = subprocess.Popen(
        [sys.executable, "-c", code, PATHS[0], str(tmp_path / "material")], stdout=subprocess.PIPE, text=True
    )
    with gateway:
        assert gateway.stdout is not None
        pid = int(await asyncio.to_thread(gateway.stdout.readline))
        gateway.send_signal(signal.SIGKILL)
    while _runs(pid):
        await asyncio.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    if sys.platform == "linux":
        # A process that has ended stays in the list until its new parent has noticed.
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    return True


async def run_program(worker: ModelWorker, material: Material, *command: str, readable: tuple[str, ...] = ()) -> str:
    system = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache")
    return await worker.run_program(
        command,
        material,
        readable=[Path(path) for path in (*system, *readable)],
        environment={"LC_ALL": "C.UTF-8"},
        seconds=20,
        memory=MEMORY,
    )


async def test_a_program_gets_the_material_as_its_input(worker: ModelWorker, material: Material) -> None:
    assert await run_program(worker, material, "/bin/cat") == "plain samples"


async def test_a_program_that_fails_is_named(worker: ModelWorker, material: Material) -> None:
    with pytest.raises(ProviderError, match="false failed with exit code 1"):
        await run_program(worker, material, "/bin/false")


@CONFINED
@pytest.mark.parametrize(
    "line",
    [
        "cat {secret}",
        "echo stolen > {folder}/out",
        "rm {secret}",
        "exec 3<>/dev/tcp/127.0.0.1/{port} && echo hi >&3",
        "kill -0 {gateway}",
    ],
)
async def test_a_program_reads_no_other_file_writes_none_and_has_no_network(
    worker: ModelWorker, material: Material, tmp_path: Path, line: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("key", encoding="utf-8")
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        command = line.format(secret=secret, folder=tmp_path, port=port, gateway=os.getpid())
        with pytest.raises(ProviderError, match="bash failed with exit code"):
            await run_program(worker, material, "/bin/bash", "-c", f"{command}")
    assert secret.read_text(encoding="utf-8") == "key"
    assert not (tmp_path / "out").exists()
