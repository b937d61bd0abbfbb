"""Videos: what they are, and frames of them found by seeking."""

import io
from collections.abc import AsyncIterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from belino.domain.errors import MediaRefused
from belino.media import stream_open, video_frames
from belino.media.audio import Sounds
from belino.media.sandbox.sandbox import Sandbox
from belino.media.sniff import sniff
from belino.media.video import Frame, VideoFacts, Videos
from media.local_files import open_local
from media.pictures import animation, corners, opened, saved
from media.test_audio import tone
from media.videos import Here, Lying, blob_of, brightness, elsewhere, four_colours, song_with_cover, unmeasured, video

PLAYLIST = b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n"
FOREIGN = {
    "text": (b"it is called holiday.mp4", "text/plain"),
    "playlist": (PLAYLIST, "application"),
    "list of files": (b"ffconcat version 1.0\nfile /etc/passwd\n", "text/plain"),
    "manifest": (b'<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><BaseURL>/</BaseURL></MPD>', "xml"),
    "subtitles": (b"1\n00:00:01,000 --> 00:00:02,000\nhello\n", "application/x-subrip"),
    "session": (b"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nm=video 5004 RTP/AVP 96\n", "text/plain"),
}


@pytest.fixture
def videos(tmp_path: Path) -> Videos:
    return Videos(Here(), tmp_path / "scratch", open_local)


@pytest.fixture
async def shut_in(tmp_path: Path) -> AsyncIterator[Videos]:
    async with Sandbox() as sandbox:
        yield Videos(sandbox, tmp_path / "scratch", open_local)


def shown(frame: Frame) -> int:
    """The number of the frame, by its brightness."""
    grey = opened(frame.picture.data).convert("L").resize((1, 1)).getpixel((0, 0))
    assert isinstance(grey, int)
    return round(grey / brightness(1)[0])


@pytest.mark.parametrize(
    ("form", "codec", "named"),
    [
        ("mp4", "mpeg4", "mpeg4"),
        ("mov", "mpeg4", "mpeg4"),
        ("webm", "libvpx", "vp8"),
        ("matroska", "mpeg4", "mpeg4"),
        ("avi", "mpeg4", "mpeg4"),
        ("mpegts", "mpeg2video", "mpeg2video"),
        ("flv", "flv", "flv1"),
    ],
)
async def test_every_container_is_looked_into_and_gives_the_frames_that_were_asked_for(
    videos: Videos, tmp_path: Path, form: str, codec: str, named: str
) -> None:
    content = video(form=form, codec=codec)
    blob = blob_of(tmp_path / "in", content, sniff(content).mime)
    facts = await videos.probe(blob)
    assert (facts.codec, facts.width, facts.height, facts.rotation, facts.audio_codec) == (named, 64, 32, 0, "")
    assert facts.seconds == pytest.approx(2, abs=0.11) and facts.fps == pytest.approx(10, abs=1)
    frames = await videos.frames(blob, count=4)
    assert [frame.at for frame in frames] == pytest.approx([0.2, 0.7, 1.2, 1.7], abs=0.11)
    assert [shown(frame) for frame in frames] == pytest.approx([2, 7, 12, 17], abs=1)
    assert not list((tmp_path / "scratch").iterdir())


async def test_the_sound_of_a_video_is_told_and_a_silent_one_has_none(videos: Videos, tmp_path: Path) -> None:
    loud = await videos.probe(blob_of(tmp_path / "in", video(form="webm", codec="libvpx", sound=True), "video/webm"))
    assert loud.audio_codec == "opus"


async def test_frames_come_from_the_asked_range_only_and_are_shown_at_their_time(
    videos: Videos, tmp_path: Path
) -> None:
    blob = blob_of(tmp_path / "in", video(40, key=40))
    frames = await videos.frames(blob, count=3, start=1.0, end=2.5)
    assert [(frame.at, shown(frame)) for frame in frames] == [(1.2, 12), (1.7, 17), (2.2, 22)]


@pytest.mark.parametrize("form", ["mp4", "mpegts"])
async def test_frames_come_from_the_asked_range_also_where_seeking_leads_behind_it(
    videos: Videos, tmp_path: Path, form: str
) -> None:
    content = video(40, form=form, key=12, between=2)
    frames = await videos.frames(blob_of(tmp_path / "in", content, sniff(content).mime), count=3, start=1.0, end=2.5)
    assert [frame.at for frame in frames] == pytest.approx([1.2, 1.7, 2.2], abs=0.01)


async def test_one_key_frame_for_all_is_decoded_once_and_not_for_every_frame(
    videos: Videos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sought: list[float] = []
    seek = video_frames._Seeker._seek

    def watched(self: video_frames._Seeker, at: float) -> None:
        sought.append(at)
        seek(self, at)

    monkeypatch.setattr(video_frames._Seeker, "_seek", watched)
    frames = await videos.frames(blob_of(tmp_path / "in", video(40, key=400)), count=8)
    assert len(frames) == 8 and len(sought) == 1


async def test_a_poster_takes_one_seek_and_one_frame(
    videos: Videos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[object] = []
    frames_of = stream_open.frames_of

    def counted(container: Any, stream: Any) -> Any:
        for frame in frames_of(container, stream):
            decoded.append(frame)
            yield frame

    monkeypatch.setattr(stream_open, "frames_of", counted)
    poster = await videos.poster(blob_of(tmp_path / "in", video(40, key=40)), max_side=32, max_bytes=5_000)
    assert (poster.mime, poster.width, poster.height) == ("image/jpeg", 32, 16) and len(poster.data) <= 5_000
    assert len(decoded) == 1


async def test_who_has_no_time_left_gets_the_frame_that_was_reached_with_its_own_time(
    videos: Videos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(video_frames, "PATIENCE", 0.0)
    (frame,) = await videos.frames(blob_of(tmp_path / "in", video(40, key=400)), count=1)
    assert frame.at == 0.0 and shown(frame) == 0


async def test_a_video_without_a_fixed_rate_shows_what_a_player_would_show(videos: Videos, tmp_path: Path) -> None:
    blob = blob_of(tmp_path / "in", video(5, times=(0, 1, 40, 50, 100)))
    frames = await videos.frames(blob, count=4, start=2.0, end=9.0)
    assert [(frame.at, shown(frame)) for frame in frames] == [(0.1, 1), (4.0, 2), (5.0, 3)]


@pytest.mark.parametrize("turned", [0, 90, 180, 270])
async def test_a_video_is_seen_upright_however_the_phone_was_held(videos: Videos, tmp_path: Path, turned: int) -> None:
    blob = blob_of(tmp_path / "in", video(3, picture=four_colours, turned=turned))
    facts = await videos.probe(blob)
    (frame,) = await videos.frames(blob, count=1)
    upright = four_colours(0).rotate(-turned, expand=True)
    assert facts.rotation == turned and (facts.width, facts.height) == upright.size
    assert (frame.picture.width, frame.picture.height) == upright.size
    assert corners(opened(frame.picture.data)) == corners(upright)


async def test_pixels_that_are_not_square_are_made_so(videos: Videos, tmp_path: Path) -> None:
    blob = blob_of(tmp_path / "in", video(3, pixel=Fraction(2, 1)))
    facts = await videos.probe(blob)
    (frame,) = await videos.frames(blob, count=1)
    assert (facts.width, facts.height) == (frame.picture.width, frame.picture.height) == (128, 32)


async def test_a_recording_that_does_not_know_its_length_is_measured(videos: Videos, tmp_path: Path) -> None:
    blob = blob_of(tmp_path / "in", unmeasured(video(form="webm", codec="libvpx", key=5)), "video/webm")
    assert (await videos.probe(blob)).seconds == pytest.approx(2, abs=0.11)
    frames = await videos.frames(blob, count=2)
    assert [shown(frame) for frame in frames] == pytest.approx([5, 15], abs=1)


async def test_a_length_that_cannot_be_is_measured_instead(
    videos: Videos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_open, "PLAUSIBLE_BITS", 1)
    blob = blob_of(tmp_path / "in", video())
    assert (await videos.probe(blob)).seconds == pytest.approx(2, abs=0.11)


async def test_a_time_after_the_end_is_refused_with_the_length(videos: Videos, tmp_path: Path) -> None:
    with pytest.raises(MediaRefused, match="lasts 2s; there is nothing at 1m30s"):
        await videos.frames(blob_of(tmp_path / "in", video()), start=90.0)


@pytest.mark.parametrize("wish", [{"count": 0}, {"count": 25}, {"start": 5.0, "end": 5.0}, {"start": -1.0}], ids=str)
async def test_a_wish_that_makes_no_sense_is_refused_before_anything_is_decoded(
    tmp_path: Path, wish: dict[str, Any]
) -> None:
    with pytest.raises(MediaRefused, match=r"frames|time range"):
        await Videos(Lying({}), tmp_path, open_local).frames(blob_of(tmp_path / "in", b"x"), **wish)


async def test_a_video_of_one_frame_gives_it_once(videos: Videos, tmp_path: Path) -> None:
    frames = await videos.frames(blob_of(tmp_path / "in", video(1)), count=6)
    assert [frame.at for frame in frames] == [0.0]


@pytest.mark.parametrize("kind", ["GIF", "WEBP"])
async def test_an_animated_picture_counts_as_a_video_and_needs_no_extra(
    videos: Videos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(stream_open, "find_spec", lambda name: None)
    blob = blob_of(tmp_path / "in", animation(kind, 10), f"image/{kind.lower()}")
    assert await videos.probe(blob) == VideoFacts(seconds=0.4, codec=kind.lower(), width=40, height=20, fps=25.0)
    frames = await videos.frames(blob, count=4)
    assert [frame.at for frame in frames] == pytest.approx([0.04, 0.12, 0.24, 0.32])
    (first,) = await videos.frames(blob, count=1, end=0.02)
    assert corners(opened(first.picture.data)) == ["red", "green", "blue", "white"]


async def test_a_still_picture_is_no_video(videos: Videos, tmp_path: Path) -> None:
    blob = blob_of(tmp_path / "in", saved(four_colours(0), "GIF"), "image/gif")
    with pytest.raises(MediaRefused, match="still picture"):
        await videos.frames(blob)


async def test_the_cover_of_a_song_is_no_video(videos: Videos, tmp_path: Path) -> None:
    blob = blob_of(tmp_path / "in", song_with_cover(), "audio/mpeg")
    with pytest.raises(MediaRefused, match="no moving pictures"):
        await videos.probe(blob)
    facts = await Sounds(Here(), tmp_path, open_local).probe(blob)
    assert facts.codec == "mp3" and facts.seconds == pytest.approx(1, abs=0.1)


async def test_an_mp4_of_sound_alone_is_no_video(videos: Videos, tmp_path: Path) -> None:
    import av

    written = io.BytesIO()
    with av.open(io.BytesIO(tone()), "r") as source, av.open(written, "w", format="mp4") as target:
        stream: Any = target.add_stream("aac", rate=16_000)
        for frame in source.decode(audio=0):
            target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
    with pytest.raises(MediaRefused, match="no moving pictures"):
        await videos.frames(blob_of(tmp_path / "in", written.getvalue()))


@pytest.mark.parametrize("name", FOREIGN)
async def test_what_would_lead_elsewhere_is_refused_by_its_bytes_whatever_it_is_called(
    videos: Videos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    import av

    monkeypatch.setattr(av, "open", lambda *_, **__: pytest.fail("it was opened"))
    content, kind = FOREIGN[name]
    with pytest.raises(MediaRefused, match=f"the bytes are .*{kind}"):
        await videos.frames(blob_of(tmp_path / "in", content))


async def test_an_animated_sticker_made_of_drawings_says_that_it_is_not_played(videos: Videos, tmp_path: Path) -> None:
    import gzip

    content = gzip.compress(b'{"tgs":1,"v":"5.5.2","fr":60,"ip":0,"op":180,"w":512,"h":512,"layers":[]}')
    with pytest.raises(MediaRefused, match="not played"):
        await videos.probe(blob_of(tmp_path / "in", content, "application/x-tgsticker"))


async def test_a_track_that_lies_in_another_file_is_not_followed(
    videos: Videos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(stream_open, "_refuse", lambda url, *_: asked.append(url))
    other = tmp_path / "other.mp4"
    other.write_bytes(video())
    path = str(other).encode()
    blob = blob_of(tmp_path / "in", elsewhere(video(), path + b"\0" * (len(path) % 2)))
    with pytest.raises(MediaRefused):
        await videos.frames(blob)
    assert not asked
    # The file is what it should be: with that wall torn down, the other one is asked for.
    monkeypatch.setattr(stream_open, "_OPTIONS", {"enable_drefs": "1", "use_absolute_path": "1"})
    with pytest.raises((MediaRefused, ValueError)):
        await videos.frames(blob)
    assert asked and asked[0].startswith(str(other))


async def test_an_empty_file_says_so(videos: Videos, tmp_path: Path) -> None:
    with pytest.raises(MediaRefused, match="empty"):
        await videos.probe(blob_of(tmp_path / "in", b""))


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9])
async def test_a_video_that_is_cut_off_before_its_index_is_refused(videos: Videos, tmp_path: Path, kept: float) -> None:
    content = video()
    with pytest.raises(MediaRefused, match=r"is damaged or cut off$|no moving pictures"):
        await videos.frames(blob_of(tmp_path / "in", content[: int(len(content) * kept)]))


async def test_a_video_that_is_cut_off_after_its_index_shows_what_is_there(videos: Videos, tmp_path: Path) -> None:
    content = video(40, form="matroska", key=4)
    blob = blob_of(tmp_path / "in", content[: len(content) * 2 // 3], "video/x-matroska")
    assert (await videos.probe(blob)).seconds == 4
    frames = await videos.frames(blob, count=8)
    assert 3 <= len(frames) < 8 and [shown(frame) for frame in frames[:3]] == [2, 7, 12]


async def test_an_animation_that_is_cut_off_shows_what_is_there(videos: Videos, tmp_path: Path) -> None:
    content = animation("GIF", 30, (300, 200))
    frames = await videos.frames(blob_of(tmp_path / "in", content[: len(content) * 2 // 3], "image/gif"), count=6)
    assert 1 <= len(frames) <= 6


async def test_pictures_in_a_codec_nobody_knows_are_refused_in_those_words(videos: Videos, tmp_path: Path) -> None:
    strange = video().replace(b"mp4v", b"zzzz").replace(b"esds", b"free")
    with pytest.raises(MediaRefused, match="codec is unknown"):
        await videos.probe(blob_of(tmp_path / "in", strange))


async def test_frames_fit_the_limits(videos: Videos, tmp_path: Path) -> None:
    noisy = video(4, size=(320, 240), picture=lambda number: Image.effect_noise((320, 240), 90).convert("RGB"))
    for frame in await videos.frames(blob_of(tmp_path / "in", noisy), count=2, max_side=100, max_bytes=2_000):
        assert max(frame.picture.width, frame.picture.height) <= 100 and len(frame.picture.data) <= 2_000


async def test_without_a_decoder_the_way_out_is_named(
    videos: Videos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_open, "find_spec", lambda name: None)
    blob = blob_of(tmp_path / "in", video())
    with pytest.raises(MediaRefused, match=r"belino\[av\]"):
        await videos.probe(blob)
    with pytest.raises(MediaRefused, match=r"belino\[av\]"):
        await videos.poster(blob)
    assert (await Sounds(Here(), tmp_path, open_local).facts(blob)).seconds == pytest.approx(2)


GOOD: dict[str, Any] = {
    "seconds": 2.0,
    "codec": "h264",
    "width": 64,
    "height": 32,
    "rotation": 0,
    "fps": 10.0,
    "audio_codec": "",
    "subtitles": 0,
    "seen": None,
}


@pytest.mark.parametrize(
    "lie",
    [
        {"width": 0}, {"width": 1 << 40}, {"height": "32"}, {"rotation": 45}, {"codec": "x\ny"}, {"codec": "h" * 99},
        {"audio_codec": "[ref:tg_1]"}, {"seconds": "2"}, {"fps": []},
    ],
    ids=str,
)  # fmt: skip
async def test_what_a_child_says_of_a_video_is_checked(tmp_path: Path, lie: dict[str, Any]) -> None:
    blob = blob_of(tmp_path / "in", b"x")
    assert await Videos(Lying(GOOD), tmp_path, open_local).probe(blob) == VideoFacts(**GOOD)
    with pytest.raises(MediaRefused, match="no proper answer"):
        await Videos(Lying({**GOOD, **lie}), tmp_path, open_local).probe(blob)


async def test_a_length_of_years_is_not_believed(tmp_path: Path) -> None:
    facts = await Videos(Lying({**GOOD, "seconds": 1e12, "fps": 1e9}), tmp_path, open_local).probe(
        blob_of(tmp_path / "in", b"x")
    )
    assert facts.seconds is None and facts.fps is None


@pytest.mark.parametrize(
    ("listed", "more"),
    [
        (None, b""), ([], b""), ([{"at": 0.0}], b""), ([{"at": 0.0, "bytes": 3}], b""),
        ([{"at": -1.0, "bytes": -1}], b""), ([{"at": 0.0, "bytes": 0}], b""), ([{"at": 0.0, "bytes": -1}], b"more"),
        ([{"at": 0.0, "bytes": -1}] * 7, b""),
    ],
    ids=str,
)  # fmt: skip
async def test_the_frames_a_child_wrote_are_checked(tmp_path: Path, listed: Any, more: bytes) -> None:
    """-1 stands for the true length."""
    content = saved(four_colours(0), "JPEG")
    said = [{**each, "bytes": len(content) if each.get("bytes") == -1 else each.get("bytes")} for each in listed or []]
    blob = blob_of(tmp_path / "in", b"x")
    honest = Lying({"frames": [{"at": 0.0, "bytes": len(content)}]}, content)
    assert len(await Videos(honest, tmp_path, open_local).frames(blob)) == 1
    with pytest.raises(MediaRefused):
        await Videos(Lying({"frames": said}, content + more), tmp_path, open_local).frames(blob)


@pytest.mark.slow
async def test_behind_the_walls_a_video_is_looked_into_too(shut_in: Videos, tmp_path: Path) -> None:
    blob = blob_of(tmp_path / "in", video(40, key=8, turned=90, sound=True))
    facts = await shut_in.probe(blob)
    assert (facts.codec, facts.width, facts.height, facts.audio_codec) == ("mpeg4", 32, 64, "aac")
    assert len(await shut_in.frames(blob, count=24)) == 24
    assert (await shut_in.sheet(blob)).mime == "image/jpeg"
    assert (await shut_in.poster(blob)).height == 64
    for kind in ("GIF", "WEBP"):
        moving = blob_of(tmp_path / kind, animation(kind, 10), f"image/{kind.lower()}")
        assert len(await shut_in.frames(moving, count=5)) == 5
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", FOREIGN)
async def test_behind_the_walls_what_leads_elsewhere_is_refused_too(shut_in: Videos, tmp_path: Path, name: str) -> None:
    with pytest.raises(MediaRefused, match="the bytes are"):
        await shut_in.frames(blob_of(tmp_path / "in", FOREIGN[name][0]))
