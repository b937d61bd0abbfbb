"""The session cookie belongs to one gateway, whatever else runs on its host."""

from dataclasses import replace
from http.cookies import SimpleCookie
from typing import Any

import aiohttp

from belino.config import Config

MAIN = "web:default:main"


def secret_of(url: str) -> str:
    return url.partition("#token=")[2]


async def log_in(browser: aiohttp.ClientSession, site: Any) -> None:
    body = {"token": secret_of(site.login_url)}
    async with browser.post(f"{site.url}/api/login", json=body, headers={"Origin": site.url}) as answer:
        assert answer.status == 200


async def is_in(browser: aiohttp.ClientSession, site: Any) -> bool:
    async with browser.get(f"{site.url}/api/me") as answer:
        logged_in = answer.status == 200
    try:
        async with browser.ws_connect(f"{site.url}/ws", headers={"Origin": site.url}) as socket:
            assert logged_in
            return bool((await socket.receive_json())["event"] == "hello")
    except aiohttp.WSServerHandshakeError:
        assert not logged_in
        return False


async def test_a_browser_stays_logged_in_at_two_gateways_of_one_host(run_site: Any) -> None:
    # Browsers send cookies to every port of a host.
    client = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))
    async with run_site(folder="one") as one, run_site(folder="two") as two, client as browser:
        await log_in(browser, one)
        assert not await is_in(browser, two)
        await log_in(browser, two)
        assert await is_in(browser, one)
        assert await is_in(browser, two)
        headers = {"Origin": one.url, "X-Belino": "1"}
        async with browser.post(f"{one.url}/api/logout", headers=headers) as answer:
            assert answer.status == 200
        assert not await is_in(browser, one)
        assert await is_in(browser, two)


async def test_the_cookie_keeps_its_name_over_a_restart(run_site: Any) -> None:
    async with run_site() as site:
        name, browser = site.cookie, await site.browser()
    async with run_site() as site:
        assert site.cookie == name
        assert (await site.ask("GET", "/api/me", headers={"Cookie": browser["Cookie"]}))[0] == 200


async def test_over_https_the_cookie_is_bound_to_its_host(run_site: Any) -> None:
    config = Config()
    public = replace(config, server=replace(config.server, public_url="https://chat.example"))
    async with run_site(public) as site:
        page = {"Host": "chat.example", "Origin": "https://chat.example"}
        body = {"token": secret_of(site.login_url)}
        _, _, headers = await site.ask("POST", "/api/login", headers=page, json=body)
        (name, cookie), *others = SimpleCookie(headers["Set-Cookie"]).items()
        assert (name, others) == (f"__Host-{site.cookie}", [])
        assert (cookie["secure"], cookie["path"], cookie["domain"]) == (True, "/", "")
        held = f"__Host-{site.cookie}={cookie.value}"
        assert (await site.ask("GET", "/api/me", headers={**page, "Cookie": held}))[0] == 200
        # A plain page could have planted one without the prefix.
        planted = f"{site.cookie}={cookie.value}"
        assert (await site.ask("GET", "/api/me", headers={**page, "Cookie": planted}))[0] == 401
        # On this machine the same gateway is reached without TLS, and browsers would not take that name.
        assert (await site.ask("GET", "/api/me", headers={"Cookie": held}))[0] == 401


async def test_a_login_of_the_former_name_goes_on_under_the_new_one(site: Any) -> None:
    secret = (await site.browser())["Cookie"].partition("=")[2]
    former = {"Cookie": f"belino_session={secret}", "Origin": site.url}
    async with site.socket(former) as chat:
        assert (await chat.call("chat.history", conversation=MAIN))["ok"]
    status, _, headers = await site.ask("GET", "/api/me", headers=former)
    assert status == 200
    written: dict[str, tuple[str, int]] = {}
    for line in headers.getall("Set-Cookie"):
        written |= {name: (cookie.value, int(cookie["max-age"])) for name, cookie in SimpleCookie(line).items()}
    assert written["belino_session"] == ("", 0)
    value, seconds = written[site.cookie]
    assert value == secret
    assert 3_500 < seconds <= 3_600
    own = {"Cookie": f"{site.cookie}={secret}; belino_session=anothers"}
    status, _, headers = await site.ask("GET", "/api/me", headers=own)
    assert (status, "Set-Cookie" in headers) == (200, False)
