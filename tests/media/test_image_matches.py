"""What was sent before is said of a picture, in its channel, once its bytes are here; and never instead of it."""

from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from belino.domain.errors import MediaRefused
from belino.domain.media import Blob, MediaKind, MediaRef
from belino.domain.message import Author, ConversationKey, Deletion, Message
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.stored import Verdict
from belino.media.image_hash import Likenesses
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing.clock import FakeClock
from blob_files import path_of

OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
TEAM = ConversationKey(platform="web", account="default", channel="team")
OTHER = ConversationKey(platform="web", account="default", channel="other")
ANN = Author(id="u-ann", name="Ann")
CLOCK = FakeClock()


class Eyes:
    """A sandbox that sees in bytes what the test says: a seed, and how bright."""

    def __init__(self) -> None:
        self.looks = 0

    async def run(self, job: str, source: Any, options: Any = None, *, output: Path | None = None) -> dict[str, Any]:
        self.looks += 1
        content = Path(source).read_bytes()
        if content == b"broken":
            raise MediaRefused("the picture is damaged")
        return {"greys": b64encode(seen(*content.split(b"@"))).decode(), "shape": 1.5}


def seen(shape: bytes, tint: bytes = b"0") -> bytes:
    """Greys that only a shape decides, and a tint that a recompression might add."""
    step = int(shape)
    return bytes(
        ((row // step * 89 + column // (step + 1) * 57) * (row // step + 3) + int(tint)) % 200
        for row in range(64)
        for column in range(64)
    )


class Closely:
    """Compares up close as the test says."""

    def __init__(self, *, agree: bool = True) -> None:
        self._agree = agree

    async def agree(self, part: Blob, whole: Blob, frame: Sequence[float]) -> bool:
        return self._agree


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_store(Home.at(tmp_path / "state"), clock=CLOCK)
    yield store
    await store.close()


async def send(store: Store, number: int, content: bytes, channel: ConversationKey = TEAM) -> tuple[str, Blob]:
    ref = MediaRef(
        platform="web",
        account="default",
        channel_id=channel.channel,
        message_id=str(number),
        item="0",
        kind=MediaKind.IMAGE,
        mime="image/png",
        created=CLOCK.now(),
    )
    message = Message(conversation=channel, id=str(number), author=ANN, sent=CLOCK.now(), text="", media=(ref,))
    taken = await store.take_in(message, OBSERVE)

    async def chunks() -> AsyncIterator[bytes]:
        yield content

    blob = await store.keep(chunks(), mime="image/png", limit=1_000)
    await store.end_media(taken.refs[0].id, MediaOutcome.HELD, blob=blob)
    return taken.refs[0].id, blob


async def test_a_picture_that_was_sent_before_says_so_on_fetch_and_in_the_list(store: Store) -> None:
    likenesses = Likenesses(Eyes(), store, Closely())
    first, blob = await send(store, 1, b"7@0")
    assert await likenesses.note(TEAM, first, blob) == ""
    copy, copied = await send(store, 2, b"7@1")
    assert await likenesses.note(TEAM, copy, copied) == f"same picture as {first}, recompressed"
    again, same = await send(store, 3, b"7@0")
    assert await likenesses.note(TEAM, again, same) == f"same picture as {first}"
    assert await likenesses.notes(TEAM, [first, copy, again, "web_unknown"]) == {
        copy: f"same picture as {first}, recompressed",
        again: f"same picture as {first}",
    }


async def test_a_picture_is_decoded_once_wherever_it_is_sent_and_whoever_asks(store: Store) -> None:
    eyes = Eyes()
    likenesses = Likenesses(eyes, store, Closely())
    ref, blob = await send(store, 1, b"7@0")
    for _ in range(3):
        await likenesses.note(TEAM, ref, blob)
    theirs, same = await send(store, 1, b"7@0", OTHER)
    assert await likenesses.note(OTHER, theirs, same) == ""
    assert await Likenesses(eyes, store, Closely()).note(TEAM, ref, blob) == ""
    assert eyes.looks == 1


async def test_nothing_is_said_of_a_picture_that_differs_up_close_or_whose_bytes_are_gone(store: Store) -> None:
    first, blob = await send(store, 1, b"7@0")
    copy, copied = await send(store, 2, b"7@1")
    differs = Likenesses(Eyes(), store, Closely(agree=False))
    await differs.note(TEAM, first, blob)
    assert await differs.note(TEAM, copy, copied) == ""
    path_of(store, blob).unlink()
    await store.tidy(all_strays=True)
    assert await Likenesses(Eyes(), store, Closely()).note(TEAM, copy, copied) == ""


async def test_nothing_is_said_of_pictures_in_other_channels(store: Store) -> None:
    likenesses = Likenesses(Eyes(), store, Closely())
    first, blob = await send(store, 1, b"7@0")
    await likenesses.note(TEAM, first, blob)
    copy, copied = await send(store, 2, b"7@1", OTHER)
    assert await likenesses.note(OTHER, copy, copied) == ""


async def test_nothing_is_said_of_a_picture_that_was_deleted(store: Store) -> None:
    likenesses = Likenesses(Eyes(), store, Closely())
    first, blob = await send(store, 1, b"7@0")
    copy, copied = await send(store, 2, b"7@1")
    await likenesses.note(TEAM, first, blob)
    assert await likenesses.note(TEAM, copy, copied) != ""
    await store.take_in(Deletion(conversation=TEAM, id="d", message_id="1", author=ANN, sent=CLOCK.now()), OBSERVE)
    assert await likenesses.notes(TEAM, [copy]) == {}


async def test_a_picture_that_cannot_be_decoded_is_only_not_compared(store: Store) -> None:
    ref, blob = await send(store, 1, b"broken")
    assert await Likenesses(Eyes(), store, Closely()).note(TEAM, ref, blob) == ""


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"greys": 1, "shape": 1.5},
        {"greys": "@@@@", "shape": 1.5},
        {"greys": b64encode(bytes(9)).decode(), "shape": 1.5},
        {"greys": "A" * 100_000, "shape": 1.5},
        {"greys": b64encode(bytes(4096)).decode()},
        {"greys": b64encode(bytes(4096)).decode(), "shape": 0.0},
        {"greys": b64encode(bytes(4096)).decode(), "shape": float("nan")},
    ],
    ids=["nothing", "a number", "no base64", "too few", "too many", "no shape", "no width", "no number"],
)
async def test_a_child_that_lies_is_not_believed(answer: dict[str, Any], store: Store) -> None:
    class Liar(Eyes):
        async def run(self, *given: Any, **more: Any) -> dict[str, Any]:
            return answer

    ref, blob = await send(store, 1, b"7@0")
    assert await Likenesses(Liar(), store, Closely()).note(TEAM, ref, blob) == ""
    assert await store.prints(TEAM) == ()
