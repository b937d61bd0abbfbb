"""What the owner of a gateway sees and decides over HTTP."""

import json
from typing import Any

import pytest

from belino.domain.errors import Unauthorized
from belino.domain.message import Author, ConversationKey
from belino.domain.stored import GrantKind
from web.conftest import Site

WEB = ("web", "default")


async def monitor(site: Site) -> dict[str, str]:
    _, made, _ = await site.ask("POST", "/api/tokens", json={"monitor": True, "note": "uptime"})
    return {"Authorization": f"Bearer {made['token']}"}


async def test_the_deep_health_check_names_every_account_and_refuses_strangers(site: Site) -> None:
    assert (await site.ask("GET", "/healthz", headers={}))[:2] == (200, {"ok": True})
    assert (await site.ask("GET", "/healthz?deep=1", headers={}))[0] == 401
    assert (await site.ask("GET", "/healthz?deep=1", headers=await site.token()))[0] == 404
    for headers in (site.program, await site.browser(), await monitor(site)):
        status, body, _ = await site.ask("GET", "/healthz?deep=1", headers=headers)
        assert (status, body["ok"]) == (200, True)
        (account,) = body["accounts"]
        assert (account["platform"], account["account"], account["state"], account["works"]) == (*WEB, "running", True)


async def test_an_account_that_does_not_work_makes_the_deep_health_check_fail_and_no_other(site: Site) -> None:
    site.gateway._health.attempted(WEB, Unauthorized("the token was revoked"))
    status, body, _ = await site.ask("GET", "/healthz?deep=1")
    assert (status, body["ok"]) == (503, False)
    (account,) = body["accounts"]
    assert (account["state"], account["reason"]) == ("unauthorized", "sending: the token was revoked")
    assert account["since"]
    assert (await site.ask("GET", "/healthz", headers={}))[0] == 200
    _, status_of_all, _ = await site.ask("GET", "/api/status")
    assert status_of_all["adapters"] == body["accounts"]
    site.gateway._health.attempted(WEB, None)
    assert (await site.ask("GET", "/healthz?deep=1"))[0] == 200


async def test_a_monitors_token_opens_health_and_metrics_and_nothing_else(site: Site) -> None:
    token = await monitor(site)
    for path in ("/healthz?deep=1", "/metrics"):
        assert (await site.ask("GET", path, headers=token))[0] == 200
    for path in ("/api/status", "/api/conversations", "/api/messages?conversation=web:default:main", "/mcp", "/api/me"):
        assert (await site.ask("GET", path, headers=token))[0] == 404
    async with site.http.get(f"{site.url}/ws", headers=token) as refused:
        assert refused.status in (400, 404)
    (listed,) = (await site.ask("GET", "/api/tokens"))[1]["tokens"]
    assert (listed["kind"], listed["conversation"], listed["note"]) == (GrantKind.MONITOR, None, "uptime")
    assert (await site.ask("DELETE", f"/api/tokens/{listed['id']}"))[0] == 204
    assert (await site.ask("GET", "/metrics", headers=token))[0] == 401


@pytest.mark.parametrize("body", [{}, {"monitor": True, "conversation": "web:default:main"}, {"monitor": 1}])
async def test_a_token_is_for_a_conversation_or_for_a_monitor(site: Site, body: dict[str, Any]) -> None:
    assert (await site.ask("POST", "/api/tokens", json=body))[0] == 400


async def test_pages_are_told_when_the_health_of_an_account_changes_and_channel_tokens_are_not(site: Site) -> None:
    async with site.socket(await site.token()) as theirs, site.socket() as ours:
        site.gateway._health.attempted(WEB, Unauthorized("the token was revoked"))
        assert await ours.event("owner") == {"type": "event", "event": "owner"}
        site.gateway.notices.lost()
        await theirs.event("lost")
        assert [event["event"] for event in theirs.events if event["event"] == "owner"] == []
    assert json.dumps(theirs.events).count("revoked") == 0


GROUP = ConversationKey(platform="memory", account="default", channel="team")


async def test_a_group_is_allowed_and_taken_back_by_page_and_program_and_by_nobody_else(site: Site) -> None:
    await site.gateway.store.ask_group(GROUP, "Harbour", Author(id="7", name="Ann"))
    await site.gateway.groups.load()
    _, listed, _ = await site.ask("GET", "/api/groups")
    assert [(g["group"], g["state"], g["inviter"]["name"]) for g in listed["groups"]] == [
        (str(GROUP), "waiting", "Ann")
    ]
    wish = {"group": str(GROUP), "allow": True, "everyone": True}
    for headers, refused in ((await site.token(), 404), ({}, 401)):
        assert (await site.ask("POST", "/api/groups", headers=headers, json=wish))[0] == refused
        assert (await site.ask("GET", "/api/groups", headers=headers))[0] == refused
        assert (await site.ask("GET", "/api/notices", headers=headers))[0] == refused
    status, decided, _ = await site.ask("POST", "/api/groups", headers=await site.browser(), json=wish)
    assert (status, decided["state"], decided["everyone"]) == (200, "allowed", True)
    assert (await site.ask("POST", "/api/groups", json={**wish, "group": "a:b:c"}))[0] == 404
    assert (await site.ask("DELETE", f"/api/groups?group={GROUP}"))[0] == 204
    assert (await site.ask("DELETE", f"/api/groups?group={GROUP}"))[0] == 404


async def test_notices_are_listed_until_they_are_closed_and_pages_are_told(site: Site) -> None:
    async with site.socket() as page:
        await site.gateway.owners.tell("account a:b", "a:b does not work")
        await page.event("owner")
        _, listed, _ = await site.ask("GET", "/api/notices")
        assert [(n["kind"], n["text"]) for n in listed["notices"]] == [("account a:b", "a:b does not work")]
        assert (await site.ask("GET", "/api/status"))[1]["notices"] == listed["notices"]
        assert (await site.ask("DELETE", "/api/notices?kind=account%20a:b"))[0] == 204
        await page.event("owner")
    assert (await site.ask("DELETE", "/api/notices?kind=account%20a:b"))[0] == 404


async def test_the_configuration_is_reloaded_by_people_and_a_rejected_one_is_refused_with_its_reason(
    site: Site,
) -> None:
    file = site.gateway.home.config_file
    file.write_text('[agent]\nname = "Bea"\n')
    status, done, _ = await site.ask("POST", "/api/config/reload", headers=await site.browser(), json={})
    assert status == 200 and "agent.name" in done["applied"]
    assert (await site.ask("GET", "/api/me"))[1]["agent"]["name"] == "Bea"
    file.write_text("[agent\n")
    status, refused, _ = await site.ask("POST", "/api/config/reload", json={})
    assert (status, refused["error"]["code"]) == (422, "rejected")
    assert "it is not valid TOML" in refused["error"]["message"]
    _, state, _ = await site.ask("GET", "/api/config")
    assert "not valid TOML" in state["rejected"] and state["is_last_good"] is False
    assert (await site.ask("GET", "/api/status"))[1]["config"] == state
    file.unlink()
    for body, expected in (({"reconnect": ["web:nobody"]}, 422), ({"reconnect": ["web"]}, 400)):
        assert (await site.ask("POST", "/api/config/reload", json=body))[0] == expected
    for headers, refusal in ((await site.token(), 404), (await monitor(site), 404), ({}, 401)):
        assert (await site.ask("POST", "/api/config/reload", headers=headers, json={}))[0] == refusal
        assert (await site.ask("GET", "/api/config", headers=headers))[0] == refusal


async def test_the_media_check_says_what_it_needs_and_is_for_people_only(site: Site) -> None:
    status, refused, _ = await site.ask("POST", "/api/doctor/live", json={"account": "web:default"})
    assert status == 400 and "is no account on a platform" in refused["error"]["message"]
    assert (await site.ask("POST", "/api/doctor/live", json={"account": "web"}))[0] == 400
    for headers, refusal in ((await site.token(), 404), ({}, 401)):
        wish = {"account": "web:default"}
        assert (await site.ask("POST", "/api/doctor/live", headers=headers, json=wish))[0] == refusal


async def test_taking_over_is_refused_where_no_other_program_gets_the_events(site: Site) -> None:
    status, refused, _ = await site.ask("POST", "/api/take-over", json={"account": "web:default"})
    assert (status, refused["error"]["code"]) == (409, "conflict")
    assert (await site.ask("POST", "/api/take-over", headers=await site.token(), json={"account": "web:x"}))[0] == 404
