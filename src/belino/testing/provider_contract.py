"""Contract of a provider: what every provider promises, checked against a service you bring."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from belino.domain.errors import BelinoError, ProviderError, RateLimited, Unauthorized
from belino.domain.ports import Clock, HttpClient
from belino.domain.provider import LocalWorker, Provider
from belino.domain.reading import Material, Read, ReadingOptions, Skill
from belino.net.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

WAIT_SECONDS = 10.0
SHORT_SECONDS = 0.2
CANARY = "canary-of-the-answer"
TOO_LARGE = 50 * 1024 * 1024


class FakeProviderContext:
    """A ProviderContext: give it an HTTP client, a worker or a scratch folder if the provider uses one."""

    def __init__(
        self,
        *,
        http: HttpClient | None = None,
        clock: Clock | None = None,
        worker: LocalWorker | None = None,
        scratch: Path | None = None,
        models: Path | None = None,
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self._http = http
        self._worker = worker
        self._scratch = scratch
        self._models = models

    @property
    def http(self) -> HttpClient:
        assert self._http is not None, "this provider calls a service: use FakeProviderContext(http=…)"
        return self._http

    @property
    def worker(self) -> LocalWorker:
        assert self._worker is not None, "this provider runs a model: use FakeProviderContext(worker=…)"
        return self._worker

    @property
    def scratch(self) -> Path:
        assert self._scratch is not None, "this provider writes files: use FakeProviderContext(scratch=…)"
        return self._scratch

    @property
    def models(self) -> Path:
        assert self._models is not None, "this provider looks for fetched models: use FakeProviderContext(models=…)"
        return self._models


@dataclass(frozen=True, slots=True, kw_only=True)
class RawAnswer:
    """An answer of your service, byte for byte: `body`, `times` over."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderTrial:
    """Your provider, and enough of a service to test it. A missing field skips the checks that need it."""

    make: Callable[[], Provider]
    """Makes the provider, connected to your service: `lambda: Provider(config, FakeProviderContext(…))`."""
    material: Mapping[Skill, Sequence[Material]]
    """Something to read for each of its skills."""
    expects: Mapping[Skill, str]
    """Words that the reading contains."""
    secrets: Sequence[str] = ()
    """The secrets of your config, which must never be visible; use recognisable words."""
    answer: Callable[[RawAnswer], None] | None = None
    """Makes the service answer the next call like this."""
    hang: Callable[[], asyncio.Event] | None = None
    """Makes the service not answer the next call; the event is set when that call has arrived."""
    scratch: Path | None = None
    """The scratch folder, which must be empty after every reading."""


async def check_provider(trial: ProviderTrial) -> tuple[str, ...]:
    """Run all checks that the trial allows and return their names; raises AssertionError with advice."""
    checks: dict[str, Callable[[ProviderTrial], Awaitable[None]]] = {
        "names itself": check_names_itself,
        "reads what it is given": check_reads_what_it_is_given,
        "keeps the limit of characters": check_keeps_the_limit_of_characters,
        "secrets are not visible": check_secrets_are_not_visible,
        "refuses what it cannot open": check_refuses_what_it_cannot_open,
    }
    if trial.answer is not None:
        checks["errors say who must act"] = check_errors_say_who_must_act
        checks["broken answers are errors"] = check_broken_answers_are_errors
    if trial.hang is not None:
        checks["the time limit is kept"] = check_the_time_limit_is_kept
        checks["cancellation is prompt"] = check_cancellation_is_prompt
    for name, check in checks.items():
        try:
            async with asyncio.timeout(WAIT_SECONDS * 6):
                await check(trial)
        except TimeoutError:
            raise AssertionError(
                f"{name}: not finished within {WAIT_SECONDS * 6:g} s; something waits for ever"
            ) from None
        _check_nothing_is_left(trial, name)
    return tuple(checks)


async def check_names_itself(trial: ProviderTrial) -> None:
    """It says what it can do, where it does it, and with which model."""
    async with _made(trial) as provider:
        assert provider.skills, "skills is empty: list what the provider can do"
        assert all(isinstance(skill, Skill) for skill in provider.skills), "skills must be values of Skill"
        assert isinstance(provider.local, bool), "local must say whether everything stays on this machine"
        for skill in provider.skills:
            model = provider.model(skill)
            assert model and model == provider.model(skill), f"model({skill}) must be the same non-empty name each time"
        missing = provider.skills - set(trial.material)
        assert not missing, f"the trial has no material for {', '.join(sorted(missing))}"


async def check_reads_what_it_is_given(trial: ProviderTrial) -> None:
    """A reading has text, its model, valid times; the material is unchanged."""
    for skill, material in trial.material.items():
        before = [hashlib.sha256(file.path.read_bytes()).digest() for file in material]
        async with _made(trial) as provider:
            read = await provider.read(skill, material, ReadingOptions(timeout=WAIT_SECONDS))
            _check_read(read, provider.model(skill), material)
        assert trial.expects[skill] in read.text, f"{skill}: the reading does not contain the expected words"
        after = [hashlib.sha256(file.path.read_bytes()).digest() for file in material]
        assert before == after, f"{skill}: the provider changed its material, which the next one may read too"


def _check_read(read: Read, model: str, material: Sequence[Material]) -> None:
    assert read.model == model, f"the reading says model {read.model!r}, model(skill) says {model!r}"
    assert read.text == read.text.encode(errors="replace").decode(), "the text contains lone surrogates"
    end = material[0].seconds if len(material) == 1 else None
    for segment in read.segments:
        assert isfinite(segment.start) and isfinite(segment.end), "a segment's times must be finite"
        assert 0 <= segment.start <= segment.end, f"a segment lasts from {segment.start} to {segment.end}"
        assert end is None or segment.end <= end + 1, f"a segment ends at {segment.end} s of {end} s"
    assert read.tokens is None or read.tokens >= 0, "tokens must not be negative"


async def check_keeps_the_limit_of_characters(trial: ProviderTrial) -> None:
    """`max_chars` bounds the text, whatever the service returns."""
    for skill, material in trial.material.items():
        async with _made(trial) as provider:
            read = await provider.read(skill, material, ReadingOptions(max_chars=5, timeout=WAIT_SECONDS))
        said = max(len(read.text), sum(len(segment.text) for segment in read.segments))
        assert said <= 5, f"{skill}: {said} characters were returned, and max_chars is 5"


async def check_secrets_are_not_visible(trial: ProviderTrial) -> None:
    """A key is in no repr."""
    async with _made(trial) as provider:
        _check_secret_free(trial, repr(provider) + repr(vars(provider) if hasattr(provider, "__dict__") else ""))


async def check_refuses_what_it_cannot_open(trial: ProviderTrial) -> None:
    """A file that is gone is a ProviderError."""
    for skill, material in trial.material.items():
        gone = [replace(file, path=file.path.with_name("gone")) for file in material]
        async with _made(trial) as provider:
            error = await _failure(provider, skill, gone)
        assert isinstance(error, ProviderError), f"{skill}: a missing file must raise ProviderError, not {error!r}"


async def check_errors_say_who_must_act(trial: ProviderTrial) -> None:
    """401 is Unauthorized, 429 is RateLimited with its wait, anything else a ProviderError; none shows the body."""
    assert trial.answer is not None
    body = f'{{"error": {{"message": "{CANARY}", "code": "{CANARY} {CANARY}"}}}}'.encode()
    headers = {"Content-Type": "application/json"}
    wanted = {401: Unauthorized, 429: RateLimited, 400: ProviderError, 500: ProviderError, 302: ProviderError}
    for skill, material in trial.material.items():
        for status, kind in wanted.items():
            extra = {"Retry-After": "7"} if status == 429 else {}
            trial.answer(RawAnswer(status=status, headers={**headers, **extra}, body=body))
            async with _made(trial) as provider:
                error = await _failure(provider, skill, material)
            assert type(error) is kind, f"{skill}: status {status} must raise {kind.__name__}, not {error!r}"
            if isinstance(error, RateLimited):
                assert abs(error.retry_after - 7) < 1, (
                    f"the service asked for 7 s, RateLimited says {error.retry_after}"
                )
            _check_error(trial, error)


async def check_broken_answers_are_errors(trial: ProviderTrial) -> None:
    """Answers that are empty, truncated, of the wrong type or far too large are ProviderErrors."""
    assert trial.answer is not None
    json_type, filler = {"Content-Type": "application/json"}, b" " * 1024 * 1024
    broken = {
        "empty": RawAnswer(headers=json_type),
        "truncated": RawAnswer(headers=json_type, body=f'{{"text": "{CANARY}'.encode()),
        "HTML": RawAnswer(headers={"Content-Type": "text/html"}, body=f"<p>{CANARY}</p>".encode()),
        "a list": RawAnswer(headers=json_type, body=f'["{CANARY}"]'.encode()),
        "an empty object": RawAnswer(headers=json_type, body=b"{}"),
        "deeply nested": RawAnswer(headers=json_type, body=b"[" * 100_000),
        "50 MB": RawAnswer(headers=json_type, body=filler, times=TOO_LARGE // len(filler)),
    }
    for skill, material in trial.material.items():
        for name, answer in broken.items():
            trial.answer(answer)
            async with _made(trial) as provider:
                error = await _failure(provider, skill, material)
            assert type(error) is ProviderError, f"{skill}: an answer that is {name} is no ProviderError: {error!r}"
            _check_error(trial, error)


async def check_the_time_limit_is_kept(trial: ProviderTrial) -> None:
    """`timeout` bounds the whole reading."""
    assert trial.hang is not None
    for skill, material in trial.material.items():
        trial.hang()
        async with _made(trial) as provider:
            error = await _failure(provider, skill, material, timeout=SHORT_SECONDS)
        assert type(error) is ProviderError, f"{skill}: a reading that takes too long is no ProviderError: {error!r}"
        _check_nothing_is_left(trial, "the time limit is kept")


async def check_cancellation_is_prompt(trial: ProviderTrial) -> None:
    """A cancelled reading ends, and leaves nothing."""
    assert trial.hang is not None
    for skill, material in trial.material.items():
        arrived = trial.hang()
        async with _made(trial) as provider, asyncio.TaskGroup() as group:
            task = group.create_task(provider.read(skill, material, ReadingOptions(timeout=WAIT_SECONDS * 2)))
            async with asyncio.timeout(WAIT_SECONDS):
                await arrived.wait()
            task.cancel()
            done, _ = await asyncio.wait({task}, timeout=WAIT_SECONDS)
            assert done, f"{skill}: a reading did not stop within {WAIT_SECONDS:g} s of being cancelled"
        assert task.cancelled(), f"{skill}: a reading swallowed its cancellation; re-raise CancelledError"
        _check_nothing_is_left(trial, "cancellation is prompt")


@asynccontextmanager
async def _made(trial: ProviderTrial) -> "AsyncIterator[Provider]":
    provider = trial.make()
    try:
        yield provider
    finally:
        close = getattr(provider, "close", None)
        if close is not None:
            with suppress(BelinoError):
                await close()


async def _failure(
    provider: Provider, skill: Skill, material: Sequence[Material], *, timeout: float = WAIT_SECONDS
) -> BaseException | None:
    try:
        await provider.read(skill, material, ReadingOptions(timeout=timeout))
    except BelinoError as error:
        return error
    return None


def _check_error(trial: ProviderTrial, error: BaseException | None) -> None:
    told = f"{error}{error.__cause__ if error else ''}"
    assert CANARY not in told, f"the error repeats what the service said, which may be private: {type(error).__name__}"
    _check_secret_free(trial, told)


def _check_secret_free(trial: ProviderTrial, text: str) -> None:
    for number, secret in enumerate(trial.secrets, 1):
        assert secret not in text, f"secret number {number} of the trial is visible"


def _check_nothing_is_left(trial: ProviderTrial, name: str) -> None:
    left = [path.name for path in trial.scratch.iterdir()] if trial.scratch is not None else []
    assert not left, f"{name}: files are left in the scratch folder: {', '.join(left)}"
