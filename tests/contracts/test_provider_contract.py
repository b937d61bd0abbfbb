"""The provider contract catches what it promises to catch, and a package of somebody else keeps it."""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from belino import registry
from belino.domain.errors import ProviderError, RateLimited, Unauthorized
from belino.domain.provider import Provider
from belino.domain.reading import Material, Read, ReadingOptions, ReadSegment, Skill
from belino.net.client import Client
from belino.net.redact import Secret
from belino.testing import FakeProviderContext, ProviderTrial, RawAnswer, check_provider
from belino.testing.models import ModelAnswer, ModelHang, ModelRaw, ModelReply, ModelRequest, ModelServer

if TYPE_CHECKING:
    from aiohttp import web

SOURCE = Path(__file__).parent / "ear"
CANARY = "canary-of-the-ear"


class EarServer(ModelServer):
    """The service's own server."""

    def add_routes(self, app: "web.Application") -> None:
        app.router.add_post("/hear", self._hear)

    def refusal(self, request: "web.Request", body: Any) -> None:
        return None

    async def _hear(self, request: "web.Request") -> "web.StreamResponse":
        asked = ModelRequest(path=request.path, headers={}, body={}, raw=await request.read())
        _, reply = await self.reply_to(request, asked)
        part = {"text": "hello out there", "start": 0.0, "end": 1.0}
        return await self.deliver(request, reply, {"text": "hello out there", "segments": [part]})


def install(folder: Path) -> None:
    """The package, installed as an installer would: its module, its metadata, its entry point."""
    about = folder / "belino_ear-1.0.dist-info"
    about.mkdir(parents=True)
    shutil.copy(SOURCE / "belino_ear.py", folder)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: belino-ear\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("[belino.providers]\near = belino_ear\n", encoding="utf-8")


async def test_a_package_with_a_provider_is_found_and_keeps_the_contract(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "installed")
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    plugin = registry.find("providers", "ear")
    told: list[ModelReply] = []
    async with EarServer(lambda asked: told.pop(0) if told else ModelAnswer()) as server:
        config = plugin.config_type(base_url=server.url, key=Secret("EAR_KEY", CANARY))
        client = Client(hosts=plugin.module.hosts(config))

        def answer(raw: RawAnswer) -> None:
            rest = dict(raw.headers)
            kind = rest.pop("Content-Type", "")
            told.append(ModelRaw(body=raw.body, content_type=kind, status=raw.status, times=raw.times, headers=rest))

        def hang() -> asyncio.Event:
            server.arrived.clear()
            told.append(ModelHang())
            return server.arrived

        checked = await check_provider(
            ProviderTrial(
                make=lambda: plugin.make(config, FakeProviderContext(http=client)),
                material={Skill.TRANSCRIBE: [sound(tmp_path)]},
                expects={Skill.TRANSCRIBE: "hello out there"},
                secrets=[CANARY],
                answer=answer,
                hang=hang,
            )
        )
        await client.close()
    assert len(checked) == 9


def sound(folder: Path) -> Material:
    path = folder / "sound.wav"
    path.write_bytes(b"RIFF")
    return Material(path=path, mime="audio/wav", size=4, seconds=2.0)


class Good:
    """A provider that does everything right; the others do one thing wrong."""

    skills = frozenset({Skill.TRANSCRIBE})
    local = True
    languages: frozenset[str] | None = None

    def __init__(self, service: "Service") -> None:
        self._service = service

    def model(self, skill: Skill) -> str:
        return "good-1"

    async def read(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        if not material[0].path.exists():
            raise ProviderError("the file is gone")
        await self.asked(options)
        return self.made("hello"[: options.max_chars])

    async def asked(self, options: ReadingOptions) -> None:
        try:
            async with asyncio.timeout(options.timeout):
                await self._service.call()
        except TimeoutError:
            raise ProviderError("too late") from None

    def made(self, text: str) -> Read:
        return Read(text=text, model="good-1", segments=(ReadSegment(text=text, start=0.5, end=1.0),))


class Service:
    """Answers, refuses or hangs."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.answers: list[RawAnswer] = []
        self.arrived: asyncio.Event | None = None

    def hang(self) -> asyncio.Event:
        self.arrived = asyncio.Event()
        return self.arrived

    async def call(self) -> None:
        if (arrived := self.arrived) is not None:
            self.arrived = None
            arrived.set()
            await asyncio.Event().wait()
        if not self.answers:
            return
        answer = self.answers.pop()
        match answer.status:
            case 401:
                raise Unauthorized("refused")
            case 429:
                raise RateLimited("wait", retry_after=7.0)
        raise ProviderError("broken")


class Nameless(Good):
    def model(self, skill: Skill) -> str:
        return ""


class Endless(Good):
    def made(self, text: str) -> Read:
        return Read(text=text, model="good-1", segments=(ReadSegment(text=text, start=0.0, end=99.0),))


class Other(Good):
    def made(self, text: str) -> Read:
        return Read(text=text, model="another")


class Talkative(Good):
    def made(self, text: str) -> Read:
        return Read(text="hello, and much more", model="good-1")


class Careless(Good):
    async def read(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        material[0].path.write_bytes(b"changed")
        return await super().read(skill, material, options)


class Untidy(Good):
    async def asked(self, options: ReadingOptions) -> None:
        (self._service.scratch / "left").touch()
        await super().asked(options)


class Open(Good):
    def __repr__(self) -> str:
        return CANARY


class Vague(Good):
    async def asked(self, options: ReadingOptions) -> None:
        try:
            await super().asked(options)
        except (Unauthorized, RateLimited):
            raise ProviderError("something") from None


class Gossip(Good):
    async def asked(self, options: ReadingOptions) -> None:
        said = self._service.answers[-1].body[:100] if self._service.answers else b""
        try:
            await super().asked(options)
        except ProviderError:
            raise ProviderError(f"it said {said!r}") from None


class Credulous(Good):
    async def asked(self, options: ReadingOptions) -> None:
        if self._service.answers and self._service.answers[-1].status == 200:
            self._service.answers.clear()
        await super().asked(options)


class Stubborn(Good):
    async def asked(self, options: ReadingOptions) -> None:
        try:
            await super().asked(options)
        except asyncio.CancelledError:
            return


class Missing(Good):
    async def read(self, skill: Skill, material: Sequence[Material], options: ReadingOptions) -> Read:
        await self.asked(options)
        return self.made("hello"[: options.max_chars])


def trial(make: Callable[[Service], Provider], folder: Path) -> ProviderTrial:
    scratch = folder / "scratch"
    scratch.mkdir()
    service = Service(scratch)
    return ProviderTrial(
        make=lambda: make(service),
        material={Skill.TRANSCRIBE: [sound(folder)]},
        expects={Skill.TRANSCRIBE: "hello"},
        secrets=[CANARY],
        answer=service.answers.append,
        hang=service.hang,
        scratch=scratch,
    )


async def test_a_good_provider_passes_every_check(tmp_path: Path) -> None:
    assert len(await check_provider(trial(Good, tmp_path))) == 9


@pytest.mark.parametrize(
    ("provider", "advice"),
    [
        (Nameless, "non-empty name"),
        (Endless, r"ends at 99\.0 s of 2\.0 s"),
        (Other, "says model 'another'"),
        (Talkative, "max_chars is 5"),
        (Careless, "changed its material"),
        (Untidy, "left in the scratch folder"),
        (Open, "secret number 1"),
        (Vague, "status 401 must raise Unauthorized"),
        (Gossip, "repeats what the service said"),
        (Credulous, "an answer that is empty is no ProviderError"),
        (Stubborn, "swallowed its cancellation"),
        (Missing, "a missing file must raise ProviderError"),
    ],
)
async def test_each_broken_promise_is_told(provider: type[Good], advice: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=advice):
        await check_provider(trial(provider, tmp_path))
