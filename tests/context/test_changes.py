"""What a session is told of what it missed."""

from dataclasses import replace

import pytest

from belino.context.budget import ContextConfig
from belino.context.prompt import meanwhile_blocks
from belino.domain.context import OtherThread
from belino.domain.message import Author
from belino.domain.outcome import Standing
from belino.domain.stored import Happening, MissedChanges, ReadPosition
from belino.domain.tokens import estimate_tokens
from context.reading import inside, rows
from context.talk import FENCE, HOSTILE, NOW, picture, said

NOTHING = MissedChanges(arrived=(), total_arrived=0, changed=(), replies_elsewhere=0, now=ReadPosition())
CONFIG = ContextConfig()


def lines(news: MissedChanges, config: ContextConfig = CONFIG) -> list[str]:
    (block,) = meanwhile_blocks(news, config, fence=FENCE, now=NOW)
    return inside(block.text, "meanwhile", FENCE)


def test_nothing_is_said_where_nothing_happened() -> None:
    assert meanwhile_blocks(NOTHING, CONFIG, fence=FENCE, now=NOW) == ()


def test_what_arrived_and_changed_is_told_in_full_and_marked() -> None:
    news = replace(
        NOTHING,
        arrived=(said(8000, "Any news?", standing=Standing.OBSERVED, media=(picture(),)),),
        total_arrived=1,
        changed=(
            (said(7000, "At nine", edited=NOW, media=(picture(1),)), Happening.EDITED),
            (said(7001, "", deleted=NOW), Happening.DELETED),
            (said(7002, "Good idea " * 20, reactions=(("👍", 2),)), Happening.REACTED),
            (said(7003, "Fine"), Happening.REACTED),
        ),
        replies_elsewhere=2,
        threads_elsewhere=(OtherThread(thread_id="m5", short_id="kv305", replies=2),),
    )
    assert lines(news) == [
        "Since your last turn: 1 arrived; 4 changed; 2 replies in other threads, not listed: "
        "channel_messages(thread_id) of kv305 2.",
        "id|time|author|text (UTC; today is 2026-11-15)",
        "m8000|11-14 11:27|Anna|[Image: photo.png, 1000B, image/png, ref:sl_k3v9d0q2m7xa] Any news?|(observed)",
        "m7000|11-13 18:47|Anna|[Image: photo.png, 1000B, image/png, ref:sl_k3v9d0q2m7xb] At nine|(now reads)",
        "m7001|18:48|Anna||(deleted)",
        f"m7002|18:49|Anna|{('Good idea ' * 8)[:80]}…|(reactions, 👍 2)",
        "m7003|18:50|Anna|Fine|(reactions, none)",
    ]


def test_replies_in_other_threads_are_counted_even_alone() -> None:
    threads = tuple(
        OtherThread(thread_id=name, short_id=name, replies=replies) for name, replies in (("ab117", 2), ("kv305", 1))
    )
    told = (
        "Since your last turn: 4 replies in other threads, not listed: channel_messages(thread_id) of ab117 2, kv305 1"
    )
    assert lines(replace(NOTHING, replies_elsewhere=4, threads_elsewhere=threads)) == [f"{told}, …."]


def test_in_a_thread_what_the_channel_said_is_counted_with_the_call_that_shows_it() -> None:
    news = replace(NOTHING, said_in_channel=3, thread="kv305", now=ReadPosition(seq=812))
    assert lines(news) == ["Since your last turn: 3 said in the channel itself: channel_messages(cursor=812)."]


def test_more_than_the_budget_is_counted_with_a_way_to_find_it() -> None:
    arrived = tuple(said(number, f"message {number} " + "word " * 30) for number in range(1, 201))
    told = lines(replace(NOTHING, arrived=arrived, total_arrived=500), ContextConfig(updates_tokens=1000))
    kept = rows(told)
    assert [row.id for row in kept] == [f"m{number}" for number in range(201 - len(kept), 201)]
    assert told[0].startswith(f"Since your last turn: 500 arrived; {500 - len(kept)} of these left out, the oldest:")
    assert told[0].endswith(f"the oldest: channel_messages(cursor={201 - len(kept)}).")
    assert sum(map(estimate_tokens, told[2:])) <= 1000


def test_a_deletion_is_told_before_any_arrival() -> None:
    arrived = tuple(said(number, "word " * 300) for number in range(1, 20))
    changed = ((said(30, "", deleted=NOW), Happening.DELETED),)
    told = rows(lines(replace(NOTHING, arrived=arrived, changed=changed), ContextConfig(updates_tokens=25)))
    assert [(row.id, row.marks) for row in told] == [("m30", ["deleted"])]


@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_anybody_wrote_leaves_its_line_or_the_fence(hostile: str) -> None:
    message = said(1, hostile, author=Author(id="7", name=hostile), reactions=((hostile, 1),))
    changed = tuple((message, happening) for happening in (Happening.EDITED, Happening.REACTED))
    told = rows(lines(replace(NOTHING, arrived=(message,), total_arrived=1, changed=changed)))
    assert [row.id for row in told] == ["m1"] * 3
    assert [row.marks[:1] for row in told] == [[], ["now reads"], ["reactions"]] and len(told[2].marks) == 2
