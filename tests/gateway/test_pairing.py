"""A stranger writes to the agent directly, is told a code, and is let in by whoever runs the gateway."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from belino.config import AccessConfig
from belino.domain.message import Author, Message, Unsupported
from belino.domain.outcome import MessageOutcome, Standing
from belino.domain.reply import Parcel
from belino.gateway.access import ALPHABET, CODE_CHARS, invitation, new_code, plain_code
from belino.gateway.gateway import Gateway
from gateway.house import ACCESS, ANN, EVE, House, until

CODE = re.compile(r"\b[0-9A-Z]{4}-[0-9A-Z]{4}\b")


def codes(parcels: list[Parcel]) -> list[str]:
    return [CODE.findall(parcel.text)[0] for parcel in parcels]


async def paired(gateway: Gateway, house: House, author: Author = EVE) -> None:
    """Eve writes, is told a code, and the operator approves it."""
    wire = house.wires["default"]
    before = len(wire.seen)
    await gateway.accept(house.say("let me in", author=author, channel=f"dm-{author.id}"))
    await until(lambda: len(wire.seen) > before)
    assert await gateway.store.pair(plain_code(codes(wire.seen)[-1])) is not None


async def test_a_stranger_is_told_a_code_and_may_command_once_it_is_approved(house: House) -> None:
    async with house.at_work() as gateway:
        await paired(gateway, house)
        taken = await gateway.accept(house.say("hello again", author=EVE, channel="dm-eve"))
        assert taken.outcome is MessageOutcome.WAITING


async def test_nothing_of_a_strangers_message_is_kept(house: House, tmp_path: Path) -> None:
    async with house.at_work() as gateway:
        message = house.say("my secret is canary-77", author=replace(EVE, name="Eve canary-88 [Image: x, ref:a_b]"))
        message = replace(message, conversation=replace(message.conversation, channel="dm-eve"))
        message = replace(message, media=(house.picture(message, name="canary-77.png"),))
        taken = await gateway.accept(message)
        assert (taken.outcome, taken.reason, taken.refs) == (MessageOutcome.DENIED, "not paired", ())
        assert await gateway.store.refs(None) == () and await house.history(gateway, "dm-eve") == ()
        (waiting,) = await gateway.store.pairings()
        assert waiting.sender_id == "eve" and "[" not in waiting.name
    held = b"".join(path.read_bytes() for path in house.home.path.rglob("*") if path.is_file())
    assert b"canary-77" not in held


async def test_a_stranger_is_told_once_however_much_they_write(house: House) -> None:
    async with house.at_work() as gateway:
        for _ in range(5):
            await gateway.accept(house.say(author=EVE, channel="dm-eve"))
        wire = house.wires["default"]
        await until(lambda: wire.seen)
        assert len(await gateway.store.parcels()) == 1
        house.clock.shift(600)
        await gateway.accept(house.say(author=EVE, channel="dm-eve"))
        await until(lambda: len(wire.seen) == 2)
        assert len(set(codes(wire.seen))) == 2


async def test_a_crowd_of_strangers_is_told_three_codes(house: House) -> None:
    async with house.at_work() as gateway:
        for number in range(20):
            await gateway.accept(house.say(author=Author(id=f"s{number}", name="S"), channel=f"dm-{number}"))
        assert len(await gateway.store.parcels()) == len(await gateway.store.pairings()) == 3
        assert (await gateway.store.counts())["denied"] == 20


async def test_pairing_gives_no_right_in_any_channel(house: House) -> None:
    async with house.at_work() as gateway:
        await paired(gateway, house)
        assert "eve" not in ACCESS.channels["team"].senders
        assert (await gateway.accept(house.say(author=EVE, channel="team"))).outcome is MessageOutcome.OBSERVED
        assert (await gateway.accept(house.say(author=EVE, channel="group-9"))).outcome is MessageOutcome.DENIED


async def test_who_is_unpaired_is_denied_from_the_next_message_on(house: House) -> None:
    async with house.at_work() as gateway:
        await paired(gateway, house)
        await gateway.store.unpair("memory", "default", "eve")
        assert (await gateway.accept(house.say(author=EVE, channel="dm-eve"))).outcome is MessageOutcome.DENIED


async def test_a_pairing_survives_a_restart(house: House) -> None:
    async with house.at_work() as gateway:
        await paired(gateway, house)
    async with house.at_work() as gateway:
        taken = await gateway.accept(house.say(author=EVE, channel="dm-eve"))
        assert taken.outcome is MessageOutcome.WAITING


@pytest.mark.parametrize("sender", [Author(id="r2", name="R2", is_bot=True), Author(id="a", name="A", is_agent=True)])
async def test_a_bot_is_never_told_a_code(house: House, sender: Author) -> None:
    async with house.at_work() as gateway:
        await gateway.accept(house.say(author=sender, channel="dm-bot"))
        assert await gateway.store.parcels() == ()


async def test_only_something_said_directly_is_answered_with_a_code(house: House) -> None:
    async with house.at_work() as gateway:
        said = house.say(author=EVE, channel="dm-eve")
        await gateway.accept(
            Unsupported(conversation=said.conversation, id="u1", author=EVE, sent=said.sent, what="a dance")
        )
        await gateway.accept(house.say(author=EVE, channel="group-9"))
        await gateway.accept(house.say(author=ANN))
        too_long = house.say("x" * (gateway.config.sessions.max_text_chars + 1), author=EVE, channel="dm-eve")
        await gateway.accept(too_long)
        assert await gateway.store.pairings() == ()


async def test_where_only_the_list_counts_nobody_is_told_anything_and_no_pairing_opens(house: House) -> None:
    async with house.at_work() as gateway:
        await paired(gateway, house)
    house.access = replace(ACCESS, direct="list")
    async with house.at_work() as gateway:
        taken = await gateway.accept(house.say(author=EVE, channel="dm-eve"))
        assert (taken.outcome, taken.reason) == (MessageOutcome.DENIED, "not on the list for direct messages")
        assert not [p for p in await gateway.store.pairings() if not p.is_paired]


async def test_a_code_has_forty_bits_and_forgives_how_it_is_typed() -> None:
    assert len(set(ALPHABET)) == 32 and CODE_CHARS * 5 >= 40
    code = new_code()
    assert CODE.fullmatch(code) and code != new_code()
    assert plain_code(f" {code.lower()} ") == plain_code(code) == code.replace("-", "")
    assert plain_code("oil0-1234") == "01101234"
    assert code in invitation(code) and "Nothing of your message was kept" in invitation(code)


def test_the_default_is_pairing() -> None:
    assert AccessConfig().direct == "pairing"


def test_the_standing_of_a_message_says_that_it_was_a_pairing(house: House) -> None:
    from belino.gateway.access import decide

    message: Message = house.say(author=EVE, channel="dm-eve")
    verdict = decide(message, ACCESS, paired=True)
    assert (verdict.standing, verdict.reason, verdict.answer) == (Standing.MAY_COMMAND, "paired", True)
