"""Every decoder is tried inside the sandbox, and one that fails there is named."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from belino.domain.errors import MediaRefused
from belino.media import trial
from belino.media.sandbox.sandbox import Sandbox
from media.videos import Here


@pytest.mark.slow
async def test_every_kind_of_job_works_inside_the_sandbox() -> None:
    async with Sandbox() as sandbox:
        tried = await trial.try_decoders(sandbox)
    assert tried.failures == ()
    assert tried.jobs > 60
    assert not trial.untried_jobs()


class Broken(Here):
    """A sandbox in which one kind of file cannot be decoded."""

    async def run(
        self,
        job: str,
        source: int | Path,
        options: Mapping[str, Any] = MappingProxyType({}),
        *,
        output: Path | None = None,
    ) -> dict[str, Any]:
        if job.startswith("video.") and str(source).endswith("film.mkv"):
            raise MediaRefused("it could not be decoded")
        if output is not None:
            output.write_bytes(b'{"unread": null}')
        return {}


async def test_a_decoder_that_fails_is_named() -> None:
    failures = (await trial.try_decoders(Broken())).failures
    assert "video.subtitles of film.mkv: it could not be decoded" in failures
    assert all(failure.startswith("video.") for failure in failures)
