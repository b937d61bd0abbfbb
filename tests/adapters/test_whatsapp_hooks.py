"""WhatsApp calls: nothing is read before its signature, nothing is answered before it is on disk."""

import asyncio
import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest

from adapters.whatsapp_harness import PATH, Business, Businesses
from adapters.whatsapp_samples import ADA, NAMES, sample
from belino.domain.message import Unsupported
from belino.domain.ports import Hook
from belino.testing import FakeClock, WhatsAppServer

DAY = 86_400.0


def asked(**query: str) -> Hook:
    named = {f"hub.{name}": value for name, value in query.items()}
    return Hook(method="GET", path=PATH, query=urlencode(named), headers={}, body=b"")


def spoiled(hook: Hook, signature: str | None) -> Hook:
    headers = dict(hook.headers)
    headers.pop("x-hub-signature-256")
    return replace(hook, headers=headers if signature is None else {**headers, "x-hub-signature-256": signature})


async def test_a_signed_call_is_taken_and_answered_after_commit(business: Business) -> None:
    async with business.listening():
        business.may_take.clear()
        async with asyncio.TaskGroup() as group:
            answer = group.create_task(business.adapter.take_hook(business.signed(sample("text"))))
            for _ in range(100):
                await asyncio.sleep(0)
            assert not answer.done()
            business.may_take.set()
    assert (answer.result().status, business.texts) == (200, ["Does it come in another colour?"])


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        "",
        "sha256=",
        "sha256=" + "0" * 64,
        "sha1=" + "0" * 40,
        "SHA256={hex}",
        "sha256={HEX}",
        "sha256={hex} ",
        "sha256={hex}\n",
        "{hex}",
        "sha256={base64}",
        "sha256={hex},sha256={hex}",
    ],
)
async def test_a_signature_that_is_missing_empty_wrong_or_written_otherwise_is_refused(
    business: Business, wrong: str | None
) -> None:
    good = business.signed(sample("text"))
    made = good.headers["x-hub-signature-256"].removeprefix("sha256=")
    import base64

    spelled = {"hex": made, "HEX": made.upper(), "base64": base64.b64encode(bytes.fromhex(made)).decode()}
    bad = spoiled(good, None if wrong is None else wrong.format(**spelled))
    async with business.listening():
        assert (await business.adapter.take_hook(bad)).status == 401
        assert business.taken == []
    refused = business.adapter.screen_hook(replace(bad, body=b""))
    assert refused is None or refused.status == 401


async def test_the_signature_is_of_the_very_bytes_and_of_this_accounts_app(businesses: Businesses) -> None:
    ours, theirs = businesses(), businesses(app_secret="another-secret-of-another-app")
    good = ours.signed(sample("text"))
    async with ours.listening(), theirs.listening():
        for changed in (good.body + b" ", good.body.replace(b"colour", b"color"), b"", b"[" + good.body + b"]"):
            assert (await ours.adapter.take_hook(replace(good, body=changed))).status == 401
        assert (await theirs.adapter.take_hook(good)).status == 401, "swapped between accounts"
        escaped = json.dumps(sample("reaction"), ensure_ascii=False).encode()
        assert (await ours.adapter.take_hook(replace(ours.signed(sample("reaction")), body=escaped))).status == 401
        assert (await ours.adapter.take_hook(ours.signed(None, body=escaped))).status == 200
    assert theirs.taken == []


async def test_a_replay_has_no_further_effect_and_one_that_was_never_stored_is_taken(business: Business) -> None:
    call = business.signed(sample("text"))
    assert (await business.adapter.take_hook(call)).status == 503, "not running: it will be repeated"
    async with business.listening():
        for _ in range(3):
            assert (await business.adapter.take_hook(call)).status == 200
    assert business.texts == ["Does it come in another colour?"]


async def test_a_call_that_meta_no_longer_repeats_is_stale(businesses: Businesses) -> None:
    clock = FakeClock()
    business = businesses(clock=clock)
    clock.shift(9 * DAY)
    async with business.listening():
        assert (await business.adapter.take_hook(business.signed(sample("text")))).status == 403
        assert (await business.adapter.take_hook(business.signed(sample("account_update")))).status == 200
    assert [type(arrival) for arrival, _ in business.taken] == [Unsupported]


async def test_the_handshake_repeats_the_challenge_to_who_knows_the_token_and_to_no_one_else(
    business: Business,
) -> None:
    token = business.server.verify_token
    good = asked(mode="subscribe", verify_token=token, challenge="1158201444")
    answer = await business.adapter.take_hook(good)
    assert business.adapter.screen_hook(good) == answer, "it has no body"
    assert (answer.status, answer.body, answer.mime) == (200, b"1158201444", "text/plain")
    for query, status in (
        ({"mode": "subscribe", "verify_token": "guess", "challenge": "1"}, 403),
        ({"mode": "subscribe", "verify_token": "", "challenge": "1"}, 403),
        ({"mode": "subscribe", "challenge": "1"}, 403),
        ({"mode": "unsubscribe", "verify_token": token, "challenge": "1"}, 400),
        ({"mode": "subscribe", "verify_token": token, "challenge": "<script>"}, 400),
        ({"mode": "subscribe", "verify_token": token}, 400),
    ):
        refused = business.adapter.screen_hook(asked(**query))
        assert refused is not None and refused.status == status
    for method in ("PUT", "DELETE", "HEAD"):
        refused = business.adapter.screen_hook(replace(good, method=method))
        assert refused is not None and refused.status == 405


@pytest.mark.parametrize("body", [b"", b"not json", b"[1, 2]", b'"text"', b"{}", b"\xff\xfe", b"[" * 100_000])
async def test_a_signed_body_of_any_form_is_acknowledged_and_kept_as_unsupported(
    business: Business, body: bytes
) -> None:
    async with business.listening():
        assert (await business.adapter.take_hook(business.signed(None, body=body))).status == 200
    ((arrival, _),) = business.taken
    assert isinstance(arrival, Unsupported)


async def test_every_sample_is_acknowledged_and_costs_no_call_and_no_byte(business: Business) -> None:
    async with business.listening():
        before = sum(business.server.calls.values())
        for name in NAMES:
            assert (await business.adapter.take_hook(business.signed(sample(name)))).status == 200, name
        assert sum(business.server.calls.values()) == before
    assert business.server.bytes_served == 0
    assert len(business.taken) >= len(NAMES)


async def test_events_of_a_number_that_is_not_this_accounts_are_reported_and_not_read(business: Business) -> None:
    async with business.listening():
        await business.adapter.take_hook(business.signed(sample("other_number")))
    assert "200000000000000" in business.context.problems["other numbers"]
    assert business.messages == []


async def test_a_restriction_of_the_account_is_reported(business: Business) -> None:
    async with business.listening():
        await business.adapter.take_hook(business.signed(sample("account_update")))
    told = business.context.problems["account"]
    assert "account restriction: restricted biz initiated messaging" in told


async def test_two_numbers_of_one_app_each_take_their_own_events_only(businesses: Businesses) -> None:
    second = "200000000000000"
    one, two = businesses(), businesses(phone_number_id=second)
    two.server.number_id = second
    async with WhatsAppServer(number_id=second, clock=FakeClock()) as other:
        two = businesses(server=other, app_secret=one.server.app_secret)
        one.server.number_id = one.config.phone_number_id
        async with one.listening(), two.listening():
            for account in (one, two):
                await account.adapter.take_hook(account.signed(sample("text")))
                await account.adapter.take_hook(account.signed(sample("other_number")))
    assert one.texts == ["Does it come in another colour?"]
    assert two.texts == ["for the other number"]


async def test_a_batch_is_taken_in_order(business: Business) -> None:
    async with business.listening():
        await business.adapter.take_hook(business.signed(sample("batch")))
    assert [arrival.kind for arrival, _ in business.taken] == ["message", "message", "delivery", "unsupported"]
    assert {arrival.conversation.channel for arrival, _ in business.taken[:3]} == {ADA}


async def test_what_is_said_reaches_the_business_over_its_callback_once(whatsapp: WhatsAppServer) -> None:
    """The server itself: a handshake, signatures, and repetition until 200."""
    from aiohttp import web

    from belino.testing.platform_server import Loopback

    business = Business(whatsapp)
    statuses: list[int] = []

    async def take(request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        hook = Hook(
            method=request.method, path=PATH, query=request.query_string, headers=headers, body=await request.read()
        )
        answer: Any = await business.adapter.take_hook(hook)
        statuses.append(answer.status)
        return web.Response(status=answer.status, body=answer.body)

    app = web.Application()
    app.router.add_route("*", PATH, take)
    async with Loopback(app) as loopback:
        ann = whatsapp.user("Ann")
        assert not await whatsapp.hook.verify(f"{loopback.urls[0]}{PATH}", "wrong")
        assert await whatsapp.subscribe(f"{loopback.urls[0]}{PATH}")
        whatsapp.say(ann, ann, "one")
        while 503 not in statuses:
            await asyncio.sleep(0.002)
        async with business.listening():
            assert isinstance(whatsapp.clock, FakeClock)
            while whatsapp.hook.waiting:
                await whatsapp.clock.advance(1)
                await asyncio.sleep(0.002)
    await business.client.close()
    assert business.texts == ["one"]
