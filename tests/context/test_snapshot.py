"""The channel at a glance."""

from dataclasses import replace

import orjson
import pytest
import splintr
from hypothesis import given, settings
from hypothesis import strategies as st

from belino.context.budget import ContextConfig
from belino.context.json_format import json_text
from belino.context.line_format import media_mark
from belino.context.prompt import context_blocks
from belino.context.snapshot import StructuredContext, context_json, snippet, take_snapshot
from belino.domain.context import ChannelSnapshot, OtherThread, ThreadActivity
from belino.domain.graphemes import is_boundary
from belino.domain.message import Author
from belino.domain.outcome import MessageOutcome, Standing
from belino.domain.safe_text import one_line
from belino.domain.stored import Nearby, StoredMessage
from belino.domain.tokens import estimate_tokens
from context.reading import inside, rows
from context.talk import AGENT, ANNA, FENCE, HOSTILE, NOW, activities, picture, said, surroundings, talks
from domain.chatter import CHATTER

CONFIG = ContextConfig()
ANCHOR = said(9000, "What do you think?")


def snap(messages: list[StoredMessage], config: ContextConfig = CONFIG, **more: object) -> ChannelSnapshot:
    return take_snapshot(surroundings(messages, **more), [ANCHOR], config, today=NOW)


def told(snapshot: ChannelSnapshot, form: str = "compact") -> str:
    context = StructuredContext(snapshot=snapshot, thread=None, answers=(ANCHOR.id,), now=NOW)
    (block,) = context_blocks(context, fence=FENCE, format=form)  # type: ignore[arg-type]
    return block.text


def test_a_snapshot_reads_like_a_page_of_the_channel() -> None:
    busy = Nearby(
        message=said(8990, "ship it?\non Friday | or not", reactions=(("👀", 2), (":party:", 1)), media=(picture(),)),
        activity=ThreadActivity(reply_count=3, replies_last_1h=1, last_reply_ts=NOW),
    )
    around = surroundings([said(8991, "Done.", author=AGENT), said(8992, "me too", standing=Standing.OBSERVED)])
    around = replace(
        around,
        nearby=(busy, *around.nearby),
        replies_elsewhere=4,
        threads_elsewhere=(OtherThread(thread_id="m5", short_id="kv305", replies=4),),
    )
    assert inside(told(take_snapshot(around, [ANCHOR], CONFIG, today=NOW)), "channel", FENCE) == [
        "slack channel general: 3 messages before the one to answer; 4 replies in other threads, not listed: "
        "channel_messages(thread_id) of kv305 4.",
        "id|time|author|text (UTC; today is 2026-11-15)",
        "m8990|03:57|Anna|ship it? on Friday \\| or not"
        "|(image 1000B sl_k3v9d0q2m7xa, 3 replies, 1 in the last hour, last 20:47, 👀 2, :party: 1)",
        "m8991|03:58|belino|Done.|(you)",
        "m8992|03:59|Anna|me too|(observed)",
    ]


def test_the_oldest_are_dropped_first_and_counted() -> None:
    messages = [said(number, f"message number {number} " + "word " * 20) for number in range(1, 21)]
    snapshot = snap(messages, ContextConfig(snapshot_tokens=200))
    kept = [int(message.message_id[1:]) for message in snapshot.adjacent]
    assert kept == list(range(21 - len(kept), 21)) and 0 < len(kept) < 20
    assert snapshot.omitted == 20 - len(kept)
    line = inside(told(snapshot), "channel", FENCE)[0]
    rest = f"earlier ones: channel_messages(cursor={snapshot.adjacent[0].seq})."
    assert line.endswith(f": the last {len(kept)} of 20 messages before the one to answer; {rest}")


def test_an_empty_channel_says_so() -> None:
    assert inside(told(snap([])), "channel", FENCE) == ["slack channel general: nothing before it."]


def test_the_words_of_the_message_to_answer_are_not_paid_for_twice_but_the_wire_has_them() -> None:
    assert ANCHOR.text not in told(snap([]))
    assert '"text":"What do you think?"' in told(snap([]), "json")


def test_a_line_of_another_year_names_it() -> None:
    old = said(1, "long ago", sent=NOW.replace(year=2024))
    assert "m1|2024-11-15 20:47|Anna|long ago" in told(snap([old]))


def test_an_album_is_one_anchor() -> None:
    items = [said(1, "two pictures", media=(picture(0),)), said(2, "", media=(picture(1, caption="the second"),))]
    anchor = take_snapshot(surroundings([]), items, CONFIG, today=NOW).anchor
    assert anchor.text == "two pictures\nthe second"
    assert [ref.id for ref in anchor.media] == [picture(0).id, picture(1).id]


def test_an_anchor_is_whole_up_to_its_limit() -> None:
    config = ContextConfig(message_chars=10)
    anchor = take_snapshot(surroundings([]), [said(1, "0123456789ab")], config, today=NOW).anchor
    assert (anchor.text, anchor.is_truncated) == ("0123456789…", True)


@given(st.text(), st.integers(1, 200))
def test_a_snippet_is_the_beginning_on_one_line_and_never_ends_inside_a_character(text: str, limit: int) -> None:
    shown, whole = snippet(text, limit), one_line(text)
    if len(whole) <= limit:
        assert shown == whole
    else:
        kept = shown.removesuffix("…")
        assert len(kept) <= limit and whole.startswith(kept) and is_boundary(whole, len(kept))


def test_a_snippet_of_a_long_text_does_not_depend_on_where_its_blanks_are() -> None:
    assert snippet(" " * 5000 + "hello " * 100, 11) == "hello hello…"


@settings(max_examples=40)
@given(talks(), st.integers(0, 400))
def test_snippets_never_exceed_their_budget_and_what_is_missing_is_counted(
    messages: list[StoredMessage], budget: int
) -> None:
    snapshot = snap(messages, ContextConfig(snapshot_tokens=budget))
    lines = inside(told(snapshot), "channel", FENCE)[2:]
    assert sum(map(estimate_tokens, lines)) <= budget + len(lines)  # a line is priced in parts, which are rounded
    assert len(lines) == len(snapshot.adjacent) == len(messages) - snapshot.omitted


@settings(max_examples=40)
@given(talks(), st.lists(activities, min_size=4, max_size=4))
def test_the_compact_lines_say_what_the_json_says(
    messages: list[StoredMessage], lives: list[ThreadActivity | None]
) -> None:
    nearby = tuple(Nearby(message=message, activity=life) for message, life in zip(messages, lives, strict=False))
    snapshot = take_snapshot(replace(surroundings([]), nearby=nearby), [ANCHOR], CONFIG, today=NOW)
    wire = orjson.loads(inside(told(snapshot, "json"), "channel", FENCE)[0])
    read = rows(inside(told(snapshot), "channel", FENCE))
    for row, entry, message in zip(read, wire["adjacent"], messages, strict=True):
        author, life, reactions = entry["author"], entry["thread_activity"], entry["reactions"]
        assert (row.id, row.text, row.author) == (
            entry["message_id"],
            entry["snippet"],
            author["display_name"] or "someone",
        )
        assert f"{row.minute:%Y-%m-%dT%H:%M}" == entry["ts"][:16]
        expected = ["you"] if "is_you" in author else ["bot"] if author["is_bot"] else []
        expected += ["observed"] if entry["trust"] == "observed" else []
        expected += [media_mark(ref, side=1568, shows_ref=True) for ref in message.media]
        expected += [mark for mark in ("spoken", "uncertain", "partial") if mark in entry]
        assert row.marks[: len(expected)] == expected
        assert row.marks[len(row.marks) - len(reactions) :] == reactions
        lively = row.marks[len(expected) : len(row.marks) - len(reactions)]
        assert bool(lively) == (life is not None)
        if life is not None:
            assert lively[0].split()[0] == str(life["reply_count"])
            assert (len(lively) == 3) == (life["replies_last_1h"] > 0)


@settings(max_examples=40)
@given(talks())
def test_the_same_surroundings_give_the_same_bytes(messages: list[StoredMessage]) -> None:
    assert told(snap(messages)) == told(snap(list(messages)))
    assert told(snap(messages), "json") == told(snap(list(messages)), "json")


@pytest.mark.parametrize("form", ["compact", "json"])
@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_anybody_wrote_leaves_its_line_its_string_or_the_fence(hostile: str, form: str) -> None:
    message = said(1, hostile, author=Author(id=hostile, name=hostile), reactions=((hostile, 1),))
    text = told(snap([message], channel_name=hostile), form)
    lines = inside(text, "channel", FENCE)
    assert len(lines) == (3 if form == "compact" else 1)
    assert "[Image" not in text and "\u202e" not in text and "\U000e0041" not in text
    if form == "compact":
        (row,) = rows(lines)
        assert row.id == "m1" and row.carried == ""
        assert len(row.marks) == 1 and row.marks[0].endswith(" 1")


def test_the_wire_has_the_keys_it_always_had() -> None:
    value = context_json(StructuredContext(snapshot=snap([said(1)]), thread=None, answers=(), now=NOW))
    snapshot = value["snapshot"]
    assert isinstance(snapshot, dict) and value["thread"] is None
    assert {"schema_version", "channel", "anchor", "adjacent"} <= set(snapshot) and snapshot["schema_version"] == "1.0"
    assert snapshot["channel"] == {"id": "C1", "name": "general", "platform": "slack"}
    assert {"message_id", "ts", "author", "text", "media", "thread_id"} <= set(snapshot["anchor"])
    assert {"message_id", "ts", "author", "snippet", "thread_activity", "has_media", "reactions"} <= set(
        snapshot["adjacent"][0]
    )
    assert snapshot["anchor"]["author"] == {"user_id": ANNA.id, "display_name": "Anna", "is_bot": False}
    assert json_text(value).startswith('{"snapshot":{"schema_version":"1.0"')


def test_twenty_messages_of_usual_length_cost_less_than_a_thousand_tokens() -> None:
    people = [Author(id=name, name=name) for name in ("Anna", "Bo", "Chidi")]
    lines = CHATTER["English"].splitlines() * 2
    messages = [
        said(1000 + number, line, author=people[number % 3], standing=Standing.OBSERVED)
        for number, line in enumerate(lines)
    ]
    text = told(snap(messages))
    vocabulary = splintr.Tokenizer.from_pretrained("o200k_base")
    assert len(rows(inside(text, "channel", FENCE))) == 20
    assert max(estimate_tokens(text), len(vocabulary.encode(text))) <= 1000


def test_a_message_of_captions_or_of_something_unreadable_still_says_something() -> None:
    album = said(1, "", media=(picture(0, caption="the bridge"), picture(1), picture(2, caption="the tower")))
    poll = said(2, "", outcome=MessageOutcome.UNSUPPORTED, reason="a poll")
    assert [message.snippet for message in snap([album, poll]).adjacent] == ["the bridge the tower", "(a poll)"]


@pytest.mark.parametrize(
    "text", ["if (a[i] != b[j]) { x->y++; } " * 20, "会议改到星期四下午三点" * 30, "plain words of a talk " * 20]
)
def test_a_snippet_costs_no_more_than_one_of_plain_words(text: str) -> None:
    (message,) = snap([said(1, text)]).adjacent
    assert 25 <= estimate_tokens(message.snippet) <= 33 and len(message.snippet) <= 151
