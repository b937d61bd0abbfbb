"""What was read from a voice message is its text wherever the message is read, and goes with it."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest

from belino.domain.media import DocumentText, DocumentUnit, MediaKind, MediaRef, Part
from belino.domain.message import Author, ConversationKey, Deletion, Edit, Message, Quote, SpokenText
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.reading import ReadSegment, SenderLanguage, TranscriptWindow
from belino.domain.stored import StoredMessage, Verdict
from belino.storage.store import Store
from storage.engines import Engine

MAIN = ConversationKey(platform="web", account="default", channel="main")
MAY = Verdict(standing=Standing.MAY_COMMAND, reason="on the list")
WHISPER = "transcript.1:local_whisper:tiny:abcdefabcdef"
DEEPGRAM = "transcript.1:deepgram:nova-3:abcdefabcdef"
BOB = Author(id="u-bob", name="Bob")


@pytest.fixture
def voice(say: Callable[..., Message], photo: Callable[..., MediaRef]) -> Callable[..., Message]:
    def made(id: str, text: str = "", *, kind: MediaKind = MediaKind.VOICE, **more: object) -> Message:  # noqa: A002
        return say(id, text, media=(replace(photo(id), kind=kind, mime="audio/ogg"),), **more)

    return made


async def _chunks(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def send(store: Store, message: Message, data: bytes = b"OggS") -> tuple[str, str]:
    taken = await store.take_in(message, MAY)
    blob = await store.keep(_chunks(data), mime="audio/ogg", limit=1 << 20)
    await store.end_media(taken.refs[0].id, MediaOutcome.HELD, blob=blob)
    return taken.refs[0].id, blob.sha256


async def hear(
    store: Store, sha256: str, words: str, *, reader: str = WHISPER, number: int = 0, seconds: int = 5, **more: object
) -> None:
    """Store what a provider heard in one window of five seconds, in a sound of so many."""
    start = number * 5.0
    window = TranscriptWindow(
        start=start, end=start + 5.0, segments=(ReadSegment(text=words, start=start + 1, end=start + 3),)
    )
    text = DocumentText(unit=DocumentUnit.SECOND, total=seconds, parts=(Part(number=1, text=words),))
    assert await store.keep_transcript(sha256, f"{reader}:5s-{number}", replace(window, **more), text)  # type: ignore[arg-type]


async def stored(store: Store, message_id: str = "1") -> StoredMessage:
    (found,) = await store.messages(MAIN, [message_id])
    return found


async def test_a_transcript_is_part_of_its_message_and_of_the_list_of_conversations(
    store: Store, voice: Callable[..., Message]
) -> None:
    _, sha256 = await send(store, voice("1"))
    assert (await stored(store)).spoken is None
    await hear(store, sha256, "we meet on Thursday")
    assert (await stored(store)).spoken == SpokenText(text="we meet on Thursday")
    assert [each.spoken for each in await store.history(MAIN)] == [SpokenText(text="we meet on Thursday")]
    assert [each.last_text for each in await store.conversations()] == ["we meet on Thursday"]


async def test_written_text_comes_first_in_the_list_of_conversations(
    store: Store, voice: Callable[..., Message]
) -> None:
    _, sha256 = await send(store, voice("1", "for the minutes"))
    await hear(store, sha256, "we meet on Thursday")
    assert [each.last_text for each in await store.conversations()] == ["for the minutes"]


async def test_windows_are_joined_and_doubt_in_one_is_doubt_in_all(store: Store, voice: Callable[..., Message]) -> None:
    _, sha256 = await send(store, voice("1"))
    await hear(store, sha256, "on Thursday", number=1, seconds=10)
    assert (await stored(store)).spoken == SpokenText(text="on Thursday", partial=True)
    await hear(store, sha256, "we meet", number=0, seconds=10, uncertain=True)
    assert (await stored(store)).spoken == SpokenText(text="we meet on Thursday", uncertain=True)


async def test_a_transcript_that_ends_before_the_sound_is_partial(store: Store, voice: Callable[..., Message]) -> None:
    _, sha256 = await send(store, voice("1"))
    await hear(store, sha256, "we meet", seconds=10)
    assert (await stored(store)).spoken == SpokenText(text="we meet", partial=True)


async def test_of_several_providers_the_newest_counts_and_silence_says_nothing(
    store: Store, voice: Callable[..., Message]
) -> None:
    _, sha256 = await send(store, voice("1"))
    await hear(store, sha256, "", segments=())
    assert (await stored(store)).spoken is None
    await hear(store, sha256, "we meet", reader=DEEPGRAM)
    assert (await stored(store)).spoken == SpokenText(text="we meet")


@pytest.mark.parametrize("kind", [kind for kind in MediaKind if kind is not MediaKind.VOICE])
async def test_only_a_voice_message_is_what_its_sender_says(
    store: Store, voice: Callable[..., Message], kind: MediaKind
) -> None:
    _, sha256 = await send(store, voice("1", kind=kind))
    await hear(store, sha256, "we meet on Thursday")
    assert (await stored(store)).spoken is None


async def test_a_reply_and_a_forward_bring_the_words_along(store: Store, voice: Callable[..., Message]) -> None:
    original = voice("1")
    _, sha256 = await send(store, original)
    await hear(store, sha256, "we meet on Thursday")
    quote = Quote(author=original.author, message_id="1", media=original.media)
    await store.take_in(replace(original, id="2", text="when?", media=(), quote=quote), MAY)
    await store.take_in(replace(original, id="3", text="look", media=(), forward=quote), MAY)
    second, third = await stored(store, "2"), await stored(store, "3")
    assert second.quote is not None and second.quote.spoken == SpokenText(text="we meet on Thursday")
    assert third.forward is not None and third.forward.spoken == SpokenText(text="we meet on Thursday")
    assert second.spoken is None and third.spoken is None


async def test_words_go_with_their_message_also_where_it_is_quoted(store: Store, voice: Callable[..., Message]) -> None:
    original = voice("1")
    _, sha256 = await send(store, original)
    await hear(store, sha256, "we meet on Thursday")
    quote = Quote(author=original.author, message_id="1", media=original.media)
    await store.take_in(replace(original, id="2", text="when?", media=(), quote=quote), MAY)
    gone = Deletion(conversation=MAIN, id="d", message_id="1", author=original.author, sent=original.sent)
    await store.take_in(gone, MAY)
    reply = await stored(store, "2")
    assert (await stored(store)).spoken is None and reply.quote is not None and reply.quote.spoken is None


async def test_an_edit_that_takes_the_voice_away_takes_its_words(
    store: Store, voice: Callable[..., Message], photo: Callable[..., MediaRef]
) -> None:
    original = voice("1")
    _, sha256 = await send(store, original)
    await hear(store, sha256, "we meet on Thursday")
    change = Edit(
        conversation=MAIN,
        id="e",
        message_id="1",
        author=original.author,
        sent=original.sent,
        text="never mind",
        media=(photo("1", "another file"),),
    )
    await store.take_in(change, MAY)
    assert (await stored(store)).spoken is None


async def test_the_language_of_a_sender_is_what_the_platform_says_and_what_they_wrote(
    store: Store, engine: Engine, say: Callable[..., Message], voice: Callable[..., Message]
) -> None:
    for number, text in enumerate(("eins", "zwei", "drei", "vier", "fünf", "sechs")):
        await store.take_in(say(f"w{number}", text, language="de-AT"), MAY)
    await store.take_in(say("b", "not theirs", author=BOB, language="en"), MAY)
    ref, _ = await send(store, voice("1", "sieben"))
    await store.take_in(say("later", "acht", language="fr"), MAY)
    told = SenderLanguage(reported="de-AT", recent_texts=("sieben", "sechs", "fünf", "vier", "drei"))
    assert await store.sender_of(MAIN, ref) == told
    await store.close()
    again = await engine.open()
    assert await again.sender_of(MAIN, ref) == told
    await again.close()


async def test_the_language_of_a_forwarded_voice_is_that_of_its_author_or_else_of_who_sent_it(
    store: Store, say: Callable[..., Message], voice: Callable[..., Message]
) -> None:
    carried = Quote(author=BOB, media=voice("9").media)
    await store.take_in(say("0", "hallo zusammen", language="de"), MAY)
    taken = await store.take_in(say("1", "", forward=carried), MAY)
    assert taken.outcome is not None
    (message,) = await store.messages(MAIN, ["1"])
    assert message.forward is not None
    ref = message.forward.media[0].id
    assert await store.sender_of(MAIN, ref) == SenderLanguage(reported="de", recent_texts=("hallo zusammen",))
    assert await store.sender_of(MAIN, "web_unknown00000") == SenderLanguage()


async def test_a_forwarded_voice_of_somebody_who_writes_here_is_in_their_language(
    store: Store, say: Callable[..., Message], voice: Callable[..., Message]
) -> None:
    await store.take_in(say("0", "good morning", author=BOB, language="en"), MAY)
    await store.take_in(say("1", "hört mal", language="de", forward=Quote(author=BOB, media=voice("9").media)), MAY)
    (message,) = await store.messages(MAIN, ["1"])
    assert message.forward is not None
    found = await store.sender_of(MAIN, message.forward.media[0].id)
    assert found == SenderLanguage(reported="en", recent_texts=("good morning",))
