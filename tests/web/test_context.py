"""What the agent would be told, and what a search finds, over HTTP."""

from typing import Any

import pytest

from belino.domain.message import Author, ConversationKey, Message

MAIN = "web:default:main"
OTHER = ConversationKey(platform="web", account="default", channel="other")


async def say(site: Any, *texts: str) -> None:
    for number, text in enumerate(texts):
        said = {"conversation": MAIN, "message": text, "id": f"m{number}"}
        assert (await site.ask("POST", "/api/messages", json=said))[0] == 200


async def test_the_context_of_a_conversation_with_its_price(site: Any) -> None:
    await say(site, "first things first", "what was first?")
    status, told, _ = await site.ask("GET", f"/api/context?conversation={MAIN}&at=m1")
    assert status == 200 and told["message_id"] == "m1" and told["tokens"] > 0
    assert {part["part"] for part in told["parts"]} >= {"tools", "instructions", "channel", "message"}
    assert any("first things first" in text for text in told["told"])
    assert told["context"]["snapshot"]["schema_version"] == "1.0"


async def test_a_search_finds_what_was_said_a_page_at_a_time(site: Any) -> None:
    await say(site, *(f"the rollout of cluster {number}" for number in range(5)), "lunch?")
    status, page, _ = await site.ask("GET", f"/api/search?conversation={MAIN}&intent=rollout&limit=3")
    assert status == 200 and len(page["results"]) == 3
    assert page["results"][0]["relevance_signal"].startswith(("keyword:rollout", "phrase:"))
    cursor = page["next_cursor"]
    _, rest, _ = await site.ask("GET", f"/api/search?conversation={MAIN}&intent=rollout&limit=3&cursor={cursor}")
    found = [one["message_id"] for one in (*page["results"], *rest["results"])]
    assert len(set(found)) == len(found) and {f"m{number}" for number in range(5)} <= set(found)


async def test_several_questions_are_answered_in_turn_and_a_message_may_be_named_to_search_near(site: Any) -> None:
    await say(site, "the rollout is on Monday", *("lunch?" for _ in range(6)), "the budget is 900, all of it")
    _, page, _ = await site.ask("GET", f"/api/search?conversation={MAIN}&intents=rollout,budget%252C%20all&limit=2")
    assert {one["message_id"] for one in page["results"]} == {"m0", "m7"}
    short = (await site.gateway.store.find_messages("m2"))[0].short_id
    for name in ("m2", short):
        status, page, _ = await site.ask("GET", f"/api/search?conversation={MAIN}&intent=lunch&near={name}&limit=1")
        assert status == 200 and page["found"] == 5  # the message itself is not among what is near it


async def test_no_match_is_told_as_such(site: Any) -> None:
    await say(site, "hello", "and good morning")
    _, page, _ = await site.ask("GET", f"/api/search?conversation={MAIN}&intent=zyzzyva")
    assert (page["total"], page["found"], page["nearby"]) == (0, 0, 0)
    assert {one["match"] for one in page["results"]} <= {"recent"}


async def test_a_channel_of_which_only_history_is_stored_is_searched(site: Any) -> None:
    where = ConversationKey(platform="slack", account="default", channel="C1")
    author = Author(id="U1", name="Bo")
    old = Message(conversation=where, id="1", author=author, sent=site.gateway.clock.now(), text="the rollout waits")
    await site.gateway.store.take_history(where, [old])
    status, page, _ = await site.ask("GET", f"/api/search?conversation={where}&intent=rollout")
    assert status == 200 and page["found"] == 1


@pytest.mark.parametrize(
    ("query", "status"),
    [
        (f"conversation={MAIN}&intent=x&near=nothing", 400),
        (f"conversation={MAIN}&intents=a,b,c,d,e", 400),
        ("intent=x", 400),
        (f"conversation={MAIN}", 400),
        (f"conversation={MAIN}&intent=%20", 400),
        (f"conversation={MAIN}&intent=x&since=soon", 400),
        (f"conversation={MAIN}&intent=x&cursor=nonsense", 400),
        (f"conversation={MAIN}&intent=x&limit=0", 400),
        ("conversation=web:default:nowhere&intent=x", 404),
    ],
)
async def test_a_wrong_search_is_refused(site: Any, query: str, status: int) -> None:
    await say(site, "hello")
    assert (await site.ask("GET", f"/api/search?{query}"))[0] == status


async def test_a_message_that_is_not_there_has_no_context(site: Any) -> None:
    await say(site, "hello")
    for query in (f"conversation={MAIN}&at=nothing", "conversation=web:default:nowhere"):
        assert (await site.ask("GET", f"/api/context?{query}"))[0] == 404


async def test_a_channels_token_sees_its_own_conversation_only(site: Any) -> None:
    await say(site, "the rollout")
    own, foreign = await site.token(), await site.token(OTHER)
    for path in (f"/api/context?conversation={MAIN}", f"/api/search?conversation={MAIN}&intent=rollout"):
        assert (await site.ask("GET", path, headers=own))[0] == 200
        assert (await site.ask("GET", path, headers=foreign))[0] == 404
        assert (await site.ask("GET", path, headers={}))[0] == 401


async def test_calls_for_history_are_among_the_metrics(site: Any) -> None:
    site.gateway.counters.history["calls"] += 2
    _, text, _ = await site.ask("GET", "/metrics")
    assert 'belino_history_total{outcome="calls"} 2.0' in (text if isinstance(text, str) else text.decode())
