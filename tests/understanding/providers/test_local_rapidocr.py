"""The OCR that comes with its models, for real."""

from pathlib import Path

import pytest

from belino.domain.errors import ProviderError
from belino.domain.reading import Material, ReadingOptions, Skill
from belino.understanding.providers.local_rapidocr import Config, Provider, missing
from understanding.local_context import local_context, picture

pytestmark = pytest.mark.slow

LINES = [(40, 30, "Invoice number 2026-0417"), (40, 90, "Total amount 1284.50"), (40, 150, "Payment within 14 days")]


async def test_printed_text_becomes_lines_with_their_places_and_a_blank_picture_none(tmp_path: Path) -> None:
    async with local_context(tmp_path) as context:
        provider = Provider(Config(), context)
        read = await provider.read(Skill.READ_TEXT, [picture(tmp_path, LINES)], ReadingOptions())
        assert [line for line in read.text.split("\n") if line] == [text for _, _, text in LINES]
        assert not read.uncertain
        for segment, (left, top, _) in zip(read.segments, LINES, strict=True):
            assert segment.box is not None
            assert segment.box[0] == pytest.approx(left / 1000, abs=0.02)
            assert segment.box[1] == pytest.approx(top / 500, abs=0.04)
        blank = await provider.read(Skill.READ_TEXT, [picture(tmp_path, [])], ReadingOptions())
        assert (blank.text, blank.segments, blank.uncertain) == ("", (), False)


async def test_material_that_is_no_pixmap_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    path.write_bytes(b"\xff\xd8\xff\xe0")
    async with local_context(tmp_path) as context:
        with pytest.raises(ProviderError, match="no portable pixmap"):
            material = Material(path=path, mime="image/jpeg", size=4)
            await Provider(Config(), context).read(Skill.READ_TEXT, [material], ReadingOptions())


def test_what_is_missing_is_known_without_an_import(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert missing(Config()) == ""
    monkeypatch.setattr("belino.understanding.providers.local_rapidocr.package_folder", lambda name: tmp_path)
    assert "without its models" in missing(Config())
