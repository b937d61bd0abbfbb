"""LINE's calls: nothing is read before its signature, nothing stale is taken, no answer comes before the commit."""

import asyncio
import base64
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from adapters.line_harness import Account, Accounts
from belino.domain.errors import ConfigError
from belino.domain.ports import Hook
from belino.net.redact import Secret
from belino.testing import FakeClock, LineServer


def event(account: Account, text: str = "hello", **more: Any) -> Any:
    """An event of now, which LINE has not delivered yet."""
    ada = account.server.user("Ada")
    account.server.say(ada, ada, text)
    return {**account.server._queue.get_nowait(), **more}


def ago(account: Account, **time: float) -> int:
    return round((account.context.clock.now() - timedelta(**time)).timestamp() * 1000)


async def test_a_signed_call_is_taken_and_answered_after_commit(account: Account) -> None:
    async with account.listening():
        account.may_take.clear()
        async with asyncio.TaskGroup() as group:
            answer = group.create_task(account.hear(event(account)))
            for _ in range(100):
                await asyncio.sleep(0)
            assert not answer.done()
            account.may_take.set()
    assert (answer.result().status, account.texts) == (200, ["hello"])


async def test_a_call_without_events_only_checks_that_we_answer(account: Account) -> None:
    async with account.listening():
        answer = await account.adapter.take_hook(account.hook([]))
    assert (answer.status, account.taken) == (200, [])


@pytest.mark.parametrize(
    "signature",
    ["", "guess", "A" * 43 + "=", "{0} ", " {0}", "{0}=", "{lower}", "{url}", "{hex}", "{spare}"],
    ids=["empty", "guess", "another", "trailing", "leading", "padded", "lower case", "url-safe", "hex", "spare bits"],
)
async def test_a_signature_that_is_not_this_one_in_this_spelling_is_refused(account: Account, signature: str) -> None:
    body = json.dumps({"destination": "U1", "events": [event(account)]}).encode()
    good = account.server.signature(body)
    # The last letter before the padding has two bits that decode to nothing.
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    spare = good[:-2] + letters[letters.index(good[-2]) ^ 1] + "="
    assert base64.b64decode(spare) == base64.b64decode(good)
    spelled = signature.format(
        good,
        lower=good.lower(),
        url=good.replace("+", "-").replace("/", "_") + "-",
        hex=good.encode().hex(),
        spare=spare,
    )
    async with account.listening():
        answer = await account.adapter.take_hook(account.hook(body=body, **{"x-line-signature": spelled}))
    assert (answer.status, account.taken) == (401, [])


async def test_a_call_without_a_signature_is_refused_without_its_body(account: Account) -> None:
    hook = Hook(method="POST", path="/hooks/line/default", query="", headers={}, body=b"")
    refused = account.adapter.screen_hook(hook)
    assert refused is not None and refused.status == 401
    assert account.adapter.screen_hook(account.hook([])) is None


async def test_the_signature_is_of_the_very_bytes_of_a_line_call(account: Account) -> None:
    good = account.hook([event(account)])
    async with account.listening():
        for body in (
            good.body + b" ",
            good.body.replace(b"hello", b"hellO"),
            json.dumps(json.loads(good.body), indent=1).encode(),
        ):
            assert (await account.adapter.take_hook(replace(good, body=body))).status == 401
    assert account.taken == []


async def test_the_accounts_do_not_take_each_other_s_calls(accounts: Accounts) -> None:
    one, other = accounts(), accounts(channel_secret="another-channels-secret")
    async with one.listening(), other.listening():
        assert (await other.adapter.take_hook(one.hook([event(one)]))).status == 401
    assert other.taken == []


@pytest.mark.parametrize(
    ("age", "redelivered", "status"),
    [
        ({"minutes": 4}, False, 200),
        ({"minutes": 6}, False, 401),
        ({"minutes": -6}, False, 401),
        ({"hours": 20}, True, 200),
        ({"days": 4}, True, 401),
    ],
)
async def test_a_stale_call_is_refused_and_one_that_line_delivers_again_has_days(
    accounts: Accounts, age: dict[str, float], redelivered: bool, status: int
) -> None:
    account = accounts(clock=FakeClock())
    old = event(account, timestamp=ago(account, **age), deliveryContext={"isRedelivery": redelivered})
    async with account.listening():
        answer = await account.adapter.take_hook(account.hook([old]))
    assert (answer.status, len(account.taken)) == (status, int(status == 200))


async def test_a_call_whose_time_is_missing_is_refused(account: Account) -> None:
    timeless = {name: value for name, value in event(account).items() if name != "timestamp"}
    async with account.listening():
        assert (await account.adapter.take_hook(account.hook([timeless]))).status == 401


async def test_a_replayed_call_brings_the_same_ids_so_that_it_counts_once(account: Account) -> None:
    hook = account.hook([event(account)])
    async with account.listening():
        for _ in range(2):
            assert (await account.adapter.take_hook(hook)).status == 200
    first, again = account.messages
    assert (first.id, first.conversation) == (again.id, again.conversation)


async def test_several_events_of_a_call_are_taken_in_order(account: Account) -> None:
    async with account.listening():
        assert (await account.hear(*[event(account, f"number {n}") for n in range(5)])).status == 200
    assert account.texts == [f"number {n}" for n in range(5)]


async def test_other_methods_and_bodies_are_refused_and_an_account_that_is_not_up_says_so(account: Account) -> None:
    assert (await account.adapter.take_hook(account.hook([event(account)]))).status == 503
    async with account.listening():
        assert (await account.adapter.take_hook(account.hook(body=b"[]"))).status == 400
        assert (await account.adapter.take_hook(account.hook(body=b"\xff"))).status == 400
        assert (await account.adapter.take_hook(replace(account.hook([]), method="GET"))).status == 405


@pytest.mark.parametrize("secret", ["", " ", "\t", "two words", "ü"])
@pytest.mark.parametrize("key", ["channel_secret", "channel_access_token"])
def test_without_a_secret_line_s_webhook_does_not_start(line: LineServer, key: str, secret: str) -> None:
    settings: Any = {key: secret}
    with pytest.raises(ConfigError, match=key):
        Account(line, **settings)


async def test_a_suspended_account_says_so_until_it_is_resumed(account: Account) -> None:
    async with account.listening():
        account.server.event("botSuspended")
        await account.hear()
        assert "suspended" in account.context.problems["account"]
        account.server.event("botResumed")
        await account.hear()
    assert "account" not in account.context.problems


def test_a_secret_is_not_shown(account: Account) -> None:
    assert isinstance(account.config.channel_secret, Secret)
    assert account.server.channel_secret not in repr(account.config)
