"""Pages of a TIFF: each is read, on its own and once, and copies of it in another size are none."""

import io
from typing import Any

from PIL import Image, TiffImagePlugin

from belino.domain.message import ConversationKey
from belino.domain.reading import Read, ReadingForm, Skill
from belino.domain.search import SearchIntent, SearchQuery
from belino.media.price import Facts
from understanding.reading_house import ReadingHouse
from understanding.scripted import Call, Script, Shelf

TIFF = "image/tiff"
CHANNEL = ConversationKey(platform="web", account="default", channel="main")
NUMBERS = ("one", "two", "three")
REDUCED = 1


def tiff(*sizes: tuple[int, int, int]) -> bytes:
    """Pictures of a width, height and kind; the shade of grey tells which one it is."""
    pictures = [Image.new("L", (width, height), 40 * index) for index, (width, height, _) in enumerate(sizes)]
    for picture, (*_, kind) in zip(pictures, sizes, strict=True):
        picture.encoderinfo = {"tiffinfo": tags(kind)}
    file = io.BytesIO()
    pictures[0].save(file, "TIFF", save_all=True, append_images=pictures[1:], tiffinfo=tags(sizes[0][2]))
    return file.getvalue()


def tags(kind: int) -> Any:
    made = TiffImagePlugin.ImageFileDirectory_v2()
    made[254] = kind
    return made


def lens(shelf: Shelf) -> Script:
    def answer(call: Call) -> Read:
        (pixels,) = call.data
        return Read(text=f"the page {NUMBERS[pixels[-1] // 40]}", model="m")

    return shelf.add("local_lens", Skill.READ_TEXT, answer=answer)


async def test_every_page_of_a_tiff_is_read_and_found(house: ReadingHouse, shelf: Shelf) -> None:
    script, understanding = lens(shelf), house.understanding()
    record = await house.send(tiff((400, 300, 0), (300, 400, 0), (200, 200, 0)), TIFF, name="scan.tiff")
    (reading,) = (await house.read(understanding, record)).readings
    assert [line for line in reading.text.splitlines() if line.startswith("the page")] == [
        "the page one",
        "the page two",
        "the page three",
    ]
    assert (reading.kind, len(script.calls)) == ("image.text", 3)
    (hit,) = (await house.store.search(CHANNEL, SearchQuery(intents=(SearchIntent(text="three"),)))).hits
    assert hit.message.id == record.ref.message_id
    again = await house.item(understanding, record, ReadingForm.TEXT)
    assert (again.cached, again.document.total, len(script.calls)) == (True, 3, 3)


async def test_one_page_of_a_tiff_is_read_when_it_is_asked_for(house: ReadingHouse, shelf: Shelf) -> None:
    script, understanding = lens(shelf), house.understanding()
    record = await house.send(tiff((400, 300, 0), (300, 400, 0), (200, 200, 0)), TIFF, name="scan.tiff")
    item = await house.item(understanding, record, ReadingForm.TEXT, pages=(2, 2))
    assert [(part.number, part.text) for part in item.document.parts] == [(2, "the page two")]
    assert len(script.calls) == 1


async def test_smaller_copies_in_a_tiff_are_no_pages(house: ReadingHouse, shelf: Shelf) -> None:
    script, understanding = lens(shelf), house.understanding()
    record = await house.send(tiff((400, 300, 0), (100, 75, REDUCED), (300, 400, 0)), TIFF, name="scan.tiff")
    item = await house.item(understanding, record, ReadingForm.TEXT)
    assert [part.text for part in item.document.parts] == ["the page one", "the page three"]
    assert len(script.calls) == 2


async def test_the_price_of_a_tiff_counts_the_pages_that_are_not_read_yet(house: ReadingHouse, shelf: Shelf) -> None:
    lens(shelf)
    understanding = house.understanding()
    facts = Facts(mime=TIFF, size=100_000)
    one = understanding.prices(facts, CHANNEL)[ReadingForm.TEXT].tokens
    several = Facts(mime=TIFF, size=100_000, text_tokens=0, scans=3, parts=3)
    assert understanding.prices(several, CHANNEL)[ReadingForm.TEXT].tokens > 2 * one


async def test_a_tiff_of_several_pages_is_read_ahead_page_by_page(house: ReadingHouse, shelf: Shelf) -> None:
    script, understanding = lens(shelf), house.understanding()
    record = await house.send(tiff((400, 300, 0), (300, 400, 0)), TIFF, name="scan.tiff")
    sender = await house.store.sender_of(CHANNEL, record.ref.id)
    place, steps = 1.0, 0
    while steps < 5:
        async with house.hold(record) as blob:
            read = await understanding.read_ahead(record, blob, ReadingForm.TEXT, place, sender)
        steps += 1
        if read.next is None:
            break
        place = read.next
    assert (steps, len(script.calls)) == (2, 2)
