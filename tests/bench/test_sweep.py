"""The sweep is measured beside a talk that goes on."""

import pytest

from belino.bench.sweep import sweep_rows


@pytest.mark.slow
def test_a_talk_goes_on_while_everything_is_swept() -> None:
    late, latest, answered, slowest, seconds = sweep_rows(refs=2_000, blobs=200)
    assert late.ok is not None
    assert 0 < late.ours <= latest.ours
    assert answered.beside is not None
    assert 0 < answered.ours <= slowest.ours
    assert seconds.ours > 0
