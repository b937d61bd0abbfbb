"""Searching a channel: the right message first, with the reason; whatever is asked, in one channel, page by page."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belino.context.search import RESULTS_AT_MOST, search
from belino.domain.errors import ToolError
from belino.domain.media import MediaKind, MediaRef
from belino.domain.message import Author, ConversationKey, Deletion, Edit, Message, Quote
from belino.domain.outcome import Standing
from belino.domain.search import Found, SearchPage
from belino.domain.stored import Verdict
from belino.search.weights import WEIGHTS
from belino.storage.home import Home
from belino.storage.store import Store, open_store
from belino.testing.clock import FakeClock

pytestmark = pytest.mark.slow

OBSERVE = Verdict(standing=Standing.OBSERVED, reason="overheard")
TEAM = ConversationKey(platform="web", account="default", channel="team")
OTHER = ConversationKey(platform="web", account="default", channel="other")
NOW = datetime(2023, 6, 15, 10, 30, tzinfo=UTC)
START = datetime(2023, 5, 1, 9, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_store(Home.at(tmp_path / "state"), clock=FakeClock())
    yield store
    await store.close()


def said(
    number: int,
    author: str,
    text: str,
    *,
    channel: ConversationKey = TEAM,
    at: datetime | None = None,
    reply_to: str | None = None,
    media: tuple[MediaRef, ...] = (),
) -> Message:
    return Message(
        conversation=channel,
        id=str(number),
        author=Author(id=f"u-{author.lower()}", name=author),
        sent=at or START + number * timedelta(minutes=1),
        text=text,
        reply_to=reply_to,
        media=media,
    )


async def tell(store: Store, lines: Sequence[tuple[str, str]], channel: ConversationKey = TEAM) -> None:
    """Messages 1, 2, … a minute apart."""
    for number, (author, text) in enumerate(lines, 1):
        await store.take_in(said(number, author, text, channel=channel), OBSERVE)


async def ask(store: Store, intent: str, channel: ConversationKey = TEAM, **more: object) -> SearchPage:
    return await search(store, channel, intent, now=NOW, **more)  # type: ignore[arg-type]


async def best(store: Store, intent: str, **more: object) -> Found:
    return (await ask(store, intent, **more)).results[0]  # type: ignore[arg-type]


CHATTER = [("Ann", f"nothing much on day {number}") for number in range(12)]


async def test_the_message_with_the_words_comes_first_and_says_which(store: Store) -> None:
    await tell(store, [*CHATTER, ("Bob", "The rollout failed in Frankfurt"), *CHATTER])
    found = await best(store, "why did the rollout fail?")
    assert found.message_id == "13"
    assert found.relevance_signal == "keyword:rollout"
    assert found.observed
    assert found.author.name == "Bob"


async def test_the_answer_to_a_question_is_found_by_the_words_of_the_question(store: Store) -> None:
    await tell(
        store, [*CHATTER, ("Ann", "Where did you leave the projector?"), ("Bob", "In the blue cupboard."), *CHATTER]
    )
    results = (await ask(store, "projector")).results
    assert [found.message_id for found in results[:2]] == ["13", "14"]
    assert results[1].relevance_signal == "neighbour"


async def test_somebody_named_in_the_question_is_preferred_as_author(store: Store) -> None:
    await tell(
        store, [*CHATTER, ("Ann", "I like the violin"), ("Bob", "I like the violin"), ("Cem", "I like the violin")]
    )
    assert (await best(store, "What does Bob like about the violin?")).author.name == "Bob"
    assert (await best(store, "violin", authors=["Cem"])).author.name == "Cem"
    assert (await best(store, "violin", authors=["@ann"])).author.name == "Ann"
    assert (await best(store, "violin", authors=["u-bob"])).author.name == "Bob"
    assert len((await ask(store, "violin", authors=["Cem"])).results) > 1


async def test_a_day_named_in_the_question_decides(store: Store) -> None:
    for number, day in enumerate((3, 7, 12), 1):
        at = datetime(2023, 5, day, 12, 0, tzinfo=UTC)
        await store.take_in(said(number, "Ann", "lunch was fine", at=at), OBSERVE)
    assert (await best(store, "how was lunch on 7 May 2023?")).message_id == "2"
    first = await best(store, "what was going on on 12 May?")
    assert (first.message_id, first.relevance_signal) == ("3", "date:2023-05-12")


async def test_since_filters_and_coverage_tells_the_truth(store: Store) -> None:
    await tell(store, [("Ann", f"apples {number}") for number in range(1, 21)])
    page = await ask(store, "apples", since=START + timedelta(minutes=15), limit=50)
    assert {found.message_id for found in page.results} == {str(number) for number in range(15, 21)}
    assert page.coverage.messages_scanned == 6
    assert page.coverage.time_range == (START + timedelta(minutes=15), START + timedelta(minutes=20))
    whole = await ask(store, "apples")
    assert whole.coverage.messages_scanned == 20
    assert whole.coverage.time_range == (START + timedelta(minutes=1), START + timedelta(minutes=20))
    later = await ask(store, "apples", since=NOW)
    assert later.results == ()
    assert later.coverage.messages_scanned == 0


async def test_what_a_platform_told_later_is_found_by_when_it_was_said(store: Store) -> None:
    await store.take_in(said(1, "Ann", "apples now", at=START + 5 * HOUR), OBSERVE)
    await store.take_history(TEAM, [said(2, "Bob", "apples then", at=START), said(3, "Bob", "apples", at=START + HOUR)])
    page = await ask(store, "apples", since=START + HOUR)
    assert {found.message_id for found in page.results} == {"1", "3"}
    assert page.coverage.time_range == (START + HOUR, START + 5 * HOUR)


async def test_a_quoted_phrase_is_found_word_for_word(store: Store) -> None:
    lines = [("Ann", "the plan is red"), ("Bob", "we follow the red plan today"), ("Cem", "red or blue, a plan")]
    await tell(store, [*lines, *CHATTER])
    found = await best(store, 'who said "red plan"?')
    assert (found.message_id, found.relevance_signal) == ("2", "phrase:red plan")


async def test_codes_are_found_whole(store: Store) -> None:
    lines = [("Ann", "it says E1235"), ("Bob", "mine says E1234"), ("Cem", "ABC-123 is open"), ("Dee", "ABC-124 too")]
    await tell(store, [*lines, *CHATTER])
    assert (await best(store, "error E1234")).message_id == "2"
    assert (await best(store, "what about ABC-123")).message_id == "3"


async def test_the_reason_names_the_word_that_the_message_has(store: Store) -> None:
    await tell(store, [*CHATTER, ("Ann", "the warehouse is full"), ("Bob", "two ladders are gone"), *CHATTER])
    assert (await best(store, "warehose")).relevance_signal == "keyword:warehouse"
    assert (await best(store, "missing ladder")).relevance_signal == "keyword:ladder"


@pytest.mark.parametrize("question", ["dessert", "Budapest", "a purple scarf?"])
async def test_a_word_that_is_only_spelt_a_little_alike_is_no_match(store: Store, question: str) -> None:
    alike = ["we assert it twice", "the cheapest one", "on purpose"]
    await tell(store, [*CHATTER, *(("Ann", text) for text in alike), *CHATTER])
    page = await ask(store, question)
    assert page.found == 0 and {found.relevance_signal for found in page.results} == {"recent_activity"}


async def test_the_reason_names_the_other_word_by_which_a_message_is_found(store: Store) -> None:
    await tell(store, [*CHATTER, ("Ann", "that movie was long"), *CHATTER])
    found = await best(store, "which film")
    assert (found.message_id, found.relevance_signal) == (str(len(CHATTER) + 1), "keyword:movie")


async def test_a_caption_or_file_name_names_its_media(store: Store) -> None:
    ref = MediaRef(
        platform="web",
        account="default",
        channel_id="team",
        message_id="1",
        item="0",
        kind=MediaKind.DOCUMENT,
        mime="application/pdf",
        created=START,
        file_name="invoice_2023.pdf",
        caption="the plumber again",
    )
    taken = await store.take_in(said(1, "Ann", "here", media=(ref,)), OBSERVE)
    await tell(store, [("Bob", "x"), *CHATTER])
    for intent in ("plumber", "invoice"):
        found = await best(store, intent)
        assert found.relevance_signal == f"media:{taken.refs[0].id}"
        assert [each.id for each in found.media] == [taken.refs[0].id]


async def test_the_latest_media_follow_where_the_intent_is_about_media(store: Store) -> None:
    await tell(store, [*CHATTER, ("Bob", "the boat")])
    for number in range(20, 25):
        ref = MediaRef(
            platform="web",
            account="default",
            channel_id="team",
            message_id=str(number),
            item="0",
            kind=MediaKind.IMAGE,
            mime="image/png",
            created=START,
            file_name=f"IMG{number}.png",
        )
        await store.take_in(said(number, "Cem", "", media=(ref,)), OBSERVE)
    for number in range(30, 60):
        await store.take_in(said(number, "Ann", "boats boats"), OBSERVE)
    page = await ask(store, "the picture of the boat")
    media = [found for found in page.results if found.relevance_signal == "recent_media"]
    assert [found.message_id for found in media] == ["24", "23", "22"]
    assert len(page.results) == 8 + 3
    assert not [found for found in (await ask(store, "boats")).results if found.relevance_signal == "recent_media"]


async def test_a_picture_without_a_name_or_words_is_recent_media_and_an_empty_message_is_nothing(
    store: Store,
) -> None:
    await tell(store, CHATTER)
    ref = MediaRef(
        platform="web",
        account="default",
        channel_id="team",
        message_id="20",
        item="0",
        kind=MediaKind.IMAGE,
        mime="image/png",
        created=START,
    )
    await store.take_in(said(20, "Cem", "", media=(ref,)), OBSERVE)
    await store.take_in(said(21, "Cem", " "), OBSERVE)
    for number in range(30, 50):
        await store.take_in(said(number, "Ann", "photos photos"), OBSERVE)
    page = await ask(store, "photos")
    assert [found.message_id for found in page.results if found.relevance_signal == "recent_media"] == ["20"]
    whole = {found.message_id for found in (await ask(store, "photos", limit=50)).results}
    assert "20" in whole
    assert "21" not in whole


async def test_what_was_forwarded_is_found_by_its_words(store: Store) -> None:
    await tell(store, CHATTER)
    forwarded = replace(said(20, "Bob", "fyi"), forward=Quote(text="the ferry leaves at noon"))
    await store.take_in(forwarded, OBSERVE)
    found = await best(store, "ferry")
    assert (found.message_id, found.relevance_signal) == ("20", "keyword:ferry")


async def test_a_word_that_is_everywhere_brings_its_newest_messages(store: Store) -> None:
    many = WEIGHTS.postings + 500
    await store.take_history(TEAM, [said(number, "Ann", "apples again") for number in range(many)])
    results = (await ask(store, "apples")).results
    assert results[0].message_id == str(many - 1)
    assert {found.relevance_signal for found in results} == {"keyword:apples"}


async def test_what_was_deleted_is_not_counted_as_looked_through(store: Store) -> None:
    await tell(store, [("Ann", f"apples {number}") for number in range(1, 11)])
    for number in (1, 5, 10):
        gone = Deletion(conversation=TEAM, id=f"d{number}", message_id=str(number), author=None, sent=NOW)
        await store.take_in(gone, OBSERVE)
    page = await ask(store, "apples", limit=50)
    assert page.coverage.messages_scanned == 7 == len(page.results)
    assert page.coverage.time_range == (START + timedelta(minutes=2), START + timedelta(minutes=9))


async def test_a_thread_is_summed_up_with_its_messages(store: Store) -> None:
    await tell(store, [("Ann", "who has the drill?"), *CHATTER])
    await store.take_in(said(50, "Bob", "Cem took it on Monday", reply_to="1"), OBSERVE)
    await store.take_in(said(51, "Cem", "bringing it back", reply_to="1"), OBSERVE)
    results = {found.message_id: found for found in (await ask(store, "drill")).results}
    summary = results["1"].thread_summary
    assert summary is not None
    assert (summary.reply_count, summary.participant_names) == (2, ("Bob", "Cem"))
    assert results["50"].thread_id == "1"
    assert results["50"].thread_summary == summary
    assert results["50"].relevance_signal == "thread:drill"


async def test_words_nobody_said_bring_the_latest_and_say_so(store: Store) -> None:
    await tell(store, CHATTER)
    for intent in ("xylophone", "what is it?", "🙂", "..."):
        page = await ask(store, intent)
        assert page.results[0].message_id == "12"
        assert {found.relevance_signal for found in page.results} == {"recent_activity"}


@pytest.mark.parametrize("intent", ["", "   ", "\n\t"], ids=["empty", "spaces", "lines"])
async def test_an_empty_intent_is_an_error_that_says_what_to_do(store: Store, intent: str) -> None:
    with pytest.raises(ToolError, match="say in a few words"):
        await ask(store, intent)


async def test_an_unknown_or_empty_channel_has_nothing(store: Store) -> None:
    page = await ask(store, "anything")
    assert page == SearchPage(results=(), coverage=page.coverage)
    assert page.coverage.messages_scanned == 0


async def test_deleted_text_is_not_found_and_edited_text_by_its_new_words(store: Store) -> None:
    await tell(store, [("Ann", "the zebra escaped"), ("Ann", "the walrus escaped"), *CHATTER])
    author = Author(id="u-ann", name="Ann")
    gone = Deletion(conversation=TEAM, id="d", message_id="1", author=author, sent=NOW)
    await store.take_in(gone, OBSERVE)
    new = Edit(conversation=TEAM, id="e", message_id="2", author=author, sent=NOW, text="the ostrich escaped")
    await store.take_in(new, OBSERVE)
    assert "1" not in {found.message_id for found in (await ask(store, "zebra escaped", limit=50)).results}
    assert (await best(store, "ostrich")).relevance_signal == "keyword:ostrich"
    assert {found.relevance_signal for found in (await ask(store, "walrus")).results} == {"recent_activity"}


async def test_pages_follow_one_another_without_gaps_or_repeats(store: Store) -> None:
    await tell(store, [("Ann", f"apples and {word}") for word in ("pears", "plums", "figs") for _ in range(20)])
    whole = [found.message_id for found in (await ask(store, "apples figs", limit=RESULTS_AT_MOST)).results]
    paged: list[str] = []
    cursor: str | None = None
    for page_number in range(100):
        page = await ask(store, "apples figs", limit=7, cursor=cursor)
        paged += [found.message_id for found in page.results]
        cursor = page.next_cursor
        if cursor is None:
            break
        await store.take_in(said(1_000 + page_number, "Bob", "apples figs figs"), OBSERVE)
    assert cursor is None
    assert paged[: len(whole)] == whole
    assert len(paged) == len(set(paged)) == 60


@pytest.mark.parametrize(
    ("phrase", "others", "usual"),
    [
        ("東京タワーの写真", "東京タワー、タワーの写真、東京タワー、の写真", "これは何ですか"),
        ("error E1234-55", "E1234-55 brings an error; call it E1234-55", "what is that"),
        ("neuen Häuser", "neuen Mut für Häuser, neuen Mut", "das ist nicht mehr so, aber wir haben die Zeit"),
    ],
    ids=["without-spaces", "code", "german"],
)
async def test_what_is_quoted_decides_in_any_script_and_language(
    store: Store, phrase: str, others: str, usual: str
) -> None:
    await tell(store, [("Ann", f"{phrase}, {usual}"), *[("Bob", usual)] * 20, ("Cid", others)])
    found = (await ask(store, f'"{phrase}"')).results[0]
    assert (found.author.name, found.relevance_signal) == ("Ann", f"phrase:{phrase}")


async def test_every_page_counts_the_same_and_the_pages_add_up_to_it(store: Store) -> None:
    await tell(store, [("Ann", "apples" if number % 3 else "pears") for number in range(400)])
    totals: list[int] = []
    told = 0
    cursor: str | None = None
    while not totals or cursor is not None:
        page = await ask(store, "apples", limit=RESULTS_AT_MOST, cursor=cursor)
        totals.append(page.total)
        told += len(page.results)
        cursor = page.next_cursor
    assert set(totals) == {told} and told >= 200


async def test_a_cursor_is_good_for_its_own_search_only(store: Store) -> None:
    lines = [("Ann", f"apples {number}") for number in range(30)]
    await tell(store, lines)
    await tell(store, lines, channel=OTHER)
    cursor = (await ask(store, "apples")).next_cursor
    assert cursor is not None
    for more in ({"channel": OTHER}, {"intent": "pears"}, {"since": START}, {"authors": ["Ann"]}):
        with pytest.raises(ToolError, match="cursor"):
            await ask(store, **{"intent": "apples", "cursor": cursor, **more})  # type: ignore[arg-type]


async def test_a_thousand_made_up_cursors_reach_nothing(store: Store) -> None:
    lines = [("Ann", f"apples {number}") for number in range(30)]
    await tell(store, lines)
    await tell(store, [("Eve", "apples secret"), *lines], channel=OTHER)
    good = (await ask(store, "apples")).next_cursor
    assert good is not None
    chance = random.Random(3)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=é "
    for _ in range(1_000):
        cut = chance.randrange(len(good) + 1)
        guess = good[:cut] + "".join(chance.choices(alphabet, k=chance.randrange(30)))
        try:
            page = await ask(store, "apples", cursor=guess)
        except ToolError:
            continue
        assert all("secret" not in found.text for found in page.results)


async def test_one_channel_never_sees_another(store: Store) -> None:
    await tell(store, [("Ann", f"public apples {number}") for number in range(40)])
    await tell(store, [("Eve", f"secret apples {number}") for number in range(40)], channel=OTHER)
    page = await ask(store, "secret apples by Eve", limit=50, authors=["Eve"])
    assert page.results
    assert {found.author.name for found in page.results} == {"Ann"}
    assert page.coverage.messages_scanned == 40


async def test_the_same_question_has_the_same_answer(store: Store) -> None:
    await tell(store, [("Ann", "equal words here") for _ in range(60)])
    first = await ask(store, "equal words")
    assert await ask(store, "equal words") == first
    await store.index_ahead()
    assert await ask(store, "equal words") == first


@pytest.mark.parametrize(
    ("intent", "text"),
    [
        ("東京タワー", "昨日東京タワーに行きました"),
        ("会议改到什么时候", "明天的会议改到下午三点"),
        ("مكتبة", "سنلتقي في المكتبة غدا"),
        ("ช่องว่าง", "ภาษาไทยไม่มีช่องว่าง"),
        ("Wo sind die Schlüssel?", "Der Schlüssel liegt nicht auf dem Tisch, sondern im Auto"),
        ("Где ключи от машины?", "Ключ лежит в машине, а не на столе"),
        ("회의 취소", "오늘 회의는 취소되었습니다"),
    ],
    ids=["ja", "zh", "ar", "th", "de", "ru", "ko"],
)
async def test_any_language_is_searched(store: Store, intent: str, text: str) -> None:
    await tell(store, [*CHATTER, ("Bob", text), *CHATTER])
    assert (await best(store, intent)).message_id == "13"


HOSTILE = (
    'text" OR 1=1 --',
    '"unclosed AND (NEAR',
    "NOT * ^ : { } [ ]",
    "\x00\x01\x1b[31m",
    "%s %d {0} {}",
    "\u202eabc\u200b\ufeff",
    "a" * 100_000,
    "word " * 20_000,
    '"' * 5_000,
    "https://" * 500,
    "\ud800 half",
    "'; DROP TABLE messages; --",
    "1970-01-01 9999-12-31 0000-00-00 99 years ago 2023年99月",
)


@pytest.mark.parametrize("intent", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_questions_are_only_questions(store: Store, intent: str) -> None:
    await tell(store, [*CHATTER, ("Bob", intent), ("Bob", "fine")])
    page = await ask(store, intent, authors=[intent], limit=3)
    assert len(page.results) >= 3
    assert page.coverage.messages_scanned == 14


async def search_any(lines: Sequence[str], intent: str, authors: Sequence[str], cursor: str | None) -> None:
    with TemporaryDirectory() as folder:
        store = await open_store(Home.at(Path(folder) / "state"), clock=FakeClock())
        try:
            await tell(store, [("Ann", line) for line in lines])
            page = await ask(store, intent, authors=authors, cursor=cursor)
            assert len(page.results) <= 8 + 3
            assert page == await ask(store, intent, authors=authors, cursor=cursor)
        except ToolError:
            assert cursor is not None or not intent.strip()
        finally:
            await store.close()


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.text(max_size=60), max_size=8),
    st.text(max_size=80),
    st.lists(st.text(max_size=10), max_size=3),
    st.none() | st.text(max_size=30),
)
def test_no_text_makes_a_search_fail(lines: list[str], intent: str, authors: list[str], cursor: str | None) -> None:
    asyncio.run(search_any(lines, intent, authors, cursor))


async def test_several_intents_are_answered_in_turn(store: Store) -> None:
    lines = [("Ann", "we sailed to Lisbon"), ("Bob", "the goulash burned"), ("Cem", "she took up judo")]
    await tell(store, [*CHATTER, *lines, *CHATTER])
    page = await search(store, TEAM, ["who sailed", "what burned", "judo"], now=NOW, limit=3)
    assert {found.message_id for found in page.results} == {"13", "14", "15"}
    assert page.next_cursor is not None
    rest = await search(store, TEAM, ["who sailed", "what burned", "judo"], now=NOW, limit=3, cursor=page.next_cursor)
    assert not {found.message_id for found in rest.results} & {"13", "14", "15"}
    with pytest.raises(ToolError, match="cursor"):
        await search(store, TEAM, ["who sailed", "what burned"], now=NOW, limit=3, cursor=page.next_cursor)


@pytest.mark.parametrize("intents", [[], ["lisbon", ""], ["a"] * 5], ids=["none", "one-empty", "too-many"])
async def test_a_list_of_intents_has_at_most_four_and_none_is_empty(store: Store, intents: list[str]) -> None:
    with pytest.raises(ToolError, match="intent"):
        await search(store, TEAM, intents, now=NOW)
