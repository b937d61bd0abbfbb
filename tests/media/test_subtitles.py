"""The subtitles of a video are its text, and a video with subtitles is a video like any other."""

from pathlib import Path

import pytest

from belino.domain.media import Unread
from belino.media.audio import Sounds
from belino.media.documents import Documents
from belino.media.price import Facts, prices
from belino.media.sandbox.sandbox import Sandbox
from belino.media.sniff import sniff
from belino.media.video import Videos
from media.local_files import open_local
from media.videos import Here, blob_of, subtitled, video


@pytest.mark.slow
@pytest.mark.parametrize("form", ["mp4", "matroska"])
async def test_a_video_with_subtitles_is_decoded_in_the_sandbox(tmp_path: Path, form: str) -> None:
    content = subtitled(form)
    blob = blob_of(tmp_path / "film", content, sniff(content, whole=True).mime)
    async with Sandbox() as sandbox:
        videos = Videos(sandbox, tmp_path / "scratch", open_local)
        facts = await videos.probe(blob)
        assert (facts.width, facts.height, facts.subtitles) == (64, 32, 1)
        assert len(await videos.frames(blob, count=2)) == 2
        text = await Documents(sandbox, tmp_path / "scratch", open_local).read(blob, mime=blob.mime)
    lines = text.parts[0].text.splitlines()
    assert [line.partition("] ")[2].replace("<i>", "").replace("</i>", "") for line in lines] == [
        "Hello there",
        "second line",
    ]
    assert [line.partition("]")[0] for line in lines] == ["[0:00", "[0:01"]
    assert "from 0:00 to 0:01" in text.parts[0].title


async def test_a_video_without_subtitles_has_no_text(tmp_path: Path) -> None:
    blob = blob_of(tmp_path / "film", video(3))
    text = await Documents(Here(), tmp_path / "scratch", open_local).read(blob, mime="video/mp4")
    assert (text.unread, text.reason) == (Unread.NO_TEXT, "there are no subtitles in it")


def test_text_of_a_video_is_priced_only_where_it_has_subtitles() -> None:
    film = Facts(mime="video/mp4", size=10_000_000, width=640, height=360, seconds=60)
    assert "text" not in prices(film)
    offered = prices(Facts(mime="video/mp4", size=10_000_000, seconds=60, subtitled=True))["text"]
    assert 0 < offered.tokens < 1_000 and not offered.exact


async def test_an_early_mpeg_without_a_container_is_a_video(tmp_path: Path) -> None:
    blob = blob_of(tmp_path / "old.mpg", video(10, form="mpeg2video", codec="mpeg2video", size=(64, 48)), "video/mpeg")
    facts = await Videos(Here(), tmp_path / "scratch", open_local).probe(blob)
    assert (facts.codec, facts.width, facts.height) == ("mpeg2video", 64, 48)


async def test_sounds_of_rarer_containers_are_measured(tmp_path: Path) -> None:
    from media.test_audio import SECONDS, encoded

    for form, codec, mime in (("tta", "tta", "audio/x-tta"), ("w64", "pcm_s16le", "audio/x-w64")):
        content = encoded(form, codec)
        blob = blob_of(tmp_path / form, content, sniff(content).mime)
        assert blob.mime == mime
        assert (await Sounds(Here(), tmp_path / "scratch", open_local).probe(blob)).seconds == pytest.approx(
            SECONDS, abs=0.1
        )
