"""Which form a file leaves in, and why not another."""

from dataclasses import replace

import pytest

from belino.adapters.whatsapp.capabilities import LIMITS as WHATSAPP
from belino.delivery.decide import Action, Fit, decide, decide_one, misfits
from belino.domain.limits import FileLimit, Limits, Once, SendAs
from delivery.files import FILES, MP3, WAV, offer, picture
from delivery.platforms import KB, LINE, MB, PLATFORMS, TEAMS

TELEGRAM = PLATFORMS["telegram"]

# A form: sent as it is. `fit` and `transcode`: changed first, as little as need be. `-`: refused.
TABLE = """
                | telegram | discord  | slack    | whatsapp | signal   | line     | teams    | matrix   | web
small jpeg      | photo    | photo    | photo    | photo    | photo    | photo    | photo    | photo    | photo
large jpeg      | fit photo| fit photo| photo    | fit photo| photo    | fit photo| fit photo| photo    | photo
wide jpeg       | fit photo| photo    | photo    | photo    | photo    | photo    | fit photo| photo    | photo
narrow png      | document | photo    | photo    | photo    | photo    | photo    | photo    | photo    | photo
heic            | fit photo| photo    | photo    | fit photo| photo    | fit photo| fit photo| photo    | fit photo
unmeasured jpeg | fit photo| photo    | photo    | photo    | photo    | photo    | photo    | photo    | photo
still gif       | fit photo| photo    | photo    | fit photo| photo    | fit photo| photo    | photo    | photo
moving gif      | animation| animation| animation| -        | animation| -        | -        | animation| animation
moving webp     | document | animation| animation| -        | animation| -        | document | animation| animation
svg             | document | document | document | -        | document | -        | document | document | document
mp4             | video    | video    | video    | video    | video    | video    | -        | video    | video
large mp4       | -        | -        | video    | -        | video    | video    | -        | video    | video
mkv             | document | video    | video    | -        | video    | -        | -        | video    | document
mp3             | audio    | audio    | audio    | audio    | audio    | audio    | -        | audio    | audio
wav             | document | audio    | audio    | -        | audio    | -        | -        | audio    | audio
vorbis          | document | audio    | audio    | -        | audio    | -        | -        | audio    | audio
small pdf       | document | document | document | document | document | -        | document | document | document
large pdf       | -        | -        | document | document | document | -        | -        | document | document
huge zip        | -        | -        | -        | -        | -        | -        | -        | -        | -
nothing         | -        | -        | -        | -        | -        | -        | -        | -        | -
opus as voice   | voice    | voice    | audio    | voice    | voice    | -        | document | voice    | voice
mp3 as voice    | voice    | transcode| audio    | transcode| transcode| audio    | -        | transcode| voice
wav as voice    | transcode| transcode| audio    | transcode| transcode| -        | -        | transcode| voice
jpeg as document| document | document | document | photo    | document | photo    | document | document | document
gif as photo    | animation| animation| animation| -        | animation| -        | animation| animation| animation
pdf as photo    | document | document | document | document | document | -        | document | document | document
webp as sticker | sticker  | photo    | photo    | sticker  | photo    | fit photo| fit photo| sticker  | sticker
jpeg as sticker | fit stick| photo    | photo    | fit stick| photo    | photo    | fit photo| fit stick| fit stick
tgs             | sticker  | document | document | -        | document | -        | document | document | document
large tgs       | document | document | document | -        | document | -        | document | document | document
webm sticker    | sticker  | video    | video    | -        | video    | -        | -        | video    | video
webm            | document | video    | video    | -        | video    | -        | -        | video    | video
heavy webm      | document | video    | video    | -        | video    | -        | -        | video    | video
long webm       | document | video    | video    | -        | video    | -        | -        | video    | video
small webm      | document | video    | video    | -        | video    | -        | -        | video    | video
loud webm       | document | video    | video    | -        | video    | -        | -        | video    | video
vp8 webm        | document | video    | video    | -        | video    | -        | -        | video    | video
"""
HEAD, *ROWS = ([cell.strip() for cell in line.split("|")] for line in TABLE.strip("\n").splitlines())
CASES = [(name, platform, cell) for name, *cells in ROWS for platform, cell in zip(HEAD[1:], cells, strict=True)]


def told(action: Action, form: SendAs) -> str:
    match action:
        case Action.SEND:
            return form
        case Action.FIT:
            return f"fit {form}".replace("sticker", "stick")
        case Action.TRANSCODE:
            assert form is SendAs.VOICE
            return "transcode"
        case Action.REFUSE:
            return "-"


def test_the_table_speaks_of_every_file_and_every_platform() -> None:
    assert {name for name, *_ in ROWS} == set(FILES)
    assert HEAD[1:] == list(PLATFORMS)


@pytest.mark.parametrize(("name", "platform", "expected"), CASES, ids=[f"{p}: {n}" for n, p, _ in CASES])
def test_each_file_leaves_in_the_best_form_the_platform_takes(name: str, platform: str, expected: str) -> None:
    file, limits = FILES[name], PLATFORMS[platform]
    (decision,) = decide([file], limits)
    assert told(decision.action, decision.send_as) == expected
    assert decision.offer is file
    if decision.action is Action.SEND:
        assert misfits(file, decision.send_as, limits.files[decision.send_as].of(file.mime)) == ()
    wished = file.wanted in (None, decision.send_as)
    assert decision.reason or (decision.action is Action.SEND and wished)


def test_a_picture_is_shrunk_no_further_than_the_platform_demands() -> None:
    assert decide_one(FILES["wide jpeg"], TELEGRAM).fit == Fit(
        max_bytes=10 * MB, formats=("image/jpeg", "image/png", "image/webp"), max_side=8181
    )
    assert decide_one(FILES["heic"], TEAMS).fit == Fit(max_bytes=190 * KB, formats=("image/jpeg", "image/png"))


def test_pixels_bound_the_longer_side_by_the_shape() -> None:
    limits = Limits(
        text_chars=10, once=Once.KEY, files={SendAs.PHOTO: FileLimit(max_bytes=MB, max_pixels=1_000_000, max_side=5000)}
    )
    assert decide_one(picture("a", "image/png", 9, 4000, 1000), limits).fit == Fit(
        max_bytes=MB, formats=("image/jpeg", "image/png", "image/webp"), max_side=2000
    )
    unmeasured = decide_one(offer("a", "image/png", 9), limits).fit
    assert unmeasured is not None
    assert unmeasured.max_side == 1000


def test_a_picture_too_large_for_the_only_form_there_is_is_shrunk_into_it() -> None:
    limits = Limits(text_chars=10, once=Once.KEY, files={SendAs.DOCUMENT: FileLimit(max_bytes=MB)})
    decision = decide_one(FILES["large jpeg"], limits)
    assert (decision.action, decision.send_as) == (Action.FIT, SendAs.DOCUMENT)


def test_a_form_that_was_tried_and_failed_is_not_tried_again() -> None:
    decision = decide_one(FILES["heic"], TELEGRAM, barred={SendAs.PHOTO: "it could not be decoded"})
    assert (decision.action, decision.send_as) == (Action.SEND, SendAs.DOCUMENT)
    assert decision.reason == "it could not be decoded"


def test_a_voice_message_is_not_made_longer_than_it_may_last() -> None:
    voice = FileLimit(max_bytes=MB, mimes=frozenset({"audio/ogg"}), max_seconds=60)
    limits = replace(WHATSAPP, files={**WHATSAPP.files, SendAs.VOICE: voice})
    assert decide_one(replace(WAV, wanted=SendAs.VOICE, seconds=30.0), limits).action is Action.TRANSCODE
    long = decide_one(replace(MP3, wanted=SendAs.VOICE, seconds=75.0), limits)
    assert (long.action, long.send_as) == (Action.SEND, SendAs.AUDIO)


@pytest.mark.parametrize(
    ("name", "limits", "reason"),
    [
        ("large pdf", TELEGRAM, "it has 60.0MB, and at most 50.0MB are taken here"),
        ("large mp4", TELEGRAM, "it has 60.0MB, and at most 50.0MB are taken here"),
        ("large jpeg", TELEGRAM, "it has 12.0MB, and at most 10.0MB are taken here as a photo"),
        ("narrow png", TELEGRAM, "500×15000 pixels are too long and narrow for a photo here"),
        ("small pdf", LINE, "a document cannot be sent here"),
        ("gif as photo", TELEGRAM, "it moves, and a photo stands still"),
        ("nothing", TELEGRAM, "it is empty"),
        ("mkv", TELEGRAM, "video/x-matroska is not taken as a video here"),
        ("large tgs", TELEGRAM, "it has 65KB, and at most 64KB are taken here as a sticker"),
        ("long webm", TELEGRAM, "video/webm is not taken as a video here"),
    ],
    ids=["document", "video", "photo", "shape", "form", "moving", "empty", "type", "type in a form", "no sticker"],
)
def test_a_reason_names_the_thing_and_the_limit(name: str, limits: Limits, reason: str) -> None:
    assert decide_one(FILES[name], limits).reason == reason


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("heavy webm", "it has 257KB, and at most 256KB are taken here as a sticker"),
        ("long webm", "a sticker lasts at most 3s here and this one 4s"),
        ("small webm", "the longer side of a sticker has 512 pixels here, and this one is 480×480"),
        ("loud webm", "a sticker here is encoded as vp9"),
        ("webm", "a sticker here is encoded as vp9"),
    ],
)
def test_a_film_that_was_wished_to_be_a_sticker_says_why_it_is_none(name: str, reason: str) -> None:
    decision = decide_one(replace(FILES[name], wanted=SendAs.STICKER), TELEGRAM)
    assert decision.send_as is SendAs.DOCUMENT
    assert decision.reason == f"{reason}; video/webm is not taken as a video here"


def test_a_file_that_is_a_little_too_large_is_told_in_bytes() -> None:
    heavy = offer("p.pdf", "application/pdf", 50 * MB + 1)
    assert "it has 52,428,801 bytes, and at most 52,428,800 are taken here" in decide_one(heavy, TELEGRAM).reason


@pytest.mark.parametrize(
    ("size", "frames", "taken"), [(90_000, 1, True), (110_000, 1, False), (500_000, 9, True), (520_000, 9, False)]
)
def test_a_moving_sticker_may_have_a_limit_of_its_own(size: int, frames: int, taken: bool) -> None:
    sticker = FileLimit(max_bytes=100 * 1024, moving_bytes=500 * 1024, mimes=frozenset({"image/webp"}))
    limits = Limits(text_chars=10, once=Once.UNCERTAIN, files={SendAs.STICKER: sticker})
    made = replace(offer("s.webp", "image/webp", size), wanted=SendAs.STICKER, frames=frames, width=512, height=512)
    assert (decide_one(made, limits).action is Action.SEND) == taken


def test_a_sticker_that_the_platform_has_itself_is_known_by_its_name_and_another_is_a_photo() -> None:
    own = FileLimit(max_bytes=MB, mimes=frozenset({"image/png"}), names=r"sticker-\d+\.png")
    limits = replace(TELEGRAM, files={**TELEGRAM.files, SendAs.STICKER: own})
    sticker = replace(picture("sticker-7.png", "image/png", KB, 8, 8), wanted=SendAs.STICKER)
    assert decide_one(sticker, limits).send_as is SendAs.STICKER
    photo = decide_one(replace(sticker, name="cat.png"), limits)
    assert photo.send_as is SendAs.PHOTO and "platform's own" in photo.reason
