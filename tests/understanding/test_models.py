"""A named model is fetched in pieces that may break off, checked, and appears only when it is whole."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
from aiohttp import web

from belino.domain.errors import ProviderError
from belino.net.client import Client
from belino.net.guard import Guard
from belino.understanding.models import ATTEMPTS, MODELS, ModelFile, NamedModel, fetch_model, is_fetched, named
from understanding.eager_clock import EagerClock

FILES = {"config.json": b"{}", "model.bin": bytes(range(256)) * 4_096}
MODEL = NamedModel(
    name="whisper-test",
    says="a test",
    provider="local_whisper",
    repository="people/whisper-test",
    revision="abc",
    files=tuple(
        ModelFile(name=name, size=len(content), sha256=hashlib.sha256(content).hexdigest())
        for name, content in FILES.items()
    ),
)


@dataclass(slots=True, kw_only=True)
class Source:
    """A server of model files."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=lambda: dict(FILES))
    break_after: list[int] = field(default_factory=list)
    """The next answers end after so many bytes."""
    ranges: bool = True
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.path, request.headers.get("Range", "")))
        content = self.files[request.match_info["name"]]
        start = int(request.headers.get("Range", "bytes=0-")[6:-1]) if self.ranges else 0
        answer = web.StreamResponse(status=206 if start else 200)
        answer.content_length = len(content) - start
        if start:
            answer.headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        await answer.prepare(request)
        most = self.break_after.pop(0) if self.break_after else len(content)
        await answer.write(content[start : start + most])
        if start + most < len(content):
            assert request.transport is not None
            request.transport.close()
        return answer


@pytest.fixture
async def source() -> AsyncIterator[Source]:
    made = Source()
    app = web.Application()
    app.router.add_get("/people/whisper-test/resolve/abc/{name}", made.serve)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = cast("tuple[str, int]", runner.addresses[0])
    made.address = f"http://{host}:{port}"
    yield made
    await runner.cleanup()


async def fetch(source: Source, folder: Path) -> tuple[Path, list[int]]:
    seen: list[int] = []
    http = Client(guard=Guard([source.address.removeprefix("http://")]))
    try:
        path = await fetch_model(
            MODEL, folder, http, EagerClock(), source=source.address, progress=lambda done, total: seen.append(done)
        )
    finally:
        await http.close()
    return path, seen


async def test_a_model_is_fetched_with_progress_and_then_not_again(source: Source, tmp_path: Path) -> None:
    path, seen = await fetch(source, tmp_path)
    assert {file.name: file.read_bytes() for file in path.iterdir()} == FILES
    assert is_fetched(MODEL, tmp_path)
    assert seen == sorted(seen)
    assert seen[-1] == MODEL.size
    source.asked.clear()
    await fetch(source, tmp_path)
    assert source.asked == []


async def test_a_download_that_breaks_off_goes_on_where_it_was(source: Source, tmp_path: Path) -> None:
    source.break_after = [2, 300_000, 300_000]
    path, _ = await fetch(source, tmp_path)
    assert (path / "model.bin").read_bytes() == FILES["model.bin"]
    asked = [asked for where, asked in source.asked if where.endswith("model.bin")]
    assert asked[0] == ""
    assert all(0 < int(later[6:-1]) < len(FILES["model.bin"]) for later in asked[1:])
    assert len(asked) == 3


async def test_the_same_command_continues_after_a_failure(source: Source, tmp_path: Path) -> None:
    source.break_after = [2, *[100_000] * ATTEMPTS]
    with pytest.raises(ProviderError, match=r"model\.bin could not be fetched.*continues where it broke off"):
        await fetch(source, tmp_path)
    assert not is_fetched(MODEL, tmp_path)
    source.asked.clear()
    await fetch(source, tmp_path)
    ((where, asked),) = source.asked
    assert where.endswith("model.bin")
    assert asked.startswith("bytes=")


async def test_a_server_without_ranges_sends_it_from_the_beginning(source: Source, tmp_path: Path) -> None:
    source.ranges, source.break_after = False, [2, 300_000]
    path, _ = await fetch(source, tmp_path)
    assert (path / "model.bin").read_bytes() == FILES["model.bin"]


@pytest.mark.parametrize("content", [b"\1" * len(FILES["model.bin"]), FILES["model.bin"] + b"more"])
async def test_another_file_than_the_named_one_is_refused_and_nothing_appears(
    source: Source, tmp_path: Path, content: bytes
) -> None:
    source.files["model.bin"] = content
    with pytest.raises((ProviderError, Exception), match=r"wrong checksum|over \d+ bytes"):
        await fetch(source, tmp_path)
    assert not is_fetched(MODEL, tmp_path)
    assert not (tmp_path / MODEL.name).exists()


async def test_a_private_address_that_is_not_allowed_is_not_asked(source: Source, tmp_path: Path) -> None:
    http = Client(guard=Guard())
    try:
        with pytest.raises(ProviderError, match="could not be fetched"):
            await fetch_model(MODEL, tmp_path, http, EagerClock(), source=source.address)
    finally:
        await http.close()
    assert source.asked == []


def test_a_name_that_is_unknown_lists_the_known_ones() -> None:
    with pytest.raises(ProviderError, match="belino fetches whisper-tiny, whisper-base, whisper-small"):
        named("whisper-huge")


def test_every_model_is_pinned_by_revision_size_and_checksum() -> None:
    for model in MODELS.values():
        assert len(model.revision) == 40
        assert {file.name for file in model.files} == {"config.json", "model.bin", "tokenizer.json", "vocabulary.txt"}
        assert all(len(file.sha256) == 64 and file.size > 0 for file in model.files)
