"""The bench of local reading counts errors as people would, and really reads."""

from pathlib import Path

import pytest

from belino import cli
from belino.bench import understanding
from belino.bench._error_rates import character_errors, word_errors
from belino.bench._readings import corpus_specimens
from belino.domain.reading import Skill
from belino.testing import espeak


def test_case_punctuation_and_the_spelling_of_numbers_are_no_word_errors() -> None:
    assert word_errors("Mister Smith has twenty one apples.", "mr. smith has 21 APPLES").wrong == 0
    assert word_errors("It isn't five o'clock", "It isn’t 5 o'clock!").wrong == 0


def test_wrong_missing_and_additional_words_are_counted() -> None:
    errors = word_errors("ask not what your country can do", "ask what the country can can do")
    assert (errors.wrong, errors.total) == (3, 7)
    assert errors.percent == pytest.approx(42.86, abs=0.01)
    assert word_errors("one two", "").percent == 100


def test_line_breaks_are_no_character_errors() -> None:
    assert character_errors("Total: 5\nThanks", "Total: 5 Thanks").wrong == 0
    assert character_errors("Total: 5", "Tota1: 5").wrong == 1


@pytest.mark.slow
def test_recordings_and_pictures_of_a_folder_are_paired_with_their_texts(tmp_path: Path) -> None:
    from PIL import Image

    corpus, folder = tmp_path / "corpus", tmp_path / "made"
    corpus.mkdir()
    folder.mkdir()
    espeak.write_wav(corpus / "note.wav", bytes(32_000))
    (corpus / "note.txt").write_text("hello", encoding="utf-8")
    espeak.write_wav(corpus / "without.wav", bytes(32_000))
    Image.new("RGB", (40, 20), "white").save(corpus / "scan.png")
    (corpus / "scan.txt").write_text("page", encoding="utf-8")
    (sound,) = corpus_specimens(corpus, Skill.TRANSCRIBE, folder)
    assert (sound.text, sound.material.mime, sound.material.seconds) == ("hello", "audio/wav", 1.0)
    (picture,) = corpus_specimens(corpus, Skill.READ_TEXT, folder)
    assert picture.text == "page"
    assert picture.material.path.read_bytes().startswith(b"P6\n40 20\n255\n")


@pytest.mark.slow
def test_speech_and_print_are_read_and_what_is_not_compared_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(understanding, "VOICES", ("en-us",))
    monkeypatch.setattr(understanding, "NOTES", understanding.NOTES[:1])
    monkeypatch.setattr(understanding, "PAGES", (understanding.PAGES[1][:2],))
    monkeypatch.setattr(understanding, "SIZES", (30,))
    monkeypatch.setattr(understanding, "QUIET", (6_000,))
    rows = {row.metric: row for row in understanding.run()}

    def of(part: str) -> float:
        return next(row.ours for metric, row in rows.items() if part in metric)

    assert of("espeak-ng voices: word error rate") < 30
    assert 0 < of("espeak-ng voices: CPU") < 5
    assert 50 < of("espeak-ng voices: memory") < 2_000
    assert of("words heard in silence") == 0
    assert of("do not end when idle") == 0
    again = next(row for metric, row in rows.items() if "second reading" in metric)
    assert (again.beside, again.ours, again.ok) == (1, 0, True)
    printed = next(row for metric, row in rows.items() if "clean print: character error rate" in metric)
    assert (printed.ours, printed.beside, printed.beside_name) == (0, 0, "tesseract")
    for missing in ("human recordings", "other Whisper weights", "scans and photos"):
        assert any(metric.startswith((missing, f"comparison with {missing}")) for metric in rows), missing


def test_weights_are_an_option_of_this_bench_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "search", "--weights", str(tmp_path)]) == 1
    assert "--weights is for `belino bench understanding` only" in capsys.readouterr().err
    assert cli.main(["bench", "understanding", "--weights", str(tmp_path / "nothing")]) == 1
    assert "is not a folder" in capsys.readouterr().err
