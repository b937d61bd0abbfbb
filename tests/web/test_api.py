"""What a person and the command line may ask about the running gateway."""

from typing import Any

import pytest

from belino.web.api import slug

MAIN = "web:default:main"


async def say(site: Any, text: str, **more: Any) -> dict[str, Any]:
    status, body, _ = await site.ask("POST", "/api/messages", json={"conversation": MAIN, "message": text, **more})
    assert status == 200
    return dict(body)


@pytest.mark.parametrize(
    ("name", "expected"), [("Holiday 2026!", "holiday-2026"), ("Café  Zürich", "cafe-zurich"), ("日本語", "日本語")]
)
def test_a_name_becomes_a_readable_address(name: str, expected: str) -> None:
    assert slug(name) == expected


@pytest.mark.parametrize("name", ["!!!", "../..", "___", "💥"])
def test_a_name_without_letters_still_gets_an_address(name: str) -> None:
    assert slug(name).isalnum()


async def test_a_conversation_is_opened_under_an_address_nobody_has(site: Any) -> None:
    _, first, _ = await site.ask("POST", "/api/conversations", json={"name": "Trip"})
    status, second, _ = await site.ask("POST", "/api/conversations", json={"name": "Trip"})
    assert status == 201
    assert first["conversation"] == "web:default:trip"
    assert second["conversation"].startswith("web:default:trip-")
    said = {"conversation": second["conversation"], "message": "hi"}
    assert (await site.ask("POST", "/api/messages", json=said))[0] == 200
    _, listed, _ = await site.ask("GET", "/api/conversations")
    found = {entry["conversation"]: entry for entry in listed["conversations"]}
    assert set(found) == {MAIN, first["conversation"], second["conversation"]}
    assert (found[first["conversation"]]["name"], found[first["conversation"]]["platform"]) == ("Trip", "web")


async def test_a_message_over_http_says_what_became_of_it_and_can_be_explained(site: Any) -> None:
    said = await say(site, "hello", id="m1")
    assert set(said) == {"message_id", "outcome", "reason", "trace"}
    for name in (f"{MAIN}/m1", said["trace"], "m1"):
        status, story, _ = await site.ask("GET", f"/api/explain?message={name}")
        assert (status, story["trace"]) == (200, said["trace"])
        assert {"received", "stored", "gate"} <= {step["stage"] for step in story["steps"]}
    assert (await site.ask("GET", "/api/explain?message=nothing"))[0] == 404
    own = await site.token()
    assert (await site.ask("GET", f"/api/explain?message={MAIN}/m1", headers=own))[0] == 200
    assert (await site.ask("GET", "/api/explain?message=m1", headers=own))[0] == 404


async def test_the_gateway_at_a_glance(site: Any) -> None:
    await say(site, "hello")
    status, told, _ = await site.ask("GET", "/api/status")
    assert status == 200
    assert told["agent"] == {"name": "belino", "kind": "demo"}
    assert [(found["platform"], found["state"]) for found in told["adapters"]] == [("web", "running")]
    assert told["counts"]["messages"] >= 1
    _, channels, _ = await site.ask("GET", "/api/channels")
    assert [found["channel"] for found in channels["channels"]] == [MAIN]
    assert (await site.ask("GET", "/api/outbox?state=dead"))[1] == {"parcels": []}
    assert (await site.ask("GET", "/api/outbox?state=nonsense"))[0] == 400


async def test_the_doctor_looks_at_everything(site: Any) -> None:
    _, told, _ = await site.ask("GET", "/api/doctor")
    found = {finding["name"]: finding for finding in told["findings"]}
    assert {"python", "sandbox", "modes", "disk", "store", "web:default"} <= set(found)
    assert found["modes"]["ok"]
    (site.gateway.home.path / "leak.txt").touch(mode=0o644)
    (site.gateway.home.path / "leak.txt").chmod(0o644)
    _, told, _ = await site.ask("GET", "/api/doctor")
    modes = next(finding for finding in told["findings"] if finding["name"] == "modes")
    assert not told["ok"]
    assert "leak.txt" in modes["says"]
    assert modes["cure"]


async def test_metrics_are_text_with_numbers_of_store_and_gateway(site: Any) -> None:
    await say(site, "hello")
    status, body, headers = await site.ask("GET", "/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b'belino_store{what="messages"}' in body
    assert b'belino_arrivals_total{outcome="waiting"} 1.0' in body
    assert b'belino_tokens_not_spent{channel="web:default:main"} 0.0' in body


async def test_no_answer_holds_a_secret(site: Any) -> None:
    secrets = [site.program["Authorization"].removeprefix("Bearer "), site.login_url.partition("#token=")[2]]
    secrets += [(await site.token())["Authorization"].removeprefix("Bearer ")]
    secrets += [(site.gateway.home.key_file).read_bytes().hex()]
    paths = ["me", "conversations", "status", "channels", "outbox", "tokens", "doctor", "media"]
    for path in [f"/api/{name}" for name in paths] + ["/metrics", "/healthz", "/"]:
        _, body, headers = await site.ask("GET", path)
        assert not [secret for secret in secrets if secret in f"{body!r}{headers!r}"], path


async def test_a_token_made_for_a_conversation_speaks_there_under_its_own_name(site: Any) -> None:
    body = {"conversation": MAIN, "message": "from a program"}
    assert (await site.ask("POST", "/api/messages", headers=await site.token(), json=body))[0] == 200
    _, page, _ = await site.ask("GET", f"/api/messages?conversation={MAIN}")
    assert page["messages"][0]["author"]["id"].startswith("token:")
