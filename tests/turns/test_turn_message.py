"""An agent gets the message itself: its words, its author, and media that it opens on request."""

from dataclasses import replace

import pytest

from belino import Accepted, Final, ReplyParts, TextBlock, ToolError, Turn, TurnMessage
from belino.context.budget import ContextConfig
from belino.domain.media import MediaKind
from belino.domain.message import Author, Quote
from belino.media.fetch import MediaConfig
from belino.testing import make_png
from gateway.house import BOB, House, until

PICTURE = make_png(4, 3)


class Reader:
    """Opens what the message brings."""

    remembers = sees_images = False

    def __init__(self) -> None:
        self.messages: list[TurnMessage] = []
        self.opened: list[bytes | str] = []

    async def run_turn(self, turn: Turn) -> ReplyParts:
        self.messages += turn.messages
        assert turn.message is turn.messages[-1]
        for attachment in turn.message.attachments:
            try:
                self.opened.append(b"".join([chunk async for chunk in attachment.open()]))
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
    (picture,) = told.attachments
    assert (picture.kind, picture.name, picture.mime) == (MediaKind.IMAGE, "photo.png", "image/png")
    assert picture.ref.startswith("memory_")
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
    assert [(told.text, [picture.name for picture in told.attachments]) for told in reader.messages] == [
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


async def test_a_reply_names_the_message_that_it_replies_to(house: House, reader: Reader) -> None:
    async with house.at_work() as gateway:
        await house.ask(gateway, replace(house.say("yes"), reply_to="m7"))
    assert [told.reply_to for told in reader.messages] == ["m7"]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (MediaConfig(max_bytes=10), "is over 10B"),
        (MediaConfig(max_bytes=200, channel_bytes_per_day=10), "may fetch 10B a day"),
    ],
)
async def test_an_opened_attachment_keeps_the_limits_of_the_channel(
    house: House, reader: Reader, limits: MediaConfig, reason: str
) -> None:
    house.prepare()._far_side.files["f1"] = PICTURE
    message = house.say("look")
    house.media = limits
    async with house.at_work() as gateway:
        await house.ask(gateway, replace(message, media=(house.picture(message),)))
    (sentence,) = reader.opened
    assert isinstance(sentence, str) and reason in sentence


class Shower(Reader):
    """Opens what the message brings, and has its model accept it."""

    remembers = sees_images = True

    async def run_turn(self, turn: Turn) -> ReplyParts:
        if turn.message.attachments:
            async for part in super().run_turn(turn):
                yield Accepted()
                yield part
        else:
            asked = await turn.toolbox.call("fetch_media", {"ref": self.messages[0].attachments[0].ref})
            yield Final(text="".join(block.text for block in asked if isinstance(block, TextBlock)))


async def test_an_opened_picture_that_the_model_accepted_is_in_the_manifest(house: House) -> None:
    house.agent = shower = Shower()
    house.prepare()._far_side.files["f1"] = PICTURE
    message = house.say("look")
    house.context = ContextConfig(attach_media="never")
    async with house.at_work() as gateway:
        await house.ask(gateway, replace(message, media=(house.picture(message),)))
        session = await gateway.store.session(message.conversation)
        await house.ask(gateway, house.say("again, please"))
        answer = house.wire.texts()[-1]
    assert [entry.artifact_id for entry in session.manifest] == [shower.messages[0].attachments[0].ref]
    assert "turn 1" in answer


async def test_the_story_of_the_message_says_that_the_agent_opened_it(house: House, reader: Reader) -> None:
    house.prepare()._far_side.files["f1"] = PICTURE
    message = house.say("look")
    async with house.at_work() as gateway:
        await house.ask(gateway, replace(message, media=(house.picture(message),)))
        story = await gateway.store.story(message.conversation, message.id)
    assert story is not None
    assert "the agent asked for it" in [step.reason for step in story.steps]
