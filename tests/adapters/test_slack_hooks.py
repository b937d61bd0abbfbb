"""Slack over HTTP: nothing is read before its signature, and nothing is answered before it is on disk."""

import asyncio
import hashlib
import hmac
import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest

from adapters.slack_harness import App, Apps
from adapters.slack_samples import sample
from belino.domain.ports import Hook
from belino.testing import FakeClock


def signed(app: App, body: bytes, *, secret: str | None = None, late: float = 0.0, **headers: str) -> Hook:
    at = str(int(app.context.clock.now().timestamp() - late))
    key = (secret or app.server.signing_secret).encode()
    signature = hmac.new(key, f"v0:{at}:".encode() + body, hashlib.sha256).hexdigest()
    proof = {
        "x-slack-signature": f"v0={signature}",
        "x-slack-request-timestamp": at,
        "content-type": "application/json",
    }
    return Hook(method="POST", path="/hooks/slack/default", query="", headers={**proof, **headers}, body=body)


def event(name: str) -> bytes:
    return json.dumps(sample(name)).encode()


async def test_a_signed_event_is_taken_and_answered_after_commit(apps: Apps) -> None:
    app = apps(mode="http")
    async with app.listening():
        app.may_take.clear()
        async with asyncio.TaskGroup() as group:
            answer = group.create_task(app.adapter.take_hook(signed(app, event("text_dm"))))
            for _ in range(100):
                await asyncio.sleep(0)
            assert not answer.done()
            app.may_take.set()
    assert (answer.result().status, app.texts) == (200, ["Good morning, can you help me?"])


async def test_slack_is_told_its_challenge_back(apps: Apps) -> None:
    app = apps(mode="http")
    answer = await app.adapter.take_hook(signed(app, b'{"type": "url_verification", "challenge": "c-1"}'))
    assert (answer.status, json.loads(answer.body)) == (200, {"challenge": "c-1"})


@pytest.mark.parametrize(
    "spoil",
    [
        {"secret": "another"},
        {"late": 301.0},
        {"late": -301.0},
        {"x-slack-signature": ""},
        {"x-slack-request-timestamp": "soon"},
        {"x-slack-request-timestamp": "²"},
    ],
    ids=["secret", "late", "early", "unsigned", "no time", "odd digit"],
)
async def test_what_slack_did_not_sign_just_now_is_refused_unread(apps: Apps, spoil: Any) -> None:
    app = apps(mode="http", clock=FakeClock())
    async with app.listening():
        answer = await app.adapter.take_hook(signed(app, event("text_dm"), **spoil))
    assert (answer.status, app.taken) == (401, [])


@pytest.mark.parametrize(
    "spoil",
    [
        {"late": 301.0},
        {"x-slack-signature": ""},
        {"x-slack-signature": "v0=guess"},
        {"x-slack-request-timestamp": "soon"},
        {"x-slack-signature": "", "content-type": "application/x-www-form-urlencoded", "content-length": "1025"},
    ],
    ids=["late", "unsigned", "not a signature", "no time", "a long form"],
)
async def test_a_call_whose_headers_show_no_fresh_signature_is_refused_without_its_body(apps: Apps, spoil: Any) -> None:
    app = apps(mode="http", clock=FakeClock())
    refused = app.adapter.screen_hook(replace(signed(app, event("text_dm"), **spoil), body=b""))
    assert refused is not None and refused.status == 401


async def test_a_call_that_may_be_slacks_has_its_body_read(app: App, apps: Apps) -> None:
    listening = apps(mode="http", clock=FakeClock())
    assert listening.adapter.screen_hook(replace(signed(listening, event("text_dm")), body=b"")) is None
    form = {"content-type": "application/x-www-form-urlencoded", "content-length": "21"}
    unsigned = Hook(method="POST", path="/hooks/slack/default", query="", headers=form, body=b"")
    assert listening.adapter.screen_hook(unsigned) is None, "it may only look at the certificate"
    refused = app.adapter.screen_hook(replace(signed(app, b""), body=b""))
    assert refused is not None and refused.status == 404


async def test_the_signature_is_of_the_very_bytes(apps: Apps) -> None:
    app = apps(mode="http")
    good = signed(app, event("text_dm"))
    changed = Hook(method="POST", path=good.path, query="", headers=good.headers, body=good.body + b" ")
    assert (await app.adapter.take_hook(changed)).status == 401


async def test_a_command_and_an_interaction_come_as_forms(apps: Apps) -> None:
    app = apps(mode="http")
    kind: Any = {"content-type": "application/x-www-form-urlencoded"}
    async with app.listening():
        for body in (
            urlencode({**sample("command"), "text": "status"}).encode(),
            urlencode(sample("command") | {"trigger_id": "2"}).encode(),
            urlencode({"payload": json.dumps(sample("button_press"))}).encode(),
        ):
            assert (await app.adapter.take_hook(signed(app, body, **kind))).status == 200
        assert (await app.adapter.take_hook(signed(app, b"\xff\xfe", **kind))).status == 400
        assert (await app.adapter.take_hook(signed(app, b"", **kind))).status == 400
    assert app.texts == ["/status", "/belino status please"]
    assert len(app.taken) == 3


@pytest.mark.parametrize(
    ("method", "query", "body"), [("GET", "ssl_check=1", b""), ("POST", "", b"token=x&ssl_check=1")]
)
async def test_who_only_looks_at_the_certificate_is_answered_and_not_heard(
    apps: Apps, method: str, query: str, body: bytes
) -> None:
    app = apps(mode="http")
    async with app.listening():
        answer = await app.adapter.take_hook(
            Hook(method=method, path="/hooks/slack/default", query=query, headers={}, body=body)
        )
        said = urlencode({**sample("command"), "text": "ssl_check=1"}).encode()
        form: Any = {"content-type": "application/x-www-form-urlencoded"}
        assert (await app.adapter.take_hook(signed(app, said, **form))).status == 200
    assert (answer.status, app.texts) == (200, ["/belino ssl_check=1"])


async def test_nobody_is_called_who_listens_otherwise_or_not_at_all(app: App, apps: Apps) -> None:
    assert (await app.adapter.take_hook(signed(app, event("text_dm")))).status == 404
    idle = apps(mode="http")
    assert (await idle.adapter.take_hook(signed(idle, event("text_dm")))).status == 503
