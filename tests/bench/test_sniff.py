"""The bench counts what is right by what a suffix promises, the same for every tool."""

from pathlib import Path

from belino.bench.sniff import sniff_rows
from belino.testing import make_png


def test_our_own_small_files_are_all_told() -> None:
    *told, speed = sniff_rows()
    assert [row.ours for row in told] == [100.0] * len(told)
    assert all(row.ok for row in told)
    assert speed.ours > 0


def test_a_folder_is_judged_by_its_suffixes_and_what_promises_nothing_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "right.png").write_bytes(make_png(1, 1))
    (tmp_path / "wrong.jpg").write_bytes(make_png(1, 1))
    (tmp_path / "no_promise").write_bytes(make_png(1, 1))
    (tmp_path / "no_promise.bin").write_bytes(make_png(1, 1))
    (tmp_path / "empty.png").touch()
    row = sniff_rows(tmp_path)[0]
    assert row.metric == "% of 2 files told exactly"
    assert row.ours == 50.0
    assert row.ok is False
    assert row.beside in (50.0, None)
