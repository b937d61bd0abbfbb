"""What the doctor finds about a LINE account, each with its cure."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer

from adapters.line_harness import Account, Accounts
from belino.domain.outcome import Finding
from belino.domain.ports import Hook
from belino.testing import LineServer
from belino.testing.faults import CannedAnswer


@asynccontextmanager
async def door_of(account: Account) -> AsyncIterator[str]:
    """The account's webhook over HTTP."""

    async def serve(request: web.BaseRequest) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        hook = Hook(method=request.method, path=request.path, query="", headers=headers, body=await request.read())
        return web.Response(status=(await account.adapter.take_hook(hook)).status)

    async with RawTestServer(serve) as server:
        yield f"http://127.0.0.1:{server.port}/hooks/line/default"


async def found(account: Account) -> dict[str, Finding]:
    return {finding.name.removeprefix("line:default "): finding for finding in await account.adapter.check()}


async def test_an_account_that_works_is_told_by_name_and_changes_nothing(line: LineServer, account: Account) -> None:
    line.api.quota, line.api.used = 200, 37
    async with account.listening(), door_of(account) as line.webhook.url:
        findings = await found(account)
    assert all(finding.ok for finding in findings.values())
    assert findings["token"].says == "it is that of belino (@216belino)"
    assert "reaches belino" in findings["webhook"].says
    assert findings["quota"].says == "37 of 200 messages are sent this month"
    assert set(findings) == {"token", "webhook", "quota", "clock"}
    assert not line.sent and not account.taken


async def test_a_bad_token_is_the_only_finding(line: LineServer, accounts: Accounts) -> None:
    (finding,) = (await found(accounts(channel_access_token="wrong"))).values()
    assert not finding.ok and "Issue a channel access token" in finding.cure


@pytest.mark.parametrize(
    ("url", "active", "says"),
    [
        ("", True, "no URL is set"),
        ("https://other.example/hook", True, "another address"),
        ("https://bot.example/hooks/line/default", False, "turned off"),
    ],
)
async def test_a_webhook_that_brings_nothing_is_told_with_the_address_to_enter(
    line: LineServer, account: Account, url: str, active: bool, says: str
) -> None:
    line.webhook.url, line.webhook.active = url, active
    finding = (await found(account))["webhook"]
    assert not finding.ok and says in finding.says
    assert "https://YOUR-HOST/hooks/line/default" in finding.cure


async def test_a_secret_of_another_channel_is_found_by_line_s_own_call(line: LineServer, accounts: Accounts) -> None:
    account = accounts(channel_secret="another-channels-secret")
    async with account.listening(), door_of(account) as line.webhook.url:
        finding = (await found(account))["webhook"]
    assert not finding.ok and "channel_secret" in finding.says


async def test_a_webhook_that_line_cannot_reach_is_told(line: LineServer, account: Account) -> None:
    async with door_of(account) as address:
        pass
    line.webhook.url = address
    finding = (await found(account))["webhook"]
    assert not finding.ok and "does not reach" in finding.says


async def test_a_month_that_is_used_up_and_questions_that_fail_are_told(line: LineServer, account: Account) -> None:
    line.api.quota = line.api.used = 200
    quota = (await found(account))["quota"]
    assert not quota.ok and "larger plan" in quota.cure
    line.fail("quota", CannedAnswer(status=500))
    line.fail("endpoint", CannedAnswer(status=500))
    findings = await found(account)
    assert not findings["quota"].ok and not findings["webhook"].ok


async def test_a_listed_group_that_the_account_is_not_in_is_named(line: LineServer, account: Account) -> None:
    ada = line.user("Ada")
    inside, outside = line.group("Trip", ada), line.group("Away", ada)
    line.left.add(outside["groupId"])
    channels = [inside["groupId"], outside["groupId"], line.room(ada)["roomId"], "*"]
    (finding,) = await account.adapter.check_channels(channels)
    assert finding.name == f"line:default channel {outside['groupId']}" and "Invite" in finding.cure
