"""A login works once, a guess counts before it is looked at, and what is revoked is closed."""

import asyncio
from datetime import timedelta
from http.cookies import SimpleCookie
from typing import Any

import pytest

from belino.domain.stored import GrantKind

MAIN = "web:default:main"


def secret_of(url: str) -> str:
    return url.partition("#token=")[2]


async def test_the_printed_address_logs_in_once(site: Any) -> None:
    assert site.login_url.startswith(f"{site.url}/#token=")
    body = {"token": secret_of(site.login_url)}
    status, _, headers = await site.ask("POST", "/api/login", headers={"Origin": site.url}, json=body)
    assert status == 200
    cookie = SimpleCookie(headers["Set-Cookie"])[site.cookie]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "strict", "/")
    assert not cookie["secure"]
    assert (await site.ask("GET", "/api/me", headers={"Cookie": f"{site.cookie}={cookie.value}"}))[0] == 200
    again, refused, headers = await site.ask("POST", "/api/login", headers={"Origin": site.url}, json=body)
    assert (again, refused["error"]["code"]) == (401, "unauthorized")
    assert "Set-Cookie" not in headers


async def test_of_fifty_who_use_the_same_login_at_once_one_gets_in(site: Any) -> None:
    url = (await site.ask("POST", "/api/logins"))[1]["url"]
    asks = [site.ask("POST", "/api/login", headers={}, json={"token": secret_of(url)}) for _ in range(50)]
    statuses = [status for status, _, _ in await asyncio.gather(*asks)]
    assert statuses.count(200) == 1


async def test_a_secret_opens_only_the_door_it_was_made_for(site: Any) -> None:
    login = secret_of(site.login_url)
    program = site.program["Authorization"].removeprefix("Bearer ")
    browser = (await site.browser())["Cookie"].removeprefix(f"{site.cookie}=")
    assert (await site.ask("GET", "/api/me", headers={"Authorization": f"Bearer {login}"}))[0] == 401
    assert (await site.ask("GET", "/api/me", headers={"Cookie": f"{site.cookie}={login}"}))[0] == 401
    assert (await site.ask("GET", "/api/me", headers={"Cookie": f"{site.cookie}={program}"}))[0] == 401
    assert (await site.ask("GET", "/api/me", headers={"Authorization": f"Bearer {browser}"}))[0] == 401
    assert (await site.ask("GET", f"/api/me?token={program}", headers={}))[0] == 401
    for secret in (program, browser):
        assert (await site.ask("POST", "/api/login", headers={}, json={"token": secret}))[0] == 401


async def test_of_two_hundred_guesses_at_once_ten_are_looked_at(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = 0
    redeem = site.gateway.store.redeem

    async def counted(secret: str, *, lifetime: timedelta) -> Any:
        nonlocal looked_at
        looked_at += 1
        return await redeem(secret, lifetime=lifetime)

    monkeypatch.setattr(site.gateway.store, "redeem", counted)

    async def guess(number: int) -> int:
        forged = {"X-Forwarded-For": f"10.0.0.{number}", "X-Real-IP": f"10.0.1.{number}", "Forwarded": "for=1.2.3.4"}
        status, _, _ = await site.ask("POST", "/api/login", headers=forged, json={"token": f"guess{number}"})
        return int(status)

    statuses = await asyncio.gather(*(guess(number) for number in range(200)))
    assert looked_at == 10
    assert statuses.count(401) == 10
    assert statuses.count(429) == 190


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://evil.test"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
)
async def test_another_site_cannot_log_a_browser_in(site: Any, headers: dict[str, str]) -> None:
    body = {"token": secret_of(site.login_url)}
    assert (await site.ask("POST", "/api/login", headers=headers, json=body))[0] == 403
    assert (await site.ask("POST", "/api/login", headers={}, json=body))[0] == 200


async def test_logging_out_closes_the_page_it_was_asked_from(site: Any) -> None:
    page = await site.browser()
    async with site.socket(page) as chat:
        status, _, headers = await site.ask("POST", "/api/logout", headers=page)
        assert status == 200
        assert SimpleCookie(headers["Set-Cookie"])[site.cookie].value == ""
        assert await chat.closed() == 4401
    assert (await site.ask("GET", "/api/me", headers=page))[0] == 401


async def test_a_token_is_made_listed_used_and_taken_back(site: Any) -> None:
    wish = {"conversation": MAIN, "note": "for tests", "days": 1}
    status, made, _ = await site.ask("POST", "/api/tokens", json=wish)
    assert (status, made["kind"], made["conversation"], made["note"]) == (201, "channel", MAIN, "for tests")
    _, listed, _ = await site.ask("GET", "/api/tokens")
    assert [token["id"] for token in listed["tokens"]] == [made["id"]]
    assert made["token"] not in str(listed)
    bearer = {"Authorization": f"Bearer {made['token']}"}
    async with site.socket(bearer) as chat:
        assert (await site.ask("DELETE", f"/api/tokens/{made['id']}"))[0] == 204
        assert await chat.closed() == 4401
    assert (await site.ask("GET", f"/api/messages?conversation={MAIN}", headers=bearer))[0] == 401
    assert (await site.ask("DELETE", f"/api/tokens/{made['id']}"))[0] == 404


async def test_only_tokens_can_be_taken_back_as_tokens(site: Any) -> None:
    for grant in await site.gateway.store.grants():
        assert (await site.ask("DELETE", f"/api/tokens/{grant.id}"))[0] == 404
    assert (await site.ask("GET", "/api/me"))[0] == 200


async def test_a_token_for_a_conversation_that_does_not_exist_is_not_made(site: Any) -> None:
    assert (await site.ask("POST", "/api/tokens", json={"conversation": "web:default:nowhere"}))[0] == 404


async def test_a_login_that_has_run_out_closes_its_sockets(site: Any) -> None:
    store = site.gateway.store
    _, login = await store.grant(GrantKind.LOGIN, lifetime=timedelta(minutes=1))
    redeemed = await store.redeem(login, lifetime=timedelta(seconds=1))
    assert redeemed is not None
    async with site.socket({"Cookie": f"{site.cookie}={redeemed[1]}", "Origin": site.url}) as chat:
        assert await chat.closed() == 4401
