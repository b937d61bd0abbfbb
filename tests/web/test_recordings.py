"""Recordings over HTTP, for the person the gateway belongs to."""

from pathlib import Path
from typing import Any

from web.conftest import MAIN


async def test_a_recording_is_begun_seen_and_ended_by_its_owner(site: Any) -> None:
    assert (await site.ask("GET", "/api/recording"))[:2] == (200, {"recording": None})
    status, told, _ = await site.ask("POST", "/api/recording", json={"conversation": str(MAIN)})
    assert (status, told["recording"]["conversation"], told["recording"]["ended"]) == (201, str(MAIN), "")
    assert (await site.ask("POST", "/api/recording", json={}))[0] == 409
    assert (await site.ask("GET", "/api/status"))[1]["recording"]["conversation"] == str(MAIN)
    findings = (await site.ask("GET", "/api/doctor"))[1]["findings"]
    assert [finding["ok"] for finding in findings if finding["name"] == "recording"] == [True]
    status, written, _ = await site.ask("DELETE", "/api/recording")
    assert status == 200
    assert Path(written["path"]).parent == site.gateway.home.cassettes
    assert Path(written["path"]).stat().st_mode & 0o777 == 0o600
    assert (await site.ask("DELETE", "/api/recording"))[0] == 409


async def test_a_channels_token_records_nothing(site: Any) -> None:
    own = await site.token()
    for method in ("GET", "POST", "DELETE"):
        status, _, _ = await site.ask(method, "/api/recording", headers=own)
        assert status in (403, 404)
    assert site.gateway.recorder.state() is None


async def test_a_wish_that_is_no_switch_is_refused(site: Any) -> None:
    status, told, _ = await site.ask("POST", "/api/recording", json={"without_text": "yes"})
    assert status == 400
    assert "true or false" in told["error"]["message"]
