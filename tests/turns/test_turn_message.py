"""An agent gets the message itself: its words, its author, and media that it opens on request."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from belino import Final, ReplyPart, ToolError, Turn, TurnMessage
from belino.domain.media import MediaKind
from belino.domain.message import Author, Quote
from belino.testing import make_png
from gateway.house import BOB, House, until

PICTURE = make_png(4, 3)


class Reader:
    """Opens what the message brings."""

    remembers = sees_images = False

    def __init__(self) -> None:
        self.messages: list[TurnMessage] = []
        self.opened: list[bytes | str] = []

    async def run_turn(self, turn: Turn) -> AsyncIterator[ReplyPart]:
        self.messages += turn.messages
        assert turn.message is turn.messages[-1]
        for ref in turn.message.media:
            try:
                self.opened.append((await turn.open(ref)).read_bytes())
            except ToolError as error:
                self.opened.append(str(error))
        yield Final(text="done")


@pytest.fixture
def reader(house: House) -> Reader:
    house.agent = reader = Reader()
    return reader


async def test_a_message_comes_with_its_words_its_author_and_media_that_is_fetched_when_opened(
    house: House, reader: Reader
) -> None:
    house.prepare()._far_side.files["f1"] = PICTURE
    quote = Quote(author=Author(id="9", name="Cy"), message_id="m0", text="which one?")
    message = replace(house.say("[Image: this one] | please"), quote=quote)
    async with house.at_work() as gateway:
        await house.ask(gateway, replace(message, media=(house.picture(message),)))
    (told,) = reader.messages
    assert (told.id, told.author, told.sent, told.text) == (message.id, message.author, message.sent, message.text)
    assert [(ref.kind, ref.file_name, bool(ref.id)) for ref in told.media] == [(MediaKind.IMAGE, "photo.png", True)]
    assert told.quote is not None and told.quote.text == "which one?"
    assert reader.opened == [PICTURE]


async def test_the_words_of_a_caption_are_the_words_of_the_message(house: House, reader: Reader) -> None:
    message = house.say("")
    async with house.at_work() as gateway:
        await house.ask(gateway, replace(message, media=(replace(house.picture(message), caption="what is it?"),)))
    assert [told.text for told in reader.messages] == ["what is it?"]


async def test_the_items_of_an_album_are_messages_of_one_turn(house: House, reader: Reader) -> None:
    async with house.at_work() as gateway:
        for name in ("a.png", "b.png"):
            message = house.say(name)
            picture = house.picture(message, item=name, name=name)
            await gateway.accept(replace(message, media=(picture,), album="holiday"))
        await house.pass_album()
        await until(lambda: gateway.counters.turns)
    assert [(told.text, [ref.file_name for ref in told.media]) for told in reader.messages] == [
        ("a.png", ["a.png"]),
        ("b.png", ["b.png"]),
    ]


async def test_what_was_sent_shortly_before_belongs_to_the_question(house: House, reader: Reader) -> None:
    house.prepare()._far_side.files["f1"] = PICTURE
    async with house.at_work() as gateway:
        shot = house.say("", author=BOB, channel="team", addressed=False)
        await gateway.accept(replace(shot, media=(house.picture(shot),)))
        await house.ask(gateway, house.say("what is that?", author=BOB, channel="team"))
    assert [told.text for told in reader.messages] == ["what is that?"]
    assert reader.opened == [PICTURE]


async def test_media_that_cannot_be_had_is_told_in_a_sentence(house: House, reader: Reader) -> None:
    house.prepare()
    message = house.say("look")
    async with house.at_work() as gateway:
        await house.ask(gateway, replace(message, media=(house.picture(message, item="gone"),)))
    (sentence,) = reader.opened
    assert isinstance(sentence, str) and "tg_" not in sentence
