"""An answer that may be missing is reported with the next one in its chat, once."""

from auditing import accounts_balance
from belino.domain.reply import Parcel, ParcelState
from belino.testing import ScriptedAgent
from belino.turns.reply import DOUBT
from gateway.house import House

__all__ = ["accounts_balance"]


async def test_the_next_answer_begins_with_a_line_about_the_one_in_doubt(house: House) -> None:
    house.agent = ScriptedAgent("first", "second", "third", "elsewhere")
    async with house.at_work() as gateway:
        await house.ask(gateway, house.say())
    async with house.gateway() as gateway:
        lost = Parcel(key="lost", conversation=house.say().conversation, text="lost", trace="lost")
        await gateway.store.put_parcels([lost])
        await gateway.store.end_parcel(lost.key, ParcelState.UNCERTAIN, "no answer came")
    async with house.at_work() as gateway:
        for _ in range(2):
            await house.ask(gateway, house.say())
        await house.ask(gateway, house.say(channel="team", addressed=True))
    assert house.wire.texts() == ["first", f"{DOUBT}\n\nsecond", "third", "elsewhere"]
