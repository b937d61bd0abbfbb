"""What the doctor finds about an app, and what setup asks: each common mistake with its cure."""

from datetime import timedelta

import pytest

from adapters.slack_harness import App, Apps
from belino.adapters.slack import SETUP
from belino.adapters.slack.capabilities import EVENTS, SCOPES, manifest
from belino.testing import FakeClock, SlackServer
from belino.testing.faults import CannedAnswer


async def test_an_app_that_is_well_is_found_well(slack: SlackServer, app: App) -> None:
    slack.channel("general", slack.user("Ada"))
    findings = await app.adapter.check()
    assert findings[0].name == "slack:default token"
    assert all(finding.ok for finding in findings), findings
    assert "belino" in findings[0].says
    assert any("it is in 1" in finding.says for finding in findings)


@pytest.mark.parametrize("scope", ["files:read", "chat:write", "channels:history", "users:read"])
async def test_a_missing_scope_is_named_with_its_cure(slack: SlackServer, app: App, scope: str) -> None:
    slack.scopes.discard(scope)
    found = next(finding for finding in await app.adapter.check() if finding.name.endswith("scopes"))
    assert not found.ok
    assert scope in found.says
    assert "Reinstall" in found.cure


async def test_a_wrong_bot_token_is_the_first_thing_found(apps: Apps) -> None:
    (found,) = await apps(bot_token="xoxb-wrong").adapter.check()
    assert (found.name, found.ok) == ("slack:default token", False)
    assert "OAuth & Permissions" in found.cure


async def test_a_wrong_app_token_or_socket_mode_off_comes_first_too(slack: SlackServer, apps: Apps) -> None:
    first, *_ = await apps(app_token="xapp-wrong").adapter.check()
    assert not first.ok
    assert "connections:write" in first.cure
    slack.api.socket_mode_on = False
    first, *_ = await apps().adapter.check()
    assert not first.ok
    assert "Enable Socket Mode" in first.cure


async def test_an_app_in_no_channel_is_told_how_to_get_into_one(app: App) -> None:
    found = next(finding for finding in await app.adapter.check() if finding.name.endswith("channels"))
    assert "/invite" in found.cure


async def test_listed_channels_the_app_is_not_in_are_named_with_the_cure(slack: SlackServer, app: App) -> None:
    ada = slack.user("Ada")
    inside, outside, old = (slack.channel(name, ada) for name in ("inside", "outside", "old"))
    slack.members[outside["id"]].discard(slack.bot["id"])
    old["is_archived"] = True
    direct = slack.dm(ada)
    found = await app.adapter.check_channels([direct["id"], inside["id"], outside["id"], old["id"], "C0NOWHERE1"])
    assert [(finding.ok, finding.name.rpartition(" ")[2]) for finding in found] == [
        (False, outside["id"]), (False, old["id"]), (False, "C0NOWHERE1"),
    ]  # fmt: skip
    assert "#outside" in found[0].says
    assert "/invite" in found[0].cure
    assert "archived" in found[1].says


async def test_an_unreachable_slack_and_a_wrong_clock_are_found(slack: SlackServer, apps: Apps) -> None:
    app = apps(clock=FakeClock(slack.clock.now() + timedelta(hours=1)))
    found = next(finding for finding in await app.adapter.check() if finding.name.endswith("clock"))
    assert not found.ok
    slack.fail("auth.test", CannedAnswer(status=502, body=b"<html>"))
    (found,) = await apps().adapter.check()
    assert not found.ok


def test_the_manifest_asks_for_everything_that_is_used() -> None:
    written = manifest()
    assert all(f"- {each}\n" in written for each in (*SCOPES, *EVENTS))
    assert "socket_mode_enabled: true" in written
    assert manifest() in SETUP[0].tells
    asked = [(question.key, question.when) for question in SETUP]
    assert asked == [
        ("bot_token", None), ("app_token", ("mode", "socket")), ("signing_secret", ("mode", "http")),
    ]  # fmt: skip
