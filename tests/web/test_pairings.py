"""Pairing over HTTP: seen and approved by the person the gateway belongs to, and by nobody else."""

import pytest

from belino.domain.message import Author, ConversationKey
from belino.domain.reply import Parcel
from web.conftest import Site


async def asked(site: Site, sender: str = "7", code: str = "AAAA1111") -> None:
    where = ConversationKey(platform="memory", account="default", channel=sender)
    parcel = Parcel(key=f"pairing-{sender}", conversation=where, text="code", trace="t")
    assert await site.gateway.store.ask_pairing(Author(id=sender, name="Eve"), parcel, code)


async def test_a_code_is_approved_by_page_and_program_and_taken_back(site: Site) -> None:
    await asked(site, "7", "AAAA1111")
    await asked(site, "8", "BBBB2222")
    for headers, code in ((site.program, "aaaa-1111"), (await site.browser(), "BBBB2222")):
        status, paired, _ = await site.ask("POST", "/api/pairings", headers=headers, json={"code": code})
        assert (status, paired["state"]) == (201, "paired")
    _, listed, _ = await site.ask("GET", "/api/pairings")
    assert [(p["who"], p["state"]) for p in listed["pairings"]] == [
        ("memory:default:7", "paired"),
        ("memory:default:8", "paired"),
    ]
    assert (await site.ask("DELETE", "/api/pairings?who=memory:default:7"))[0] == 204
    assert (await site.ask("DELETE", "/api/pairings?who=memory:default:7"))[0] == 404
    assert not await site.gateway.store.is_paired("memory", "default", "7")


async def test_the_list_of_who_waits_holds_no_code(site: Site) -> None:
    await asked(site, "7", "AAAA1111")
    status, listed, _ = await site.ask("GET", "/api/pairings")
    assert status == 200 and listed["pairings"][0]["state"] == "waiting"
    assert "AAAA1111" not in str(listed)


async def test_guessing_ends_every_waiting_code_after_five_tries(site: Site) -> None:
    await asked(site, "7", "AAAA1111")
    for guess in range(5):
        assert (await site.ask("POST", "/api/pairings", json={"code": f"WRONG{guess}"}))[0] == 404
    assert (await site.ask("POST", "/api/pairings", json={"code": "AAAA1111"}))[0] == 404
    assert (await site.ask("GET", "/api/pairings"))[1]["pairings"][0]["state"] == "refused"


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", ""), ("DELETE", "?who=memory:default:7")])
async def test_neither_a_conversations_token_nor_a_stranger_sees_or_approves_anybody(
    site: Site, method: str, path: str
) -> None:
    await asked(site, "7", "AAAA1111")
    body = {"json": {"code": "AAAA1111"}} if method == "POST" else {}
    for headers, refused in ((await site.token(), {403, 404}), ({}, {401})):
        assert (await site.ask(method, f"/api/pairings{path}", headers=headers, **body))[0] in refused
    assert not await site.gateway.store.is_paired("memory", "default", "7")
