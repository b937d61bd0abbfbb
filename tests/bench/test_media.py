"""The media bench really makes pictures fit, both ways, and tells the truth about them."""

from pathlib import Path

import pytest
from PIL import Image

from belino.bench import media
from belino.bench.media import gallery

pytestmark = pytest.mark.slow


def test_a_picture_is_made_to_fit_both_ways_and_scored(tmp_path: Path) -> None:
    noise = Image.effect_noise((900, 700), 90).convert("RGB")
    picture = tmp_path / "noise.png"
    noise.save(picture)
    ((ours, usual),) = media._pairs([picture], 190 * 1024)
    assert ours is not None
    assert 0 < ours.score <= 1
    assert ours.cpu > 0
    assert usual is None or ours.score >= usual.score


def test_a_way_that_fails_is_told_and_not_counted_as_fast() -> None:
    fine = media.FittedPicture(score=0.9, cpu=1.0, memory=1e6)
    rows = {row.metric: row for row in media._rows("x", [(None, fine), (fine, fine)])}
    failed = next(row for name, row in rows.items() if "not made to fit" in name)
    assert (failed.ours, failed.ok) == (1, False)
    assert next(row for name, row in rows.items() if "CPU" in name).ok is False


def test_a_picture_that_looks_worse_misses_the_goal() -> None:
    worse, better = (media.FittedPicture(score=score, cpu=1.0, memory=1e6) for score in (0.8, 0.9))
    (row,) = [row for row in media._rows("x", [(worse, better)]) if "look worse" in row.metric]
    assert (row.ours, row.ok) == (1, False)


def test_every_picture_of_the_gallery_is_too_large_and_each_sort_is_there_at_both_limits(tmp_path: Path) -> None:
    pictures = gallery(tmp_path)
    for limit in media.LIMITS.values():
        large = {picture.suffix for picture in pictures if picture.stat().st_size > limit}
        assert large == {".jpg", ".png"}
    assert all(picture.stat().st_size > min(media.LIMITS.values()) for picture in pictures)
