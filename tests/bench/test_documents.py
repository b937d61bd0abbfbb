"""The bench of documents counts words as people read them, and asks the same of both sides."""

from pathlib import Path

import pytest

from belino.bench import documents
from belino.bench.documents import _Done, _fidelity, _File, _speed, _words


def done(text: str, *, cpu: float = 0.001) -> _Done:
    return _Done(cpu=cpu, wall=cpu, memory=2**20, text=text)


def test_where_a_link_leads_to_is_no_word() -> None:
    assert _words("See [The map](https://example.org/map).") == {"see", "the", "map"}


def test_text_that_only_the_other_finds_misses_the_goal(tmp_path: Path) -> None:
    file = _File(path=tmp_path / "a.docx", mime="application/vnd.x")
    missed, share, *_ = _fidelity([(file, done(""), done("words that were written"))])
    assert (missed.ours, missed.ok, share.ours) == (1, False, 0)
    missed, share, *_ = _fidelity([(file, done("these words that were written"), done("Words that were WRITTEN"))])
    assert (missed.ours, missed.ok, share.ours) == (0, True, 100)


def test_a_source_given_back_as_it_is_written_is_not_compared(tmp_path: Path) -> None:
    path = tmp_path / "a.rtf"
    path.write_text(r"{\rtf1\ansi Dear Ann}")
    file = _File(path=path, mime="application/rtf")
    assert _fidelity([(file, done("Dear Ann"), done(r"{\rtf1\ansi Dear Ann}"))]) == []


def test_speed_is_the_median_of_how_many_times_faster_each_file_is(tmp_path: Path) -> None:
    file = _File(path=tmp_path / "a.docx", mime="application/vnd.x")
    pairs = [(file, done("x"), done("x", cpu=seconds)) for seconds in (0.001, 0.006, 0.5)]
    cpu, wall, *_ = _speed(pairs)
    assert cpu.ratio == pytest.approx(6) and cpu.ok and wall.ok


@pytest.mark.slow
def test_a_folder_is_measured_beside_markitdown(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Several words of a note.\n" * 50)
    (tmp_path / "page.html").write_text("<h1>Harbour</h1><p>Several words of a page.</p>")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    rows = {row.metric: row for row in documents.run(corpus=tmp_path)}
    assert rows["of 2 files, text that only beside finds"].ours == 0
    assert rows["% of its words that we find, lowest"].ours == 100
    assert rows["CPU ms a file of 2, median"].beside_name == "markitdown"
    assert rows["wall ms a file in the sandbox, median"].ours > 0
