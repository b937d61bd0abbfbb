"""Secrets open doors; only their hashes are kept."""

from datetime import timedelta

import pytest

from belino.domain.message import ConversationKey
from belino.domain.stored import GrantKind
from belino.storage.home import Home
from belino.storage.store import Store
from belino.testing.clock import FakeClock
from storage.engines import Engine

MAIN = ConversationKey(platform="web", account="default", channel="main", thread="a:b")


async def test_a_secret_opens_what_it_was_made_for_even_after_a_restart(engine: Engine) -> None:
    store = await engine.open()
    made, secret = await store.grant(GrantKind.CHANNEL, conversation=MAIN, note="for the tools")
    await store.close()
    store = await engine.open()
    assert await store.check(secret) == made
    assert (made.kind, made.conversation, made.note) == (GrantKind.CHANNEL, MAIN, "for the tools")
    assert await store.check(secret + "x") is None
    assert await store.check(made.id) is None
    assert await store.check("") is None
    assert await store.check("\ud800") is None
    await store.close()


async def test_no_secret_is_in_any_file(store: Store, home: Home) -> None:
    secrets = [(await store.grant(kind))[1] for kind in GrantKind]
    everything = b"".join(path.read_bytes() for path in home.path.rglob("*") if path.is_file())
    assert [secret for secret in secrets if secret.encode() in everything] == []


async def test_a_login_secret_is_traded_once_and_opens_nothing_by_itself(store: Store) -> None:
    _, login = await store.grant(GrantKind.LOGIN, lifetime=timedelta(minutes=10))
    assert await store.check(login) is None
    traded = await store.redeem(login, lifetime=timedelta(hours=12))
    assert traded is not None
    browser, secret = traded
    assert (browser.kind, await store.check(secret)) == (GrantKind.BROWSER, browser)
    assert await store.redeem(login, lifetime=timedelta(hours=12)) is None


@pytest.mark.parametrize("kind", [GrantKind.BROWSER, GrantKind.PROGRAM, GrantKind.CHANNEL])
async def test_only_a_login_secret_can_be_traded(store: Store, kind: GrantKind) -> None:
    _, secret = await store.grant(kind)
    assert await store.redeem(secret, lifetime=timedelta(hours=1)) is None
    assert await store.check(secret) is not None


async def test_a_grant_ends_with_its_lifetime(store: Store, clock: FakeClock) -> None:
    made, secret = await store.grant(GrantKind.BROWSER, lifetime=timedelta(hours=1))
    _, login = await store.grant(GrantKind.LOGIN, lifetime=timedelta(hours=1))
    clock.shift(3599)
    assert await store.check(secret) == made
    clock.shift(1)
    assert await store.check(secret) is None
    assert await store.redeem(login, lifetime=timedelta(hours=1)) is None
    assert await store.grants() == ()


async def test_a_revoked_grant_opens_nothing(store: Store) -> None:
    made, secret = await store.grant(GrantKind.PROGRAM)
    kept, _ = await store.grant(GrantKind.PROGRAM)
    assert await store.revoke(made.id) is True
    assert await store.revoke(made.id) is False
    assert await store.check(secret) is None
    assert await store.grants() == (kept,)


async def test_secrets_are_long_and_never_the_same(store: Store) -> None:
    secrets = {(await store.grant(GrantKind.LOGIN))[1] for _ in range(50)}
    assert len(secrets) == 50
    assert min(map(len, secrets)) >= 43  # 32 random bytes
