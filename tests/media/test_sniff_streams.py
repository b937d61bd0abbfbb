"""Sound and film are told where their frames begin late, stand alone, or say less than usual."""

import pytest

from belino.media.sniff import sniff
from belino.media.sniff.hints import UNKNOWN
from belino.testing.files import make_mp3, make_mp4, make_webm

FRAMES = make_mp3()
PACKET = b"\x47\x40\x11\x10" + bytes(184)
ASF = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c") + bytes(40)
ASF_VIDEO = bytes.fromhex("c0ef19bc4d5bcf11a8fd00805f5c442b")
ASF_AUDIO = bytes.fromhex("409e69f84d5bcf11a8fd00805f5c442b")


def test_dolby_of_both_kinds_is_told() -> None:
    assert sniff(b"\x0b\x77\0\0\x14\x40" + bytes(60)).mime == "audio/ac3"
    assert sniff(b"\x0b\x77\x01\x7f\x34\x87" + bytes(60)).mime == "audio/eac3"


@pytest.mark.parametrize(
    "before", [bytes(700), FRAMES[100:417], b"APETAGEX" + bytes(200)], ids=["padding", "half a frame", "another tag"]
)
def test_music_that_begins_late_is_taken_at_its_name(before: bytes) -> None:
    found = sniff(before + FRAMES, name="song.mp3")
    assert (found.mime, found.exact, found.lies) == ("audio/mpeg", False, "")
    assert sniff(bytes(range(8)) * 300, name="song.mp3").mime == UNKNOWN


def test_one_frame_that_sums_the_others_up_is_music() -> None:
    assert sniff(b"\xff\xfb\x90\x64" + bytes(32) + b"Xing" + bytes(80)).mime == "audio/mpeg"


def test_a_tag_stands_before_other_sounds_too() -> None:
    assert sniff(b"ID3\4\0\0\0\0\0\4\0\0\0\0MP+\7" + bytes(40)).mime == "audio/x-musepack"


def test_frames_end_where_a_tag_begins() -> None:
    frame = b"\xff\xf1\x50\x80\x02\x1f\xfc" + bytes(9)
    assert sniff(2 * frame + b"TAG" + bytes(125)).mime == "audio/aac"


def test_a_broadcast_cut_amid_a_packet_is_one() -> None:
    assert sniff((PACKET * 8)[77:]).mime == "video/mp2t"
    assert sniff(PACKET * 8).mime == "video/mp2t"


def test_a_text_of_one_letter_is_no_broadcast() -> None:
    assert sniff(b"G" * 2000).mime == "text/plain"


def test_a_stream_of_windows_is_called_as_its_name_says() -> None:
    assert sniff(ASF + ASF_VIDEO, name="clip.asf").mime == "video/x-ms-asf"
    assert sniff(ASF + ASF_VIDEO, name="clip.wmv").mime == "video/x-ms-wmv"
    assert sniff(ASF + ASF_AUDIO, name="clip.asf").group == "audio"
    assert sniff(ASF, name="song.wma").mime == "audio/x-ms-wma"


@pytest.mark.parametrize("content", [b"V_", b"\x83\x81\x01"])
def test_what_is_spoken_in_a_voice_clip_makes_no_video_of_it(content: bytes) -> None:
    found = sniff(make_webm(codecs=(b"A_OPUS",)) + content + bytes(64), declared="audio/webm")
    assert (found.mime, found.exact) == ("audio/webm", True)
    assert sniff(make_webm(codecs=(b"A_OPUS", b"V_VP9")) + bytes(64)).mime == "video/webm"


@pytest.mark.parametrize(("brand", "kind"), [(b"3gp4", "3gpp"), (b"3g2a", "3gpp2")])
def test_a_phones_voice_note_is_a_sound(brand: bytes, kind: str) -> None:
    assert sniff(make_mp4(brand, tracks=(b"soun",)), whole=True).mime == f"audio/{kind}"
    assert sniff(make_mp4(brand), whole=True).mime == f"video/{kind}"
    late = sniff(make_mp4(brand, tracks=(b"soun",), last=True)[:1024], declared=f"audio/{kind}")
    assert (late.mime, late.lies) == (f"audio/{kind}", "")
    assert sniff(make_mp4(brand, tracks=(b"soun",)), name="note.3gp", declared="video/3gpp", whole=True).lies == ""


@pytest.mark.parametrize(
    ("codec", "mime"), [(b"avif", "image/avif"), (b"heic", "image/heic"), (bytes(4), "image/heif")]
)
def test_a_picture_in_the_small_form_of_its_container_is_a_picture(codec: bytes, mime: str) -> None:
    found = sniff(b"\0\0\0\x10ftypmif3" + codec + b"\0\0\0\x20mini" + bytes(24), declared=mime, whole=True)
    assert (found.mime, found.exact, found.lies) == (mime, True, "")


def test_old_musepack_is_taken_at_its_name() -> None:
    assert sniff(b"\x82\x01\x3d\x11" + bytes(range(60)), name="song.mpc").mime == "audio/x-musepack"
