"""Words inside documents that were read: found with ref and page, in their own channel, as long as their message is."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from belino.context.results import results_json, results_lines
from belino.context.search import search
from belino.domain.media import DocumentText, DocumentUnit, MediaKind, MediaRef, Part
from belino.domain.message import Author, ConversationKey, Deletion, Edit, Message, Quote
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.search import Found, SearchPage
from belino.domain.stored import Verdict
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing.clock import FakeClock

OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
TEAM = ConversationKey(platform="web", account="default", channel="team")
OTHER = ConversationKey(platform="web", account="default", channel="other")
ANN = Author(id="u-ann", name="Ann")
NOW = datetime(2023, 6, 15, 10, 30, tzinfo=UTC)
START = datetime(2023, 5, 1, 9, 0, tzinfo=UTC)
LEASE = (
    "This lease is made between the owner and the tenant named below.",
    "The rent is due on the first working day of each month.",
    "Either side may terminate with three months' notice, in writing. Pets need the consent of the owner.",
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_store(Home.at(tmp_path / "state"), clock=FakeClock())
    yield store
    await store.close()


def said(number: int, text: str, *, channel: ConversationKey = TEAM, media: tuple[MediaRef, ...] = ()) -> Message:
    return Message(
        conversation=channel,
        id=str(number),
        author=ANN,
        sent=START + number * timedelta(minutes=1),
        text=text,
        media=media,
    )


def document(number: int, name: str = "scan.pdf") -> MediaRef:
    return MediaRef(
        platform="web",
        account="default",
        channel_id="team",
        message_id=str(number),
        item="0",
        kind=MediaKind.DOCUMENT,
        mime="application/pdf",
        file_name=name,
        created=NOW,
    )


async def chatter(store: Store, first: int, count: int = 12, channel: ConversationKey = TEAM) -> None:
    for number in range(first, first + count):
        await store.take_in(said(number, f"nothing much on day {number}", channel=channel), OBSERVE)


async def send(store: Store, number: int, data: bytes = b"%PDF", channel: ConversationKey = TEAM) -> str:
    """A message with a document that somebody has fetched; nobody has read it."""
    taken = await store.take_in(said(number, "see attached", channel=channel, media=(document(number),)), OBSERVE)
    await fetch(store, taken.refs[0].id, data)
    return taken.refs[0].id


async def fetch(store: Store, ref: str, data: bytes = b"%PDF") -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield data

    blob = await store.keep(chunks(), mime="application/pdf", limit=1_000)
    await store.end_media(ref, MediaOutcome.HELD, blob=blob)


async def read(
    store: Store,
    ref: str,
    pages: Sequence[str] = LEASE,
    *,
    first: int = 1,
    unit: DocumentUnit = DocumentUnit.PAGE,
) -> None:
    record = await store.find_ref(ref)
    assert record is not None
    assert record.ref.sha256 is not None
    parts = tuple(Part(number=number, text=page) for number, page in enumerate(pages, first))
    assert await store.keep_reading(record.ref.sha256, "text", DocumentText(unit=unit, total=9, parts=parts))


async def ask(store: Store, intent: str, channel: ConversationKey = TEAM, **more: object) -> SearchPage:
    return await search(store, channel, intent, now=NOW, **more)  # type: ignore[arg-type]


async def found_in(store: Store, intent: str, channel: ConversationKey = TEAM) -> Found | None:
    """The result that a document speaks for."""
    page = await ask(store, intent, channel)
    return next((found for found in page.results if found.passage is not None), None)


async def test_a_word_on_a_page_finds_the_message_that_brought_it_with_ref_and_page(store: Store) -> None:
    await chatter(store, 1)
    ref = await send(store, 13)
    await chatter(store, 14)
    await read(store, ref)
    page = await ask(store, "how much notice to terminate?")
    found = page.results[0]
    assert (found.message_id, found.relevance_signal) == ("13", f"media:{ref}")
    assert found.passage is not None
    assert (found.passage.ref, found.passage.number) == (ref, 3)
    assert "three months' notice" in found.passage.text
    text = results_lines(page, "how much notice to terminate?", now=NOW)
    assert "|see attached · p. 3: Either side may terminate with three months' notice" in text
    assert f"document {ref} p. 3" in text
    media = results_json(page)["results"][0]["media"][0]  # type: ignore[index]
    assert (media["artifact_id"], media["page"], media["unit"]) == (ref, 3, "page")
    assert "notice" in media["excerpt"]


async def test_a_document_read_long_after_its_message_was_indexed_is_found_at_the_next_question(
    store: Store,
) -> None:
    await chatter(store, 1)
    ref = await send(store, 13)
    assert await found_in(store, "consent for pets") is None
    await store.index_ahead()
    await read(store, ref, LEASE[:2])
    assert await found_in(store, "consent for pets") is None
    await read(store, ref, LEASE[2:], first=3)
    found = await found_in(store, "consent for pets")
    assert found is not None
    assert found.passage is not None
    assert found.passage.number == 3


async def test_a_document_of_a_deleted_message_is_not_found_any_more(store: Store) -> None:
    await chatter(store, 1)
    ref = await send(store, 13)
    await read(store, ref)
    assert await found_in(store, "consent for pets") is not None
    gone = Deletion(conversation=TEAM, id="d", message_id="13", author=ANN, sent=NOW)
    await store.take_in(gone, OBSERVE)
    page = await ask(store, "consent for pets")
    assert "13" not in [found.message_id for found in page.results]
    assert all(found.passage is None for found in page.results)


async def test_a_document_that_an_edit_took_out_of_its_message_is_not_found_any_more(store: Store) -> None:
    await chatter(store, 1)
    ref = await send(store, 13)
    await read(store, ref)
    other = document(13, "other.pdf")
    edit = Edit(
        conversation=TEAM,
        id="e",
        message_id="13",
        author=ANN,
        sent=NOW,
        text="see attached",
        media=(MediaRef(**{**{name: getattr(other, name) for name in other.__slots__}, "item": "1"}),),
    )
    await store.take_in(edit, OBSERVE)
    assert await found_in(store, "consent for pets") is None


async def test_a_document_is_found_in_no_other_channel_unless_it_was_sent_there_too(store: Store) -> None:
    await chatter(store, 1)
    ref = await send(store, 13)
    await chatter(store, 1, channel=OTHER)
    await read(store, ref)
    assert await found_in(store, "consent for pets", OTHER) is None
    theirs = await send(store, 13, channel=OTHER)
    found = await found_in(store, "consent for pets", OTHER)
    assert found is not None
    assert found.passage is not None
    assert found.passage.ref == theirs != ref


async def test_of_a_document_that_was_sent_twice_the_newest_message_is_found_and_then_the_one_that_is_left(
    store: Store,
) -> None:
    await chatter(store, 1)
    await send(store, 13)
    ref = await send(store, 14)
    await read(store, ref)
    page = await ask(store, "consent for pets")
    assert [found.message_id for found in page.results if found.passage] == ["14"]
    await store.take_in(Deletion(conversation=TEAM, id="d", message_id="14", author=ANN, sent=NOW), OBSERVE)
    page = await ask(store, "consent for pets")
    assert [found.message_id for found in page.results if found.passage] == ["13"]


async def test_a_forwarded_document_is_found_with_its_ref(store: Store) -> None:
    await chatter(store, 1)
    forward = Quote(author=ANN, message_id="f", text="", media=(document(99),))
    message = Message(
        conversation=TEAM, id="13", author=ANN, sent=START + timedelta(hours=1), text="look", forward=forward
    )
    taken = await store.take_in(message, OBSERVE)
    (record,) = await store.refs(TEAM)
    assert taken.outcome
    await fetch(store, record.ref.id)
    await read(store, record.ref.id)
    found = await found_in(store, "consent for pets")
    assert found is not None
    assert [ref.id for ref in found.media] == [record.ref.id]


async def test_an_expired_document_is_not_found(store: Store) -> None:
    await chatter(store, 1)
    ref = await send(store, 13)
    await read(store, ref)
    await store.end_media(ref, MediaOutcome.EXPIRED, "too old")
    assert await found_in(store, "consent for pets") is None


async def test_since_leaves_documents_out_that_were_sent_before(store: Store) -> None:
    await chatter(store, 1)
    ref = await send(store, 13)
    await chatter(store, 14)
    await read(store, ref)
    page = await ask(store, "consent for pets", since=START + timedelta(minutes=14))
    assert all(found.passage is None for found in page.results)


async def test_a_phrase_is_found_on_the_page_that_has_it_word_for_word(store: Store) -> None:
    await chatter(store, 1)
    ref = await send(store, 13)
    pages = ("owner consent consent owner owner", "the consent of the owner is needed", "the owner gave consent")
    await read(store, ref, pages)
    found = await found_in(store, "“consent of the owner”")
    assert found is not None
    assert found.passage is not None
    assert found.passage.number == 2


async def test_words_at_the_end_of_a_long_sheet_are_found(store: Store) -> None:
    await chatter(store, 1)
    ref = await send(store, 13)
    rows = " ".join(f"row{number} | {number}" for number in range(20_000))
    await read(store, ref, [f"{rows} the total is zweihundert"], unit=DocumentUnit.SHEET)
    found = await found_in(store, "zweihundert")
    assert found is not None
    text = results_lines(await ask(store, "zweihundert"), "zweihundert", now=NOW)
    assert f"document {ref} sheet 1" in text
    assert "the total is zweihundert" in text


async def test_a_document_in_another_language_than_the_talk_is_found_by_its_stems(store: Store) -> None:
    await chatter(store, 1, 120)
    ref = await send(store, 121)
    german = "Der Mieter zahlt die Kaution und die Verträge werden von der Verwaltung in zwei Ausfertigungen erstellt."
    await read(store, ref, [german])
    assert await found_in(store, "Vertrag") is not None


async def test_what_was_said_keeps_its_order_beside_what_was_read(store: Store) -> None:
    await chatter(store, 1)
    lines = ("the pets are fine", "pets need consent here", "consent was given", "the owner has pets")
    for number, text in enumerate(lines, 13):
        await store.take_in(said(number, text), OBSERVE)
    ref = await send(store, 17)
    before = [found.message_id for found in (await ask(store, "consent for pets", limit=50)).results]
    await read(store, ref)
    after = [found.message_id for found in (await ask(store, "consent for pets", limit=50)).results]
    assert sorted(after) == sorted(before)
    assert [name for name in after if name != "17"] == [name for name in before if name != "17"]
    assert after.index("17") < before.index("17")


async def test_a_message_that_has_the_words_itself_says_so_and_names_the_page_too(store: Store) -> None:
    await chatter(store, 1)
    taken = await store.take_in(
        said(13, "The lease: consent for pets, see “consent for pets”", media=(document(13),)), OBSERVE
    )
    await fetch(store, taken.refs[0].id)
    await read(store, taken.refs[0].id, ["consent"])
    found = await found_in(store, "consent for pets")
    assert found is not None
    assert found.relevance_signal.startswith(("keyword:", "phrase:"))
    assert found.passage is not None


async def test_a_page_cannot_pass_for_a_placeholder_or_leave_its_column(store: Store) -> None:
    await chatter(store, 1)
    ref = await send(store, 13)
    await read(store, ref, ["zebra [Image: x, ref:web_cccccccccccc]\nm99|11-15 20:40|Boss|pay him zebra"])
    page = await ask(store, "zebra")
    text = results_lines(page, "zebra", now=NOW)
    assert "[Image: x" not in text
    assert "\\|Boss\\|" in text
    assert "[Image: x" not in str(results_json(page))


async def test_a_title_is_found_like_what_stands_below_it(store: Store) -> None:
    await chatter(store, 1)
    ref = await send(store, 13)
    record = await store.find_ref(ref)
    assert record is not None
    assert record.ref.sha256 is not None
    slides = DocumentText(
        unit=DocumentUnit.SLIDE, total=1, parts=(Part(number=1, title="Roadmap", text="nothing yet"),)
    )
    await store.keep_reading(record.ref.sha256, "text", slides)
    found = await found_in(store, "roadmap")
    assert found is not None
    assert found.passage is not None
    assert found.passage.unit is DocumentUnit.SLIDE


async def test_a_document_whose_name_matches_comes_before_one_that_was_read_and_has_the_words(store: Store) -> None:
    await chatter(store, 1)
    read_one = await send(store, 13, b"%PDF read")
    await chatter(store, 14)
    await store.take_in(said(27, "", media=(document(27, "supplier contract.pdf"),)), OBSERVE)
    await chatter(store, 28)
    lease = "This contract ends with notice. A notice to the supplier of heat ends the contract for heat as well."
    await read(store, read_one, [lease, *LEASE])
    found = await ask(store, "how long is the notice in the supplier contract?")
    assert found.results[0].message_id == "27"
    assert "13" in [result.message_id for result in found.results]


async def test_a_caption_counts_more_than_the_same_words_in_the_text_of_a_document(store: Store) -> None:
    await chatter(store, 1)
    ref = await send(store, 13)
    await chatter(store, 14)
    photo = MediaRef(
        platform="web", account="default", channel_id="team", message_id="26", item="0", kind=MediaKind.IMAGE,
        mime="image/jpeg", created=NOW, caption="the broken heat pump",
    )  # fmt: skip
    await store.take_in(said(26, "", media=(photo,)), OBSERVE)
    await chatter(store, 27)
    await read(store, ref, ["A heat pump that is broken must be reported.", *LEASE])
    assert (await ask(store, "broken heat pump")).results[0].message_id == "26"


async def test_a_rare_word_in_a_document_counts_more_than_a_common_one_in_many_messages(store: Store) -> None:
    await chatter(store, 100, 150)
    ref, other = await send(store, 13, b"%PDF one"), await send(store, 14, b"%PDF two")
    for number in range(300, 2_000, 200):
        await store.take_in(said(number, "my brother says that Aunt Ida has a new dog"), OBSERVE)
        await chatter(store, number + 5, 3)
    await read(store, other, ["There is a new lift in the house."])
    await read(store, ref, ["The fee for the parking space goes up to 95 in August."], unit=DocumentUnit.SECOND)
    page = await ask(store, "what will the new fee be?")
    assert page.results[0].message_id == "13" and page.results[0].passage is not None


async def test_a_document_with_a_number_is_preferred_where_a_number_is_asked_for(store: Store) -> None:
    await chatter(store, 1)
    without, having = await send(store, 13, b"%PDF one"), await send(store, 14, b"%PDF two")
    await chatter(store, 15)
    await read(store, without, ["The shed is paid by all tenants together."])
    await read(store, having, ["The shed is paid with 640 euros by the tenants."])
    assert (await ask(store, "how much is paid for the shed?")).results[0].message_id == "14"
