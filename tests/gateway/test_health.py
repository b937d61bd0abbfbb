"""The health of accounts: what works, not what runs."""

from datetime import timedelta

import pytest

from belino.domain.errors import AdapterError, ListeningRefused, RateLimited, Unauthorized, Undeliverable, Unreached
from belino.gateway.health import FAILED_SENDS, PROVED_SECONDS, AccountState, AdapterHealth, HealthBoard
from belino.testing import FakeClock
from gateway.house import House, until

HERE, THERE = ("memory", "default"), ("memory", "other")
REFUSED = Unauthorized("the token was revoked")


class Board:
    """The health of two accounts, and who was told."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.worked: list[tuple[str, str]] = []
        self.changed: list[tuple[str, str]] = []
        self.board = HealthBoard(self.clock, works=self.worked.append, changed=self.changed.append)
        for account in (HERE, THERE):
            self.board.add(account)
            self.listens("running", account=account)
        self.changed.clear()

    def listens(self, state: AccountState, reason: str = "", account: tuple[str, str] = HERE) -> None:
        self.board.listening(account, AdapterHealth(state=state, since=self.clock.now(), reason=reason))

    @property
    def here(self) -> AdapterHealth:
        return self.board.all()[HERE]

    @property
    def told(self) -> tuple[str, str]:
        return self.here.state, self.here.reason


def test_an_account_that_connects_is_not_called_broken_until_that_takes_long() -> None:
    room = Board()
    room.listens("starting")
    assert room.here.works
    room.listens("starting", "its platform did not answer")
    assert not room.here.works


def test_a_refused_send_is_told_while_listening_goes_on_and_forgotten_with_the_next_success() -> None:
    room = Board()
    room.board.attempted(HERE, REFUSED)
    assert room.told == ("unauthorized", "sending: the token was revoked")
    assert room.board.all()[THERE].works
    assert room.changed == [HERE]
    room.board.attempted(HERE, REFUSED)
    assert room.changed == [HERE]
    room.board.attempted(HERE, None)
    assert (room.told, room.here.sent) == (("running", ""), room.clock.now())
    assert room.changed == [HERE, HERE]


def test_sends_that_fail_for_other_reasons_count_once_there_are_several_in_a_row() -> None:
    room = Board()
    for _ in range(FAILED_SENDS - 1):
        room.board.attempted(HERE, Unreached("nobody is there"))
    assert room.here.works
    room.board.attempted(HERE, ValueError("bot123:secret"))
    assert room.told == ("impaired", "sending: the adapter fails (ValueError)")
    room.board.attempted(HERE, AdapterError("status 502"))
    assert room.here.reason == "sending: status 502"


@pytest.mark.parametrize("error", [Undeliverable("the person has blocked us"), RateLimited("slowly", retry_after=1)])
def test_a_refused_parcel_or_pace_is_no_trouble_of_the_account(error: AdapterError) -> None:
    room = Board()
    for _ in range(2 * FAILED_SENDS):
        room.board.attempted(HERE, error)
    assert room.here.works
    room.board.attempted(HERE, REFUSED)
    room.board.attempted(HERE, error)
    assert room.here.works is isinstance(error, Undeliverable)


def test_what_an_adapter_reports_is_told_until_it_works_or_connects_again() -> None:
    room = Board()
    room.board.report(HERE, "content", "the intent is off")
    room.board.report(HERE, "gateway", "it fails")
    assert room.told == ("impaired", "the intent is off; it fails")
    room.board.report(HERE, "gateway")
    assert room.told == ("impaired", "the intent is off")
    room.listens("starting")
    room.listens("running")
    assert room.here.works
    room.board.report(HERE, "token", "the app was uninstalled", is_refusal=True)
    assert room.told == ("unauthorized", "the app was uninstalled")


def test_a_note_is_told_of_an_account_that_works_all_the_same() -> None:
    house = Board()
    house.board.report(HERE, "catch-up", "3 channels were left out", is_note=True)
    assert house.told == ("running", "3 channels were left out") and house.here.works
    house.board.report(HERE, "intent", "the intent is off")
    assert house.told == ("impaired", "3 channels were left out; the intent is off") and not house.here.works


def test_refused_sends_are_still_told_after_the_adapter_connects_again() -> None:
    room = Board()
    room.board.attempted(HERE, REFUSED)
    room.listens("starting")
    room.listens("running")
    assert room.here.reason == "sending: the token was revoked"


def test_every_success_is_passed_on_so_that_what_waits_is_tried_sooner() -> None:
    room = Board()
    room.board.heard(HERE)
    room.board.report(HERE, "API")
    room.board.attempted(HERE, None)
    assert room.worked == [HERE] * 3
    assert room.here.heard == room.clock.now()
    room.board.report(HERE, "API", "it fails")
    room.board.attempted(HERE, REFUSED)
    assert room.worked == [HERE] * 3


async def test_it_is_told_since_when_an_account_does_not_work_also_if_it_came_back_for_a_moment() -> None:
    room = Board()
    await room.clock.advance(100)
    began = room.clock.now()
    for _ in range(3):
        room.listens("unauthorized", "who are you?")
        await room.clock.advance(60)
        room.listens("starting", "who are you?")
        room.listens("running")
        await room.clock.advance(1)
    room.listens("unauthorized", "who are you?")
    assert room.here.since == began
    room.listens("running")
    await room.clock.advance(PROVED_SECONDS)
    room.listens("unauthorized", "who are you?")
    assert room.here.since == began + timedelta(seconds=183 + PROVED_SECONDS)


def test_an_account_that_is_removed_is_forgotten_and_late_reports_about_it_are_ignored() -> None:
    room = Board()
    room.board.remove(HERE)
    room.board.report(HERE, "API", "it fails")
    room.board.heard(HERE)
    room.board.attempted(HERE, REFUSED)
    room.listens("running")
    assert set(room.board.all()) == {THERE}


async def test_a_platform_that_hands_out_no_events_is_told_and_answers_still_go_out(house: House) -> None:
    house.prepare().deaths.append(ListeningRefused("another program listens"))
    async with house.at_work() as gateway:
        await until(lambda: gateway.health()[HERE].state == "impaired")
        assert gateway.health()[HERE].reason == "another program listens"
        await gateway.accept(house.say())
        await until(lambda: house.wire.texts() == ["turn 1"])
        await until(lambda: gateway.health()[HERE].works)  # the answer shows that the token is valid
