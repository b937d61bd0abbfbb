"""What was made of bytes is made once, is found again, and goes with the last ref to them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from hashlib import sha256 as hash_of
from typing import NamedTuple

import pytest

from belino.domain.errors import MediaNotFound
from belino.domain.media import DocumentText, DocumentUnit, Likeness, MediaRef, Part, Printed, Unread
from belino.domain.message import ConversationKey, Message
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.stored import Verdict
from belino.storage.database import Tx
from belino.storage.deletions import forget_bytes
from belino.storage.store import Store
from blob_files import all_names, content_of, is_here

MAIN = ConversationKey(platform="web", account="default", channel="main")
SIDE = ConversationKey(platform="web", account="default", channel="side")
HEARD = Verdict(standing=Standing.OBSERVED, answer=False, reason="overheard")
PAGES = DocumentText(
    unit=DocumentUnit.PAGE, total=3, parts=(Part(number=1, text="alpha"), Part(number=2, text="beta", title="Two"))
)


class Sent(NamedTuple):
    """A message that brought a file whose bytes are here."""

    ref: str
    sha256: str


Send = Callable[..., Awaitable[Sent]]


@pytest.fixture
def send(store: Store, say: Callable[..., Message], photo: Callable[..., MediaRef]) -> Send:
    async def sent(id: str, data: bytes, where: ConversationKey = MAIN) -> Sent:  # noqa: A002
        message = replace(say(id, media=(photo(id),)), conversation=where)
        taken = await store.take_in(message, HEARD)
        blob = await store.keep(_chunks(data), mime="application/pdf", limit=1 << 20)
        await store.end_media(taken.refs[0].id, MediaOutcome.HELD, blob=blob)
        return Sent(taken.refs[0].id, blob.sha256)

    return sent


async def _chunks(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def forget(store: Store, sent: Sent) -> tuple[str, ...]:
    """As if the message had been deleted."""

    def work(connection: Tx) -> tuple[str, ...]:
        connection.execute("DELETE FROM refs WHERE id = ?", (sent.ref,))
        connection.execute("DELETE FROM blob_uses WHERE owner = ?", (f"ref:{sent.ref}",))
        return forget_bytes(connection, [sent.sha256])

    return await store._database.write(work)


async def test_a_reading_is_found_again_as_it_was_kept(store: Store, send: Send) -> None:
    sent = await send("1", b"%PDF")
    text = replace(PAGES, reason="page 3 was not asked for", notes=("hidden text was marked",))
    assert await store.keep_reading(sent.sha256, "text", text)
    assert await store.reading(sent.sha256, "text") == text
    assert await store.reading(sent.sha256, "other") is None
    assert await store.read_before([sent.sha256, "f" * 64]) == {sent.sha256}


async def test_the_beginning_of_a_text_is_that_of_its_first_page_with_words(store: Store, send: Send) -> None:
    sent, unread = await send("1", b"%PDF"), await send("2", b"%PDF-")
    pages = (Part(number=1, text=" \n"), Part(number=2, text="\nNotice of nine weeks"), Part(number=3, text="more"))
    await store.keep_reading(sent.sha256, "text", replace(PAGES, parts=pages))
    await store.keep_reading(sent.sha256, "later", replace(PAGES, parts=pages[2:]))
    locked = DocumentText(unit=DocumentUnit.PAGE, total=0, unread=Unread.UNREADABLE, reason="it is encrypted")
    await store.keep_reading(unread.sha256, "text", locked)
    assert await store.beginnings([sent.sha256, unread.sha256], 6) == {sent.sha256: "Notice"}


async def test_pages_that_are_read_later_join_those_that_were_read_before(store: Store, send: Send) -> None:
    sent = await send("1", b"%PDF")
    await store.keep_reading(sent.sha256, "text", PAGES)
    empty = DocumentText(unit=DocumentUnit.PAGE, total=3, parts=(Part(number=3, text=" "),), unread=Unread.NO_TEXT)
    await store.keep_reading(sent.sha256, "text", empty)
    found = await store.reading(sent.sha256, "text")
    assert found is not None
    assert ([part.number for part in found.parts], found.unread) == ([1, 2, 3], None)
    some = await store.reading(sent.sha256, "text", parts=(2, 3))
    assert some is not None
    assert [part.number for part in some.parts] == [2, 3]


async def test_a_document_that_is_cut_in_another_way_keeps_no_part_of_the_old_cut(store: Store, send: Send) -> None:
    sent = await send("1", b"%PDF")
    await store.keep_reading(sent.sha256, "text", PAGES)
    await store.keep_reading(sent.sha256, "text", replace(PAGES, total=9, parts=(Part(number=2, text="only"),)))
    found = await store.reading(sent.sha256, "text")
    assert found is not None
    assert [part.text for part in found.parts] == ["only"]


async def test_half_a_surrogate_pair_in_a_document_is_stored_with_a_mark(store: Store, send: Send) -> None:
    sent = await send("1", b"%PDF")
    await store.keep_reading(sent.sha256, "text", replace(PAGES, parts=(Part(number=1, text="a\ud800b"),)))
    found = await store.reading(sent.sha256, "text")
    assert found is not None
    assert found.parts[0].text == "a?b"


async def test_a_document_that_could_not_be_read_is_known_to_be_unreadable(store: Store, send: Send) -> None:
    sent = await send("1", b"%PDF")
    locked = DocumentText(unit=DocumentUnit.PAGE, total=0, unread=Unread.UNREADABLE, reason="it is encrypted")
    await store.keep_reading(sent.sha256, "text", locked)
    assert await store.reading(sent.sha256, "text") == locked
    assert await store.read_before([sent.sha256]) == frozenset()


async def test_nothing_is_kept_of_bytes_that_were_deleted_while_they_were_read(store: Store, send: Send) -> None:
    sent = await send("1", b"%PDF")
    await forget(store, sent)
    assert not await store.keep_reading(sent.sha256, "text", PAGES)
    assert not await store.keep_print(sent.sha256, b"12345678")
    with pytest.raises(MediaNotFound):
        await store.keep_rendition(sent.sha256, "thumb", b"small", "image/webp")
    assert await store.reading(sent.sha256, "text") is None
    assert hash_of(b"small").hexdigest() not in await all_names(store)


async def test_a_rendition_is_found_with_the_type_it_was_made_as_even_if_its_bytes_are_known_otherwise(
    store: Store, send: Send
) -> None:
    sent = await send("1", b"%PDF")
    await store.keep(_chunks(b"same"), mime="text/plain", limit=10)
    kept = await store.keep_rendition(sent.sha256, "thumb", b"same", "image/webp")
    assert await store.rendition(sent.sha256, "thumb") == kept
    assert (kept.mime, await content_of(store, kept)) == ("image/webp", b"same")
    known = await store.blob(kept.sha256)
    assert known is not None
    assert known.mime == "text/plain"


async def test_a_rendition_that_is_made_anew_lets_go_of_the_bytes_it_had(store: Store, send: Send) -> None:
    sent = await send("1", b"%PDF")
    old = await store.keep_rendition(sent.sha256, "thumb", b"old", "image/webp")
    await store.keep_rendition(sent.sha256, "thumb", b"new", "image/webp")
    found = await store.rendition(sent.sha256, "thumb")
    assert found is not None
    assert await content_of(store, found) == b"new"
    assert await _uses(store, old.sha256) == 0


async def test_renditions_make_room_before_what_was_used_after_them_and_can_be_made_again(
    store: Store, send: Send
) -> None:
    sent = await send("1", b"%PDF")
    made = await store.keep_rendition(sent.sha256, "thumb", b"x" * 100, "image/webp")
    assert await store.evict(0) == 0
    assert await store.rendition(sent.sha256, "thumb") is None
    assert not await is_here(store, made)
    again = await store.keep_rendition(sent.sha256, "thumb", b"x" * 100, "image/webp")
    assert await store.rendition(sent.sha256, "thumb") == again


async def test_text_that_was_read_outlives_bytes_that_made_room(store: Store, send: Send) -> None:
    sent = await send("1", b"%PDF")
    await store.keep_reading(sent.sha256, "text", PAGES)
    await store.evict(0)
    assert await store.blob(sent.sha256) is None
    assert await store.reading(sent.sha256, "text") == PAGES


async def test_what_was_made_of_bytes_goes_with_the_last_ref_that_names_them(store: Store, send: Send) -> None:
    one, two = await send("1", b"%PDF"), await send("2", b"%PDF")
    await store.keep_reading(one.sha256, "text", PAGES)
    await store.keep_print(one.sha256, b"12345678")
    made = await store.keep_rendition(one.sha256, "thumb", b"small", "image/webp")
    assert await forget(store, one) == ()
    assert await store.reading(one.sha256, "text") == PAGES
    assert await forget(store, two) == (made.sha256,)
    assert await store.reading(one.sha256, "text") is None
    assert await store.rendition(one.sha256, "thumb") is None
    left = await store._database.read(
        lambda connection: [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("readings", "reading_parts", "reading_words", "renditions", "prints", "likenesses")
        ]
    )
    assert left == [0, 0, 0, 0, 0, 0]


async def test_what_was_made_of_several_goes_with_the_first_of_them(store: Store, send: Send) -> None:
    one, two, three = [await send(str(number), bytes([number])) for number in (1, 2, 3)]
    sheet = await store.keep_rendition(one.sha256, "album-1", b"sheet", "image/webp", also=[two.sha256, three.sha256])
    alone = await store.keep_rendition(one.sha256, "thumb", b"small", "image/webp")
    assert await store.rendition(one.sha256, "album-1") == sheet
    assert await forget(store, two) == (sheet.sha256,)
    assert await store.rendition(one.sha256, "album-1") is None
    assert await store.rendition(one.sha256, "thumb") == alone
    with pytest.raises(MediaNotFound):
        await store.keep_rendition(one.sha256, "album-1", b"sheet", "image/webp", also=[two.sha256, three.sha256])
    assert await forget(store, three) == ()


async def test_a_rendition_equal_to_bytes_that_are_used_elsewhere_leaves_those(store: Store, send: Send) -> None:
    one, other = await send("1", b"%PDF"), await send("2", b"small")
    await store.keep_rendition(one.sha256, "thumb", b"small", "image/webp")
    assert await forget(store, one) == ()
    assert await store.blob(other.sha256) is not None


async def test_prints_are_those_of_one_channel_and_of_refs_that_have_not_expired(store: Store, send: Send) -> None:
    here, there, gone = await send("1", b"a"), await send("2", b"b", SIDE), await send("3", b"c")
    for sent in (here, there, gone):
        assert await store.keep_print(sent.sha256, sent.sha256[:8].encode())
    await store.end_media(gone.ref, MediaOutcome.EXPIRED, "too old")
    assert await store.prints(MAIN) == (Printed(ref=here.ref, sha256=here.sha256, bits=here.sha256[:8].encode()),)
    later = await send("4", b"d")
    await store.keep_print(later.sha256, b"new")
    assert [printed.ref for printed in await store.prints(MAIN)] == [here.ref, later.ref]
    assert [printed.ref for printed in await store.prints(MAIN, limit=1)] == [later.ref]


async def _uses(store: Store, sha256: str) -> int:
    query = "SELECT count(*) FROM blob_uses WHERE sha256 = ?"
    return await store._database.read(lambda connection: int(connection.execute(query, (sha256,)).fetchone()[0]))


async def test_a_picture_names_the_earliest_of_its_channel_that_it_shows_again(store: Store, send: Send) -> None:
    first, part, again = await send("1", b"a"), await send("2", b"b"), await send("3", b"b")
    other = await send("4", b"c")
    for sent in (first, part, other):
        await store.keep_print(sent.sha256, b"bits")
    await store.keep_likenesses(first.sha256, {part.sha256: Likeness.UNCROPPED})
    refs = [sent.ref for sent in (first, part, again, other)]
    assert await store.likenesses(MAIN, refs) == {
        part.ref: (first.ref, Likeness.CROPPED),
        again.ref: (part.ref, Likeness.SAME),
    }
    assert await store.likenesses(SIDE, refs) == {}


async def test_a_likeness_goes_with_either_picture(store: Store, send: Send) -> None:
    first, second = await send("1", b"a"), await send("2", b"b")
    for sent in (first, second):
        await store.keep_print(sent.sha256, b"bits")
    await store.keep_likenesses(second.sha256, {first.sha256: Likeness.RECOMPRESSED, "f" * 64: Likeness.CROPPED})
    assert await store.likenesses(MAIN, [second.ref]) == {second.ref: (first.ref, Likeness.RECOMPRESSED)}
    await forget(store, first)
    assert await store.likenesses(MAIN, [second.ref]) == {}
    left = await store._database.read(
        lambda connection: connection.execute("SELECT sha256, other FROM likenesses").fetchall()
    )
    assert [tuple(row) for row in left] == [(second.sha256, second.sha256)]
