"""The bench of streaming runs, on a smaller file than a person would have measured."""

import pytest

from belino.bench import stream


@pytest.mark.slow
def test_a_stream_is_measured_from_socket_to_blob_beside_curl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "ROUNDS", 1)
    cpu, memory = stream.stream_rows(32 * stream.PIECE)
    assert cpu.ours > 0 and cpu.metric.startswith("CPU seconds to fetch 0.03125 GiB")
    assert (cpu.ratio is None) is (cpu.beside is None)
    assert memory.ok, "what is not kept in memory does not make it grow"
