"""Files made ready to leave."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from belino.delivery import prepare
from belino.delivery.decide import Action, Decision
from belino.delivery.prepare import Preparer
from belino.domain.errors import MediaRefused
from belino.domain.limits import FileLimit, Limits, Once, SendAs
from belino.domain.media import Blob
from belino.domain.reply import Offer
from belino.media.audio import Sounds
from belino.media.image.images import Fitted, Images
from belino.media.sandbox.sandbox import Sandbox
from belino.media.stream_header import SoundFacts
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing.clock import FakeClock
from blob_files import content_of
from delivery.platforms import KB, MB, PLATFORMS
from media.test_audio import tone

TELEGRAM, TEAMS = PLATFORMS["telegram"], PLATFORMS["teams"]


class Draws:
    """Makes what it was told to make, or what it is asked for."""

    def __init__(self, result: Fitted | Exception | None = None) -> None:
        self.result = result
        self.asked: list[tuple[int, int | None, tuple[str, ...]]] = []

    async def fit(
        self, blob: Blob, *, max_bytes: int, max_side: int | None = None, formats: tuple[str, ...] = ()
    ) -> Fitted:
        self.asked.append((max_bytes, max_side, formats))
        if isinstance(self.result, Exception):
            raise self.result
        return self.result or Fitted(data=b"fitted", mime=formats[0], width=10, height=20)


class Speaks:
    """Encodes nothing into a few bytes, or fails."""

    def __init__(self, tmp_path: Path, error: Exception | None = None) -> None:
        self.path = tmp_path / "voice"
        self.error = error

    async def facts(self, blob: Blob) -> SoundFacts:
        return SoundFacts(codec="pcm", seconds=3.0) if blob.mime == "audio/wav" else SoundFacts()

    @asynccontextmanager
    async def voice(self, blob: Blob, *, max_bytes: int, mime: str = "audio/ogg") -> AsyncIterator[Path]:
        if self.error is not None:
            raise self.error
        self.path.write_bytes(b"OggS voice")
        yield self.path

    async def waveform(self, blob: Blob, *, points: int) -> tuple[int, ...]:
        if self.error is not None:
            raise self.error
        return tuple(100 * point // (points - 1) for point in range(points))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await open_store(Home.at(tmp_path / "home"), clock=FakeClock())
    yield opened
    await opened.close()


async def offered(store: Store, name: str, mime: str, content: bytes, **more: object) -> Offer:
    async def chunks() -> AsyncIterator[bytes]:
        yield content

    blob = await store.keep(chunks(), mime=mime, limit=10**9)
    return Offer(name=name, mime=mime, size=blob.size, sha256=blob.sha256, **more)  # type: ignore[arg-type]


FETCHED = replace(TELEGRAM, fetches_files=True)


async def test_where_files_are_fetched_from_us_and_cannot_be_each_is_refused_with_the_reason(store: Store) -> None:
    offer = await offered(store, "a.png", "image/png", b"picture", width=8, height=8)
    preparer = Preparer(store, Draws, lambda: Speaks(Path()), unpublished=lambda: "set server.public_url")
    (refused,) = await preparer.prepare([offer], FETCHED)
    assert (refused.action, refused.reason) == (Action.REFUSE, "set server.public_url")
    (sent,) = await preparer.prepare([offer], TELEGRAM)
    assert sent.action is Action.SEND


async def test_a_voice_message_is_encoded_as_the_platform_takes_it(store: Store, tmp_path: Path) -> None:
    voice = FileLimit(max_bytes=MB, mimes=frozenset({"audio/mp4", "audio/mpeg"}), codecs=frozenset({"aac"}))
    offer = await offered(store, "take.wav", "audio/wav", b"sound", wanted=SendAs.VOICE)
    limits = replace(TELEGRAM, files={SendAs.VOICE: voice})
    decision = await ready(store, offer, limits, sounds=Speaks(tmp_path))
    assert (decision.offer.name, decision.offer.mime, decision.offer.codec) == ("take.m4a", "audio/mp4", "aac")
    assert "encoded as aac" in decision.reason


async def ready(
    store: Store, offer: Offer, limits: Limits, *, images: Draws | None = None, sounds: Speaks | None = None
) -> Decision:
    def nobody() -> Draws:
        raise AssertionError("nothing was to be done")

    def silence() -> Speaks:
        raise AssertionError("nothing was to be heard")

    preparer = Preparer(store, lambda: images or nobody(), lambda: sounds or silence())
    (decision,) = await preparer.prepare([offer], limits)
    return decision


async def test_a_file_that_fits_leaves_as_it_is_and_nothing_is_decoded(store: Store) -> None:
    offer = await offered(store, "a.png", "image/png", b"picture", width=8, height=8)
    decision = await ready(store, offer, TELEGRAM)
    assert (decision.action, decision.send_as, decision.offer) == (Action.SEND, SendAs.PHOTO, offer)


async def test_a_picture_is_fitted_and_the_copy_is_a_blob_with_a_name_that_tells_its_type(store: Store) -> None:
    offer = await offered(
        store, "IMG.HEIC", "image/heic", b"x" * 500, width=40, height=80, caption="hi", pending="IMG.HEIC"
    )
    images = Draws()
    decision = await ready(store, offer, TEAMS, images=images)
    assert images.asked == [(190 * KB, None, ("image/jpeg", "image/png"))]
    made = decision.offer
    assert (decision.action, decision.send_as) == (Action.SEND, SendAs.PHOTO)
    assert (made.name, made.mime, made.size, made.width, made.height) == ("IMG.jpg", "image/jpeg", 6, 10, 20)
    assert (made.caption, made.pending) == ("hi", "IMG.HEIC")
    blob = await store.blob(made.sha256)
    assert blob is not None
    assert await content_of(store, blob) == b"fitted"
    assert decision.reason == "image/heic is not taken as a photo here, so it was made image/jpeg, 10×20, 6B"


async def test_a_picture_that_cannot_be_decoded_goes_out_as_a_document_and_says_why(store: Store) -> None:
    offer = await offered(store, "a.jpg", "image/jpeg", b"broken")
    decision = await ready(store, offer, TELEGRAM, images=Draws(MediaRefused("it is cut short.")))
    assert (decision.action, decision.send_as, decision.offer) == (Action.SEND, SendAs.DOCUMENT, offer)
    assert decision.reason == "it could not be made a photo: it is cut short"


async def test_a_copy_that_turns_out_too_narrow_is_thrown_away_for_the_original(store: Store) -> None:
    offer = await offered(store, "a.jpg", "image/jpeg", b"unmeasured")
    images = Draws(Fitted(data=b"fitted", mime="image/jpeg", width=10, height=900))
    decision = await ready(store, offer, TELEGRAM, images=images)
    assert (decision.action, decision.send_as, decision.offer) == (Action.SEND, SendAs.DOCUMENT, offer)
    assert "too long and narrow" in decision.reason


async def test_what_no_form_can_hold_is_refused_with_every_reason(store: Store) -> None:
    offer = await offered(store, "a.jpg", "image/jpeg", b"x" * 200 * KB, width=8, height=8)
    decision = await ready(store, offer, TEAMS, images=Draws(MediaRefused("it is cut short")))
    assert decision.action is Action.REFUSE
    assert (
        decision.reason
        == "it could not be made a photo: it is cut short; it could not be made a document: it is cut short"
    )


async def test_bytes_that_are_gone_are_a_reason(store: Store) -> None:
    offer = Offer(name="a.heic", mime="image/heic", size=5, sha256="0" * 64, width=8, height=8)
    decision = await ready(store, offer, TEAMS, images=Draws())
    assert (decision.action, decision.send_as) == (Action.SEND, SendAs.DOCUMENT)
    assert "no longer here" in decision.reason


async def test_a_sound_is_measured_and_becomes_voice_only_when_that_is_wished(store: Store, tmp_path: Path) -> None:
    offer = await offered(store, "take.wav", "audio/wav", b"sound")
    plain = await ready(store, offer, TELEGRAM, sounds=Speaks(tmp_path))
    assert (plain.send_as, plain.offer.codec, plain.offer.seconds) == (SendAs.DOCUMENT, "pcm", 3.0)
    voice = await ready(store, replace(offer, wanted=SendAs.VOICE), TELEGRAM, sounds=Speaks(tmp_path))
    assert (voice.action, voice.send_as) == (Action.SEND, SendAs.VOICE)
    assert (voice.offer.name, voice.offer.mime, voice.offer.codec) == ("take.ogg", "audio/ogg", "opus")
    assert voice.reason == "audio/wav is not taken as a voice message here, so it was encoded as opus (10B)"


async def test_without_an_encoder_the_sound_goes_out_in_the_next_best_form(store: Store, tmp_path: Path) -> None:
    offer = await offered(store, "take.wav", "audio/wav", b"sound", wanted=SendAs.VOICE)
    decision = await ready(store, offer, TELEGRAM, sounds=Speaks(tmp_path, MediaRefused("there is no encoder")))
    assert (decision.action, decision.send_as, decision.offer.name) == (Action.SEND, SendAs.DOCUMENT, "take.wav")
    assert decision.reason.startswith("it could not be made a voice message: there is no encoder; ")


async def test_work_that_takes_too_long_is_given_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hangs(Draws):
        async def fit(self, *_: object, **__: object) -> Fitted:
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr(prepare, "SECONDS", 0.01)
    offer = await offered(store, "a.heic", "image/heic", b"slow", width=8, height=8)
    decision = await ready(store, offer, TELEGRAM, images=Hangs())
    assert (decision.action, decision.send_as) == (Action.SEND, SendAs.DOCUMENT)
    assert "took longer than" in decision.reason


@pytest.mark.slow
async def test_real_pictures_and_sounds_end_up_within_the_limits(store: Store, tmp_path: Path) -> None:
    from PIL import Image

    file = io.BytesIO()
    Image.effect_noise((1200, 900), 80).convert("RGB").save(file, "TIFF")
    picture = await offered(store, "scan.tiff", "image/tiff", file.getvalue(), width=1200, height=900)
    sound = await offered(store, "take.wav", "audio/wav", tone(), wanted=SendAs.VOICE)
    voice = FileLimit(max_bytes=190 * KB, mimes=frozenset({"audio/ogg"}), codecs=frozenset({"opus"}))
    limits = replace(TEAMS, files={**TEAMS.files, SendAs.VOICE: voice})
    scratch = tmp_path / "scratch"
    async with Sandbox() as sandbox:
        images, sounds = Images(sandbox, scratch, store.local), Sounds(sandbox, scratch, store.local)
        decisions = await Preparer(store, lambda: images, lambda: sounds).prepare([picture, sound], limits)
    assert [(each.action, each.send_as) for each in decisions] == [
        (Action.SEND, SendAs.PHOTO),
        (Action.SEND, SendAs.VOICE),
    ]
    assert [each.offer.name for each in decisions] == ["scan.jpg", "take.ogg"]
    assert all(each.offer.size <= 190 * KB for each in decisions)
    assert decisions[1].offer.seconds == pytest.approx(1.5, abs=0.1)


DRAWS_SOUNDS = Limits(
    text_chars=10,
    once=Once.KEY,
    files={SendAs.VOICE: FileLimit(max_bytes=MB, mimes=frozenset({"audio/ogg"}), waveform=True)},
)


async def test_a_platform_that_draws_sounds_is_told_how_loud_a_voice_message_goes(store: Store, tmp_path: Path) -> None:
    offer = await offered(store, "a.ogg", "audio/ogg", b"OggS", codec="opus", wanted=SendAs.VOICE)
    decision = await ready(store, offer, DRAWS_SOUNDS, sounds=Speaks(tmp_path))
    heights = decision.offer.waveform
    assert (len(heights), heights[0], heights[-1]) == (256, 0, 255)


async def test_a_voice_message_nobody_can_listen_to_here_leaves_without_a_drawing(store: Store, tmp_path: Path) -> None:
    offer = await offered(store, "a.ogg", "audio/ogg", b"OggS", codec="opus", wanted=SendAs.VOICE)
    deaf = Speaks(tmp_path, MediaRefused("no decoder is installed"))
    decision = await ready(store, offer, DRAWS_SOUNDS, sounds=deaf)
    assert (decision.action, decision.offer.waveform) == (Action.SEND, b"")
