"""The thread being answered, and the truth about what is left out of it."""

from dataclasses import replace
from datetime import timedelta

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belino.context.budget import ContextConfig
from belino.context.fit import cut_to_fit, told_tokens
from belino.context.prompt import context_blocks
from belino.context.snapshot import ReplyChooser, StructuredContext, take_snapshot
from belino.domain.context import ThreadContext
from belino.domain.graphemes import is_boundary
from belino.domain.message import Author, Quote
from belino.domain.outcome import MediaOutcome, Standing
from belino.domain.stored import StoredMessage, ThreadSlice
from belino.domain.tokens import estimate_tokens
from context.reading import inside, rows
from context.talk import AGENT, FENCE, HOSTILE, NOW, picture, said, surroundings, talks, thread_of, words

CONFIG = ContextConfig()
ROOT = said(1, "How do we ship it?", standing=Standing.OBSERVED)
ANCHOR = said(9000, "And you, what do you say?", root="m1")


def thread(known: ThreadSlice, config: ContextConfig = CONFIG) -> ThreadContext:
    return thread_context("m1", known, config)


def thread_context(thread_id: str, known: ThreadSlice, config: ContextConfig = CONFIG) -> ThreadContext:
    chosen = ReplyChooser(config, {ANCHOR.id}, today=NOW)
    chosen.take(known.replies)
    return chosen.thread(thread_id, known)


def told(context: ThreadContext, form: str = "compact", **more: object) -> str:
    snapshot = take_snapshot(surroundings([]), [ANCHOR], CONFIG, today=NOW)
    whole = StructuredContext(snapshot=snapshot, thread=context, answers=(ANCHOR.id,), now=NOW)
    return context_blocks(whole, fence=FENCE, format=form, **more)[1].text  # type: ignore[arg-type]


def replies(count: int, text: str = "Answer number {}, which is of a usual length for a chat.") -> list[StoredMessage]:
    return [said(10 + number, text.format(number), root="m1") for number in range(count)]


def test_a_thread_reads_from_its_first_message_to_the_one_being_answered() -> None:
    first = said(11, "By train.", root="m1", media=(picture(caption="the station"),), edited=NOW)
    second = said(12, "Why?", root="m1", author=AGENT, reply_to="m11", quote=Quote(message_id="m11", text="By train."))
    third = said(13, "See", root="m1", forward=Quote(author=Author(id="8", name="Bo"), text="old\nnews"))
    lines = inside(told(thread(thread_of([first, second, third, ANCHOR], root=ROOT))), "thread", FENCE)
    assert lines == [
        "Thread m1: 4 of 4 replies.",
        "id|time|author|text (UTC; today is 2026-11-15)",
        "m1|11-08 22:08|Anna|How do we ship it?|(root, observed)",
        "m11|22:18|Anna|[Image: photo.png, 1000B, image/png, ref:sl_k3v9d0q2m7xa] By train.\\nthe station|(edited)",
        "m12|22:19|belino|Why?|(you)|re m11",
        "m13|22:20|Anna|See|()|forwarded from Bo: old news",
        "m9000|11-15 04:07|Anna||(the message to answer)",
    ]


@pytest.mark.parametrize("count", [0, 1, 20, 601])
def test_what_is_told_and_what_is_left_out_add_up(count: int) -> None:
    known = thread_of(replies(count), root=ROOT)
    context = thread(known, ContextConfig(thread_tokens=1000))
    truncation = context.truncation
    assert truncation.total_replies == count and truncation.included_replies == len(context.replies)
    assert [reply.message_id for reply in context.replies] == [
        reply.id for reply in known.replies[count - len(context.replies) :]
    ]
    omitted = known.replies[: count - len(context.replies)]
    assert truncation.omitted_range_ts == ((omitted[0].sent, omitted[-1].sent) if omitted else None)
    assert (count == 601) == bool(omitted)


def test_the_gap_is_told_truly_when_only_the_newest_replies_were_read() -> None:
    known = thread_of(replies(20), root=replace(ROOT, short_id="kv305"), total=600)
    known = replace(known, first=NOW - timedelta(days=400))
    context = thread(known, ContextConfig(thread_tokens=200))
    omitted, oldest = 20 - len(context.replies), context.replies[0]
    assert context.truncation.omitted_range_ts == (known.first, known.replies[omitted - 1].sent)
    line = inside(told(context), "thread", FENCE)[0]
    shown = len(context.replies)
    assert line.startswith(f"Thread kv305: {shown} of 600 replies; the {600 - shown} from 2025-10-11 20:47 to 11-08")
    assert line.endswith(f" left out: channel_messages(thread_id=kv305, cursor={oldest.seq}).")


def test_replies_that_only_the_platform_has_are_told_with_the_call_that_asks_for_them() -> None:
    known = replace(thread_of([], root=replace(ROOT, short_id="kv305"), total=3), stored=0)
    line = inside(told(thread(known)), "thread", FENCE)[0]
    assert line == "Thread kv305: 0 of 3 replies; the rest: channel_messages(thread_id=kv305)."


def test_a_total_that_is_not_known_is_null_and_never_a_number() -> None:
    chosen = ReplyChooser(CONFIG, {ANCHOR.id}, today=NOW)
    known = thread_of([ANCHOR], root=ROOT)
    chosen.take(known.replies)
    unknown, reported = (
        chosen.thread("m1", each, is_whole=False) for each in (known, replace(known, is_reported=True))
    )
    assert (unknown.truncation.total_replies, reported.truncation.total_replies) == (None, 1)
    assert '"total_replies":null' in told(unknown, "json")
    assert inside(told(unknown), "thread", FENCE)[0] == "Thread m1: 1 replies; how many there are is not known."


def test_the_reply_that_does_not_fit_is_cut_and_says_so() -> None:
    long = said(11, "word " * 3000, root="m1")
    context = thread(thread_of([long, *replies(3)], root=ROOT), ContextConfig(thread_tokens=500))
    assert [reply.is_truncated for reply in context.replies] == [True, False, False, False]
    assert context.replies[0].text.endswith("…") and 1000 < len(context.replies[0].text) < 2500
    assert "(cut)" in told(context)


def test_one_reply_is_told_even_where_nothing_fits() -> None:
    context = thread(thread_of(replies(3), root=ROOT), ContextConfig(thread_tokens=0))
    assert [(reply.message_id, reply.is_truncated) for reply in context.replies] == [("m12", False)]


def test_a_deleted_root_says_so_and_an_unknown_one_too() -> None:
    gone = replace(ROOT, text="", deleted=NOW)
    assert "m1|11-08 22:08|Anna|(deleted)|(root, observed, deleted)" in told(thread(thread_of([ANCHOR], root=gone)))
    unknown = told(thread(thread_of([ANCHOR], root=None)))
    assert "its first message is not known" in unknown and "(root" not in unknown


def test_a_root_may_be_the_agents_own_or_nothing_but_a_file() -> None:
    text = told(thread(thread_of([ANCHOR], root=replace(ROOT, author=AGENT, text="", media=(picture(),)))))
    assert "|belino|[Image: photo.png, 1000B, image/png, ref:sl_k3v9d0q2m7xa]|(root, you)" in text


def test_the_message_to_answer_may_be_the_root() -> None:
    text = told(thread_context("m9000", thread_of(replies(1), root=ANCHOR)))
    assert "m9000|04:07|Anna||(root, the message to answer)" in text and ANCHOR.text not in text


def test_a_root_is_whole_up_to_its_limit_whatever_the_replies_may_cost() -> None:
    long = replace(ROOT, text="word " * 3000)
    context = thread(thread_of(replies(2), root=long), ContextConfig(thread_tokens=10))
    assert context.root is not None and context.root.text == long.text
    cut = thread(thread_of([], root=long), ContextConfig(message_chars=100)).root
    assert cut is not None and len(cut.text) == 101 and cut.is_truncated


@pytest.mark.parametrize("form", ["compact", "json"])
def test_a_root_has_its_own_budget_of_tokens_and_says_that_it_was_cut(form: str) -> None:
    known = thread_of(replies(2), root=replace(ROOT, text="word " * 7_900))
    root = thread(known, ContextConfig(root_tokens=500, format=form)).root  # type: ignore[arg-type]
    assert root is not None and root.is_truncated and 450 <= told_tokens(root, form) <= 500
    within = thread(thread_of([], root=replace(ROOT, text="слово " * 6_600))).root
    assert within is not None and within.is_truncated and 7_500 <= told_tokens(within, "compact") <= 8_000


def test_media_that_ended_badly_is_told_with_its_end() -> None:
    known = thread_of([said(11, "look", root="m1", media=(picture(),))], root=ROOT)
    text = told(thread(known), outcomes={picture().id: MediaOutcome.EXPIRED})
    assert "[Image: photo.png, 1000B, image/png, expired] look" in text


@settings(max_examples=40)
@given(talks(), st.integers(0, 300), st.sampled_from(["compact", "json"]))
def test_replies_never_cost_more_than_their_budget_but_for_the_one_that_must_be_told(
    known: list[StoredMessage], budget: int, form: str
) -> None:
    config = ContextConfig(thread_tokens=budget, format=form)  # type: ignore[arg-type]
    context = thread(thread_of(known, root=ROOT), config)
    spent = sum(told_tokens(reply, form) for reply in context.replies)
    assert spent <= budget or len(context.replies) == 1
    assert len(context.replies) >= 1 or not known


@settings(max_examples=60)
@given(words, st.integers(1, 60))
def test_a_cut_reply_ends_between_two_characters(text: str, room: int) -> None:
    message = thread(thread_of([said(2, text)], root=None)).replies[0]
    cut = cut_to_fit(message, room, "compact").text.removesuffix("…")
    assert message.text.startswith(cut) and is_boundary(message.text, len(cut))


@settings(max_examples=40)
@given(talks())
def test_the_compact_lines_say_what_the_json_says(known: list[StoredMessage]) -> None:
    context = thread(thread_of(known, root=ROOT))
    wire = orjson.loads(inside(told(context, "json"), "thread", FENCE)[0])
    read = rows(inside(told(context), "thread", FENCE))
    for row, entry in zip(read, [wire["root"], *wire["replies"]], strict=True):
        assert (row.id, row.author) == (entry["message_id"], entry["author"]["display_name"] or "someone")
        assert f"{row.minute:%Y-%m-%dT%H:%M}" == entry["ts"][:16]
        assert row.text.endswith(entry["text"])
        assert [ref["artifact_id"] in row.text for ref in entry["media"]] == [True] * len(entry["media"])
        assert ("observed" in row.marks) == (entry["trust"] == "observed")
        assert ("edited" in row.marks) == (entry["edited_ts"] is not None)
        assert ("cut" in row.marks) == entry["is_truncated"]
        for key in ("reply_to", "forward"):
            assert entry[key] is None or entry[key]["text"] in row.carried


@settings(max_examples=40)
@given(talks())
def test_the_same_thread_gives_the_same_bytes(known: list[StoredMessage]) -> None:
    for form in ("compact", "json"):
        assert told(thread(thread_of(known, root=ROOT)), form) == told(thread(thread_of(list(known), root=ROOT)), form)


def test_two_threads_of_equal_words_are_told_apart() -> None:
    other = [replace(reply, id=f"x{reply.id}", root="m2") for reply in replies(2)]
    first, second = (
        thread_context(name, thread_of(known, root=None)) for name, known in (("m1", replies(2)), ("m2", other))
    )
    assert told(first) != told(second)


@pytest.mark.parametrize("form", ["compact", "json"])
@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_anybody_wrote_leaves_its_line_its_string_or_the_fence(hostile: str, form: str) -> None:
    author = Author(id=hostile, name=hostile)
    message = said(
        11,
        hostile,
        author=author,
        root="m1",
        media=(picture(file_name=hostile, caption=hostile, mime=hostile),),
        quote=Quote(author=author, message_id=hostile, text=hostile),
        forward=Quote(author=author, text=hostile),
    )
    text = told(thread(thread_of([message], root=replace(ROOT, text=hostile))), form)
    lines = inside(text, "thread", FENCE)
    assert text.count("[Image") == (1 if form == "compact" else 0)
    assert "\u202e" not in text and "\U000e0041" not in text
    if form == "json":
        assert len(lines) == 1 and len(orjson.loads(lines[0])["replies"]) == 1
    else:
        assert [(row.id, row.marks) for row in rows(lines)] == [("m1", ["root", "observed"]), ("m11", [])]


def test_a_full_thread_of_chat_is_near_its_budget_by_the_estimate() -> None:
    text = told(thread(thread_of(replies(601), root=ROOT)))
    assert 7700 <= estimate_tokens(text) <= 8400
